/*
 * Connecting, and connecting again with the same socket after it came to
 * nothing.
 */
#include "support/test.h"

enum { SWEEP = TEST_SLOW ? 200 : 1000 };

/* A port of the loopback on which nobody listens. */
static coil_tcp_endpoint nobody(void)
{
    coil_tcp_endpoint endpoint;
    coil_tcp_acceptor acceptor = test_listen(&endpoint);

    assert_result(coil_tcp_acceptor_close(&acceptor), 0);
    return endpoint;
}

/* Both directions work. */
static void assert_connected(const coil_tcp_socket *client,
                             const coil_tcp_acceptor *acceptor)
{
    coil_tcp_socket server;
    char byte = 0;

    assert_result(coil_tcp_accept(acceptor, &server, NULL), 0);
    assert_result(coil_tcp_write_some(client, "x", 1), 1);
    assert_result(coil_tcp_read_some(&server, &byte, 1), 1);
    ck_assert_int_eq(byte, 'x');
    assert_result(coil_tcp_write_some(&server, "y", 1), 1);
    assert_result(coil_tcp_read_some(client, &byte, 1), 1);
    ck_assert_int_eq(byte, 'y');
    coil_tcp_close(&server);
}

static int refused_twice(void *arg)
{
    coil_tcp_endpoint empty = nobody(), endpoint;
    coil_tcp_acceptor acceptor = test_listen(&endpoint);
    coil_tcp_socket client;
    int value = 0;

    (void)arg;
    assert_result(coil_tcp_open(&client, AF_INET), 0);
    assert_result(coil_tcp_set(&client, coil_tcp_no_delay, 1), 0);
    assert_result(coil_tcp_connect(&client, &empty), -ECONNREFUSED);
    assert_result(coil_tcp_connect(&client, &empty), -ECONNREFUSED);
    assert_result(coil_tcp_connect(&client, &endpoint), 0);
    assert_result(coil_tcp_get(&client, coil_tcp_no_delay, &value), 0);
    ck_assert_int_eq(value, 1);
    assert_result(coil_tcp_connect(&client, &endpoint), -EISCONN);
    assert_connected(&client, &acceptor);
    coil_tcp_close(&client);
    return coil_tcp_acceptor_close(&acceptor);
}

START_TEST(refused_socket_connects_again)
{
    ck_assert_int_eq(test_run(refused_twice, NULL), 0);
}
END_TEST

static int full_backlog(void *arg)
{
    coil_tcp_listen_options options = {.size = sizeof(options), .backlog = 1};
    coil_tcp_endpoint full, endpoint;
    coil_tcp_acceptor never, acceptor = test_listen(&endpoint);
    coil_tcp_socket fillers[4], client;
    coil_time began;

    (void)arg;
    assert_result(coil_tcp_listen_text(&never, "127.0.0.1:0", &options), 0);
    assert_result(coil_tcp_acceptor_local_endpoint(&never, &full), 0);
    for (int i = 0; i < 4; i++) {
        assert_result(coil_tcp_open(&fillers[i], AF_INET), 0);
        (void)coil_timeout(coil_tcp_connect_op(&fillers[i], &full),
                           COIL_MS(20));
    }
    assert_result(coil_tcp_open(&client, AF_INET), 0);
    began = coil_now();
    assert_result(
        coil_timeout(coil_tcp_connect_op(&client, &full), COIL_MS(30)), -ETIME);
    ck_assert_int_ge(coil_now() - began, COIL_MS(30));
    assert_result(coil_tcp_connect(&client, &endpoint), 0);
    assert_connected(&client, &acceptor);
    for (int i = 0; i < 4; i++)
        coil_tcp_close(&fillers[i]);
    coil_tcp_close(&client);
    coil_tcp_acceptor_close(&never);
    return coil_tcp_acceptor_close(&acceptor);
}

START_TEST(limited_socket_connects_again)
{
    ck_assert_int_eq(test_run(full_backlog, NULL), 0);
}
END_TEST

static int draining(void *arg)
{
    coil_tcp_socket socket;

    while (coil_tcp_accept(arg, &socket, NULL) >= 0)
        coil_tcp_close(&socket);
    return 0;
}

/* Limits swept over the time that a connect takes. */
static int at_the_moment_of_the_limit(void *arg)
{
    coil_tcp_endpoint endpoint;
    coil_tcp_acceptor acceptor = test_listen(&endpoint);
    unsigned connected = 0, late = 0;

    (void)arg;
    coil_spawn(NULL, draining, &acceptor, sizeof(acceptor));
    for (int i = 0; i < SWEEP; i++) {
        coil_tcp_socket client;
        char byte;
        int result;

        assert_result(coil_tcp_open(&client, AF_INET), 0);
        result = (int)coil_timeout(coil_tcp_connect_op(&client, &endpoint),
                                   (coil_duration)i * 200000 / SWEEP);
        if (result == -ETIME) {
            late++;
            assert_result(coil_tcp_connect(&client, &endpoint), 0);
        } else {
            assert_result(result, 0);
            connected++;
        }
        /* Connected in either case: the other side closes. */
        assert_result(coil_tcp_read_some(&client, &byte, 1), 0);
        assert_result(coil_tcp_close(&client), 0);
    }
    printf("%d connects: %u in time, %u at the second try\n", SWEEP, connected,
           late);
    return coil_tcp_acceptor_close(&acceptor);
}

START_TEST(connect_at_the_moment_of_its_limit_is_one_or_the_other)
{
    ck_assert_int_eq(test_run(at_the_moment_of_the_limit, NULL), 0);
}
END_TEST

struct second {
    coil_tcp_socket socket;
    coil_tcp_endpoint endpoint;
};

/* Runs while the other connect is under way: its entry is submitted only when
 * no task is ready. */
static int second_connect(void *arg)
{
    struct second *second = arg;

    assert_result(coil_tcp_connect(&second->socket, &second->endpoint), -EBUSY);
    return 0;
}

static int busy_then_stopped(void *arg)
{
    struct second second = {.endpoint = nobody()};
    coil_tcp_endpoint none;

    (void)arg;
    memset(&none, 0, sizeof(none));
    assert_result(coil_tcp_open(&second.socket, AF_INET), 0);
    assert_result(coil_tcp_connect(&second.socket, &none), -EINVAL);
    coil_spawn(NULL, second_connect, &second, sizeof(second));
    assert_result(coil_tcp_connect(&second.socket, &second.endpoint),
                  -ECONNREFUSED);
    coil_context_stop(coil_context_current());
    while (coil_check() == 0) /* until the loop has seen it */
        coil_yield();
    assert_result(coil_tcp_connect(&second.socket, &second.endpoint),
                  -ECANCELED);
    return coil_tcp_close(&second.socket);
}

START_TEST(second_connect_is_busy_and_a_stop_cancels)
{
    ck_assert_int_eq(test_run(busy_then_stopped, NULL), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tcp_connect");
    TCase *tests = tcase_create("tcp_connect");

    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, refused_socket_connects_again);
    tcase_add_test(tests, limited_socket_connects_again);
    tcase_add_test(tests,
                   connect_at_the_moment_of_its_limit_is_one_or_the_other);
    tcase_add_test(tests, second_connect_is_busy_and_a_stop_cancels);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
