/*
 * Timers as tasks see them: in order, in time though the loop sleeps until a
 * later one, and every duration there is.
 */
#include "base/seam.h"
#include "support/test.h"
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>

/* ------------------------------------------------------------------- order */

enum { SLEEPERS = 500, SAME = 5 /* so many share a deadline */ };

static coil_time base;
static int order[SLEEPERS], woken;

static int sleeper_rank(int number)
{
    return number * 7919 % SLEEPERS / SAME;
}

static int sleeper(void *arg)
{
    int number = *(int *)arg;
    coil_time deadline = base + COIL_US(300) * sleeper_rank(number);

    assert_result(coil_sleep_until(deadline), 0);
    ck_assert_int_ge(coil_now(), deadline);
    order[woken++] = number;
    return 0;
}

START_TEST(sleepers_wake_in_the_order_of_their_deadlines_and_calls)
{
    coil_context *context = test_context();

    base = coil_now() + COIL_MS(20);
    for (int i = 0; i < SLEEPERS; i++)
        assert_result(coil_spawn(context, sleeper, &i, sizeof(i)), 0);
    assert_result(coil_context_run(context), 0);
    ck_assert_int_eq(woken, SLEEPERS);
    for (int i = 1; i < SLEEPERS; i++) {
        int before = sleeper_rank(order[i - 1]), rank = sleeper_rank(order[i]);

        ck_assert_int_le(before, rank);
        if (before == rank)
            ck_assert_int_lt(order[i - 1], order[i]);
    }
    test_context_end(context);
}
END_TEST

/* --------------------------------------------- while the loop sleeps longer */

static coil_context *sleeping;
static coil_event over;
static coil_time set;
static coil_duration late;
static int descriptor;

enum { EARLIER_ROUNDS = 10, EARLIER = COIL_MS(5) };

static int earlier_task(void *arg)
{
    coil_duration took;

    (void)arg;
    assert_result(coil_sleep(EARLIER), 0);
    took = coil_now() - set;
    ck_assert_int_ge(took, EARLIER);
    late = took - EARLIER > late ? took - EARLIER : late;
    coil_event_set(&over);
    return 0;
}

static void earlier_post(void *arg)
{
    (void)arg;
    set = coil_now();
    assert_result(coil_spawn(NULL, earlier_task, NULL, 0), 0);
}

/* Keeps the loop asleep for long. */
static int long_task(void *arg)
{
    (void)arg;
    return (int)coil_timeout(coil_sleep_op(COIL_FOREVER), COIL_S(100));
}

/* Woken by a descriptor rather than by a post. */
static int poll_task(void *arg)
{
    eventfd_t value;

    (void)arg;
    for (int i = 0; i < EARLIER_ROUNDS; i++) {
        coil_event_clear(&over);
        assert_result(coil_poll(descriptor, POLLIN), POLLIN);
        ck_assert_int_eq(eventfd_read(descriptor, &value), 0);
        earlier_post(NULL);
        assert_result(coil_event_wait(&over), 0);
    }
    coil_context_stop(sleeping);
    return 0;
}

static void *earlier_thread(void *arg)
{
    struct timespec pause = {0, 10 * 1000 * 1000};

    for (int i = 0; i < EARLIER_ROUNDS; i++) {
        struct pollfd nothing = {.fd = -1};

        /* The loop sleeps by then. */
        ck_assert_int_eq(ppoll(&nothing, 1, &pause, NULL), 0);
        if (arg)
            ck_assert_int_eq(eventfd_write(descriptor, 1), 0);
        else
            assert_result(coil_context_post(sleeping, earlier_post, NULL), 0);
    }
    if (!arg) {
        struct pollfd nothing = {.fd = -1};

        (void)ppoll(&nothing, 1, &pause, NULL);
        coil_context_stop(sleeping);
    }
    return NULL;
}

START_TEST(timer_set_earlier_than_the_loop_sleeps_is_in_time)
{
    bool by_descriptor = _i;
    pthread_t thread;

    sleeping = test_context();
    descriptor = eventfd(0, EFD_CLOEXEC);
    assert_result(coil_spawn(sleeping, long_task, NULL, 0), 0);
    if (by_descriptor)
        assert_result(coil_spawn(sleeping, poll_task, NULL, 0), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, earlier_thread,
                                    by_descriptor ? &descriptor : NULL),
                     0);
    assert_result(coil_context_run(sleeping), 0);
    pthread_join(thread, NULL);
    printf("at most %.2f ms late\n", (double)late / 1e6);
    ck_assert_int_gt(late, 0);
    ck_assert_int_lt(late, COIL_MS(500)); /* not 100 s */
    close(descriptor);
    test_context_end(sleeping);
}
END_TEST

