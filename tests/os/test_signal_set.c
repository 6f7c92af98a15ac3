/*
 * Signal sets: nothing is lost, nothing is shared, and closing puts back what
 * opening changed.
 */
#include "base/seam.h"
#include "support/test.h"
#include <signal.h>
#include <sys/wait.h>

static coil_signal_set open_set(int first, int second)
{
    const int numbers[] = {first, second};
    coil_signal_set set;

    assert_result(coil_signal_set_open(&set, numbers, second ? 2 : 1), 0);
    return set;
}

static bool is_blocked(int number)
{
    sigset_t mask;

    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, NULL, &mask), 0);
    return sigismember(&mask, number) == 1;
}

static int raised_before(void *arg)
{
    coil_signal_set set = open_set(SIGUSR1, SIGUSR2);

    (void)arg;
    raise(SIGUSR2);
    assert_result(coil_signal_set_wait(&set), SIGUSR2);
    assert_result(coil_timeout(coil_signal_set_wait_op(&set), COIL_MS(1)),
                  -ETIME);
    raise(SIGUSR1);
    assert_result(coil_timeout(coil_signal_set_wait_op(&set), COIL_S(10)),
                  SIGUSR1);
    assert_result(coil_signal_set_close(&set), 0);
    assert_result(coil_signal_set_close(&set), 0);
    assert_result(coil_signal_set_wait(&set), -EBADF);
    return 0;
}

START_TEST(signal_raised_before_the_wait_is_not_lost)
{
    ck_assert_int_eq(test_run(raised_before, NULL), 0);
    ck_assert(!is_blocked(SIGUSR1));
}
END_TEST

static int received[2];

static int waiter(void *arg)
{
    coil_signal_set *set = arg;
    int number = coil_signal_set_wait(set);

    received[received[0] != 0] = number;
    return 0;
}

static int two_waiters(void *arg)
{
    coil_signal_set set = open_set(SIGUSR1, SIGUSR2);

    (void)arg;
    coil_spawn(NULL, waiter, &set, sizeof(set));
    coil_spawn(NULL, waiter, &set, sizeof(set));
    coil_sleep(COIL_MS(1));
    raise(SIGUSR1);
    raise(SIGUSR2);
    while (!received[1])
        coil_yield();
    assert_result(coil_signal_set_close(&set), 0);
    return 0;
}

START_TEST(signals_go_to_one_waiter_each)
{
    ck_assert_int_eq(test_run(two_waiters, NULL), 0);
    ck_assert_int_eq(received[0] + received[1], SIGUSR1 + SIGUSR2);
    ck_assert_int_ne(received[0], received[1]);
}
END_TEST

static int closed_under_waiters(void *arg)
{
    coil_signal_set set = open_set(SIGUSR1, 0);

    (void)arg;
    coil_spawn(NULL, waiter, &set, sizeof(set));
    coil_spawn(NULL, waiter, &set, sizeof(set));
    coil_sleep(COIL_MS(1));
    assert_result(coil_signal_set_close(&set), 0);
    while (!received[1])
        coil_yield();
    return 0;
}

START_TEST(close_wakes_every_waiter)
{
    ck_assert_int_eq(test_run(closed_under_waiters, NULL), 0);
    assert_result(received[0], -EBADF);
    assert_result(received[1], -EBADF);
}
END_TEST

START_TEST(signal_belongs_to_one_open_set)
{
    const int shared[] = {SIGUSR2, SIGHUP};
    coil_signal_set first = open_set(SIGUSR1, SIGUSR2), second;

    assert_result(coil_signal_set_open(&second, shared, 2), -EBUSY);
    ck_assert(!is_blocked(SIGHUP));
    assert_result(coil_signal_set_close(&first), 0);
    assert_result(coil_signal_set_open(&second, shared, 2), 0);
    assert_result(coil_signal_set_close(&second), 0);
}
END_TEST

START_TEST(signal_that_cannot_be_caught_is_refused)
{
    const int wrong[] = {0, -1, 65, SIGKILL, SIGSTOP};
    coil_signal_set set;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_result(coil_signal_set_open(&set, &wrong[i], 1), -EINVAL);
    assert_result(coil_signal_set_open(&set, wrong, 0), -EINVAL);
}
END_TEST

START_TEST(close_unblocks_only_what_open_blocked)
{
    coil_signal_set set;
    sigset_t mask;

    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &mask, NULL);
    set = open_set(SIGUSR1, SIGUSR2);
    raise(SIGUSR2); /* pending: would kill if it were only unblocked */
    assert_result(coil_signal_set_close(&set), 0);
    ck_assert(is_blocked(SIGUSR1));
    ck_assert(!is_blocked(SIGUSR2));
}
END_TEST

START_TEST(open_without_a_descriptor_changes_nothing)
{
    const int numbers[] = {SIGUSR1};
    coil_signal_set set;

    memset(&coil__seam, 0, sizeof(coil__seam));
    coil__seam.fail_call = COIL__CALL_SIGNALFD;
    coil__seam.fail_error = -EMFILE;
    coil__seam.fail_at = 1;
    assert_result(coil_signal_set_open(&set, numbers, 1), -EMFILE);
    ck_assert(!is_blocked(SIGUSR1));
    assert_result(coil_signal_set_open(&set, numbers, 1), 0);
    assert_result(coil_signal_set_close(&set), 0);
}
END_TEST

START_TEST(child_can_have_the_default_mask)
{
    coil_signal_set set = open_set(SIGUSR1, 0);
    pid_t child = fork();
    int status;

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        int before = is_blocked(SIGUSR1);

        coil_signal_mask_default();
        _exit(before && !is_blocked(SIGUSR1) ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
    assert_result(coil_signal_set_close(&set), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("signal_set");
    TCase *tests = tcase_create("signal_set");

    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, signal_raised_before_the_wait_is_not_lost);
    tcase_add_test(tests, signals_go_to_one_waiter_each);
    tcase_add_test(tests, close_wakes_every_waiter);
    tcase_add_test(tests, signal_belongs_to_one_open_set);
    tcase_add_test(tests, signal_that_cannot_be_caught_is_refused);
    tcase_add_test(tests, close_unblocks_only_what_open_blocked);
    tcase_add_test(tests, open_without_a_descriptor_changes_nothing);
    tcase_add_test(tests, child_can_have_the_default_mask);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
