/*
 * A server is stopped with every sort of client: a request under way, idle
 * connections, one that never reads its answer, one that was just accepted.
 * Each gets what it was promised and the run ends in bounded time.
 *
 * And a stop with a great many requests pending.
 */
#include "support/test.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum {
    IDLE = 3,
    ANSWER = 3 * 1000 * 1000,
    LARGE = 64 * 1000 * 1000, /* more than any buffer takes */
};

static struct {
    coil_tcp_acceptor acceptor;
    coil_tcp_endpoint endpoint;
    char *answer;
    unsigned sessions, started;
    size_t unread_done;
    int unread_result;
    coil_time stopped;
    coil_duration idle_took, late_took;
} it;

/* --------------------------------------------------------------- the server */

/* One request is one letter: 'w' is work of 50 ms and an answer, 'l' a large
 * answer. Once begun, it has some time. */
static int answer(coil_tcp_socket *client, char request)
{
    size_t done;
    int result;

    COIL_SHIELD(shield, COIL_MS(400));
    if (request == 'w') {
        result = coil_sleep(COIL_MS(50));
        if (result >= 0)
            result = coil_tcp_write_all(client, it.answer, ANSWER, NULL);
    } else {
        result = coil_tcp_write_all(client, it.answer, LARGE, &done);
        it.unread_done = done;
        it.unread_result = result;
    }
    return result;
}

static int session(void *arg)
{
    coil_tcp_socket *client = arg;
    char request;
    ssize_t n;

    it.started++;
    while ((n = coil_tcp_read_some(client, &request, 1)) > 0)
        if (answer(client, request) < 0)
            break;
    it.sessions--;
    return coil_tcp_close(client);
}

static int server(void *arg)
{
    coil_tcp_socket client;
    int result;

    (void)arg;
    while ((result = coil_tcp_accept(&it.acceptor, &client, NULL)) >= 0) {
        it.sessions++;
        assert_result(coil_spawn(NULL, session, &client, sizeof(client)), 0);
    }
    assert_result(result, -ECANCELED);
    return coil_tcp_acceptor_close(&it.acceptor);
}

/* -------------------------------------------------------------- the clients */

static int client_connect(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(coil_tcp_endpoint_port(&it.endpoint));
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (void *)&address, sizeof(address)), 0);
    return fd;
}

/* Reads to the end; -1 if that is a reset. */
static ssize_t client_read_all(int fd)
{
    static char data[65536];
    ssize_t n, total = 0;

    while ((n = recv(fd, data, sizeof(data), 0)) > 0) {
        for (ssize_t i = 0; i < n; i++)
            if (data[i] != it.answer[total + i])
                ck_abort_msg("byte %zd of an answer is wrong", total + i);
        total += n;
    }
    return n < 0 ? -1 : total;
}

struct clients {
    coil_context *context;
    int working, idle[IDLE], unread, late;
};

/* All is as it should be for the stop. */
static void clients_ready(void *arg)
{
    struct clients *clients = arg;

    if (it.started < IDLE + 2) {
        assert_result(
            coil_context_post(clients->context, clients_ready, clients), 0);
        return;
    }
    clients->late = client_connect(); /* nobody has asked for this one */
    it.stopped = coil_now();
    coil_context_stop(clients->context);
}

static void *clients_main(void *arg)
{
    struct clients *clients = arg;
    ssize_t got;

    clients->unread = client_connect();
    ck_assert_int_eq(send(clients->unread, "l", 1, 0), 1);
    clients->working = client_connect();
    ck_assert_int_eq(send(clients->working, "w", 1, 0), 1);
    for (int i = 0; i < IDLE; i++)
        clients->idle[i] = client_connect();
    assert_result(coil_context_post(clients->context, clients_ready, clients),
                  0);
    for (int i = 0; i < IDLE; i++)
        ck_assert_int_eq(client_read_all(clients->idle[i]), 0);
    it.idle_took = coil_now() - it.stopped;
    ck_assert_int_le(client_read_all(clients->late), 0);
    it.late_took = coil_now() - it.stopped;
    got = client_read_all(clients->working);
    ck_assert_int_eq(got, ANSWER);
    return NULL;
}

