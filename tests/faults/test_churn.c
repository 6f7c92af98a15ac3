/*
 * A server under churn: nothing is left over when connections have come and
 * gone, and a stop ends a thousand idle sessions by their own code.
 */
#include "support/test.h"
#include <malloc.h>
#include <sys/resource.h>

enum {
    CHURN_CONNECTIONS = 10000,
    CHURN_AT_ONCE = 100,
    CHURN_BYTES = 100,
    IDLE_CONNECTIONS = 1000
};

struct world {
    coil_tcp_acceptor acceptor;
    coil_tcp_endpoint endpoint;
    unsigned sessions, ended, cancelled, verified;
    unsigned left; /* connections to make */
    unsigned clients;
};

struct session {
    coil_tcp_socket socket;
    struct world *world;
};

static int session_task(void *arg)
{
    struct session *session = arg;
    char data[512];
    ssize_t n;

    while ((n = coil_tcp_read_some(&session->socket, data, sizeof(data))) > 0)
        if (coil_tcp_write_all(&session->socket, data, (size_t)n, NULL) < 0)
            break;
    session->world->cancelled += n == -ECANCELED;
    session->world->ended++;
    return coil_tcp_close(&session->socket);
}

static int accept_task(void *arg)
{
    struct world *world = *(struct world **)arg;
    struct session session = {.world = world};

    while (coil_tcp_accept(&world->acceptor, &session.socket, NULL) >= 0) {
        world->sessions++;
        assert_result(coil_spawn(NULL, session_task, &session, sizeof(session)),
                      0);
    }
    return coil_tcp_acceptor_close(&world->acceptor);
}

static void exchange(const coil_tcp_socket *socket)
{
    unsigned char sent[CHURN_BYTES], received[CHURN_BYTES];
    size_t done = 0;

    for (size_t i = 0; i < sizeof(sent); i++)
        sent[i] = (unsigned char)rand();
    assert_result(coil_tcp_write_all(socket, sent, sizeof(sent), NULL), 0);
    while (done < sizeof(received)) {
        ssize_t n = coil_tcp_read_some(socket, received + done,
                                       sizeof(received) - done);

        ck_assert_int_gt(n, 0);
        done += (size_t)n;
    }
    ck_assert_mem_eq(sent, received, sizeof(sent));
}

static int client_task(void *arg)
{
    struct world *world = *(struct world **)arg;

    while (world->left) {
        coil_tcp_socket socket;

        world->left--;
        assert_result(coil_tcp_open(&socket, AF_INET), 0);
        assert_result(coil_tcp_connect(&socket, &world->endpoint), 0);
        exchange(&socket);
        world->verified++;
        assert_result(coil_tcp_close(&socket), 0);
    }
    if (!--world->clients)
        coil_context_stop(coil_context_current());
    return 0;
}

struct usage {
    size_t descriptors;
    size_t heap;
    coil_stats stats;
};

/* One round on a context that lives on: churn, then everything ends. */
static struct usage churn(coil_context *context, struct world *world)
{
    struct usage usage;

    memset(world, 0, sizeof(*world));
    world->acceptor = test_listen(&world->endpoint);
    world->left = TEST_SLOW ? CHURN_CONNECTIONS / 10 : CHURN_CONNECTIONS;
    world->clients = CHURN_AT_ONCE;
    assert_result(coil_spawn(context, accept_task, &world, sizeof(world)), 0);
    for (int i = 0; i < CHURN_AT_ONCE; i++)
        assert_result(coil_spawn(context, client_task, &world, sizeof(world)),
                      0);
    assert_result(coil_context_run(context), 0);
    usage.descriptors = test_descriptors();
    usage.heap = mallinfo2().uordblks;
    coil_context_stats(context, &usage.stats, sizeof(usage.stats));
    return usage;
}

START_TEST(ten_thousand_connections_twice_leave_nothing)
{
    coil_context *context = test_context();
    struct world world;
    struct usage first = churn(context, &world);
    struct usage second = churn(context, &world);

    printf("connections %u verified %u; after round 1: descriptors %zu heap "
           "%zu tasks %llu stacks %llu; after round 2: descriptors %zu heap "
           "%zu tasks %llu stacks %llu\n",
           world.sessions, world.verified, first.descriptors, first.heap,
           (unsigned long long)first.stats.tasks_live,
           (unsigned long long)first.stats.stacks, second.descriptors,
           second.heap, (unsigned long long)second.stats.tasks_live,
           (unsigned long long)second.stats.stacks);
    ck_assert_uint_eq(world.verified,
                      TEST_SLOW ? CHURN_CONNECTIONS / 10 : CHURN_CONNECTIONS);
    ck_assert_uint_eq(world.ended, world.sessions);
    ck_assert_uint_eq(second.descriptors, first.descriptors);
    ck_assert_uint_eq(second.heap, first.heap);
    ck_assert_uint_eq(second.stats.tasks_live, 0);
    ck_assert_uint_eq(second.stats.in_flight, 0);
    test_context_end(context);
}
END_TEST

/* Connects, then stays silent until the stop. */
static int idle_task(void *arg)
{
    struct world *world = *(struct world **)arg;
    coil_tcp_socket socket;
    char byte;

    assert_result(coil_tcp_open(&socket, AF_INET), 0);
    assert_result(coil_tcp_connect(&socket, &world->endpoint), 0);
    world->clients++;
    assert_result(coil_tcp_read_some(&socket, &byte, 1), -ECANCELED);
    return coil_tcp_close(&socket);
}

static coil_time stopped_at;

static int stopper_task(void *arg)
{
    struct world *world = *(struct world **)arg;

    while (world->sessions < IDLE_CONNECTIONS ||
           world->clients < IDLE_CONNECTIONS)
        assert_result(coil_sleep(COIL_MS(1)), 0);
    stopped_at = coil_now();
    coil_context_stop(coil_context_current());
    return 0;
}

START_TEST(stop_ends_a_thousand_idle_sessions_by_their_own_code)
{
    coil_context *context = test_context();
    struct world world = {0}, *pointer = &world;
    double took;

    world.acceptor = test_listen(&world.endpoint);
    assert_result(coil_spawn(context, accept_task, &pointer, sizeof(pointer)),
                  0);
    for (int i = 0; i < IDLE_CONNECTIONS; i++)
        assert_result(coil_spawn(context, idle_task, &pointer, sizeof(pointer)),
                      0);
    assert_result(coil_spawn(context, stopper_task, &pointer, sizeof(pointer)),
                  0);
    assert_result(coil_context_run(context), 0);
    took = (double)(coil_now() - stopped_at) / 1e6;
    printf("idle sessions %u, ended by their own code %u, cancelled %u, in "
           "%.1f ms\n",
           world.sessions, world.ended, world.cancelled, took);
    ck_assert_uint_eq(world.ended, IDLE_CONNECTIONS);
    ck_assert_uint_eq(world.cancelled, IDLE_CONNECTIONS);
    ck_assert(took < (TEST_SLOW ? 5000 : 1000));
    test_context_end(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("churn");
    TCase *tests = tcase_create("churn");
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    tcase_set_timeout(tests, 40);
    tcase_add_test(tests, ten_thousand_connections_twice_leave_nothing);
    tcase_add_test(tests, stop_ends_a_thousand_idle_sessions_by_their_own_code);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
