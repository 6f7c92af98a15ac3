/*
 * Bytes that moved are reported: a stop, a limit or a cancel that comes between
 * a write's completion and its task's resumption changes nothing about it, and
 * one that comes earlier leaves the count exact. A cancel that comes too late
 * hits nothing that was started since.
 */
#include "base/seam.h"
#include "support/test.h"
#include <sys/socket.h>

static uint32_t seed;

static uint32_t random_below(uint32_t bound)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % bound;
}

static void random_start(void)
{
    seed = (uint32_t)coil_now();
    printf("seed %u\n", seed);
}

/* A socket of the library and a raw peer; whoever writes blocks soon. */
static int open_pair(coil_tcp_socket *ret_socket)
{
    int pair[2], small = 2048;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair),
                     0);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(
            setsockopt(pair[i], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)),
            0);
    assert_result(coil_handle_open(&ret_socket->handle, pair[0]), 0);
    return pair[1];
}

/* Numbered bytes expose loss, doubling and reordering. */
static char number(size_t position)
{
    return (char)(position % 251);
}

static void fill(char *data, size_t size, size_t position)
{
    for (size_t i = 0; i < size; i++)
        data[i] = number(position + i);
}

/* ------------------------------------- between completion and resumption */

enum action { STOP, LIMIT, CANCEL, ACTIONS };
enum { TRUTH_ROUNDS = TEST_SLOW ? 100 : 500, MOST = 20000 };

static struct {
    coil_tcp_socket socket;
    int peer;
    enum action action;
    unsigned countdown; /* completions until the action */
    bool acted;
    coil_scope scope;
    size_t reported, seen;
} it;

static void see(void)
{
    char data[4096];
    ssize_t n;

    while ((n = recv(it.peer, data, 1 + random_below(sizeof(data)),
                     MSG_DONTWAIT)) > 0)
        for (ssize_t i = 0; i < n; i++)
            if (data[i] != number(it.seen++))
                ck_abort_msg("byte %zu is wrong", it.seen - 1);
}

static void act(void)
{
    it.acted = true;
    if (it.action == STOP)
        coil_context_stop(coil_context_current());
    else if (it.action == LIMIT)
        coil__seam.time_offset += COIL_S(3600);
    else
        coil_scope_cancel(&it.scope);
}

/* The write has happened, and the loop does not know it yet. */
static unsigned act_on_completion(struct io_uring_cqe *cqes, unsigned count,
                                  unsigned capacity)
{
    (void)cqes;
    (void)capacity;
    if (count && !it.acted && --it.countdown == 0)
        act();
    see();
    return count;
}

static ssize_t write_random(void)
{
    static char data[MOST];
    size_t size = 1 + random_below(MOST), done = 0;
    ssize_t result;

    fill(data, size, it.reported);
    if (random_below(2)) {
        result = coil_timeout(coil_tcp_write_some_op(&it.socket, data, size),
                              COIL_S(60));
        done = result > 0 ? (size_t)result : 0;
    } else {
        result = coil_timeout(
            coil_tcp_write_all_op(&it.socket, data, size, &done), COIL_S(60));
        ck_assert(result < 0 || done == size);
    }
    it.reported += done;
    return result;
}

static int truth_task(void *arg)
{
    ssize_t result;

    (void)arg;
    coil_scope_begin(&it.scope, COIL_FOREVER);
    while ((result = write_random()) >= 0)
        if (it.action == LIMIT && it.acted)
            break;
    if (result < 0)
        assert_result(result, it.action == LIMIT ? -ETIME : -ECANCELED);
    (void)coil_scope_end(&it.scope);
    return 0;
}

START_TEST(bytes_reported_are_the_bytes_the_peer_saw)
{
    size_t total = 0, whole = 0;

    random_start();
    for (int i = 0; i < TRUTH_ROUNDS; i++) {
        coil_context *context = test_context();

        memset(&it, 0, sizeof(it));
        it.peer = open_pair(&it.socket);
        it.action = (enum action)_i;
        it.countdown = 1 + random_below(30);
        coil__seam.completions = act_on_completion;
        coil__seam.withheld = true; /* the peer is read by the hook */
        assert_result(coil_spawn(context, truth_task, NULL, 0), 0);
        assert_result(coil_context_run(context), 0);
        coil__seam = (struct coil__seam){0};
        see();
        ck_assert_uint_eq(it.reported, it.seen);
        ck_assert(it.acted);
        total += it.seen;
        assert_result(coil_tcp_close(&it.socket), 0);
        close(it.peer);
        test_context_end(context);
        whole++;
    }
    printf("%zu times, %zu bytes, each reported and seen\n", whole, total);
}
END_TEST

