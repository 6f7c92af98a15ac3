/*
 * Waiting for any or all of several requests: what ends first decides, the
 * others are cancelled and have ended before the wait returns.
 */
#include "support/test.h"
#include <poll.h>
#include <sys/eventfd.h>

static coil_operation never_op(void)
{
    return coil_sleep_op(COIL_FOREVER);
}

/* In the kernel, and never ready. */
static coil_operation silent_op(void)
{
    static int descriptor = -1;

    if (descriptor < 0)
        descriptor = eventfd(0, EFD_CLOEXEC);
    return coil_poll_op(descriptor, POLLIN);
}

#define TASK_TEST(name, fn)                                                    \
    START_TEST(name)                                                           \
    {                                                                          \
        (void)silent_op(); /* stays open */                                    \
        assert_result(test_run(fn, NULL), 0);                                  \
    }                                                                          \
    END_TEST

/* Fails as soon as it is started. */
static coil_operation failing_op(void)
{
    return coil_tcp_read_some_op(&(coil_tcp_socket){0}, NULL, 0);
}

/* ------------------------------------------------------------------- any */

static int any_task(void *arg)
{
    coil_request requests[3];

    (void)arg;
    coil_request_start(&requests[0], never_op());
    coil_request_start(&requests[1], failing_op());
    assert_result(coil_await_any(requests, 2), 1);
    assert_result(requests[0].result, -ECANCELED);
    assert_result(requests[1].result, -EBADF);
    assert_result(coil_await_any(requests, 2), 1); /* the same again */
    coil_request_start(&requests[0], never_op());
    assert_result(coil_timeout(coil_sleep_op(1), COIL_S(1)), 0);
    coil_request_start(&requests[1], coil_sleep_op(COIL_MS(1)));
    coil_request_start(&requests[2], silent_op());
    assert_result(coil_await_any(requests, 3), 1);
    ck_assert(coil_request_done(&requests[0]));
    ck_assert(coil_request_done(&requests[2]));
    coil_request_start(&requests[0], coil_sleep_op(1));
    assert_result(coil_await_any(requests, 1), 0);
    assert_result(coil_await_any(requests, 0), -EINVAL);
    requests[0] = (coil_request){0};
    assert_result(coil_await_any(requests, 1), -EINVAL);
    return 0;
}

static int any_cancelled_task(void *arg)
{
    coil_request requests[2];
    coil_scope scope;

    (void)arg;
    coil_scope_begin(&scope, COIL_MS(1));
    coil_request_start(&requests[0], never_op());
    coil_request_start(&requests[1], silent_op());
    assert_result(coil_await_any(requests, 2), -ECANCELED);
    assert_result(requests[0].result, -ECANCELED);
    assert_result(requests[1].result, -ECANCELED);
    coil_request_start(&requests[0], never_op()); /* refused */
    coil_request_start(&requests[1], never_op());
    assert_result(coil_await_any(requests, 2), -ECANCELED);
    assert_result(coil_await_all(requests, 2), -ECANCELED);
    assert_result(coil_request_await(&requests[0]), -ECANCELED);
    assert_result(coil_scope_end(&scope), -ETIME);
    return 0;
}

/* Started outside the scope in which it is awaited. */
static int outer_request_task(void *arg)
{
    coil_request request;
    coil_scope scope;

    (void)arg;
    coil_request_start(&request, never_op());
    coil_scope_begin(&scope, COIL_MS(1));
    assert_result(coil_request_await(&request), -ECANCELED);
    assert_result(coil_scope_end(&scope), -ETIME);
    return 0;
}

TASK_TEST(any_ends_with_the_first_and_reaps_the_rest, any_task)
TASK_TEST(any_in_a_cancelled_scope_reaps_all, any_cancelled_task)
TASK_TEST(request_is_cancelled_with_who_awaits_it, outer_request_task)

/* ------------------------------------------------------------------- all */

static int all_task(void *arg)
{
    coil_request requests[3];

    (void)arg;
    coil_request_start(&requests[0], coil_sleep_op(COIL_MS(1)));
    coil_request_start(&requests[1], coil_sleep_op(1));
    assert_result(coil_await_all(requests, 2), 0);
    assert_result(coil_await_all(requests, 0), 0);
    coil_request_start(&requests[0], failing_op());
    coil_request_start(&requests[1], never_op());
    coil_request_start(&requests[2], silent_op());
    assert_result(coil_await_all(requests, 3), -EBADF);
    assert_result(requests[1].result, -ECANCELED);
    coil_request_start(&requests[0], never_op());
    coil_request_start(&requests[1], coil_limit(never_op(), COIL_MS(1)));
    assert_result(coil_await_all(requests, 2), -ETIME);
    assert_result(requests[0].result, -ECANCELED);
    assert_result(requests[1].result, -ETIME);
    return 0;
}

TASK_TEST(all_ends_with_the_last_or_the_first_failure, all_task)

/* --------------------------------------------------------------- nested */

static int race_task(void *arg)
{
    coil_request requests[2];

    coil_request_start(&requests[0], never_op());
    coil_request_start(&requests[1],
                       coil_limit(silent_op(), *(coil_duration *)arg));
    assert_result(coil_await_any(requests, 2), 1);
    return (int)requests[1].result;
}

