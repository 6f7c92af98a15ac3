/*
 * Tasks that are made first and started, awaited or destroyed later: every
 * state, depth and number.
 */
#include "support/test.h"

enum {
    MANY = TEST_SLOW ? 20000 : 1000000,
    DEEP = TEST_SLOW ? 1000 : 10000,
    STACK_OF_DEEP = TEST_SLOW ? 64 * 1024 : 16 * 1024
};

#define TASK_TEST(name, fn)                                                    \
    START_TEST(name)                                                           \
    {                                                                          \
        assert_result(test_run(fn, NULL), 0);                                  \
    }                                                                          \
    END_TEST

static unsigned ran;

static int double_task(void *arg)
{
    ran++;
    return *(int *)arg * 2;
}

static int sleep_task(void *arg)
{
    int result;

    ran++;
    result = coil_sleep(*(coil_duration *)arg);
    ran++;
    return result < 0 ? result : 5;
}

static coil_task *make(coil_task_fn *fn, const void *arg, size_t size)
{
    coil_task *task;

    assert_result(coil_task_create(&task, fn, arg, size), 0);
    ck_assert(!coil_task_done(task));
    return task;
}

static coil_task *make_sleeper(coil_duration duration)
{
    return make(sleep_task, &duration, sizeof(duration));
}

/* ------------------------------------------------------------ number, depth */

static int nothing_task(void *arg)
{
    (void)arg;
    return 1;
}

static int many_task(void *arg)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    coil_time begin = coil_now();
    uint64_t before, after;
    coil_stats stats;
    long sum = 0;

    (void)arg;
    coil_context_stats(coil_context_current(), &stats, sizeof(stats));
    before = stats.turns;
    for (int i = 0; i < MANY; i++) {
        coil_task *task;

        if (coil_task_create(&task, nothing_task, NULL, 0) < 0)
            break;
        sum += coil_task_await(&task);
    }
    ck_assert_int_eq(sum, MANY);
    ck_assert_uint_eq((uintptr_t)__builtin_frame_address(0), here);
    coil_context_stats(coil_context_current(), &stats, sizeof(stats));
    after = stats.turns;
    ck_assert_uint_eq(after, before); /* the loop had no part in it */
    ck_assert_uint_le(stats.stacks, 2);
    printf("%d awaits, %.1f ns each\n", MANY,
           (double)(coil_now() - begin) / MANY);
    return 0;
}

TASK_TEST(await_in_a_loop_needs_no_stack_and_no_loop, many_task)

/* Each level awaits the next; the last one sleeps, or ends at once. */
struct level {
    int left;
    bool sleeps;
    size_t *ret_frame; /* bytes of stack in use, in the deepest one */
};

static int level_task(void *arg)
{
    coil_task_options options = {.size = sizeof(options),
                                 .stack_size = STACK_OF_DEEP};
    struct level level = *(struct level *)arg;
    coil_task *task;
    int result;

    if (!level.left) {
        *level.ret_frame = (size_t)((char *)arg - (char *)&result);
        return level.sleeps ? coil_sleep(COIL_MS(1)) : 0;
    }
    level.left--;
    assert_result(coil_task_create_with(&task, NULL, &options, level_task,
                                        &level, sizeof(level)),
                  0);
    result = coil_task_await(&task);
    return result < 0 ? result : result + 1;
}

static int deep_task(void *arg)
{
    size_t frame = 0, shallow_frame = 0;

    (void)arg;
    for (int sleeps = 0; sleeps < 2; sleeps++) {
        struct level level = {0, sleeps, &shallow_frame};

        assert_result(level_task(&level), 0);
        level = (struct level){1, sleeps, &shallow_frame};
        assert_result(level_task(&level), 1);
        level = (struct level){DEEP, sleeps, &frame};
        assert_result(level_task(&level), DEEP);
        ck_assert_uint_eq(frame, shallow_frame);
    }
    return 0;
}

static int deep_cancel_task(void *arg)
{
    size_t frame;
    struct level level = {DEEP, true, &frame};
    coil_scope scope;

    (void)arg;
    coil_scope_begin(&scope, COIL_FOREVER);
    coil_scope_cancel(&scope);
    assert_result(level_task(&level), -ECANCELED);
    assert_result(coil_scope_end(&scope), -ECANCELED);
    return 0;
}

