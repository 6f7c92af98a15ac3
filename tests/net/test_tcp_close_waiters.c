/*
 * Closing TCP sockets under every kind of waiter, and closing gracefully.
 */
#include "support/test.h"
#include <fcntl.h>

enum { ANSWER = 256 * 1024, REQUEST = 100 * 1024, LARGE = 16 << 20 };

#define PROMPT COIL_MS(TEST_SLOW ? 500 : 100)

static char buffer[LARGE];

/* Lets what was spawned get into the kernel. */
static void settle(void)
{
    assert_result(coil_sleep(COIL_MS(1)), 0);
}

static void finish(const bool *done)
{
    coil_time end = coil_now() + COIL_S(20);

    while (!*done && coil_now() < end)
        (void)coil_sleep(COIL_US(50));
    ck_assert(*done);
}

enum { READ, WRITE, ACCEPT, CONNECT, KINDS };

/* A task that waits once on a socket. */
struct waiter {
    coil_tcp_socket socket; /* or acceptor: a handle */
    coil_tcp_endpoint endpoint;
    int kind;
    ssize_t result;
    size_t written;
    bool done;
};

static int waiter_task(void *arg)
{
    struct waiter *waiter = arg;
    coil_tcp_acceptor acceptor = {waiter->socket.handle};
    coil_tcp_socket accepted;
    char byte;

    if (waiter->kind == READ)
        waiter->result = coil_tcp_read_some(&waiter->socket, &byte, 1);
    else if (waiter->kind == WRITE)
        waiter->result = coil_tcp_write_all(&waiter->socket, buffer, LARGE,
                                            &waiter->written);
    else if (waiter->kind == ACCEPT)
        waiter->result = coil_tcp_accept(&acceptor, &accepted, NULL);
    else
        waiter->result = coil_tcp_connect(&waiter->socket, &waiter->endpoint);
    waiter->done = true;
    return 0;
}

static void start_waiter(struct waiter *waiter, coil_handle handle, int kind)
{
    waiter->socket.handle = handle;
    waiter->kind = kind;
    waiter->result = 1000;
    waiter->done = false;
    assert_result(coil_spawn(NULL, waiter_task, waiter, 0), 0);
}

/* The peer finds the end of the stream, soon, behind `expected` bytes. */
static void check_end(const coil_tcp_socket *peer, coil_time begin,
                      size_t expected)
{
    size_t count = 0;
    ssize_t n;

    while ((n = coil_tcp_read_some(peer, buffer, LARGE)) > 0)
        count += (size_t)n;
    assert_result(n, 0);
    ck_assert_uint_eq(count, expected);
    ck_assert_int_lt(coil_now() - begin, PROMPT);
}

/* ------------------------------------------------------------ under waiters */

static int close_under_transfers_task(void *arg)
{
    struct waiter reader, writer;
    coil_tcp_socket left, right;
    coil_time begin;

    (void)arg;
    test_tcp_pair(&left, &right);
    start_waiter(&reader, left.handle, READ);
    start_waiter(&writer, left.handle, WRITE);
    settle();
    ck_assert(!reader.done && !writer.done);
    begin = coil_now();
    assert_result(coil_tcp_close(&left), 0);
    finish(&reader.done);
    finish(&writer.done);
    check_end(&right, begin, writer.written);
    assert_result(reader.result, -EBADF);
    assert_result(writer.result, -EBADF);
    printf("closed with %zu bytes of %d written\n", writer.written, LARGE);
    ck_assert_uint_gt(writer.written, 0);
    ck_assert_uint_lt(writer.written, LARGE);
    return coil_tcp_close(&right);
}

START_TEST(close_wakes_a_reader_and_a_writer_and_ends_the_stream)
{
    assert_result(test_run(close_under_transfers_task, NULL), 0);
}
END_TEST

