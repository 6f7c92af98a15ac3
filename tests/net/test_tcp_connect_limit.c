/*
 * Connecting: an association that is there stays, whatever comes of a second
 * attempt, and completions that meet the limit in every order.
 */
#include "base/seam.h"
#include "support/test.h"
#include <fcntl.h>
#include <liburing.h>
#include <sys/resource.h>

enum { SWEEP = TEST_SLOW ? 200 : 1000 };

/* Echoes one byte on each connection. */
static int echo_task(void *arg)
{
    coil_tcp_socket *socket = arg;
    char byte;

    if (coil_tcp_read_some(socket, &byte, 1) == 1)
        (void)coil_tcp_write_all(socket, &byte, 1, NULL);
    return coil_tcp_close(socket);
}

static int accept_task(void *arg)
{
    coil_tcp_socket socket;

    while (coil_tcp_accept(arg, &socket, NULL) >= 0)
        assert_result(coil_spawn(NULL, echo_task, &socket, sizeof(socket)), 0);
    return 0;
}

static void check_connected(const coil_tcp_socket *socket)
{
    char byte = 0;

    assert_result(coil_tcp_write_all(socket, "x", 1, NULL), 0);
    assert_result(
        coil_timeout(coil_tcp_read_some_op(socket, &byte, 1), COIL_S(20)), 1);
    ck_assert_int_eq(byte, 'x');
}

static int again_task(void *arg)
{
    coil_tcp_endpoint endpoint, nowhere = {0}, other;
    coil_tcp_acceptor acceptor = test_listen(&endpoint);
    coil_tcp_socket socket;

    assert_result(coil_spawn(NULL, accept_task, &acceptor, sizeof(acceptor)),
                  0);
    assert_result(coil_tcp_endpoint_parse(&other, "[::1]:9", 7), 0);
    assert_result(coil_tcp_open(&socket, AF_INET), 0);
    assert_result(coil_tcp_connect(&socket, &nowhere), -EINVAL);
    assert_result(coil_tcp_connect(&socket, &other), -EAFNOSUPPORT);
    assert_result(coil_tcp_connect(&socket, &endpoint), 0);
    if (arg)
        assert_result(coil_tcp_connect(&socket, &nowhere), -EINVAL);
    else
        assert_result(coil_tcp_connect(&socket, &other), -EISCONN);
    check_connected(&socket);
    assert_result(coil_tcp_close(&socket), 0);
    return coil_tcp_acceptor_close(&acceptor);
}

START_TEST(connection_survives_a_second_connect_to_nowhere)
{
    assert_result(test_run(again_task, _i ? &test_messages : NULL), 0);
}
END_TEST

/* The connect's completion comes after the limit has passed and the cancel
 * is on its way; in the third kind it says that the cancel hit. */
static struct {
    int kind;
    struct io_uring_cqe cqes[1];
    bool kept;
    int turns;
    coil_time since;
} late;

static bool is_request(const struct io_uring_cqe *cqe)
{
    return cqe->user_data > 15;
}

static unsigned keep_connect(struct io_uring_cqe *cqes, unsigned count,
                             unsigned capacity)
{
    unsigned left = 0;

    (void)capacity;
    for (unsigned i = 0; i < count; i++)
        if (late.kind && !late.kept && is_request(&cqes[i]) &&
            cqes[i].res == 0) {
            late.cqes[0] = cqes[i];
            late.kept = true;
            late.since = coil_now();
        } else {
            cqes[left++] = cqes[i];
        }
    if (late.kept && coil_now() - late.since > COIL_US(250))
        late.turns++;
    if (late.kind && late.turns > 2) { /* the limit has been looked at */
        if (late.kind == 2)
            late.cqes[0].res = -ECANCELED;
        cqes[left++] = late.cqes[0];
        late.kind = 0;
    }
    coil__seam.withheld = late.kept && late.kind;
    return left;
}

static int moment_task(void *arg)
{
    coil_tcp_endpoint endpoint;
    coil_tcp_acceptor acceptor = test_listen(&endpoint);
    unsigned results[3][2] = {{0}};

    (void)arg;
    assert_result(coil_spawn(NULL, accept_task, &acceptor, sizeof(acceptor)),
                  0);
    assert_result(coil_sleep(COIL_MS(1)), 0);
    coil__seam.completions = keep_connect;
    for (int i = 0; i < SWEEP; i++) {
        coil_tcp_socket socket;
        int kind = i % 3, result;

        assert_result(coil_tcp_open(&socket, AF_INET), 0);
        late.kept = false;
        late.turns = 0;
        late.kind = kind;
        result = (int)coil_timeout(coil_tcp_connect_op(&socket, &endpoint),
                                   COIL_US(i % 201));
        late.kind = 0;
        ck_assert_msg(result == 0 || result == -ETIME, "%s",
                      coil_error_name(result));
        if (kind == 1)
            assert_result(result, 0); /* its own completion wins */
        if (result < 0)
            assert_result(coil_tcp_connect(&socket, &endpoint), 0);
        results[kind][result < 0]++;
        check_connected(&socket);
        assert_result(coil_tcp_close(&socket), 0);
    }
    printf("connected/limited: plain %u/%u, completed late %u/%u, cancelled "
           "late %u/%u\n",
           results[0][0], results[0][1], results[1][0], results[1][1],
           results[2][0], results[2][1]);
    ck_assert_uint_gt(results[2][1], 0);
    return coil_tcp_acceptor_close(&acceptor);
}