static int deep_stop_task(void *arg)
{
    size_t frame;
    struct level level = {DEEP, true, &frame};

    (void)arg;
    coil_context_stop(coil_context_current());
    assert_result(level_task(&level), -ECANCELED);
    return 0;
}

TASK_TEST(await_goes_ten_thousand_deep_on_constant_stacks, deep_task)
TASK_TEST(cancel_reaches_ten_thousand_deep, deep_cancel_task)
TASK_TEST(stop_reaches_ten_thousand_deep, deep_stop_task)

/* ------------------------------------------------------------------ states */

static int order_task(void *arg)
{
    int number = 21;
    coil_task *task = make(double_task, &number, sizeof(number));

    (void)arg;
    ran = 0;
    number = 0; /* it has a copy */
    assert_result(coil_yield(), 0);
    ck_assert_uint_eq(ran, 0); /* lazy */
    assert_result(coil_task_await(&task), 42);
    ck_assert_uint_eq(ran, 1);
    ck_assert_ptr_null(task);
    assert_result(coil_task_await(&task), -EINVAL);
    return 0;
}

static int started_task(void *arg)
{
    coil_task *task = make_sleeper(COIL_MS(1));

    (void)arg;
    ran = 0;
    assert_result(coil_task_start(task), 0);
    assert_result(coil_task_start(task), -EBUSY);
    ck_assert_uint_eq(ran, 0); /* in the next turn */
    while (!ran)
        assert_result(coil_yield(), 0);
    assert_result(coil_task_await(&task), 5);
    task = make_sleeper(1);
    assert_result(coil_task_start(task), 0);
    while (!coil_task_done(task))
        assert_result(coil_yield(), 0);
    assert_result(coil_task_start(task), -EBUSY);
    assert_result(coil_task_await(&task), 5);
    ck_assert_uint_eq(ran, 4);
    return 0;
}

static int destroy_task(void *arg)
{
    coil_time begin = coil_now();
    coil_task *task = NULL;
    coil_scope scope;

    (void)arg;
    ran = 0;
    coil_task_destroy(&task);
    task = make_sleeper(COIL_S(100));
    coil_task_destroy(&task); /* never ran */
    ck_assert_ptr_null(task);
    ck_assert_uint_eq(ran, 0);
    task = make_sleeper(COIL_S(100));
    assert_result(coil_task_start(task), 0);
    coil_task_destroy(&task); /* started, not run yet: it runs to its end */
    ck_assert_uint_eq(ran, 2);
    task = make_sleeper(COIL_S(100));
    assert_result(coil_task_start(task), 0);
    while (ran < 3)
        assert_result(coil_yield(), 0);
    coil_task_destroy(&task);
    ck_assert_uint_eq(ran, 4);
    task = make_sleeper(0);
    assert_result(coil_task_start(task), 0);
    while (!coil_task_done(task))
        assert_result(coil_yield(), 0);
    coil_task_destroy(&task);
    coil_scope_begin(&scope, 0);
    task = make_sleeper(COIL_S(100));
    assert_result(coil_task_start(task), 0);
    coil_task_destroy(&task); /* also in a cancelled scope */
    (void)coil_scope_end(&scope);
    ck_assert_uint_eq(ran, 8);
    ck_assert_int_lt(coil_now() - begin, COIL_S(50));
    return 0;
}

TASK_TEST(task_is_lazy_and_awaited_once, order_task)
TASK_TEST(started_task_runs_beside_its_creator, started_task)
TASK_TEST(destroy_ends_a_task_in_every_state, destroy_task)

/* -------------------------------------------------------------- who waits */

static coil_task *shared;
static int second_result;

static int second_task(void *arg)
{
    coil_task *task = shared;

    (void)arg;
    second_result = coil_task_await(&task);
    ck_assert_ptr_eq(task, shared); /* kept */
    return 0;
}

static int two_task(void *arg)
{
    coil_task *task = shared = make_sleeper(COIL_MS(2));

    (void)arg;
    second_result = 1;
    assert_result(coil_task_start(task), 0);
    assert_result(coil_spawn(NULL, second_task, NULL, 0), 0);
    assert_result(coil_task_await(&task), 5);
    assert_result(second_result, -EBUSY);
    return 0;
}