static int close_under_accepts_task(void *arg)
{
    coil_tcp_endpoint endpoint;
    coil_tcp_acceptor acceptor = test_listen(&endpoint), again;
    struct waiter waiters[10];

    (void)arg;
    for (int i = 0; i < 10; i++)
        start_waiter(&waiters[i], acceptor.handle, ACCEPT);
    settle();
    assert_result(coil_tcp_acceptor_close(&acceptor), 0);
    /* The port is free at once. */
    assert_result(coil_tcp_listen(&again, &endpoint, NULL), 0);
    for (int i = 0; i < 10; i++) {
        finish(&waiters[i].done);
        assert_result(waiters[i].result, -EBADF);
    }
    return coil_tcp_acceptor_close(&again);
}

START_TEST(close_wakes_all_who_accept_and_frees_the_port)
{
    assert_result(test_run(close_under_accepts_task, NULL), 0);
}
END_TEST

static int close_under_connect_task(void *arg)
{
    coil_tcp_listen_options options = {.size = sizeof(options), .backlog = 1};
    struct waiter waiters[5];
    coil_tcp_socket sockets[5];
    coil_tcp_acceptor acceptor;
    int connected = 0;

    (void)arg;
    assert_result(coil_tcp_listen_text(&acceptor, "127.0.0.1:0", &options), 0);
    for (int i = 0; i < 5; i++) {
        assert_result(
            coil_tcp_acceptor_local_endpoint(&acceptor, &waiters[i].endpoint),
            0);
        assert_result(coil_tcp_open(&sockets[i], AF_INET), 0);
        start_waiter(&waiters[i], sockets[i].handle, CONNECT);
    }
    assert_result(coil_sleep(COIL_MS(20)), 0);
    for (int i = 0; i < 5; i++) {
        bool waits = !waiters[i].done;

        connected += !waits;
        assert_result(coil_tcp_close(&sockets[i]), 0);
        finish(&waiters[i].done);
        assert_result(waiters[i].result, waits ? -EBADF : 0);
    }
    ck_assert_int_lt(connected, 5); /* the queue takes two */
    return coil_tcp_acceptor_close(&acceptor);
}

START_TEST(close_wakes_who_connects_to_a_full_backlog)
{
    assert_result(test_run(close_under_connect_task, NULL), 0);
}
END_TEST

/* Wakes by a byte on `left`, and closes `victim`, whose reader has its byte
 * from the same batch. */
struct same_batch {
    coil_tcp_socket left, victim;
    bool done;
};

static int same_batch_closer(void *arg)
{
    struct same_batch *batch = arg;
    char byte;

    assert_result(coil_tcp_read_some(&batch->left, &byte, 1), 1);
    assert_result(coil_tcp_close(&batch->victim), 0);
    batch->done = true;
    return 0;
}

static int same_batch_task(void *arg)
{
    struct same_batch batch = {.done = false};
    coil_tcp_socket right, peer;
    struct waiter reader;

    test_tcp_pair(&batch.left, &right);
    test_tcp_pair(&batch.victim, &peer);
    start_waiter(&reader, batch.victim.handle, READ);
    assert_result(coil_spawn(NULL, same_batch_closer, &batch, 0), 0);
    settle();
    for (int i = 0; i < 2; i++) { /* in both orders */
        bool victim = i == (arg != NULL);

        ck_assert_int_eq(
            send(coil_tcp_descriptor(victim ? &peer : &right), "a", 1, 0), 1);
    }
    finish(&batch.done);
    finish(&reader.done);
    assert_result(reader.result, 1);
    assert_result(coil_tcp_close(&batch.left), 0);
    assert_result(coil_tcp_close(&right), 0);
    return coil_tcp_close(&peer);
}

START_TEST(read_that_completed_before_the_close_keeps_its_result)
{
    assert_result(test_run(same_batch_task, _i ? buffer : NULL), 0);
}
END_TEST

static void close_posted(void *arg)
{
    struct waiter *waiters = arg;

    assert_result(coil_tcp_close(&waiters[0].socket), 0);
    assert_result(coil_tcp_close(&waiters[0].socket), 0);
    waiters[2].done = true;
}

