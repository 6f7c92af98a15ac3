/*
 * Contexts: options, counters, what run() and coil_run return, and who hears
 * of a failed task.
 */
#include "support/test.h"
#include <fcntl.h>
#include <signal.h>

/* ---------------------------------------------------------------- options */

START_TEST(options_out_of_range_are_refused_in_words)
{
    static const struct {
        coil_context_options options;
        const char *word;
    } cases[] = {
        {{.size = 0}, "size"},
        {{.size = sizeof(size_t) - 1}, "size"},
        {{.size = sizeof(coil_context_options), .sq_entries = 3}, "4"},
        {{.size = sizeof(coil_context_options), .cq_entries = 7}, "8"},
        {{.size = sizeof(coil_context_options),
          .sq_entries = 16,
          .cq_entries = 8},
         "completion"},
        {{.size = sizeof(coil_context_options), .stack_size = SIZE_MAX},
         "stack size"},
        {{.size = sizeof(coil_context_options), .stack_size = (size_t)1 << 40},
         "stack size"},
    };
    size_t before = test_descriptors();

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        coil_context *context = (coil_context *)&before;
        coil_error error = {0};

        assert_result(coil_context_create(&context, &cases[i].options, &error),
                      -EINVAL);
        assert_result(error.code, -EINVAL);
        ck_assert_msg(strstr(error.text, cases[i].word) != NULL &&
                          strstr(error.text, "EINVAL") != NULL,
                      "case %zu: %s", i, error.text);
        ck_assert_ptr_eq(context, &before);
        assert_result(coil_context_create(&context, &cases[i].options, NULL),
                      -EINVAL);
    }
    ck_assert_uint_eq(test_descriptors(), before);
}
END_TEST

static int count_task(void *arg)
{
    ++*(int *)arg;
    return 0;
}

static void run_counting(const coil_context_options *options)
{
    coil_context *context;
    int count = 0;

    assert_result(coil_context_create(&context, options, NULL), 0);
    assert_result(coil_spawn(context, count_task, &count, 0), 0);
    assert_result(coil_context_run(context), 0);
    ck_assert_int_eq(count, 1);
    test_context_end(context);
}

START_TEST(least_rings_default_ones_and_a_shorter_structure_work)
{
    coil_context_options options = {
        .size = sizeof(options), .sq_entries = 4, .cq_entries = 8};

    run_counting(&options);
    run_counting(NULL);
    options = (coil_context_options){.size = sizeof(options)};
    run_counting(&options);
    /* As a caller knows it whose structure ends before the stack size. */
    memset(&options, 0xff, sizeof(options));
    options.size = offsetof(coil_context_options, stack_size);
    options.sq_entries = 4;
    options.cq_entries = 8;
    run_counting(&options);
}
END_TEST

START_TEST(stack_of_every_task_has_the_size_of_the_options)
{
    coil_context_options options = test_options();
    static char argument[1 << 19];
    coil_context *context;

    options.stack_size = 1 << 20;
    assert_result(coil_context_create(&context, &options, NULL), 0);
    assert_result(coil_spawn(context, count_task, argument, (1 << 18) + 1),
                  -E2BIG);
    assert_result(coil_spawn(context, count_task, argument, 1 << 18), 0);
    assert_result(coil_context_run(context), 0);
    test_context_end(context);
}
END_TEST

/* --------------------------------------------------------------- counters */

static int sleeping_task(void *arg)
{
    coil_stats stats;

    coil_context_stats(coil_context_current(), &stats, sizeof(stats));
    ck_assert_uint_ge(stats.tasks_live, 1);
    assert_result(coil_sleep(COIL_MS(1)), 0);
    ++*(int *)arg;
    return 0;
}

START_TEST(counters_tell_what_happened_and_write_no_more_than_asked)
{
    coil_context *context = test_context();
    unsigned char bytes[sizeof(coil_stats) + 8];
    coil_stats stats;
    int count = 0;

    for (int i = 0; i < 3; i++)
        assert_result(coil_spawn(context, sleeping_task, &count, 0), 0);
    coil_context_stats(context, &stats, sizeof(stats));
    ck_assert_uint_eq(stats.tasks_live, 3);
    ck_assert_uint_eq(stats.turns, 0);
    assert_result(coil_context_run(context), 0);
    coil_context_stats(context, &stats, sizeof(stats));
    ck_assert_int_eq(count, 3);
    ck_assert_uint_eq(stats.tasks_spawned, 3);
    ck_assert_uint_eq(stats.tasks_live, 0);
    ck_assert_uint_eq(stats.stacks, 3);
    ck_assert_uint_eq(stats.timers_armed, 0);
    ck_assert_uint_eq(stats.in_flight, 0);
    ck_assert_uint_gt(stats.turns, 1);
    ck_assert_uint_gt(stats.enters, 0);
    ck_assert_uint_eq(stats.sqes, stats.cqes);
    for (size_t size = 0; size <= sizeof(bytes); size++) {
        memset(bytes, 0xa5, sizeof(bytes));
        coil_context_stats(context, (coil_stats *)(void *)bytes, size);
        ck_assert_mem_eq(bytes, &stats,
                         size < sizeof(stats) ? size : sizeof(stats));
        for (size_t i = size; i < sizeof(bytes); i++)
            ck_assert_uint_eq(bytes[i], 0xa5);
    }
    test_context_end(context);
}
END_TEST

