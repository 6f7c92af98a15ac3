/*
 * TCP sockets and acceptors: transfers, exact progress, half-close, endpoints
 * and options.
 */
#include "support/test.h"
#include <netinet/tcp.h>
#include <sys/resource.h>

enum { LARGE = 8 << 20 };

/* The byte at each place of a stream: shows loss, doubling and reordering. */
static unsigned char byte_at(size_t place)
{
    return (unsigned char)(place * 2654435761u >> 13);
}

static unsigned char *numbered(size_t size)
{
    unsigned char *data = malloc(size);

    ck_assert_ptr_nonnull(data);
    for (size_t i = 0; i < size; i++)
        data[i] = byte_at(i);
    return data;
}

struct reader {
    coil_tcp_socket socket;
    coil_duration pause;
    size_t *ret_read;
};

/* Reads to the end of the stream and checks every byte. */
static int reader_task(void *arg)
{
    struct reader *reader = arg;
    unsigned char data[10000];
    size_t done = 0, wrong = 0;
    ssize_t n;

    while ((n = coil_tcp_read_some(&reader->socket, data, sizeof(data))) > 0) {
        for (size_t i = 0; i < (size_t)n; i++)
            wrong += data[i] != byte_at(done + i);
        done += (size_t)n;
        if (reader->pause)
            coil_sleep(reader->pause);
    }
    assert_result(n, 0);
    ck_assert_uint_eq(wrong, 0);
    *reader->ret_read = done;
    return coil_tcp_close(&reader->socket);
}

static int large_transfer(void *arg)
{
    unsigned char *data = numbered(LARGE);
    size_t done = 0, read = SIZE_MAX;
    struct reader reader = {.pause = COIL_US(20), .ret_read = &read};
    coil_tcp_socket socket;

    (void)arg;
    test_tcp_pair(&socket, &reader.socket);
    coil_spawn(NULL, reader_task, &reader, sizeof(reader));
    assert_result(coil_tcp_write_all(&socket, data, LARGE, &done), 0);
    ck_assert_uint_eq(done, LARGE);
    assert_result(coil_tcp_close(&socket), 0);
    while (read == SIZE_MAX)
        coil_sleep(COIL_MS(1));
    ck_assert_uint_eq(read, LARGE);
    free(data);
    return 0;
}

START_TEST(write_all_delivers_every_byte_to_a_slow_reader)
{
    ck_assert_int_eq(test_run(large_transfer, NULL), 0);
}
END_TEST

/* The reader starts when the write has given up; then it must find exactly
 * what the write said. */
static int limited_transfer(void *arg)
{
    bool stop = *(bool *)arg;
    unsigned char *data = numbered(LARGE);
    size_t done = SIZE_MAX, read = SIZE_MAX;
    struct reader reader = {.ret_read = &read};
    coil_tcp_socket socket;

    test_tcp_pair(&socket, &reader.socket);
    if (stop)
        coil_context_post(coil_context_current(),
                          (void (*)(void *))coil_context_stop,
                          coil_context_current());
    assert_result(
        coil_timeout(coil_tcp_write_all_op(&socket, data, LARGE, &done),
                     stop ? COIL_S(60) : COIL_MS(50)),
        stop ? -ECANCELED : -ETIME);
    ck_assert_uint_lt(done, LARGE);
    ck_assert_uint_gt(done, 0);
    assert_result(coil_tcp_close(&socket), 0);
    free(data);
    if (!stop) {
        coil_spawn(NULL, reader_task, &reader, sizeof(reader));
        while (read == SIZE_MAX)
            coil_sleep(COIL_MS(1));
        ck_assert_uint_eq(read, done);
        return 0;
    }
    for (read = 0;;) { /* no wait works here: read as one may without coil */
        unsigned char part[8192];
        ssize_t n = recv(coil_tcp_descriptor(&reader.socket), part,
                         sizeof(part), MSG_DONTWAIT);

        if (n <= 0)
            break;
        read += (size_t)n;
    }
    printf("cancelled after %zu bytes, %zu arrived\n", done, read);
    ck_assert_uint_eq(read, done);
    return coil_tcp_close(&reader.socket);
}