static int close_in_post_task(void *arg)
{
    struct waiter waiters[3] = {{.done = false}};
    coil_tcp_socket left, right;
    size_t before;

    test_tcp_pair(&left, &right);
    before = test_descriptors();
    waiters[0].socket = left;
    for (int i = 0; i < 2 && arg; i++)
        start_waiter(&waiters[i], left.handle, i ? WRITE : READ);
    settle();
    assert_result(
        coil_context_post(coil_context_current(), close_posted, waiters), 0);
    finish(&waiters[2].done);
    for (int i = 0; i < 2 && arg; i++) {
        finish(&waiters[i].done);
        assert_result(waiters[i].result, -EBADF);
    }
    ck_assert_uint_eq(test_descriptors(), before - 1);
    check_end(&right, coil_now(), waiters[1].written);
    return coil_tcp_close(&right);
}

START_TEST(close_in_a_post_is_done_by_the_last_request)
{
    assert_result(test_run(close_in_post_task, _i ? buffer : NULL), 0);
}
END_TEST

struct closer {
    coil_tcp_socket socket;
    int result;
    bool done;
};

static int closer_task(void *arg)
{
    struct closer *closer = arg;

    closer->result = coil_tcp_close(&closer->socket);
    closer->done = true;
    return 0;
}

static int two_closers_task(void *arg)
{
    struct closer closers[2] = {{.result = 1}, {.result = 1}};
    struct waiter reader;
    coil_tcp_socket left, right;
    int same;

    (void)arg;
    test_tcp_pair(&left, &right);
    start_waiter(&reader, left.handle, READ);
    settle();
    for (int i = 0; i < 2; i++) {
        closers[i].socket = left;
        assert_result(coil_spawn(NULL, closer_task, &closers[i], 0), 0);
    }
    finish(&closers[0].done);
    finish(&closers[1].done);
    finish(&reader.done);
    assert_result(closers[0].result, 0);
    assert_result(closers[1].result, 0);
    assert_result(reader.result, -EBADF);
    same = fcntl(0, F_DUPFD_CLOEXEC, left.handle.descriptor);
    ck_assert_int_eq(same, left.handle.descriptor); /* it was closed, */
    settle();
    ck_assert_int_ge(fcntl(same, F_GETFD), 0); /* and only once */
    close(same);
    return coil_tcp_close(&right);
}

START_TEST(two_tasks_that_close_one_socket_close_it_once)
{
    assert_result(test_run(two_closers_task, NULL), 0);
}
END_TEST

/* --------------------------------------------------------------- gracefully */

/* Leaves the request unread; how it closes is `limit`: < 0 plainly. */
struct server {
    coil_tcp_socket socket;
    coil_duration limit;
    size_t answer;
    int result;
    bool done;
};

static int server_task(void *arg)
{
    struct server *server = arg;
    char byte;

    assert_result(coil_tcp_read_some(&server->socket, &byte, 1), 1);
    assert_result(
        coil_tcp_write_all(&server->socket, buffer, server->answer, NULL), 0);
    server->result =
        server->limit < 0
            ? coil_tcp_close(&server->socket)
            : coil_tcp_close_gracefully(&server->socket, server->limit);
    server->done = true;
    return 0;
}

static void start_server(struct server *server, coil_tcp_socket *ret_client)
{
    test_tcp_pair(ret_client, &server->socket);
    assert_result(coil_spawn(NULL, server_task, server, 0), 0);
    assert_result(coil_tcp_write_all(ret_client, buffer, REQUEST, NULL), 0);
}

static int whole_answer_task(void *arg)
{
    struct server server = {.limit = COIL_S(20), .answer = ANSWER, .result = 1};
    coil_tcp_socket client;
    size_t count = 0;
    ssize_t n;

    (void)arg;
    start_server(&server, &client);
    while ((n = coil_tcp_read_some(&client, buffer, 10000)) > 0) {
        count += (size_t)n;
        (void)coil_sleep(COIL_US(100));
    }
    assert_result(n, 0);
    ck_assert_uint_eq(count, ANSWER);
    assert_result(coil_tcp_close(&client), 0);
    finish(&server.done);
    return server.result;
}

