/*
 * Closing under every kind of waiter, and closing gracefully.
 */
#include "support/test.h"
#include <poll.h>

enum { BLOCKED = 8 << 20, ANSWER = 256 * 1024 };

struct waiter {
    coil_tcp_socket socket;
    coil_tcp_acceptor acceptor;
    coil_tcp_endpoint endpoint;
    const char *data;
    ssize_t result;
};

static int reading(void *arg)
{
    struct waiter *waiter = *(struct waiter **)arg;
    char byte;

    waiter->result = coil_tcp_read_some(&waiter->socket, &byte, 1);
    return 0;
}

static int writing(void *arg)
{
    struct waiter *waiter = *(struct waiter **)arg;

    waiter->result =
        coil_tcp_write_all(&waiter->socket, waiter->data, BLOCKED, NULL);
    return 0;
}

static int accepting(void *arg)
{
    struct waiter *waiter = *(struct waiter **)arg;
    coil_tcp_socket socket;

    waiter->result = coil_tcp_accept(&waiter->acceptor, &socket, NULL);
    return 0;
}

static int connecting(void *arg)
{
    struct waiter *waiter = *(struct waiter **)arg;

    waiter->result = coil_tcp_connect(&waiter->socket, &waiter->endpoint);
    return 0;
}

static void start(coil_task_fn *fn, struct waiter *waiter)
{
    waiter->result = 12345;
    assert_result(coil_spawn(NULL, fn, &waiter, sizeof(waiter)), 0);
    assert_result(coil_sleep(COIL_MS(2)), 0);
    assert_result(waiter->result, 12345); /* it waits */
}

/* The peer sees the end within a time limit. */
static void assert_end(const coil_tcp_socket *peer, coil_time closed)
{
    char data[4096];
    ssize_t n;

    while ((n = coil_timeout(coil_tcp_read_some_op(peer, data, sizeof(data)),
                             COIL_S(5))) > 0)
        ;
    assert_result(n, 0);
    ck_assert_int_lt(coil_now() - closed,
                     TEST_SLOW ? COIL_MS(500) : COIL_MS(100));
}

static int under_a_reader_and_a_writer(void *arg)
{
    char *data = calloc(1, BLOCKED);
    struct waiter reader = {.data = data}, writer = {.data = data};
    coil_tcp_socket socket, peer;
    coil_time closed;

    (void)arg;
    test_tcp_pair(&socket, &peer);
    reader.socket = writer.socket = socket;
    start(reading, &reader);
    start(writing, &writer);
    closed = coil_now();
    assert_result(coil_tcp_close(&socket), 0);
    /* Both have ended: the buffer is theirs no more. */
    free(data);
    while (reader.result == 12345 || writer.result == 12345)
        coil_yield();
    assert_result(reader.result, -EBADF);
    assert_result(writer.result, -EBADF);
    assert_end(&peer, closed);
    return coil_tcp_close(&peer);
}

START_TEST(close_wakes_a_reader_and_a_writer)
{
    ck_assert_int_eq(test_run(under_a_reader_and_a_writer, NULL), 0);
}
END_TEST

static int under_an_acceptor(void *arg)
{
    struct waiter waiter;
    coil_tcp_acceptor again;

    (void)arg;
    waiter.acceptor = test_listen(&waiter.endpoint);
    start(accepting, &waiter);
    assert_result(coil_tcp_acceptor_close(&waiter.acceptor), 0);
    while (waiter.result == 12345)
        coil_yield();
    assert_result(waiter.result, -EBADF);
    assert_result(coil_tcp_listen(&again, &waiter.endpoint, NULL), 0);
    return coil_tcp_acceptor_close(&again);
}

START_TEST(close_wakes_an_acceptor_and_frees_the_port)
{
    ck_assert_int_eq(test_run(under_an_acceptor, NULL), 0);
}
END_TEST

/* An acceptor that takes no more: connects to it wait. */
static coil_tcp_acceptor full_backlog(coil_tcp_endpoint *ret_endpoint,
                                      coil_tcp_socket *fillers, int count)
{
    coil_tcp_listen_options options = {.size = sizeof(options), .backlog = 1};
    coil_tcp_acceptor acceptor;

    assert_result(coil_tcp_listen_text(&acceptor, "127.0.0.1:0", &options), 0);
    assert_result(coil_tcp_acceptor_local_endpoint(&acceptor, ret_endpoint), 0);
    for (int i = 0; i < count; i++) {
        assert_result(coil_tcp_open(&fillers[i], AF_INET), 0);
        (void)coil_timeout(coil_tcp_connect_op(&fillers[i], ret_endpoint),
                           COIL_MS(20));
    }
    return acceptor;
}

static int under_a_connect(void *arg)
{
    coil_tcp_socket fillers[4];
    struct waiter waiter;

    (void)arg;
    waiter.acceptor = full_backlog(&waiter.endpoint, fillers, 4);
    assert_result(coil_tcp_open(&waiter.socket, AF_INET), 0);
    start(connecting, &waiter);
    assert_result(coil_tcp_close(&waiter.socket), 0);
    while (waiter.result == 12345)
        coil_yield();
    assert_result(waiter.result, -EBADF);
    for (int i = 0; i < 4; i++)
        coil_tcp_close(&fillers[i]);
    return coil_tcp_acceptor_close(&waiter.acceptor);
}

START_TEST(close_wakes_a_connect)
{
    ck_assert_int_eq(test_run(under_a_connect, NULL), 0);
}
END_TEST