START_TEST(limited_write_all_tells_exactly_what_arrived)
{
    bool stop = false;

    ck_assert_int_eq(test_run(limited_transfer, &stop), 0);
}
END_TEST

START_TEST(cancelled_write_all_tells_exactly_what_arrived)
{
    bool stop = true;

    ck_assert_int_eq(test_run(limited_transfer, &stop), 0);
}
END_TEST

static int nothing_and_half_close(void *arg)
{
    coil_tcp_socket left, right;
    char data[16];
    size_t done = 7;

    (void)arg;
    test_tcp_pair(&left, &right);
    assert_result(coil_tcp_read_some(&left, data, 0), 0);
    assert_result(coil_tcp_write_some(&left, data, 0), 0);
    assert_result(coil_tcp_write_all(&left, data, 0, &done), 0);
    ck_assert_uint_eq(done, 0);
    assert_result(coil_tcp_write_some(&left, "abc", 3), 3);
    assert_result(coil_tcp_read_some(&right, data, 2), 2);
    assert_result(coil_tcp_shutdown(&left, SHUT_WR), 0);
    assert_result(coil_tcp_read_some(&right, data, sizeof(data)), 1);
    assert_result(coil_tcp_read_some(&right, data, sizeof(data)), 0);
    assert_result(coil_tcp_read_some(&right, data, sizeof(data)), 0);
    assert_result(coil_tcp_write_all(&right, "still", 5, NULL), 0);
    assert_result(coil_tcp_read_some(&left, data, sizeof(data)), 5);
    assert_result(coil_tcp_write_some(&left, "x", 1), -EPIPE);
    assert_result(coil_tcp_close(&left), 0);
    assert_result(coil_tcp_read_some(&right, data, sizeof(data)), 0);
    return coil_tcp_close(&right);
}

START_TEST(half_close_ends_one_direction_only)
{
    ck_assert_int_eq(test_run(nothing_and_half_close, NULL), 0);
}
END_TEST

static int shutdown_task(void *arg)
{
    coil_sleep(COIL_MS(2));
    assert_result(coil_tcp_shutdown(arg, SHUT_RD), 0);
    return 0;
}

static int shutdown_under_read(void *arg)
{
    coil_tcp_socket left, right;
    char byte;

    (void)arg;
    test_tcp_pair(&left, &right);
    coil_spawn(NULL, shutdown_task, &left, sizeof(left));
    assert_result(coil_tcp_read_some(&left, &byte, 1), 0);
    coil_tcp_close(&left);
    return coil_tcp_close(&right);
}

START_TEST(shutdown_ends_a_pending_read)
{
    ck_assert_int_eq(test_run(shutdown_under_read, NULL), 0);
}
END_TEST

/* ------------------------------------------------- endpoints and options */

struct dial {
    coil_tcp_endpoint endpoint;
    int result;
};

static int dial_task(void *arg)
{
    struct dial *dial = *(struct dial **)arg;
    coil_address address = coil_tcp_endpoint_address(&dial->endpoint);
    coil_tcp_socket socket;

    assert_result(coil_tcp_open(&socket, address.family), 0);
    dial->result = coil_tcp_connect(&socket, &dial->endpoint);
    return coil_tcp_close(&socket);
}

static int dial(coil_tcp_endpoint endpoint)
{
    struct dial state = {endpoint, -ENODATA}, *pointer = &state;

    assert_result(coil_spawn(NULL, dial_task, &pointer, sizeof(pointer)), 0);
    while (state.result == -ENODATA)
        coil_sleep(COIL_US(100));
    return state.result;
}

