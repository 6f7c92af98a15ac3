/*
 * Scopes in one task and over several: nesting, limits, shields, what is
 * refused, and what scope_end says about it.
 */
#include "support/test.h"

/* A wait that only cancellation or time ends. */
static int never(void)
{
    return coil_sleep(COIL_FOREVER);
}

/* Runs `fn` as the only task. */
#define TASK_TEST(name, fn)                                                    \
    START_TEST(name)                                                           \
    {                                                                          \
        assert_result(test_run(fn, NULL), 0);                                  \
    }                                                                          \
    END_TEST

/* ------------------------------------------------------------------ limits */

static int limit_task(void *arg)
{
    coil_time begin = coil_now();
    coil_scope scope;

    (void)arg;
    coil_scope_begin(&scope, COIL_MS(20));
    ck_assert_int_le(coil_scope_remaining(), COIL_MS(20));
    ck_assert_int_gt(coil_scope_remaining(), 0);
    assert_result(coil_sleep(COIL_MS(1)), 0);
    assert_result(never(), -ECANCELED);
    ck_assert_int_ge(coil_now() - begin, COIL_MS(20));
    ck_assert_int_eq(coil_scope_remaining(), 0);
    assert_result(never(), -ECANCELED);
    assert_result(coil_yield(), -ECANCELED);
    assert_result(coil_check(), -ECANCELED);
    assert_result(coil_scope_end(&scope), -ETIME);
    assert_result(coil_sleep(COIL_MS(1)), 0);
    ck_assert_int_eq(coil_scope_remaining(), COIL_FOREVER);
    return 0;
}

static int in_time_task(void *arg)
{
    coil_scope scope;

    (void)arg;
    coil_scope_begin(&scope, COIL_MS(5));
    assert_result(coil_sleep(COIL_MS(1)), 0);
    assert_result(coil_scope_end(&scope), 0);
    /* Its timer goes off in here and must hit nothing. */
    assert_result(coil_sleep(COIL_MS(20)), 0);
    return 0;
}

/* The limit passes, but no wait is refused for it. */
static int unnoticed_task(void *arg)
{
    coil_scope scope;
    coil_time begin = coil_now();

    (void)arg;
    coil_scope_begin(&scope, COIL_MS(1));
    while (coil_now() - begin < COIL_MS(3))
        ;
    assert_result(coil_scope_end(&scope), 0);
    return 0;
}

static int computing_task(void *arg)
{
    coil_scope outer, inner;
    coil_time begin = coil_now();

    (void)arg;
    coil_scope_begin(&outer, COIL_MS(10));
    coil_scope_begin(&inner, COIL_FOREVER);
    while (coil_check() == 0)
        ck_assert_int_lt(coil_now() - begin, COIL_S(10));
    ck_assert_int_ge(coil_now() - begin, COIL_MS(10));
    assert_result(coil_scope_end(&inner), -ECANCELED);
    assert_result(coil_scope_end(&outer), -ETIME);
    return 0;
}

static int durations_task(void *arg)
{
    static const coil_duration now[] = {0, -1, INT64_MIN, -COIL_FOREVER};
    static const coil_duration later[] = {
        COIL_FOREVER, COIL_FOREVER - 1, COIL_S(400LL * 365 * 86400),
        COIL_S(UINT64_MAX), COIL_S(INT64_MAX)};
    coil_scope scope;

    (void)arg;
    for (size_t i = 0; i < 4; i++) {
        coil_scope_begin(&scope, now[i]);
        ck_assert_int_eq(coil_scope_remaining(), 0);
        assert_result(never(), -ECANCELED);
        assert_result(coil_scope_end(&scope), -ETIME);
        coil_scope_begin(&scope, now[i]);
        assert_result(coil_scope_end(&scope), 0); /* nothing was refused */
    }
    for (size_t i = 0; i < 5; i++) {
        coil_scope_begin(&scope, later[i]);
        ck_assert_int_gt(coil_scope_remaining(), COIL_S(1));
        assert_result(coil_sleep(COIL_US(10)), 0);
        assert_result(coil_scope_end(&scope), 0);
    }
    return 0;
}

TASK_TEST(scope_whose_limit_passes_refuses_waits_and_says_so, limit_task)
TASK_TEST(scope_that_ends_in_time_leaves_nothing_behind, in_time_task)
TASK_TEST(limit_that_no_wait_noticed_is_none, unnoticed_task)
TASK_TEST(check_sees_a_limit_pass_without_any_wait, computing_task)
TASK_TEST(durations_at_the_edges_are_now_or_never, durations_task)

/* ----------------------------------------------------------------- nesting */

