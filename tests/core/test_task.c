/*
 * Tasks: spawning, arguments, stacks and names, the ready queue, sleeping, and
 * what is refused to a cancelled task or left behind by an earlier limit.
 */
#include "support/test.h"
#include <poll.h>
#include <sys/eventfd.h>

enum { DEFAULT_STACK = (TEST_SLOW ? 256 : 64) * 1024, LARGE_STACK = 1 << 20 };

static int log_entries[4096];
static int log_length;

static void log_add(int entry)
{
    ck_assert_int_lt(log_length, 4096);
    log_entries[log_length++] = entry;
}

static uint64_t turns(void)
{
    coil_stats stats;

    coil_context_stats(coil_context_current(), &stats, sizeof(stats));
    return stats.turns;
}

/* ------------------------------------------------------------------ spawn */

static int logging_task(void *arg)
{
    log_add(*(int *)arg);
    return 0;
}

static int spawn_many(void *arg)
{
    (void)arg;
    for (int i = 0; i < 2000; i++)
        assert_result(coil_spawn(NULL, logging_task, &i, sizeof(i)), 0);
    ck_assert_int_eq(log_length, 0);
    while (log_length < 2000)
        assert_result(coil_yield(), 0);
    for (int i = 0; i < 2000; i++)
        ck_assert_int_eq(log_entries[i], i);
    return 0;
}

START_TEST(spawned_tasks_run_in_order_and_not_inside_spawn)
{
    assert_result(test_run(spawn_many, NULL), 0);
}
END_TEST

static int nothing_task(void *arg)
{
    (void)arg;
    return 0;
}

START_TEST(spawn_without_function_or_context_is_refused)
{
    coil_task_options options = {.size = sizeof(options)};
    coil_context *context = test_context();

    assert_result(coil_spawn(context, NULL, NULL, 0), -EINVAL);
    assert_result(coil_spawn_with(context, &options, NULL, NULL, 0), -EINVAL);
    assert_result(coil_spawn(NULL, nothing_task, NULL, 0), -EINVAL);
    assert_result(coil_spawn_with(NULL, NULL, nothing_task, NULL, 0), -EINVAL);
    options.size = 0;
    assert_result(coil_spawn_with(context, &options, nothing_task, NULL, 0),
                  -EINVAL);
    assert_result(coil_context_run(context), 0);
    test_context_end(context);
}
END_TEST

/* -------------------------------------------------------------- arguments */

static unsigned char argument[LARGE_STACK];
static size_t argument_size;
static unsigned arguments_seen;

static unsigned char argument_byte(size_t i)
{
    return (unsigned char)(i * 7 + i / 251 + 1);
}

static int argument_task(void *arg)
{
    const unsigned char *bytes = arg;
    size_t wrong = 0;

    ck_assert_uint_eq((uintptr_t)arg % 16, 0);
    ck_assert(bytes != argument);
    for (size_t i = 0; i < argument_size; i++)
        wrong += bytes[i] != argument_byte(i);
    ck_assert_uint_eq(wrong, 0);
    arguments_seen++;
    return 0;
}

/* The caller's bytes are gone before the task runs. */
static int spawn_with_argument(coil_context *context, size_t stack, size_t size)
{
    coil_task_options options = {.size = sizeof(options), .stack_size = stack};
    int result;

    argument_size = size;
    for (size_t i = 0; i < size; i++)
        argument[i] = argument_byte(i);
    result = coil_spawn_with(context, &options, argument_task, argument, size);
    memset(argument, 0, sizeof(argument));
    if (result >= 0)
        assert_result(coil_context_run(context), 0);
    return result;
}

START_TEST(argument_is_copied_and_aligned_up_to_a_quarter_of_the_stack)
{
    static const size_t stacks[] = {0, LARGE_STACK};
    static const size_t quarters[] = {DEFAULT_STACK / 4, LARGE_STACK / 4};
    coil_context *context = test_context();

    for (unsigned i = 0; i < 2; i++) {
        const size_t sizes[] = {1, 2, 15, 16, 17, 4096, quarters[i]};

        for (size_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++)
            assert_result(spawn_with_argument(context, stacks[i], sizes[j]), 0);
        assert_result(spawn_with_argument(context, stacks[i], quarters[i] + 1),
                      -E2BIG);
    }
    ck_assert_uint_eq(arguments_seen, 14);
    test_context_end(context);
}
END_TEST