static int circle_task(void *arg)
{
    coil_task *task = *(coil_task **)arg;

    return coil_task_await(&task);
}

/* The inner one waits for this one, which waits for it. */
static int outer_task(void *arg)
{
    coil_task *self = coil_task_current();
    coil_task *inner = make(circle_task, &self, sizeof(self));

    (void)arg;
    return coil_task_await(&inner);
}

static int deadlock_task(void *arg)
{
    coil_task *self = coil_task_current();
    coil_task *outer = make(outer_task, NULL, 0);

    (void)arg;
    assert_result(coil_task_await(&self), -EINVAL); /* spawned */
    assert_result(coil_task_start(outer), 0);
    assert_result(coil_sleep(COIL_US(10)), 0);
    assert_result(coil_task_await(&outer), -EDEADLK);
    return 0;
}

static int scope_reaches_task(void *arg)
{
    coil_task *task = make_sleeper(COIL_S(100));
    coil_scope scope;

    (void)arg;
    coil_scope_begin(&scope, COIL_MS(2));
    assert_result(coil_task_await(&task), -ECANCELED); /* lazy */
    assert_result(coil_scope_end(&scope), -ETIME);
    task = make_sleeper(COIL_S(100));
    assert_result(coil_task_start(task), 0);
    assert_result(coil_sleep(COIL_US(100)), 0);
    coil_scope_begin(&scope, COIL_MS(2));
    assert_result(coil_task_await(&task), -ECANCELED); /* started */
    assert_result(coil_scope_end(&scope), -ETIME);
    task = make_sleeper(COIL_MS(1));
    assert_result(coil_task_start(task), 0);
    coil_scope_begin(&scope, 0);
    assert_result(coil_task_await(&task), -ECANCELED); /* cancelled before */
    assert_result(coil_scope_end(&scope), -ETIME);
    return 0;
}

/* A started task is not in its creator's scope until it is awaited. */
static int own_scope_task(void *arg)
{
    coil_task *task = make_sleeper(COIL_MS(5));
    coil_scope scope;

    (void)arg;
    coil_scope_begin(&scope, COIL_FOREVER);
    assert_result(coil_task_start(task), 0);
    coil_scope_cancel(&scope);
    assert_result(coil_yield(), -ECANCELED);
    assert_result(coil_scope_end(&scope), -ECANCELED);
    assert_result(coil_task_await(&task), 5);
    return 0;
}

TASK_TEST(second_awaiter_is_busy, two_task)
TASK_TEST(task_that_waits_for_the_caller_is_a_deadlock, deadlock_task)
TASK_TEST(cancel_reaches_a_task_while_it_is_awaited, scope_reaches_task)
TASK_TEST(started_task_has_a_scope_of_its_own, own_scope_task)

/* ------------------------------------------------------------ as operation */

static int operation_task(void *arg)
{
    coil_task *task = make_sleeper(COIL_MS(1));
    coil_request requests[2];

    (void)arg;
    assert_result(coil_await(coil_task_await_op(&task)), 5);
    ck_assert_ptr_null(task);
    assert_result(coil_await(coil_task_await_op(&task)), -EINVAL);
    task = make_sleeper(COIL_S(100));
    assert_result(coil_timeout(coil_task_await_op(&task), COIL_MS(2)), -ETIME);
    ck_assert_ptr_null(task);
    task = make_sleeper(COIL_S(100));
    assert_result(coil_timeout(coil_task_await_op(&task), 0), -ETIME);
    task = make_sleeper(COIL_S(100));
    coil_request_start(&requests[0], coil_task_await_op(&task));
    coil_request_start(&requests[1], coil_sleep_op(COIL_MS(1)));
    assert_result(coil_await_any(requests, 2), 1);
    assert_result(requests[0].result, -ECANCELED);
    task = make_sleeper(COIL_MS(1));
    coil_request_start(&requests[0], coil_task_await_op(&task));
    coil_request_start(&requests[1], coil_sleep_op(COIL_S(100)));
    assert_result(coil_await_any(requests, 2), 0);
    assert_result(requests[0].result, 5);
    return 0;
}