struct closing {
    coil_tcp_socket signal, victim;
};

static int closing_task(void *arg)
{
    struct closing *closing = arg;
    char byte;

    assert_result(coil_tcp_read_some(&closing->signal, &byte, 1), 1);
    assert_result(coil_tcp_close(&closing->victim), 0);
    return coil_tcp_close(&closing->signal);
}

/* Both reads complete in one batch, and the task that closes runs first. */
static int same_batch(void *arg)
{
    struct closing closing;
    struct waiter waiter;
    coil_tcp_socket signal, peer;

    (void)arg;
    test_tcp_pair(&closing.signal, &signal);
    test_tcp_pair(&closing.victim, &peer);
    waiter.socket = closing.victim;
    assert_result(coil_spawn(NULL, closing_task, &closing, sizeof(closing)), 0);
    start(reading, &waiter);
    ck_assert_int_eq(send(coil_tcp_descriptor(&signal), "x", 1, 0), 1);
    ck_assert_int_eq(send(coil_tcp_descriptor(&peer), "x", 1, 0), 1);
    while (waiter.result == 12345)
        coil_yield();
    assert_result(waiter.result, 1);
    assert_result(coil_tcp_descriptor(&closing.victim), -EBADF);
    coil_tcp_close(&signal);
    return coil_tcp_close(&peer);
}

START_TEST(request_that_completed_keeps_its_result)
{
    ck_assert_int_eq(test_run(same_batch, NULL), 0);
}
END_TEST

static bool other_ran;

static int other(void *arg)
{
    (void)arg;
    other_ran = true;
    return 0;
}

static int nothing_in_flight(void *arg)
{
    coil_tcp_socket left, right;

    (void)arg;
    test_tcp_pair(&left, &right);
    coil_spawn(NULL, other, NULL, 0);
    assert_result(coil_tcp_close(&left), 0);
    ck_assert(!other_ran); /* it did not suspend */
    coil_context_stop(coil_context_current());
    while (coil_check() == 0) /* until the loop has seen it */
        coil_yield();
    assert_result(coil_tcp_close(&right), 0);
    return coil_tcp_close(&right);
}

START_TEST(close_without_waiters_does_not_wait)
{
    ck_assert_int_eq(test_run(nothing_in_flight, NULL), 0);
}
END_TEST

/* ------------------------------------------------------------- gracefully */

struct server {
    coil_tcp_socket socket;
    coil_duration limit;
    const char *answer;
    ssize_t result;
};

static int answering(void *arg)
{
    struct server *server = *(struct server **)arg;

    assert_result(
        coil_tcp_write_all(&server->socket, server->answer, ANSWER, NULL), 0);
    server->result = coil_tcp_close_gracefully(&server->socket, server->limit);
    return 0;
}

/* The client sends what the server never reads, then reads the answer. */
static int unread_input(void *arg)
{
    char *answer = calloc(1, ANSWER), data[8192];
    struct server server = {.limit = COIL_S(5), .answer = answer, .result = 1};
    struct server *pointer = &server;
    coil_tcp_socket client;
    size_t received = 0;
    ssize_t n;

    (void)arg;
    test_tcp_pair(&client, &server.socket);
    assert_result(coil_tcp_write_all(&client, "unread", 6, NULL), 0);
    coil_spawn(NULL, answering, &pointer, sizeof(pointer));
    coil_sleep(COIL_MS(5));
    while ((n = coil_tcp_read_some(&client, data, sizeof(data))) > 0)
        received += (size_t)n;
    assert_result(n, 0);
    ck_assert_uint_eq(received, ANSWER);
    assert_result(coil_tcp_close(&client), 0);
    while (server.result == 1)
        coil_yield();
    assert_result(server.result, 0);
    free(answer);
    return 0;
}

START_TEST(graceful_close_delivers_the_whole_answer)
{
    ck_assert_int_eq(test_run(unread_input, NULL), 0);
}
END_TEST

static int silent_peer(void *arg)
{
    coil_tcp_socket left, right;

    (void)arg;
    test_tcp_pair(&left, &right);
    assert_result(coil_tcp_close_gracefully(&left, COIL_MS(20)), -ETIME);
    assert_result(coil_tcp_descriptor(&left), -EBADF);
    coil_tcp_close(&right);
    test_tcp_pair(&left, &right);
    assert_result(coil_tcp_close_gracefully(&left, 0), 0);
    coil_tcp_close(&right);
    test_tcp_pair(&left, &right);
    coil_context_stop(coil_context_current());
    assert_result(coil_tcp_close_gracefully(&left, COIL_S(60)), -ECANCELED);
    assert_result(coil_tcp_descriptor(&left), -EBADF);
    return coil_tcp_close(&right);
}

START_TEST(graceful_close_ends_with_its_limit_or_a_cancel)
{
    ck_assert_int_eq(test_run(silent_peer, NULL), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tcp_close");
    TCase *tests = tcase_create("tcp_close");

    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, close_wakes_a_reader_and_a_writer);
    tcase_add_test(tests, close_wakes_an_acceptor_and_frees_the_port);
    tcase_add_test(tests, close_wakes_a_connect);
    tcase_add_test(tests, request_that_completed_keeps_its_result);
    tcase_add_test(tests, close_without_waiters_does_not_wait);
    tcase_add_test(tests, graceful_close_delivers_the_whole_answer);
    tcase_add_test(tests, graceful_close_ends_with_its_limit_or_a_cancel);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