static int cancelled_race_task(void *arg)
{
    coil_request requests[2];

    (void)arg;
    coil_request_start(&requests[0], never_op());
    coil_request_start(&requests[1], silent_op());
    return coil_await_any(requests, 2);
}

/* any(all(any, any), sleep) with limits, three tasks deep. */
static int middle_task(void *arg)
{
    coil_duration limit = COIL_MS(2);
    coil_request requests[2];
    coil_task *tasks[2];

    for (int i = 0; i < 2; i++) {
        assert_result(coil_task_create(&tasks[i],
                                       arg ? cancelled_race_task : race_task,
                                       &limit, sizeof(limit)),
                      0);
        coil_request_start(&requests[i], coil_task_await_op(&tasks[i]));
    }
    return coil_await_all(requests, 2);
}

static int nested_task(void *arg)
{
    coil_request requests[2];
    coil_task *task;

    (void)arg;
    assert_result(coil_task_create(&task, middle_task, NULL, 0), 0);
    coil_request_start(&requests[0], coil_task_await_op(&task));
    coil_request_start(&requests[1], coil_sleep_op(COIL_S(100)));
    assert_result(coil_await_any(requests, 2), 0);
    assert_result(requests[0].result, -ETIME);
    assert_result(coil_task_create(&task, middle_task, requests, 0), 0);
    coil_request_start(&requests[0],
                       coil_limit(coil_task_await_op(&task), COIL_MS(2)));
    coil_request_start(&requests[1], coil_sleep_op(COIL_S(100)));
    assert_result(coil_await_any(requests, 2), 0);
    assert_result(requests[0].result, -ETIME);
    assert_result(requests[1].result, -ECANCELED);
    return 0;
}

TASK_TEST(races_nest_three_deep_with_limits, nested_task)

/* ----------------------------------------------------------- many, shared */

enum { MANY = 2000 };

static int many_task(void *arg)
{
    static coil_request requests[MANY];
    coil_time begin = coil_now();

    (void)arg;
    for (int i = 0; i < MANY; i++)
        coil_request_start(&requests[i], i == MANY / 2
                                             ? coil_sleep_op(COIL_MS(1))
                                         : i % 2 ? never_op()
                                                 : silent_op());
    assert_result(coil_await_any(requests, MANY), MANY / 2);
    for (int i = 0; i < MANY; i++)
        if (requests[i].result != (i == MANY / 2 ? 0 : -ECANCELED))
            ck_abort_msg("request %d: %zd", i, requests[i].result);
    ck_assert_int_lt(coil_now() - begin, COIL_S(TEST_SLOW ? 20 : 2));
    return 0;
}

static coil_request shared;

static int second_task(void *arg)
{
    (void)arg;
    assert_result(coil_request_await(&shared), -EBUSY);
    coil_request_cancel(&shared);
    return 0;
}

static int shared_task(void *arg)
{
    (void)arg;
    coil_request_start(&shared, never_op());
    assert_result(coil_spawn(NULL, second_task, NULL, 0), 0);
    assert_result(coil_request_await(&shared), -ECANCELED);
    coil_request_cancel(&shared);
    return 0;
}

TASK_TEST(two_thousand_requests_race, many_task)
TASK_TEST(request_has_one_awaiter_and_anyone_may_cancel_it, shared_task)

/* Both sides of a pair are ready in the same turn: no byte is lost. */
static int both_task(void *arg)
{
    coil_tcp_socket left, right;
    char data[2][8];

    (void)arg;
    test_tcp_pair(&left, &right);
    for (int i = 0; i < 1000; i++) {
        coil_request requests[2];
        size_t taken;
        int index;

        coil_request_start(&requests[0],
                           coil_tcp_read_some_op(&right, data[0], 8));
        coil_request_start(&requests[1], coil_sleep_op(i % 50 * 1000));
        if (i % 3)
            (void)coil_yield();
        assert_result(coil_tcp_write_all(&left, "12345678", 8, NULL), 0);
        index = coil_await_any(requests, 2);
        ck_assert(index == 0 || index == 1);
        taken = requests[0].result > 0 ? (size_t)requests[0].result : 0;
        if (index == 0)
            ck_assert_uint_gt(taken, 0);
        while (taken < 8)
            taken += (size_t)coil_tcp_read_some(&right, data[1], 8 - taken);
    }
    assert_result(coil_timeout(coil_tcp_read_some_op(&right, data[1], 8), 0),
                  -ETIME);
    coil_tcp_close(&left);
    return coil_tcp_close(&right);
}

TASK_TEST(loser_that_moved_bytes_tells_them, both_task)

int main(void)
{
    Suite *suite = suite_create("races");
    TCase *cases = tcase_create("races");

    tcase_add_test(cases, any_ends_with_the_first_and_reaps_the_rest);
    tcase_add_test(cases, any_in_a_cancelled_scope_reaps_all);
    tcase_add_test(cases, request_is_cancelled_with_who_awaits_it);
    tcase_add_test(cases, all_ends_with_the_last_or_the_first_failure);
    tcase_add_test(cases, races_nest_three_deep_with_limits);
    tcase_add_test(cases, two_thousand_requests_race);
    tcase_add_test(cases, request_has_one_awaiter_and_anyone_may_cancel_it);
    tcase_add_test(cases, loser_that_moved_bytes_tells_them);
    suite_add_tcase(suite, cases);
    return test_main(suite);
}