START_TEST(graceful_close_delivers_the_answer_despite_unread_input)
{
    for (int i = 0; i < 10; i++)
        assert_result(test_run(whole_answer_task, NULL), 0);
}
END_TEST

static int reset_task(void *arg)
{
    struct server server = {.limit = *(coil_duration *)arg, .result = 1};
    coil_tcp_socket client;
    char byte;

    start_server(&server, &client);
    finish(&server.done);
    assert_result(server.result, 0);
    assert_result(coil_tcp_descriptor(&server.socket), -EBADF);
    assert_result(coil_tcp_read_some(&client, &byte, 1), -ECONNRESET);
    return coil_tcp_close(&client);
}

START_TEST(close_with_unread_input_resets_also_gracefully_without_time)
{
    coil_duration limit = -_i; /* 0: gracefully; else plainly */

    assert_result(test_run(reset_task, &limit), 0);
}
END_TEST

static int graceful_limit_task(void *arg)
{
    struct server server = {.limit = arg ? COIL_S(3600) : COIL_MS(10),
                            .result = 1};
    coil_tcp_socket client;
    coil_time begin = coil_now();

    start_server(&server, &client);
    check_end(&client, coil_now(), 0); /* the client does not close */
    ck_assert(!server.done || coil_now() - begin >= COIL_MS(10));
    if (arg)
        coil_context_stop(coil_context_current());
    while (!server.done)
        (void)coil_yield();
    assert_result(server.result, arg ? -ECANCELED : -ETIME);
    ck_assert_int_ge(coil_now() - begin, arg ? 0 : COIL_MS(10));
    assert_result(coil_tcp_descriptor(&server.socket), -EBADF);
    return coil_tcp_close(&client);
}

START_TEST(graceful_close_ends_at_its_limit_or_a_cancel_and_has_closed)
{
    coil_set_message_handler(NULL); /* it yields on although cancelled */
    assert_result(test_run(graceful_limit_task, _i ? buffer : NULL), 0);
}
END_TEST

static int flood_task(void *arg)
{
    const coil_tcp_socket *client = arg;

    while (coil_tcp_write_all(client, buffer, REQUEST, NULL) == 0)
        ;
    return coil_tcp_close(client);
}

static int flooded_task(void *arg)
{
    struct server server = {.limit = COIL_MS(20), .result = 1};
    coil_tcp_socket client;

    (void)arg;
    start_server(&server, &client);
    assert_result(coil_spawn(NULL, flood_task, &client, sizeof(client)), 0);
    finish(&server.done);
    return server.result;
}

START_TEST(graceful_close_ends_at_its_limit_though_input_never_ends)
{
    assert_result(test_run(flooded_task, NULL), -ETIME);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("tcp_close_more");
    TCase *tests = tcase_create("tcp_close");

    tcase_set_timeout(tests, 30);
    suite_add_tcase(suite, tests);
    tcase_add_test(tests,
                   close_wakes_a_reader_and_a_writer_and_ends_the_stream);
    tcase_add_test(tests, close_wakes_all_who_accept_and_frees_the_port);
    tcase_add_test(tests, close_wakes_who_connects_to_a_full_backlog);
    tcase_add_loop_test(
        tests, read_that_completed_before_the_close_keeps_its_result, 0, 2);
    tcase_add_loop_test(tests, close_in_a_post_is_done_by_the_last_request, 0,
                        2);
    tcase_add_test(tests, two_tasks_that_close_one_socket_close_it_once);
    tcase_add_test(tests,
                   graceful_close_delivers_the_answer_despite_unread_input);
    tcase_add_loop_test(
        tests, close_with_unread_input_resets_also_gracefully_without_time, 0,
        2);
    tcase_add_loop_test(
        tests, graceful_close_ends_at_its_limit_or_a_cancel_and_has_closed, 0,
        2);
    tcase_add_test(tests,
                   graceful_close_ends_at_its_limit_though_input_never_ends);
    return test_main(suite);
}