START_TEST(connect_at_its_limit_is_connected_or_can_be_repeated)
{
    assert_result(test_run(moment_task, NULL), 0);
}
END_TEST

struct waiting {
    coil_tcp_socket socket;
    coil_tcp_endpoint endpoint;
    int result;
};

static int waiting_task(void *arg)
{
    struct waiting *waiting = arg;

    waiting->result = coil_tcp_connect(&waiting->socket, &waiting->endpoint);
    return 0;
}

static int stopped_task(void *arg)
{
    coil_tcp_listen_options options = {.size = sizeof(options), .backlog = 1};
    struct waiting *waiting = arg;
    coil_tcp_acceptor acceptor;
    coil_tcp_endpoint endpoint;

    assert_result(coil_tcp_listen_text(&acceptor, "127.0.0.1:0", &options), 0);
    assert_result(coil_tcp_acceptor_local_endpoint(&acceptor, &endpoint), 0);
    for (int i = 0; i < 5; i++) {
        waiting[i].endpoint = endpoint;
        waiting[i].result = 1;
        assert_result(coil_tcp_open(&waiting[i].socket, AF_INET), 0);
        assert_result(coil_spawn(NULL, waiting_task, &waiting[i], 0), 0);
    }
    assert_result(coil_sleep(COIL_MS(20)), 0);
    assert_result(waiting[4].result, 1);
    assert_result(coil_tcp_connect(&waiting[4].socket, &endpoint), -EBUSY);
    coil_context_stop(coil_context_current());
    assert_result(coil_sleep(COIL_S(20)), -ECANCELED);
    while (waiting[4].result == 1)
        (void)coil_yield();
    assert_result(waiting[4].result, -ECANCELED);
    for (int i = 0; i < 5; i++)
        assert_result(coil_tcp_close(&waiting[i].socket), 0);
    return coil_tcp_acceptor_close(&acceptor);
}

START_TEST(connect_under_way_is_busy_for_others_and_ends_with_a_stop)
{
    struct waiting waiting[5];

    assert_result(test_run(stopped_task, waiting), 0);
}
END_TEST

static int connecting_task(void *arg)
{
    coil_tcp_endpoint *endpoint = arg;
    coil_tcp_socket socket;
    char byte;

    assert_result(coil_tcp_open(&socket, AF_INET), 0);
    assert_result(coil_tcp_connect(&socket, endpoint), 0);
    assert_result(
        coil_timeout(coil_tcp_read_some_op(&socket, &byte, 1), COIL_S(20)),
        0); /* it was closed */
    return coil_tcp_close(&socket);
}

static int no_memory_task(void *arg)
{
    coil_tcp_endpoint endpoint;
    coil_tcp_acceptor acceptor = test_listen(&endpoint);
    coil_tcp_socket client, refused = {{77, 88}};
    int fill[1100], count = 0;

    (void)arg;
    assert_result(
        coil_spawn(NULL, connecting_task, &endpoint, sizeof(endpoint)), 0);
    assert_result(coil_sleep(COIL_MS(1)), 0);
    do
        fill[count] = fcntl(0, F_DUPFD_CLOEXEC, 0);
    while (fill[count++] < 1023);
    coil__seam.fail_call = COIL__CALL_ALLOCATE;
    coil__seam.fail_error = -ENOMEM;
    coil__seam.calls = 0;
    coil__seam.fail_at = 1;
    assert_result(coil_tcp_accept(&acceptor, &refused, NULL), -ENOMEM);
    ck_assert_int_eq(refused.handle.descriptor, 77);
    while (count)
        close(fill[--count]);
    assert_result(
        coil_spawn(NULL, connecting_task, &endpoint, sizeof(endpoint)), 0);
    assert_result(coil_tcp_accept(&acceptor, &client, NULL), 0);
    assert_result(coil_tcp_close(&client), 0);
    return coil_tcp_acceptor_close(&acceptor);
}

START_TEST(accept_without_memory_for_the_table_closes_the_connection)
{
    assert_result(test_run(no_memory_task, NULL), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tcp_connect_more");
    TCase *tests = tcase_create("tcp_connect_more");
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    tcase_set_timeout(tests, 30);
    suite_add_tcase(suite, tests);
    tcase_add_loop_test(tests, connection_survives_a_second_connect_to_nowhere,
                        0, 2);
    tcase_add_test(tests, connect_at_its_limit_is_connected_or_can_be_repeated);
    tcase_add_test(tests,
                   connect_under_way_is_busy_for_others_and_ends_with_a_stop);
    tcase_add_test(tests,
                   accept_without_memory_for_the_table_closes_the_connection);
    return test_main(suite);
}
