/*
 * The switch between two coroutines.
 */
#include "support/test.h"
#include "switch_cases.h"

START_TEST(switch_keeps_what_it_must)
{
    const char *wrong = switch_cases[_i].run();

    ck_assert_msg(!wrong, "%s: %s", switch_cases[_i].name, wrong);
}
END_TEST

static int printing_task(void *arg)
{
    char text[512];

    (void)arg;
    snprintf(text, sizeof(text), "%f %.17g", 1e300, 0.1);
    ck_assert_ptr_nonnull(strstr(text, "0.10000000000000001"));
    return 7;
}

START_TEST(floating_point_printing_fits_the_default_stack)
{
    ck_assert_int_eq(test_run(printing_task, NULL), 7);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("switch");
    TCase *tests = tcase_create("switch");

    tcase_set_timeout(tests, 30);
    tcase_add_loop_test(tests, switch_keeps_what_it_must, 0, SWITCH_CASES);
    tcase_add_test(tests, floating_point_printing_fits_the_default_stack);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