/* --------------------------------------------------------------- durations */

static const coil_duration now_durations[] = {
    0, -1, INT64_MIN, -COIL_FOREVER, COIL_S(INT64_MIN), COIL_MS(-1)};
static const coil_duration long_durations[] = {
    COIL_FOREVER,        COIL_FOREVER - 1,      COIL_S(400LL * 365 * 86400),
    COIL_S(UINT64_MAX),  COIL_S(INT64_MAX),     COIL_US(INT64_MAX),
    COIL_MS(UINT64_MAX), (coil_duration)1 << 62};
#define COUNT(array) (int)(sizeof(array) / sizeof(*array))

static void check_now(coil_duration duration)
{
    coil_request request;
    coil_scope scope;

    assert_result(coil_sleep(duration), 0);
    assert_result(coil_sleep_until(duration), 0);
    assert_result(coil_timeout(coil_poll_op(descriptor, POLLIN), duration),
                  -ETIME);
    assert_result(
        coil_timeout_linked(coil_poll_op(descriptor, POLLIN), duration),
        -ETIME);
    assert_result(coil_timeout(coil_sleep_op(COIL_S(100)), duration), -ETIME);
    assert_result(coil_timeout(coil_event_wait_op(&over), duration), -ETIME);
    coil_request_start(&request,
                       coil_limit(coil_poll_op(descriptor, POLLIN), duration));
    assert_result(coil_request_await(&request), -ETIME);
    coil_request_start(&request, coil_sleep_op(duration));
    assert_result(coil_request_await(&request), 0);
    coil_scope_begin(&scope, duration);
    assert_result(coil_check(), -ECANCELED);
    (void)coil_scope_end(&scope);
    coil_shield_begin(&scope, duration);
    assert_result(coil_check(), 0);
    assert_result(coil_scope_end(&scope), 0);
}

static void check_long(coil_duration duration)
{
    coil_request requests[3];
    coil_scope scope, shield;

    coil_request_start(&requests[0], coil_sleep_op(duration));
    coil_request_start(&requests[1],
                       coil_limit(coil_event_wait_op(&over), duration));
    coil_request_start(&requests[2], coil_sleep_op(COIL_US(50)));
    assert_result(coil_await_any(requests, 3), 2);
    assert_result(coil_timeout(coil_sleep_op(COIL_US(50)), duration), 0);
    ck_assert_int_eq(eventfd_write(descriptor, 1), 0);
    assert_result(coil_timeout(coil_poll_op(descriptor, POLLIN), duration),
                  POLLIN);
    assert_result(
        coil_timeout_linked(coil_poll_op(descriptor, POLLIN), duration),
        POLLIN);
    ck_assert_int_eq(eventfd_read(descriptor, &(eventfd_t){0}), 0);
    coil_scope_begin(&scope, duration);
    coil_shield_begin(&shield, duration);
    assert_result(coil_sleep(COIL_US(50)), 0);
    ck_assert_int_gt(coil_scope_remaining(), COIL_S(1000));
    assert_result(coil_scope_end(&shield), 0);
    assert_result(coil_scope_end(&scope), 0);
}

static int durations_task(void *arg)
{
    (void)arg;
    descriptor = eventfd(0, EFD_CLOEXEC);
    for (int i = 0; i < COUNT(now_durations); i++)
        check_now(now_durations[i]);
    for (int i = 0; i < COUNT(long_durations); i++)
        check_long(long_durations[i]);
    close(descriptor);
    return 0;
}

START_TEST(every_duration_is_now_or_never)
{
    /* Also long after the machine was started. */
    coil__seam.time_offset = _i ? COIL_S(200LL * 365 * 86400) : 0;
    assert_result(test_run(durations_task, NULL), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("timers");
    TCase *tests = tcase_create("timers");

    tcase_add_test(tests,
                   sleepers_wake_in_the_order_of_their_deadlines_and_calls);
    tcase_add_loop_test(
        tests, timer_set_earlier_than_the_loop_sleeps_is_in_time, 0, 2);
    tcase_add_loop_test(tests, every_duration_is_now_or_never, 0, 2);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