static int endpoints(void *arg)
{
    coil_tcp_endpoint listening, peer, own, remote;
    coil_tcp_acceptor acceptor;
    coil_tcp_socket client, server;
    int value = 0;

    assert_result(coil_tcp_listen_text(&acceptor, arg, NULL), 0);
    assert_result(coil_tcp_acceptor_local_endpoint(&acceptor, &listening), 0);
    ck_assert_uint_ne(coil_tcp_endpoint_port(&listening), 0);
    assert_result(
        coil_tcp_open(&client, coil_tcp_endpoint_address(&listening).family),
        0);
    assert_result(coil_tcp_set(&client, coil_tcp_no_delay, 1), 0);
    assert_result(coil_tcp_connect(&client, &listening), 0);
    assert_result(coil_tcp_accept(&acceptor, &server, &peer), 0);
    assert_result(coil_tcp_local_endpoint(&client, &own), 0);
    assert_result(coil_tcp_remote_endpoint(&client, &remote), 0);
    ck_assert(coil_tcp_endpoint_equal(&peer, &own));
    ck_assert(coil_tcp_endpoint_equal(&remote, &listening));
    assert_result(coil_tcp_get(&client, coil_tcp_no_delay, &value), 0);
    ck_assert_int_eq(value, 1);
    ck_assert_int_ge(coil_tcp_descriptor(&client), 0);
    coil_tcp_close(&client);
    coil_tcp_close(&server);
    assert_result(coil_tcp_descriptor(&client), -EBADF);
    assert_result(coil_tcp_local_endpoint(&client, &own), -EBADF);
    return coil_tcp_acceptor_close(&acceptor);
}

START_TEST(endpoints_of_both_sides_agree)
{
    char v4[] = "127.0.0.1:0", v6[] = "[::1]:0";

    ck_assert_int_eq(test_run(endpoints, v4), 0);
    ck_assert_int_eq(test_run(endpoints, v6), 0);
}
END_TEST

START_TEST(port_is_shared_only_with_reuse_port)
{
    coil_tcp_listen_options share = {.size = sizeof(share), .reuse_port = true};
    coil_tcp_acceptor first, second;
    coil_tcp_endpoint endpoint;

    assert_result(coil_tcp_listen_text(&first, "127.0.0.1:0", &share), 0);
    assert_result(coil_tcp_acceptor_local_endpoint(&first, &endpoint), 0);
    assert_result(coil_tcp_listen(&second, &endpoint, NULL), -EADDRINUSE);
    assert_result(coil_tcp_listen(&second, &endpoint, &share), 0);
    assert_result(coil_tcp_acceptor_close(&second), 0);
    assert_result(coil_tcp_acceptor_close(&first), 0);
    /* The port is free at once. */
    assert_result(coil_tcp_listen(&first, &endpoint, NULL), 0);
    assert_result(coil_tcp_acceptor_close(&first), 0);
}
END_TEST

START_TEST(wrong_endpoint_is_refused)
{
    coil_tcp_endpoint none;
    coil_tcp_acceptor acceptor;

    memset(&none, 0, sizeof(none));
    assert_result(coil_tcp_listen(&acceptor, &none, NULL), -EINVAL);
    assert_result(coil_tcp_listen_text(&acceptor, "", NULL), -EINVAL);
    assert_result(coil_tcp_listen_text(&acceptor, "127.0.0.1", NULL), -EINVAL);
    assert_result(coil_tcp_listen_text(&acceptor, "8.8.8.8:0", NULL),
                  -EADDRNOTAVAIL);
}
END_TEST

static int both_families(void *arg)
{
    coil_tcp_listen_options options = {.size = sizeof(options)};
    coil_tcp_endpoint endpoint, v4;
    coil_tcp_acceptor acceptor;

    options.v6_only = *(bool *)arg;
    assert_result(coil_tcp_listen_text(&acceptor, "[::]:0", &options), 0);
    assert_result(coil_tcp_acceptor_local_endpoint(&acceptor, &endpoint), 0);
    v4 = coil_tcp_endpoint_make(coil_address_loopback_v4(),
                                coil_tcp_endpoint_port(&endpoint));
    assert_result(
        dial(coil_tcp_endpoint_make(coil_address_loopback_v6(),
                                    coil_tcp_endpoint_port(&endpoint))),
        0);
    assert_result(dial(v4), options.v6_only ? -ECONNREFUSED : 0);
    return coil_tcp_acceptor_close(&acceptor);
}