/* -------------------------------------------------------------------- run */

static int current_task(void *arg)
{
    ck_assert_ptr_eq(coil_context_current(), arg);
    return -EIO; /* not the result of run() */
}

START_TEST(run_returns_zero_whenever_there_is_no_work)
{
    coil_context *context = test_context();

    assert_result(coil_context_destroy(NULL), 0);
    ck_assert_int_ge(fcntl(coil_context_ring_fd(context), F_GETFD), FD_CLOEXEC);
    for (int i = 0; i < 3; i++) {
        assert_result(coil_context_run(context), 0);
        assert_result(coil_spawn(context, current_task, context, 0), 0);
        assert_result(coil_context_run(context), 0);
        ck_assert_ptr_null(coil_context_current());
    }
    test_context_end(context);
}
END_TEST

/* ----------------------------------------------------------- failed tasks */

static struct {
    coil_context *context;
    char name[32];
    coil_task_fn *fn;
    int result;
    unsigned count;
} failure;

static void note_failure(coil_context *context, const char *name,
                         coil_task_fn *fn, int result)
{
    failure.context = context;
    snprintf(failure.name, sizeof(failure.name), "%s", name);
    failure.fn = fn;
    failure.result = result;
    failure.count++;
}

static int return_task(void *arg)
{
    return *(int *)arg;
}

static void run_named(coil_context *context, const char *name, int result)
{
    coil_task_options options = {.size = sizeof(options), .name = name};

    assert_result(coil_spawn_with(context, &options, return_task, &result,
                                  sizeof(result)),
                  0);
    assert_result(coil_context_run(context), 0);
}

START_TEST(failed_task_is_reported_with_its_name_but_not_for_a_stop)
{
    coil_context_options options = test_options();
    coil_context *context;

    options.on_task_failed = note_failure;
    assert_result(coil_context_create(&context, &options, NULL), 0);
    run_named(context, "good", 0);
    run_named(context, "better", 5);
    ck_assert_uint_eq(failure.count, 0);
    run_named(context, "bad", -EIO);
    ck_assert_uint_eq(failure.count, 1);
    ck_assert_ptr_eq(failure.context, context);
    ck_assert_str_eq(failure.name, "bad");
    ck_assert(failure.fn == return_task);
    assert_result(failure.result, -EIO);
    run_named(context, "cancelled by nobody", -ECANCELED);
    ck_assert_uint_eq(failure.count, 2);
    coil_context_stop(context);
    run_named(context, "stopped", -ECANCELED);
    ck_assert_uint_eq(failure.count, 2);
    coil_context_stop(context);
    run_named(context, NULL, -EPIPE);
    ck_assert_uint_eq(failure.count, 3);
    ck_assert_str_eq(failure.name, "task");
    run_named(context, "after the stop", -ECANCELED);
    ck_assert_uint_eq(failure.count, 4);
    test_context_end(context);
}
END_TEST

/* --------------------------------------------------------------- coil_run */

START_TEST(coil_run_returns_the_result_of_its_function)
{
    static const int results[] = {0, 1, INT32_MAX, -EIO, -EPERM, -ECANCELED};
    static char argument[16 * 1024 + 1];
    size_t before = test_descriptors();

    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
        assert_result(coil_run(return_task, &results[i], sizeof(results[i])),
                      results[i]);
    assert_result(coil_run(NULL, NULL, 0), -EINVAL);
    assert_result(coil_run(return_task, argument, sizeof(argument)), -E2BIG);
    ck_assert_uint_eq(test_descriptors(), before);
}
END_TEST

/* How a task that sleeps beside the first one ended. */
static int beside;

static int sleep_beside(void *arg)
{
    beside = coil_sleep(*(coil_duration *)arg);
    return beside;
}

struct first {
    coil_duration beside;
    int result;
    int signal;
};

static int first_task(void *arg)
{
    struct first *first = arg;

    if (first->beside)
        assert_result(coil_spawn(NULL, sleep_beside, &first->beside,
                                 sizeof(first->beside)),
                      0);
    if (first->signal) {
        assert_result(coil_sleep(COIL_MS(1)), 0);
        ck_assert_int_eq(raise(first->signal), 0);
        return coil_sleep(COIL_MS(500));
    }
    return first->result;
}