static int same_pointer_task(void *arg)
{
    ck_assert_ptr_eq(arg, &arguments_seen);
    arguments_seen++;
    return 0;
}

START_TEST(argument_of_size_zero_is_passed_itself)
{
    coil_context *context = test_context();

    assert_result(coil_spawn(context, same_pointer_task, &arguments_seen, 0),
                  0);
    assert_result(coil_context_run(context), 0);
    ck_assert_uint_eq(arguments_seen, 1);
    test_context_end(context);
}
END_TEST

/* ----------------------------------------------------------------- stacks */

static int stack_task(void *arg)
{
    size_t size = *(size_t *)arg;
    volatile char *bytes = __builtin_alloca(size);

    for (size_t i = 0; i < size; i++)
        bytes[i] = (char)i;
    log_add(bytes[size - 1] == (char)(size - 1));
    return 0;
}

START_TEST(stack_size_is_rounded_up_or_refused)
{
    static const size_t sizes[] = {1, 16 * 1024, 1 << 20, 3 << 20};
    static const size_t used[] = {8 * 1024, 8 * 1024, 960 << 10, 3 << 20};
    coil_task_options options = {.size = sizeof(options)};
    coil_context *context = test_context();

    for (int i = 0; i < 4; i++) {
        options.stack_size = sizes[i];
        assert_result(coil_spawn_with(context, &options, stack_task, &used[i],
                                      sizeof(used[i])),
                      0);
    }
    options.stack_size = SIZE_MAX;
    assert_result(coil_spawn_with(context, &options, stack_task, NULL, 0),
                  -EINVAL);
    options.stack_size = (size_t)1 << 40;
    assert_result(coil_spawn_with(context, &options, stack_task, NULL, 0),
                  -EINVAL);
    assert_result(coil_context_run(context), 0);
    ck_assert_int_eq(log_length, 4);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(log_entries[i], 1);
    test_context_end(context);
}
END_TEST

static int named_task(void *arg)
{
    ck_assert_str_eq(coil_task_name(coil_task_current()), arg);
    log_add(1);
    return 0;
}

START_TEST(task_has_the_name_it_was_given)
{
    static char name[] = "a name", none[] = "task";
    coil_task_options options = {.size = sizeof(options), .name = name};
    coil_context *context = test_context();

    assert_result(coil_spawn_with(context, &options, named_task, name, 0), 0);
    assert_result(coil_spawn_with(context, NULL, named_task, none, 0), 0);
    assert_result(coil_spawn(context, named_task, none, 0), 0);
    assert_result(coil_context_run(context), 0);
    ck_assert_int_eq(log_length, 3);
    test_context_end(context);
}
END_TEST

/* ------------------------------------------------------------ ready queue */

START_TEST(waits_outside_a_task_are_refused)
{
    coil_context *context = test_context();

    ck_assert_ptr_null(coil_task_current());
    ck_assert_ptr_null(coil_context_current());
    assert_result(coil_yield(), -EPERM);
    assert_result(coil_check(), -EPERM);
    assert_result(coil_sleep(COIL_MS(1)), -EPERM);
    assert_result(coil_sleep(0), -EPERM);
    assert_result(coil_sleep_until(coil_now()), -EPERM);
    assert_result(coil_timeout(coil_sleep_op(0), 1), -EPERM);
    assert_result(coil_poll(STDIN_FILENO, POLLIN), -EPERM);
    test_context_end(context);
}
END_TEST

static int yielding_task(void *arg)
{
    for (int i = 0; i < 1500; i++) {
        log_add(*(int *)arg);
        assert_result(coil_yield(), 0);
    }
    return 0;
}

START_TEST(yielding_tasks_alternate)
{
    coil_context *context = test_context();

    for (int i = 0; i < 2; i++)
        assert_result(coil_spawn(context, yielding_task, &i, sizeof(i)), 0);
    assert_result(coil_context_run(context), 0);
    ck_assert_int_eq(log_length, 3000);
    for (int i = 0; i < log_length; i++)
        ck_assert_int_eq(log_entries[i], i % 2);
    test_context_end(context);
}
END_TEST

/* What a spinning task must let through, and the turn in which it came. */
static struct {
    int descriptor;
    coil_time deadline;
    uint64_t asked, posted, read, timed;
} through;