/* Ignores cancellation for a while; the limit waits for it all the same. */
static int stubborn_task(void *arg)
{
    for (int i = 0; i < 100; i++)
        (void)coil_sleep(COIL_S(100));
    ran = 1;
    (void)arg;
    return 9;
}

static int stubborn_limit_task(void *arg)
{
    coil_task *task = make(stubborn_task, NULL, 0);

    (void)arg;
    ran = 0;
    assert_result(coil_timeout(coil_task_await_op(&task), COIL_MS(1)), 9);
    ck_assert_uint_eq(ran, 1);
    return 0;
}

TASK_TEST(task_as_an_operation_can_be_limited_and_raced, operation_task)
TASK_TEST(limit_waits_for_a_task_that_ignores_it, stubborn_limit_task)

/* -------------------------------------------------------- outside, misuse */

static coil_context *other;

static int foreign_task(void *arg)
{
    coil_task *task;

    (void)arg;
    assert_result(
        coil_task_create_with(&task, other, NULL, nothing_task, NULL, 0), 0);
    assert_result(coil_task_await(&task), -EXDEV);
    ck_assert_ptr_nonnull(task);
    coil_task_destroy(&task);
    return 0;
}

static void destroy_posted(void *arg)
{
    coil_task_destroy(arg);
}

static int post_task(void *arg)
{
    coil_task *task = make_sleeper(COIL_S(100));

    (void)arg;
    ran = 0;
    assert_result(coil_task_start(task), 0);
    while (!ran)
        assert_result(coil_yield(), 0);
    assert_result(
        coil_context_post(coil_context_current(), destroy_posted, &task), 0);
    while (ran < 2)
        assert_result(coil_yield(), 0);
    ck_assert_ptr_null(task);
    return 0;
}

START_TEST(task_of_another_context_or_outside_a_task_is_refused)
{
    coil_task *task;

    assert_result(coil_task_create(&task, nothing_task, NULL, 0), -EINVAL);
    other = test_context();
    assert_result(
        coil_task_create_with(&task, other, NULL, nothing_task, NULL, 0), 0);
    assert_result(coil_task_await(&task), -EPERM);
    assert_result(coil_task_start(task), 0);
    assert_result(coil_context_run(other), 0);
    ck_assert(coil_task_done(task));
    coil_task_destroy(&task);
    assert_result(test_run(foreign_task, NULL), 0);
    test_context_end(other);
    assert_result(test_run(post_task, NULL), 0);
}
END_TEST

START_TEST(task_that_nobody_took_is_reported)
{
    coil_context *context = test_context();
    coil_task *tasks[2];

    test_catch_messages();
    for (int i = 0; i < 2; i++)
        assert_result(coil_task_create_with(&tasks[i], context, NULL,
                                            nothing_task, NULL, 0),
                      0);
    assert_result(coil_task_start(tasks[1]), 0);
    assert_result(coil_context_run(context), 0);
    assert_result(coil_context_destroy(context), 0);
    ck_assert_uint_eq(test_messages.of_kind[COIL_MESSAGE_LEAK], 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("await");
    TCase *cases = tcase_create("await");

    tcase_add_test(cases, await_in_a_loop_needs_no_stack_and_no_loop);
    tcase_add_test(cases, await_goes_ten_thousand_deep_on_constant_stacks);
    tcase_add_test(cases, cancel_reaches_ten_thousand_deep);
    tcase_add_test(cases, stop_reaches_ten_thousand_deep);
    tcase_add_test(cases, task_is_lazy_and_awaited_once);
    tcase_add_test(cases, started_task_runs_beside_its_creator);
    tcase_add_test(cases, destroy_ends_a_task_in_every_state);
    tcase_add_test(cases, second_awaiter_is_busy);
    tcase_add_test(cases, task_that_waits_for_the_caller_is_a_deadlock);
    tcase_add_test(cases, cancel_reaches_a_task_while_it_is_awaited);
    tcase_add_test(cases, started_task_has_a_scope_of_its_own);
    tcase_add_test(cases, task_as_an_operation_can_be_limited_and_raced);
    tcase_add_test(cases, limit_waits_for_a_task_that_ignores_it);
    tcase_add_test(cases, task_of_another_context_or_outside_a_task_is_refused);
    tcase_add_test(cases, task_that_nobody_took_is_reported);
    suite_add_tcase(suite, cases);
    return test_main(suite);
}