START_TEST(coil_run_stops_the_others_if_its_function_failed)
{
    struct first first = {.beside = COIL_FOREVER, .result = -EIO};

    beside = 1;
    assert_result(coil_run(first_task, &first, sizeof(first)), -EIO);
    assert_result(beside, -ECANCELED);
    first.result = -ECANCELED; /* by nobody's order */
    beside = 1;
    assert_result(coil_run(first_task, &first, sizeof(first)), -ECANCELED);
    assert_result(beside, -ECANCELED);
    first = (struct first){.beside = COIL_MS(3), .result = 7};
    beside = 1;
    assert_result(coil_run(first_task, &first, sizeof(first)), 7);
    assert_result(beside, 0);
}
END_TEST

static void (*disposition(int number))(int)
{
    struct sigaction action;

    ck_assert_int_eq(sigaction(number, NULL, &action), 0);
    return action.sa_handler;
}

START_TEST(coil_run_is_stopped_by_a_signal_and_gives_it_back)
{
    static const int signals[] = {SIGTERM, SIGINT, SIGTERM};

    signal(SIGTERM, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    for (int i = 0; i < 3; i++) {
        struct first first = {.beside = COIL_FOREVER, .signal = signals[i]};

        beside = 1;
        assert_result(coil_run(first_task, &first, sizeof(first)), 0);
        assert_result(beside, -ECANCELED);
        ck_assert(disposition(SIGTERM) == SIG_DFL);
        ck_assert(disposition(SIGINT) == SIG_DFL);
    }
}
END_TEST

static int raise_ignored(void *arg)
{
    (void)arg;
    ck_assert(disposition(SIGINT) == SIG_IGN);
    ck_assert(disposition(SIGTERM) != SIG_DFL);
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(raise(SIGINT), 0);
        assert_result(coil_sleep(COIL_US(100)), 0);
    }
    ck_assert_int_eq(raise(SIGTERM), 0);
    return coil_sleep(COIL_FOREVER);
}

START_TEST(coil_run_leaves_an_ignored_signal_ignored)
{
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    assert_result(coil_run(raise_ignored, NULL, 0), 0);
    ck_assert(disposition(SIGINT) == SIG_IGN);
    ck_assert(disposition(SIGTERM) == SIG_DFL);
}
END_TEST

static unsigned char pattern[16 * 1024];

static int argument_task(void *arg)
{
    ck_assert_uint_eq((uintptr_t)arg % 16, 0);
    ck_assert(arg != pattern);
    ck_assert_mem_eq(arg, pattern, sizeof(pattern));
    memset(arg, 0, sizeof(pattern));
    return 3;
}

static int same_pointer_task(void *arg)
{
    ck_assert_ptr_eq(arg, pattern);
    return 4;
}

START_TEST(coil_run_copies_the_argument)
{
    for (size_t i = 0; i < sizeof(pattern); i++)
        pattern[i] = (unsigned char)(i * 31 + 1);
    assert_result(coil_run(argument_task, pattern, sizeof(pattern)), 3);
    ck_assert_uint_eq(pattern[1], 32);
    assert_result(coil_run(same_pointer_task, pattern, 0), 4);
}
END_TEST

static int run_inside(void *arg)
{
    size_t before = test_descriptors();

    assert_result(coil_run(return_task, arg, sizeof(int)), -EPERM);
    ck_assert_uint_eq(test_descriptors(), before);
    return 0;
}

START_TEST(coil_run_inside_a_task_is_refused)
{
    int result = 1;

    assert_result(coil_run(run_inside, &result, sizeof(result)), 0);
    assert_result(test_run(run_inside, &result), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("context");
    TCase *context = tcase_create("context"), *run = tcase_create("coil_run");

    suite_add_tcase(suite, context);
    suite_add_tcase(suite, run);
    tcase_set_timeout(context, 30);
    tcase_set_timeout(run, 30);
    tcase_add_test(context, options_out_of_range_are_refused_in_words);
    tcase_add_test(context,
                   least_rings_default_ones_and_a_shorter_structure_work);
    tcase_add_test(context, stack_of_every_task_has_the_size_of_the_options);
    tcase_add_test(context,
                   counters_tell_what_happened_and_write_no_more_than_asked);
    tcase_add_test(context, run_returns_zero_whenever_there_is_no_work);
    tcase_add_test(context,
                   failed_task_is_reported_with_its_name_but_not_for_a_stop);
    tcase_add_test(run, coil_run_returns_the_result_of_its_function);
    tcase_add_test(run, coil_run_stops_the_others_if_its_function_failed);
    tcase_add_test(run, coil_run_is_stopped_by_a_signal_and_gives_it_back);
    tcase_add_test(run, coil_run_leaves_an_ignored_signal_ignored);
    tcase_add_test(run, coil_run_copies_the_argument);
    tcase_add_test(run, coil_run_inside_a_task_is_refused);
    return test_main(suite);
}
