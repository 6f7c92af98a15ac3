/*
 * Results do not depend on errno, whoever changes it meanwhile; and writing to
 * a peer that has gone is an error, not a SIGPIPE.
 */
#include "support/test.h"
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* ------------------------------------------------------------------- errno */

static bool over;

/* Changes errno whenever it gets its turn, by hand and by failing calls. */
static int spoiling_task(void *arg)
{
    (void)arg;
    for (int i = 0; !over; i++) {
        errno = 1 + i % 130;
        if (i % 3 == 0)
            ck_assert_int_eq(close(-1), -1);
        if (i % 8 == 0)
            assert_result(coil_sleep(COIL_US(50)), 0);
        else
            assert_result(coil_yield(), 0);
    }
    return 0;
}

/* An endpoint of the loopback where nobody listens, and which nobody else is
 * given while the socket is open. */
static coil_tcp_socket refusing_socket(coil_tcp_endpoint *ret_endpoint)
{
    coil_tcp_socket socket;

    assert_result(coil_tcp_open(&socket, AF_INET), 0);
    assert_result(coil_tcp_endpoint_parse(ret_endpoint, "127.0.0.1:0", 11), 0);
    assert_result(coil_tcp_bind(&socket, ret_endpoint), 0);
    assert_result(coil_tcp_local_endpoint(&socket, ret_endpoint), 0);
    return socket;
}

static void connect_refused(const coil_tcp_endpoint *endpoint)
{
    coil_tcp_socket socket;

    assert_result(coil_tcp_open(&socket, AF_INET), 0);
    assert_result(coil_tcp_connect(&socket, endpoint), -ECONNREFUSED);
    assert_result(
        coil_timeout(coil_tcp_connect_op(&socket, endpoint), COIL_S(5)),
        -ECONNREFUSED);
    assert_result(coil_tcp_close(&socket), 0);
    assert_result(coil_tcp_close(&socket), 0);
    assert_result(coil_tcp_connect(&socket, endpoint), -EBADF);
}

/* Calls that fail at once, in the kernel, and after a wait. */
static void fail_in_many_ways(const coil_tcp_endpoint *refusing,
                              const coil_tcp_socket *silent)
{
    coil_tcp_acceptor acceptor;
    coil_tcp_endpoint endpoint;
    coil_tcp_socket socket;
    char byte;

    connect_refused(refusing);
    assert_result(coil_poll(100000, POLLIN), -EBADF);
    assert_result(coil_poll(-1, POLLIN), -EBADF);
    assert_result(
        coil_timeout(coil_tcp_read_some_op(silent, &byte, 1), COIL_US(200)),
        -ETIME);
    assert_result(coil_tcp_listen_text(&acceptor, "127.0.0.1", NULL), -EINVAL);
    assert_result(coil_tcp_listen(&acceptor, refusing, NULL), -EADDRINUSE);
    assert_result(coil_tcp_open(&socket, 9999), -EAFNOSUPPORT);
    assert_result(coil_tcp_open(&socket, AF_INET), 0);
    assert_result(coil_tcp_shutdown(&socket, SHUT_WR), -ENOTCONN);
    assert_result(coil_tcp_remote_endpoint(&socket, &endpoint), -ENOTCONN);
    assert_result(coil_tcp_write_all(&socket, "x", 1, NULL), -EPIPE);
    assert_result(coil_tcp_read_some(&socket, &byte, 1), -ENOTCONN);
    assert_result(coil_tcp_close(&socket), 0);
    assert_result(coil_tcp_local_endpoint(&socket, &endpoint), -EBADF);
}

static int failing_task(void *arg)
{
    coil_tcp_endpoint refusing;
    coil_tcp_socket reserved = refusing_socket(&refusing);
    coil_tcp_socket left, right;

    (void)arg;
    test_tcp_pair(&left, &right);
    assert_result(coil_spawn(NULL, spoiling_task, NULL, 0), 0);
    for (int i = 0; i < 50; i++) {
        errno = i % 2 ? 0 : EINTR;
        fail_in_many_ways(&refusing, &left);
    }
    over = true;
    assert_result(coil_tcp_close(&left), 0);
    assert_result(coil_tcp_close(&right), 0);
    assert_result(coil_tcp_close(&reserved), 0);
    return 0;
}

START_TEST(results_do_not_depend_on_errno)
{
    assert_result(test_run(failing_task, NULL), 0);
}
END_TEST

/* Without a wait in between the value a task has set is still there after
 * calls that succeed. */
static int quiet_task(void *arg)
{
    coil_tcp_socket left, right;
    char byte = 1;

    (void)arg;
    test_tcp_pair(&left, &right);
    errno = 77;
    assert_result(coil_tcp_write_all(&left, &byte, 1, NULL), 0);
    assert_result(coil_tcp_read_some(&right, &byte, 1), 1);
    assert_result(coil_tcp_set(&left, coil_tcp_no_delay, 1), 0);
    assert_result(coil_yield(), 0);
    ck_assert_int_eq(errno, 77);
    assert_result(coil_tcp_close(&left), 0);
    assert_result(coil_tcp_close(&right), 0);
    return 0;
}