/* Whose limit passes, of three nested scopes, and what each end says. */
static int nested_task(void *arg)
{
    (void)arg;
    for (int shortest = 0; shortest < 3; shortest++) {
        coil_scope scopes[3];

        for (int i = 0; i < 3; i++)
            coil_scope_begin(&scopes[i],
                             i == shortest ? COIL_MS(5) : COIL_S(100));
        assert_result(never(), -ECANCELED);
        for (int i = 2; i >= 0; i--) {
            int expected = i > shortest    ? -ECANCELED
                           : i == shortest ? -ETIME
                                           : 0;

            assert_result(coil_scope_end(&scopes[i]), expected);
        }
    }
    return 0;
}

static int cancel_task(void *arg)
{
    coil_scope outer, inner;

    (void)arg;
    coil_scope_begin(&outer, COIL_FOREVER);
    coil_scope_begin(&inner, COIL_FOREVER);
    coil_scope_cancel(&inner);
    coil_scope_cancel(&inner);
    assert_result(never(), -ECANCELED);
    assert_result(coil_scope_end(&inner), -ECANCELED);
    assert_result(coil_sleep(1), 0);
    coil_scope_begin(&inner, COIL_S(100));
    coil_scope_cancel(&outer);
    assert_result(never(), -ECANCELED);
    assert_result(coil_scope_end(&inner), -ECANCELED);
    coil_scope_begin(&inner, COIL_FOREVER); /* born cancelled */
    assert_result(coil_check(), -ECANCELED);
    assert_result(coil_scope_end(&inner), -ECANCELED);
    assert_result(coil_scope_end(&outer), -ECANCELED);
    assert_result(coil_sleep(1), 0);
    return 0;
}

static int blocks_task(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++) {
        COIL_SCOPE(outer, COIL_MS(2));
        COIL_SCOPE(inner, COIL_S(10));
        if (i == 0)
            continue;
        assert_result(never(), -ECANCELED);
        if (i == 1)
            assert_result(coil_scope_end(&inner), -ECANCELED);
    }
    assert_result(coil_sleep(1), 0);
    return 0;
}

static int misuse_task(void *arg)
{
    coil_scope outer, inner;

    (void)arg;
    coil_scope_begin(&outer, COIL_FOREVER);
    coil_scope_begin(&inner, COIL_FOREVER);
    assert_result(coil_scope_end(&outer), -EINVAL);
    ck_assert_uint_eq(test_messages.of_kind[COIL_MESSAGE_MISUSE], 1);
    assert_result(coil_scope_end(&inner), 0);
    assert_result(coil_scope_end(&inner), -EINVAL);
    assert_result(coil_scope_end(&outer), 0);
    coil_scope_cancel(&outer); /* ended: harmless */
    assert_result(coil_sleep(1), 0);
    return 0;
}

TASK_TEST(limit_of_any_of_three_reaches_all_inside_it, nested_task)
TASK_TEST(cancel_is_a_level_for_the_scope_and_all_inside, cancel_task)
TASK_TEST(blocks_end_their_scopes_however_they_are_left, blocks_task)

START_TEST(scope_ended_out_of_order_is_refused)
{
    coil_scope scope;

    test_catch_messages();
    assert_result(test_run(misuse_task, NULL), 0);
    coil_scope_begin(&scope, COIL_S(1));
    assert_result(coil_scope_end(&scope), -EPERM);
    ck_assert_int_eq(coil_scope_remaining(), COIL_FOREVER);
}
END_TEST

/* ----------------------------------------------------------------- shields */

static int shield_task(void *arg)
{
    coil_scope outer, shield, inner;

    (void)arg;
    coil_scope_begin(&outer, COIL_MS(1));
    assert_result(never(), -ECANCELED);
    coil_shield_begin(&shield, COIL_MS(20));
    ck_assert_int_gt(coil_scope_remaining(), COIL_MS(1));
    assert_result(coil_sleep(COIL_MS(2)), 0);
    coil_scope_begin(&inner, COIL_MS(2));
    assert_result(never(), -ECANCELED);
    assert_result(coil_scope_end(&inner), -ETIME); /* nothing else reached it */
    assert_result(never(), -ECANCELED);            /* the shield's limit */
    assert_result(coil_scope_end(&shield), -ECANCELED);
    assert_result(coil_scope_end(&outer), -ETIME);
    return 0;
}

/* It hides; by itself it limits nothing. */
static int idle_shield_task(void *arg)
{
    coil_scope shield;

    (void)arg;
    coil_shield_begin(&shield, COIL_MS(1));
    assert_result(coil_sleep(COIL_MS(5)), 0);
    assert_result(coil_scope_end(&shield), 0);
    coil_shield_begin(&shield, COIL_FOREVER);
    coil_scope_cancel(&shield);
    assert_result(never(), -ECANCELED);
    assert_result(coil_scope_end(&shield), -ECANCELED);
    return 0;
}

static int stop_shield_task(void *arg)
{
    coil_scope shield;

    (void)arg;
    coil_context_stop(coil_context_current());
    coil_shield_begin(&shield, COIL_S(100));
    assert_result(coil_sleep(COIL_MS(2)), 0);
    assert_result(coil_check(), 0);
    assert_result(coil_scope_end(&shield), 0);
    assert_result(coil_sleep(1), -ECANCELED);
    return 0;
}

