/*
 * A task forks while requests are pending. The child's calls on the parent's
 * context are refused, it may free that or exit, and the parent serves on.
 */
#include "support/test.h"
#include <sys/wait.h>

enum { PENDING = 10 };

static coil_context *context;
static coil_tcp_socket pairs[PENDING][2];
static unsigned received;

static int reader_task(void *arg)
{
    coil_tcp_socket *socket = arg;
    char byte;

    assert_result(coil_tcp_read_some(socket, &byte, 1), 1);
    received++;
    return 0;
}

static void post_nothing(void *arg)
{
    (void)arg;
}

/* In the child; its exit status names the first call that was not refused. */
static int child_calls(void)
{
    coil_scope scope;
    char byte;

    if (coil_context_current() || coil_task_current())
        return 1;
    if (coil_spawn(context, reader_task, NULL, 0) != -EPERM)
        return 2;
    if (coil_context_run(context) != -EPERM)
        return 3;
    if (coil_context_post(context, post_nothing, NULL) != -EPERM)
        return 4;
    if (coil_sleep(1) != -EPERM || coil_yield() != -EPERM)
        return 5;
    if (coil_tcp_read_some(&pairs[0][1], &byte, 1) != -EPERM)
        return 6;
    coil_scope_begin(&scope, COIL_S(1));
    if (coil_scope_end(&scope) != -EPERM)
        return 7;
    coil_context_stop(context);
    return 0;
}

static int fork_task(void *arg)
{
    bool destroys = arg != NULL;
    int status;
    pid_t child;

    for (int i = 0; i < PENDING; i++) {
        test_tcp_pair(&pairs[i][0], &pairs[i][1]);
        assert_result(coil_spawn(NULL, reader_task, &pairs[i][1], 0), 0);
    }
    assert_result(coil_sleep(COIL_MS(1)), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        status = child_calls();
        if (destroys && coil_context_destroy(context) < 0)
            status = 8;
        _exit(status);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
    for (int i = 0; i < PENDING; i++)
        assert_result(coil_tcp_write_all(&pairs[i][0], "x", 1, NULL), 0);
    while (received < PENDING)
        assert_result(coil_sleep(COIL_US(100)), 0);
    for (int i = 0; i < 2 * PENDING; i++)
        assert_result(coil_tcp_close(&pairs[i / 2][i % 2]), 0);
    return 0;
}

START_TEST(child_is_refused_and_the_parent_serves_on)
{
    context = test_context();
    assert_result(
        coil_spawn(context, fork_task, _i ? (void *)&received : NULL, 0), 0);
    assert_result(coil_context_run(context), 0);
    ck_assert_uint_eq(received, PENDING);
    test_context_end(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fork");
    TCase *cases = tcase_create("fork");

    tcase_add_loop_test(cases, child_is_refused_and_the_parent_serves_on, 0, 2);
    suite_add_tcase(suite, cases);
    return test_main(suite);
}