START_TEST(calls_that_succeed_leave_errno_alone)
{
    assert_result(test_run(quiet_task, NULL), 0);
}
END_TEST

/* ----------------------------------------------------------------- SIGPIPE */

enum { KINDS = 6, WRITES = 20 };
static char large[1 << 16];

static ssize_t write_of_kind(int kind, const coil_tcp_socket *socket)
{
    switch (kind) {
    case 0:
        return coil_tcp_write_some(socket, large, 1);
    case 1:
        return coil_tcp_write_all(socket, large, sizeof(large), NULL);
    case 2:
        return coil_timeout(coil_tcp_write_some_op(socket, large, 1),
                            COIL_S(5));
    case 3:
        return coil_timeout(
            coil_tcp_write_all_op(socket, large, sizeof(large), NULL),
            COIL_S(5));
    case 4:
        return coil_timeout(coil_tcp_write_some_op(socket, large, 1), 0);
    default:
        return coil_timeout(coil_tcp_write_all_op(socket, large, 1, NULL), -1);
    }
}

/* What the child found out: results by kind and by number of the write. */
struct found {
    int results[KINDS][WRITES];
    int shut[KINDS]; /* to a socket that was shut down */
    int pair[KINDS]; /* on a Unix socket whose peer has gone */
    bool complete;
};

static void write_to_the_gone(struct found *found, int kind)
{
    coil_tcp_socket left, right;
    int pair[2];

    test_tcp_pair(&left, &right);
    assert_result(coil_tcp_write_all(&left, large, 1, NULL), 0);
    assert_result(coil_tcp_close(&right), 0); /* unread input: a reset */
    for (int i = 0; i < WRITES; i++)
        found->results[kind][i] = (int)write_of_kind(kind, &left);
    assert_result(coil_tcp_close(&left), 0);
    test_tcp_pair(&left, &right);
    assert_result(coil_tcp_shutdown(&left, SHUT_WR), 0);
    found->shut[kind] = (int)write_of_kind(kind, &left);
    assert_result(coil_tcp_close(&left), 0);
    assert_result(coil_tcp_close(&right), 0);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair),
                     0);
    close(pair[1]);
    assert_result(coil_handle_open(&left.handle, pair[0]), 0);
    found->pair[kind] = (int)write_of_kind(kind, &left);
    assert_result(coil_tcp_close(&left), 0);
}

static int gone_task(void *arg)
{
    struct found *found = arg;

    for (int kind = 0; kind < KINDS; kind++)
        write_to_the_gone(found, kind);
    found->complete = true;
    return 0;
}

/* Runs fn in a child with SIGPIPE at its default and returns how it ended. */
static int in_child(void (*fn)(void *), void *arg)
{
    int status = -1;
    pid_t child;

    fflush(stdout);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (!child) {
        signal(SIGPIPE, SIG_DFL);
        fn(arg);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

static void write_plainly(void *arg)
{
    int pipes[2];

    (void)arg;
    if (pipe(pipes) < 0 || close(pipes[0]) < 0 || write(pipes[1], "x", 1) == 1)
        _exit(1);
}

static void run_gone(void *arg)
{
    if (test_run(gone_task, arg) < 0)
        _exit(1);
}

START_TEST(write_to_a_peer_that_has_gone_is_an_error_and_no_signal)
{
    struct found *found = mmap(NULL, sizeof(*found), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;

    ck_assert(found != MAP_FAILED);
    status = in_child(write_plainly, NULL); /* this is what it would be */
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
    status = in_child(run_gone, found);
    ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status),
                  "the child ended with status %x", (unsigned)status);
    ck_assert(found->complete);
    for (int kind = 0; kind < KINDS; kind++) {
        assert_result(found->shut[kind], -EPIPE);
        assert_result(found->pair[kind], -EPIPE);
        ck_assert_msg(found->results[kind][0] == -ECONNRESET ||
                          found->results[kind][0] == -EPIPE,
                      "write %d: %s", kind,
                      coil_error_name(found->results[kind][0]));
        for (int i = 1; i < WRITES; i++)
            assert_result(found->results[kind][i], -EPIPE);
    }
    munmap(found, sizeof(*found));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("errno");
    TCase *tcase = tcase_create("errno");

    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 30);
    tcase_add_test(tcase, results_do_not_depend_on_errno);
    tcase_add_test(tcase, calls_that_succeed_leave_errno_alone);
    tcase_add_test(tcase,
                   write_to_a_peer_that_has_gone_is_an_error_and_no_signal);
    return test_main(suite);
}