static void note_turn(void *arg)
{
    *(uint64_t *)arg = turns();
}

static int reading_task(void *arg)
{
    (void)arg;
    assert_result(coil_poll(through.descriptor, POLLIN), POLLIN);
    note_turn(&through.read);
    return 0;
}

static int timing_task(void *arg)
{
    (void)arg;
    assert_result(coil_sleep_until(through.deadline), 0);
    note_turn(&through.timed);
    return 0;
}

static int spinning_task(void *arg)
{
    uint64_t due = 0, spins = 0;

    through.deadline = coil_now() + COIL_MS(5);
    assert_result(coil_spawn(NULL, reading_task, NULL, 0), 0);
    assert_result(coil_spawn(NULL, timing_task, NULL, 0), 0);
    for (int i = 0; i < 5000; i++)
        assert_result(coil_yield(), 0);
    through.asked = turns();
    assert_result(
        coil_context_post(coil_context_current(), note_turn, &through.posted),
        0);
    assert_result(eventfd_write(through.descriptor, 1), 0);
    while (!through.read || !through.posted || !through.timed) {
        assert_result(*(int *)arg ? coil_sleep(0) : coil_yield(), 0);
        if (!due && coil_now() >= through.deadline)
            due = turns();
        ck_assert_msg(!due || turns() <= due + 10, "starved");
        ck_assert_uint_lt(++spins, 100000000);
    }
    printf("turns late: post %d, reader %d, timer %d\n",
           (int)(through.posted - through.asked),
           (int)(through.read - through.asked), (int)(through.timed - due));
    ck_assert_uint_le(through.posted, through.asked + 2);
    ck_assert_uint_le(through.read, through.asked + 4);
    ck_assert_uint_le(through.timed, due + 2);
    return 0;
}

START_TEST(spinning_task_starves_nobody)
{
    through.descriptor = eventfd(0, EFD_CLOEXEC);
    assert_result(test_run(spinning_task, &_i), 0);
    close(through.descriptor);
}
END_TEST

/* --------------------------------------------------------------- sleeping */

struct sleeper {
    int number;
    int slot; /* of 40 us */
};

static int sleep_and_log(void *arg)
{
    struct sleeper *sleeper = arg;
    coil_duration duration = sleeper->slot * COIL_US(40);
    coil_time begin = coil_now();

    assert_result(coil_sleep(duration), 0);
    ck_assert_int_ge(coil_now() - begin, duration);
    log_add(sleeper->slot * 1000 + sleeper->number);
    return 0;
}

START_TEST(sleeping_tasks_wake_in_the_order_of_their_deadlines)
{
    coil_context *context = test_context();

    for (int i = 0; i < 500; i++) {
        struct sleeper sleeper = {i, 1 + i * 7919 % 100}; /* five of each */

        assert_result(
            coil_spawn(context, sleep_and_log, &sleeper, sizeof(sleeper)), 0);
    }
    assert_result(coil_context_run(context), 0);
    ck_assert_int_eq(log_length, 500);
    for (int i = 1; i < log_length; i++)
        ck_assert_int_gt(log_entries[i], log_entries[i - 1]);
    test_context_end(context);
}
END_TEST

static int sleep_until_times(void *arg)
{
    static const coil_time past[] = {INT64_MIN, -1, 0, 1};
    coil_time when = coil_now() + COIL_MS(3);

    (void)arg;
    for (int i = 0; i < 4; i++)
        assert_result(coil_sleep_until(past[i]), 0);
    assert_result(coil_sleep_until(coil_now() - 1), 0);
    ck_assert_int_lt(coil_now(), when + COIL_S(5));
    assert_result(coil_sleep_until(when), 0);
    ck_assert_int_ge(coil_now(), when);
    assert_result(coil_sleep(-1), 0);
    assert_result(coil_sleep(INT64_MIN), 0);
    return 0;
}

START_TEST(sleep_until_a_time_past_returns_at_once)
{
    assert_result(test_run(sleep_until_times, NULL), 0);
}
END_TEST