/* ----------------------------------------------- a cancel that comes late */

enum { LATE_PAIRS = 48, LATE_ROUNDS = TEST_SLOW ? 40 : 300, LATE_SIZE = 65536 };

struct late {
    coil_tcp_socket socket;
    coil_tcp_socket other; /* its peer, read slowly */
    coil_tcp_socket token, token_source;
    size_t reported, seen;
    unsigned cut, whole;
};

static struct late lates[LATE_PAIRS];

/* The frames of both waits are at the same place, so that the read's request
 * has the address that the write's had. */
static __attribute__((noinline)) ssize_t wait_here(coil_operation operation)
{
    return coil_await(operation);
}

static int late_writer(void *arg)
{
    static char data[LATE_SIZE + 251];
    struct late *late = arg;
    char token;

    fill(data, sizeof(data), 0);
    for (int i = 0; i < LATE_ROUNDS; i++) {
        size_t done = 0, size = 1 + random_below(LATE_SIZE);
        ssize_t result = wait_here(coil_limit(
            coil_tcp_write_all_op(&late->socket, data + late->reported % 251,
                                  size, &done),
            COIL_US(random_below(300))));

        ck_assert(result == -ETIME ? done < size : done == size);
        late->reported += done;
        late->cut += result == -ETIME;
        late->whole += result == 0;
        /* Nobody cancels this one. */
        assert_result(wait_here(coil_tcp_read_some_op(&late->token, &token, 1)),
                      1);
    }
    return coil_tcp_shutdown(&late->socket, SHUT_WR);
}

static int late_reader(void *arg)
{
    struct late *late = arg;
    char data[8192];
    ssize_t n;

    while ((n = coil_tcp_read_some(&late->other, data,
                                   1 + random_below(sizeof(data)))) > 0) {
        for (ssize_t i = 0; i < n; i++)
            if (data[i] != number(late->seen++))
                ck_abort_msg("byte %zu is wrong", late->seen - 1);
        if (random_below(3) == 0)
            assert_result(coil_sleep(COIL_US(random_below(100))), 0);
    }
    return (int)n;
}

static int late_source(void *arg)
{
    struct late *late = arg;

    for (int i = 0; i < LATE_ROUNDS; i++) {
        assert_result(coil_sleep(COIL_US(random_below(400))), 0);
        assert_result(coil_tcp_write_all(&late->token_source, "t", 1, NULL), 0);
    }
    return 0;
}

static void late_close(struct late *late)
{
    assert_result(coil_tcp_close(&late->socket), 0);
    assert_result(coil_tcp_close(&late->other), 0);
    assert_result(coil_tcp_close(&late->token), 0);
    assert_result(coil_tcp_close(&late->token_source), 0);
}

static int late_task(void *arg)
{
    coil_task_fn *const fns[] = {late_writer, late_reader, late_source};
    coil_group group;
    int result;

    (void)arg;
    coil_group_begin(&group, COIL_GROUP_ALL);
    for (int i = 0; i < LATE_PAIRS; i++) {
        int peer = open_pair(&lates[i].socket);

        assert_result(coil_handle_open(&lates[i].other.handle, peer), 0);
        peer = open_pair(&lates[i].token);
        assert_result(coil_handle_open(&lates[i].token_source.handle, peer), 0);
        for (int j = 0; j < 3; j++)
            assert_result(coil_group_spawn(&group, fns[j], &lates[i], 0), 0);
    }
    result = coil_group_end(&group, NULL);
    for (int i = 0; i < LATE_PAIRS; i++)
        late_close(&lates[i]);
    return result;
}

START_TEST(late_cancel_hits_nothing_that_was_started_since)
{
    unsigned cut = 0, whole = 0;

    random_start();
    assert_result(test_run(late_task, NULL), 0);
    for (int i = 0; i < LATE_PAIRS; i++) {
        struct late *late = &lates[i];

        ck_assert_uint_eq(late->reported, late->seen);
        cut += late->cut;
        whole += late->whole;
    }
    printf("%u writes cut short by their limit, %u whole\n", cut, whole);
    ck_assert_uint_gt(cut, 0);
    ck_assert_uint_gt(whole, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("truth");
    TCase *tests = tcase_create("truth");

    tcase_add_loop_test(tests, bytes_reported_are_the_bytes_the_peer_saw, 0,
                        ACTIONS);
    tcase_add_test(tests, late_cancel_hits_nothing_that_was_started_since);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