START_TEST(ipv4_reaches_an_ipv6_acceptor_unless_v6_only)
{
    bool v6_only = false;

    ck_assert_int_eq(test_run(both_families, &v6_only), 0);
    v6_only = true;
    ck_assert_int_eq(test_run(both_families, &v6_only), 0);
}
END_TEST

/* ----------------------------------------------------------------- accept */

static unsigned accepted;

static int accepting_task(void *arg)
{
    coil_tcp_socket socket;

    assert_result(coil_tcp_accept(arg, &socket, NULL), 0);
    accepted++;
    return coil_tcp_close(&socket);
}

static int many_acceptors(void *arg)
{
    coil_tcp_endpoint endpoint;
    coil_tcp_acceptor acceptor = test_listen(&endpoint);

    (void)arg;
    for (int i = 0; i < 10; i++)
        coil_spawn(NULL, accepting_task, &acceptor, sizeof(acceptor));
    for (int i = 0; i < 10; i++)
        assert_result(dial(endpoint), 0);
    while (accepted < 10)
        coil_sleep(COIL_US(100));
    return coil_tcp_acceptor_close(&acceptor);
}

START_TEST(connections_go_to_one_acceptor_each)
{
    ck_assert_int_eq(test_run(many_acceptors, NULL), 0);
    ck_assert_uint_eq(accepted, 10);
}
END_TEST

/* A client that resets its connection before it could be accepted. */
static int reset_before_accept(void *arg)
{
    struct linger reset = {1, 0};
    coil_tcp_endpoint endpoint, peer;
    coil_tcp_acceptor acceptor = test_listen(&endpoint);
    coil_tcp_socket client, server;

    (void)arg;
    assert_result(coil_tcp_open(&client, AF_INET), 0);
    assert_result(coil_tcp_connect(&client, &endpoint), 0);
    ck_assert_int_eq(setsockopt(coil_tcp_descriptor(&client), SOL_SOCKET,
                                SO_LINGER, &reset, sizeof(reset)),
                     0);
    assert_result(coil_tcp_close(&client), 0);
    assert_result(dial(endpoint), 0);
    assert_result(coil_tcp_accept(&acceptor, &server, &peer), 0);
    coil_tcp_close(&server);
    assert_result(
        coil_timeout(coil_tcp_accept_op(&acceptor, &server, &peer), COIL_S(5)),
        0);
    coil_tcp_close(&server);
    return coil_tcp_acceptor_close(&acceptor);
}

START_TEST(connection_reset_early_does_not_end_accepting)
{
    ck_assert_int_eq(test_run(reset_before_accept, NULL), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tcp");
    TCase *tests = tcase_create("tcp");

    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, write_all_delivers_every_byte_to_a_slow_reader);
    tcase_add_test(tests, limited_write_all_tells_exactly_what_arrived);
    tcase_add_test(tests, cancelled_write_all_tells_exactly_what_arrived);
    tcase_add_test(tests, half_close_ends_one_direction_only);
    tcase_add_test(tests, shutdown_ends_a_pending_read);
    tcase_add_test(tests, endpoints_of_both_sides_agree);
    tcase_add_test(tests, port_is_shared_only_with_reuse_port);
    tcase_add_test(tests, wrong_endpoint_is_refused);
    tcase_add_test(tests, ipv4_reaches_an_ipv6_acceptor_unless_v6_only);
    tcase_add_test(tests, connections_go_to_one_acceptor_each);
    tcase_add_test(tests, connection_reset_early_does_not_end_accepting);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