static int limit_sleeps(void *arg)
{
    static const struct {
        coil_duration duration, limit;
        int result;
    } cases[] = {
        {COIL_MS(3), COIL_S(100), 0},
        {COIL_S(100), COIL_MS(3), -ETIME},
        {COIL_MS(3), COIL_MS(3), 0},
        {COIL_FOREVER, COIL_MS(3), -ETIME},
        {COIL_MS(3), COIL_FOREVER, 0},
        {COIL_S(100), 0, -ETIME},
        {COIL_S(100), -1, -ETIME},
        {COIL_S(100), INT64_MIN, -ETIME},
        {COIL_FOREVER, 0, -ETIME},
        {0, 0, 0},
        {0, -1, 0},
        {-1, INT64_MIN, 0},
        {INT64_MIN, COIL_S(100), 0},
    };
    coil_time begin = coil_now();
    coil_operation twice;

    (void)arg;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_result(
            coil_timeout(coil_sleep_op(cases[i].duration), cases[i].limit),
            cases[i].result);
    twice = coil_limit(coil_sleep_op(COIL_S(100)), COIL_MS(3));
    assert_result(coil_await(coil_limit(twice, COIL_S(100))), -ETIME);
    assert_result(coil_timeout(twice, COIL_MS(1)), -ETIME);
    ck_assert_int_ge(coil_now() - begin, COIL_MS(19));
    ck_assert_int_lt(coil_now() - begin, COIL_S(20));
    return 0;
}

START_TEST(limited_sleep_ends_at_the_smaller_of_both_times)
{
    assert_result(test_run(limit_sleeps, NULL), 0);
}
END_TEST

static int write_later(void *arg)
{
    assert_result(coil_sleep(COIL_MS(20)), 0);
    assert_result(eventfd_write(*(int *)arg, 1), 0);
    return 0;
}

/* A wait with a limit that was not needed, then waits that the timer it left
 * behind must not end. */
static int wait_after_limit(void *arg)
{
    int ready = eventfd(1, EFD_CLOEXEC), later = eventfd(0, EFD_CLOEXEC);
    coil_operation poll_ready = coil_poll_op(ready, POLLIN);
    coil_operation poll_later = coil_poll_op(later, POLLIN);
    coil_duration limit = *(int *)arg ? COIL_S(100) : COIL_FOREVER;
    coil_time begin;

    assert_result(coil_timeout(poll_ready, COIL_MS(5)), POLLIN);
    assert_result(coil_spawn(NULL, write_later, &later, sizeof(later)), 0);
    assert_result(coil_timeout(poll_later, limit), POLLIN);
    assert_result(coil_timeout(poll_ready, COIL_MS(5)), POLLIN);
    begin = coil_now();
    assert_result(coil_timeout(coil_sleep_op(COIL_MS(20)), limit), 0);
    ck_assert_int_ge(coil_now() - begin, COIL_MS(20));
    assert_result(coil_timeout(coil_poll_op(ready, POLLPRI), COIL_MS(5)),
                  -ETIME);
    close(ready);
    close(later);
    return 0;
}

START_TEST(limit_of_an_earlier_wait_ends_no_later_one)
{
    assert_result(test_run(wait_after_limit, &_i), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("task");
    TCase *spawn = tcase_create("spawn"), *wait = tcase_create("wait");

    suite_add_tcase(suite, spawn);
    suite_add_tcase(suite, wait);
    tcase_set_timeout(spawn, 30);
    tcase_set_timeout(wait, 30);
    tcase_add_test(spawn, spawned_tasks_run_in_order_and_not_inside_spawn);
    tcase_add_test(spawn, spawn_without_function_or_context_is_refused);
    tcase_add_test(spawn,
                   argument_is_copied_and_aligned_up_to_a_quarter_of_the_stack);
    tcase_add_test(spawn, argument_of_size_zero_is_passed_itself);
    tcase_add_test(spawn, stack_size_is_rounded_up_or_refused);
    tcase_add_test(spawn, task_has_the_name_it_was_given);
    tcase_add_test(wait, waits_outside_a_task_are_refused);
    tcase_add_test(wait, yielding_tasks_alternate);
    tcase_add_loop_test(wait, spinning_task_starves_nobody, 0, 2);
    tcase_add_test(wait, sleeping_tasks_wake_in_the_order_of_their_deadlines);
    tcase_add_test(wait, sleep_until_a_time_past_returns_at_once);
    tcase_add_test(wait, limited_sleep_ends_at_the_smaller_of_both_times);
    tcase_add_loop_test(wait, limit_of_an_earlier_wait_ends_no_later_one, 0, 2);
    return test_main(suite);
}