static int drain_task(void *arg)
{
    coil_scope shield, later;

    (void)arg;
    coil_shield_begin(&shield, COIL_FOREVER);
    coil_context_stop(coil_context_current());
    assert_result(never(), -ECANCELED);
    coil_shield_begin(&later, COIL_FOREVER);
    assert_result(never(), -ECANCELED);
    assert_result(coil_scope_end(&later), -ECANCELED);
    assert_result(coil_scope_end(&shield), -ECANCELED);
    return 0;
}

TASK_TEST(shield_hides_for_its_limit_and_no_longer, shield_task)
TASK_TEST(shield_alone_limits_nothing_and_can_be_cancelled, idle_shield_task)
TASK_TEST(shield_hides_a_stop, stop_shield_task)

START_TEST(shield_hides_nothing_after_the_drain_limit)
{
    coil_context_options options = test_options();
    coil_context *context;

    test_catch_messages();
    options.drain_limit = COIL_MS(50);
    assert_result(coil_context_create(&context, &options, NULL), 0);
    assert_result(coil_spawn(context, drain_task, NULL, 0), 0);
    assert_result(coil_context_run(context), 0);
    ck_assert_ptr_nonnull(strstr(test_messages.all, "sleep"));
    test_context_end(context);
}
END_TEST

/* --------------------------------------------------- what is left open */

static int nothing_task(void *arg)
{
    (void)arg;
    return (int)(intptr_t)never();
}

static int open_scopes_task(void *arg)
{
    coil_scope outer, inner;
    coil_request request;

    (void)arg;
    coil_scope_begin(&outer, COIL_S(100));
    coil_request_start(&request, coil_sleep_op(COIL_S(100)));
    coil_scope_begin(&inner, COIL_S(100));
    assert_result(coil_sleep(COIL_US(100)), 0);
    return 7;
}

static int open_group_task(void *arg)
{
    coil_group group;
    char room[3000];

    (void)arg;
    memset(room, 1, sizeof(room));
    coil_group_begin(&group, COIL_GROUP_ALL);
    for (int i = 0; i < 3; i++)
        assert_result(coil_group_spawn(&group, nothing_task, room, 100), 0);
    return 7;
}

static int open_request_task(void *arg)
{
    coil_request requests[2];

    (void)arg;
    coil_request_start(&requests[0], coil_sleep_op(COIL_S(100)));
    coil_request_start(&requests[1], coil_poll_op(0, 0));
    assert_result(coil_sleep(COIL_US(100)), 0);
    return 7;
}

static coil_task_fn *const open_tasks[] = {open_scopes_task, open_group_task,
                                           open_request_task};

static int awaits_open_task(void *arg)
{
    coil_task *task;

    assert_result(coil_task_create(&task, arg, NULL, 0), 0);
    return coil_task_await(&task);
}

START_TEST(what_a_returning_task_left_open_is_ended_and_reported)
{
    coil_time begin = coil_now();

    test_catch_messages();
    for (size_t i = 0; i < 3; i++) {
        memset(&test_messages, 0, sizeof(test_messages));
        assert_result(test_run(open_tasks[i], NULL), 7);
        ck_assert_uint_eq(test_messages.of_kind[COIL_MESSAGE_MISUSE], 1);
        assert_result(test_run(awaits_open_task, (void *)open_tasks[i]), 7);
        ck_assert_uint_eq(test_messages.of_kind[COIL_MESSAGE_MISUSE], 2);
    }
    ck_assert_int_lt(coil_now() - begin, COIL_S(20));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("scope");
    TCase *cases = tcase_create("scope");

    tcase_add_test(cases, scope_whose_limit_passes_refuses_waits_and_says_so);
    tcase_add_test(cases, scope_that_ends_in_time_leaves_nothing_behind);
    tcase_add_test(cases, limit_that_no_wait_noticed_is_none);
    tcase_add_test(cases, check_sees_a_limit_pass_without_any_wait);
    tcase_add_test(cases, durations_at_the_edges_are_now_or_never);
    tcase_add_test(cases, limit_of_any_of_three_reaches_all_inside_it);
    tcase_add_test(cases, cancel_is_a_level_for_the_scope_and_all_inside);
    tcase_add_test(cases, blocks_end_their_scopes_however_they_are_left);
    tcase_add_test(cases, scope_ended_out_of_order_is_refused);
    tcase_add_test(cases, shield_hides_for_its_limit_and_no_longer);
    tcase_add_test(cases, shield_alone_limits_nothing_and_can_be_cancelled);
    tcase_add_test(cases, shield_hides_a_stop);
    tcase_add_test(cases, shield_hides_nothing_after_the_drain_limit);
    tcase_add_test(cases,
                   what_a_returning_task_left_open_is_ended_and_reported);
    suite_add_tcase(suite, cases);
    return test_main(suite);
}
