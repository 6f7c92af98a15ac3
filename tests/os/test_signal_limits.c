/*
 * Signal sets: limits lose no signal, and numbers that nobody can receive are
 * refused.
 */
#include "support/test.h"
#include <signal.h>

START_TEST(signal_of_the_thread_library_is_refused)
{
    int number = 32 + _i; /* 32 and 33 belong to the C library */
    coil_signal_set set;

    assert_result(coil_signal_set_open(&set, &number, 1), -EINVAL);
}
END_TEST

static int limits_task(void *arg)
{
    static const int numbers[] = {SIGUSR1, SIGUSR2};
    unsigned time_outs = 0, received = 0;
    coil_signal_set set;

    (void)arg;
    assert_result(coil_signal_set_open(&set, numbers, 2), 0);
    for (int i = 0; i < 1000; i++) {
        coil_duration limit = COIL_US(i % 20);
        int result = (int)coil_timeout(coil_signal_set_wait_op(&set), limit);

        assert_result(result, -ETIME);
        time_outs++;
        raise(numbers[i % 2]);
        do
            result = (int)coil_timeout(coil_signal_set_wait_op(&set), limit);
        while (result == -ETIME && ++time_outs < 100000);
        ck_assert_int_eq(result, numbers[i % 2]);
        received++;
    }
    printf("%u signals, %u time-outs\n", received, time_outs);
    return coil_signal_set_close(&set);
}

START_TEST(limited_waits_lose_no_signal)
{
    assert_result(test_run(limits_task, NULL), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("signal_more");
    TCase *tests = tcase_create("signal_more");

    tcase_set_timeout(tests, 30);
    suite_add_tcase(suite, tests);
    tcase_add_loop_test(tests, signal_of_the_thread_library_is_refused, 0, 2);
    tcase_add_test(tests, limited_waits_lose_no_signal);
    return test_main(suite);
}
