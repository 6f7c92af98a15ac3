/*
 * coil_poll: readiness of descriptors that belong to somebody else.
 */
#include "support/test.h"
#include <poll.h>
#include <sys/socket.h>

static int ready_at_once(void *arg)
{
    int ends[2];

    (void)arg;
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_result(coil_poll(ends[0], POLLOUT), POLLOUT);
    ck_assert_int_eq(write(ends[1], "x", 1), 1);
    assert_result(coil_poll(ends[0], POLLIN), POLLIN);
    close(ends[1]);
    ck_assert_int_ne(coil_poll(ends[0], POLLIN) & POLLHUP, 0);
    close(ends[0]);
    return 0;
}

START_TEST(poll_tells_readable_writable_and_hang_up)
{
    ck_assert_int_eq(test_run(ready_at_once, NULL), 0);
}
END_TEST

static int writer(void *arg)
{
    coil_sleep(COIL_MS(5));
    ck_assert_int_eq(write(*(int *)arg, "x", 1), 1);
    return 0;
}

static unsigned woken;

static int poller(void *arg)
{
    assert_result(coil_poll(*(int *)arg, POLLIN), POLLIN);
    woken++;
    return 0;
}

static int ready_later(void *arg)
{
    int ends[2];

    (void)arg;
    ck_assert_int_eq(pipe(ends), 0);
    assert_result(coil_timeout(coil_poll_op(ends[0], POLLIN), COIL_MS(1)),
                  -ETIME);
    assert_result(coil_timeout(coil_poll_op(ends[0], POLLIN), 0), -ETIME);
    coil_spawn(NULL, writer, &ends[1], sizeof(ends[1]));
    coil_spawn(NULL, poller, &ends[0], sizeof(ends[0]));
    assert_result(coil_timeout(coil_poll_op(ends[0], POLLIN), COIL_S(10)),
                  POLLIN);
    while (!woken)
        coil_yield();
    close(ends[0]);
    close(ends[1]);
    return 0;
}

START_TEST(poll_wakes_every_waiter_when_it_becomes_ready)
{
    ck_assert_int_eq(test_run(ready_later, NULL), 0);
    ck_assert_uint_eq(woken, 1);
}
END_TEST

static int bad(void *arg)
{
    (void)arg;
    assert_result(coil_poll(-1, POLLIN), -EBADF);
    assert_result(coil_poll(1000000, POLLIN), -EBADF);
    return 0;
}

START_TEST(poll_of_no_descriptor_is_told)
{
    ck_assert_int_eq(test_run(bad, NULL), 0);
    assert_result(coil_poll(0, POLLIN), -EPERM); /* outside a task */
}
END_TEST

static int stopped(void *arg)
{
    int ends[2];

    (void)arg;
    ck_assert_int_eq(pipe(ends), 0);
    coil_context_stop(coil_context_current());
    assert_result(coil_poll(ends[0], POLLIN), -ECANCELED);
    assert_result(coil_poll(ends[1], POLLOUT), -ECANCELED);
    close(ends[0]);
    close(ends[1]);
    return 0;
}

START_TEST(poll_is_cancelled_by_a_stop)
{
    ck_assert_int_eq(test_run(stopped, NULL), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("poll");
    TCase *tests = tcase_create("poll");

    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, poll_tells_readable_writable_and_hang_up);
    tcase_add_test(tests, poll_wakes_every_waiter_when_it_becomes_ready);
    tcase_add_test(tests, poll_of_no_descriptor_is_told);
    tcase_add_test(tests, poll_is_cancelled_by_a_stop);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