static void clients_close(struct clients *clients)
{
    close(clients->unread);
    close(clients->working);
    close(clients->late);
    for (int i = 0; i < IDLE; i++)
        close(clients->idle[i]);
}

START_TEST(drain_gives_every_client_its_due)
{
    struct clients clients = {.context = test_context()};
    coil_duration took;
    pthread_t thread;

    it.answer = malloc(LARGE);
    for (size_t i = 0; i < LARGE; i++)
        it.answer[i] = (char)(i % 251);
    it.acceptor = test_listen(&it.endpoint);
    assert_result(coil_spawn(clients.context, server, NULL, 0), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, clients_main, &clients), 0);
    assert_result(coil_context_run(clients.context), 0);
    took = coil_now() - it.stopped;
    pthread_join(thread, NULL);
    ck_assert_uint_eq(it.sessions, 0);
    printf("idle ones ended after %.1f ms, the late one after %.1f, all after "
           "%.1f\n",
           (double)it.idle_took / 1e6, (double)it.late_took / 1e6,
           (double)took / 1e6);
    ck_assert_int_lt(it.idle_took, COIL_MS(200));
    ck_assert_int_lt(it.late_took, COIL_MS(200));
    ck_assert_int_ge(took, COIL_MS(200)); /* the shield began earlier */
    ck_assert_int_lt(took, COIL_MS(400) + COIL_S(1));
    /* What was said to have been written to the one that never read is what
     * it finds when it does. */
    assert_result(it.unread_result, -ECANCELED);
    ck_assert_uint_gt(it.unread_done, 0);
    ck_assert_int_eq(client_read_all(clients.unread), (ssize_t)it.unread_done);
    clients_close(&clients);
    free(it.answer);
    test_context_end(clients.context);
}
END_TEST

/* ------------------------------------------------------------ a great many */

/* The kernel looks requests up in a table whose size goes with that of the
 * completion queue: on the smallest ring each cancel walks through them all. */
enum { MANY = TEST_SLOW ? 5000 : 50000, MANY_TINY = 5000 };

static unsigned many;

static int silent;
static unsigned waiting, refused;

static int many_task(void *arg)
{
    int result;

    waiting++;
    if ((intptr_t)arg % 4)
        result = coil_poll(silent, POLLIN);
    else
        result = (int)coil_timeout(coil_poll_op(silent, POLLIN), COIL_S(1000));
    refused += result == -ECANCELED;
    return 0;
}

static int many_stop(void *arg)
{
    (void)arg;
    while (waiting < many)
        assert_result(coil_sleep(COIL_MS(10)), 0);
    assert_result(coil_sleep(COIL_MS(10)), 0);
    it.stopped = coil_now();
    coil_context_stop(coil_context_current());
    return 0;
}

START_TEST(stop_with_a_great_many_pending_is_quick)
{
    coil_task_options options = {.size = sizeof(options),
                                 .stack_size = 16 * 1024};
    coil_context *context = test_context();
    coil_duration took;
    coil_stats stats;

    many = test_options().cq_entries ? MANY_TINY : MANY;
    silent = eventfd(0, EFD_CLOEXEC);
    for (intptr_t i = 0; i < many; i++)
        assert_result(
            coil_spawn_with(context, &options, many_task, (void *)i, 0), 0);
    assert_result(coil_spawn(context, many_stop, NULL, 0), 0);
    assert_result(coil_context_run(context), 0);
    took = coil_now() - it.stopped;
    coil_context_stats(context, &stats, sizeof(stats));
    printf("%u requests pending, stopped within %.1f ms\n", many,
           (double)took / 1e6);
    ck_assert_uint_eq(refused, many);
    ck_assert_uint_ge(stats.sqes, 2 * many);
    /* The budget is 0.5 s; a busy machine may take longer. */
    ck_assert_int_lt(took, COIL_S(5));
    test_context_end(context);
    close(silent);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("drain");
    TCase *tests = tcase_create("drain");

    tcase_add_test(tests, drain_gives_every_client_its_due);
    tcase_add_test(tests, stop_with_a_great_many_pending_is_quick);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
