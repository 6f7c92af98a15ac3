/*
 * Destroying a context in every state: never run, stopped, failed with a
 * hundred waits of all kinds pending, with posts that did not run. Every task
 * ends by its own code, in bounded time, and nothing is left open.
 */
#include "base/seam.h"
#include "support/test.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum {
    ROUNDS = TEST_SLOW ? 200 : 1000,
    WAITS = 100 /* of the kinds in turn */
};

enum kind { SLEEP, POLL, READ, WRITE, ACCEPT, CONNECT, SIGNAL, LIMITED, KINDS };

/* What the waits are on; made by raw system calls, so that nothing is bound to
 * a context. */
static struct {
    coil_tcp_endpoint full; /* its backlog is full */
    int holder, fill[2];    /* what keeps it so */
    coil_tcp_acceptor acceptor;
    coil_signal_set signals;
    int silent; /* never ready */
    int ended[KINDS];
    int results_wrong;
} all;

static int connect_raw(const struct sockaddr_in *address)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    ck_assert_int_ge(fd, 0);
    if (connect(fd, (const void *)address, sizeof(*address)) < 0)
        ck_assert_int_eq(errno, EINPROGRESS);
    return fd;
}

/* A listener that takes one connection and is never asked for it. */
static void fill_a_backlog(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof(address);
    char text[32];

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    all.holder = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(all.holder, (void *)&address, size), 0);
    ck_assert_int_eq(listen(all.holder, 0), 0);
    ck_assert_int_eq(getsockname(all.holder, (void *)&address, &size), 0);
    all.fill[0] = connect_raw(&address);
    all.fill[1] = connect_raw(&address);
    snprintf(text, sizeof(text), "127.0.0.1:%u", ntohs(address.sin_port));
    assert_result(coil_tcp_endpoint_parse(&all.full, text, strlen(text)), 0);
}

static void open_all(void)
{
    static const int signals[] = {SIGUSR2};
    coil_tcp_endpoint endpoint;

    fill_a_backlog();
    all.acceptor = test_listen(&endpoint);
    assert_result(coil_signal_set_open(&all.signals, signals, 1), 0);
    all.silent = eventfd(0, EFD_CLOEXEC);
}

static void close_all(void)
{
    close(all.holder);
    close(all.fill[0]);
    close(all.fill[1]);
    close(all.silent);
    assert_result(coil_tcp_acceptor_close(&all.acceptor), 0);
    assert_result(coil_signal_set_close(&all.signals), 0);
}

/* ------------------------------------------------------------- the waits */

/* On a socket pair of its own: a read, or a write of more than it holds. */
static int wait_on_pair(enum kind kind)
{
    static char large[1 << 20];
    coil_tcp_socket socket;
    int pair[2], result;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair),
                     0);
    assert_result(coil_handle_open(&socket.handle, pair[0]), 0);
    if (kind == READ)
        result = (int)coil_tcp_read_some(&socket, large, sizeof(large));
    else
        result = coil_tcp_write_all(&socket, large, sizeof(large), NULL);
    assert_result(coil_tcp_close(&socket), 0);
    close(pair[1]);
    return result;
}

static int wait_for_connect(void)
{
    coil_tcp_socket socket;
    int result;

    assert_result(coil_tcp_open(&socket, AF_INET), 0);
    result = coil_tcp_connect(&socket, &all.full);
    assert_result(coil_tcp_close(&socket), 0);
    return result;
}

static int wait_of_kind(enum kind kind)
{
    coil_tcp_socket client;

    switch (kind) {
    case SLEEP:
        return coil_sleep(COIL_S(1000));
    case POLL:
        return coil_poll(all.silent, POLLIN);
    case READ:
    case WRITE:
        return wait_on_pair(kind);
    case ACCEPT:
        return coil_tcp_accept(&all.acceptor, &client, NULL);
    case CONNECT:
        return wait_for_connect();
    case SIGNAL:
        return coil_signal_set_wait(&all.signals);
    default:
        return (int)coil_timeout(coil_poll_op(all.silent, POLLIN),
                                 COIL_S(1000));
    }
}

static int waiting_task(void *arg)
{
    enum kind kind = (enum kind)(intptr_t)arg;

    if (wait_of_kind(kind) != -ECANCELED)
        all.results_wrong++;
    if (coil_yield() != -ECANCELED)
        all.results_wrong++;
    all.ended[kind]++;
    return -ECANCELED;
}

static void spawn_waits(coil_context *context)
{
    for (intptr_t i = 0; i < WAITS; i++)
        assert_result(coil_spawn(context, waiting_task, (void *)(i % KINDS), 0),
                      0);
}

static int posts_run;

static void count_post(void *arg)
{
    posts_run += *(int *)arg;
}

static void post_some(coil_context *context)
{
    static int one = 1;

    for (int i = 0; i < 10; i++)
        assert_result(coil_context_post(context, count_post, &one), 0);
}

/* ------------------------------------------------------------- the states */

static void check_all_pending(coil_context *context)
{
    coil_stats stats;

    coil_context_stats(context, &stats, sizeof(stats));
    ck_assert_uint_eq(stats.tasks_live, WAITS);
    /* all but the sleepers, and the one that wakes the loop */
    ck_assert_uint_ge(stats.in_flight, WAITS - (WAITS + KINDS - 1) / KINDS);
    ck_assert_uint_eq(stats.timers_armed, 2 * (WAITS / KINDS) + 1);
}

static int failing_task(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++)
        assert_result(coil_sleep(COIL_US(50)), 0);
    coil__seam = (struct coil__seam){
        .fail_call = COIL__CALL_ENTER, .fail_error = -EINVAL, .fail_at = 1};
    return 0;
}

static void nothing(coil_context *context)
{
    (void)context;
}

static void run_to_the_end(coil_context *context)
{
    assert_result(coil_context_run(context), 0);
}

static void spawn_and_stop(coil_context *context)
{
    spawn_waits(context);
    coil_context_stop(context);
}

/* Stopped while all of them were waiting. */
static int stopping_task(void *arg)
{
    (void)arg;
    for (int i = 0; i < 3; i++)
        assert_result(coil_sleep(COIL_US(50)), 0);
    coil_context_stop(coil_context_current());
    return 0;
}

static void stop_under_way(coil_context *context)
{
    spawn_waits(context);
    assert_result(coil_spawn(context, stopping_task, NULL, 0), 0);
    run_to_the_end(context);
    post_some(context);
}

/* The ring fails once: run() returns and leaves all waits as they are. */
static void fail_under_way(coil_context *context)
{
    spawn_waits(context);
    assert_result(coil_spawn(context, failing_task, NULL, 0), 0);
    assert_result(coil_context_run(context), -EINVAL);
    coil__seam = (struct coil__seam){.fail_call = COIL__CALL_COUNT};
    check_all_pending(context);
}

static void fail_and_post(coil_context *context)
{
    fail_under_way(context);
    post_some(context);
    coil_context_stop(context);
}

static const struct state {
    const char *name;
    void (*reach)(coil_context *context);
    bool waits, posts;
} states[] = {
    {"never run", nothing, false, false},
    {"run without work", run_to_the_end, false, false},
    {"never run, with tasks", spawn_waits, true, false},
    {"stopped before it ran, with tasks", spawn_and_stop, true, false},
    {"never run, with posts", post_some, false, true},
    {"stopped while waiting, with posts", stop_under_way, true, true},
    {"failed while waiting", fail_under_way, true, false},
    {"failed while waiting, with posts", fail_and_post, true, true},
};
enum { STATES = sizeof(states) / sizeof(states[0]) };

static coil_duration destroy_in_state(const struct state *state)
{
    coil_context *context = test_context();
    coil_duration took;
    int ended = 0;

    memset(all.ended, 0, sizeof(all.ended));
    posts_run = 0;
    state->reach(context);
    took = coil_now();
    assert_result(coil_context_destroy(context), 0);
    took = coil_now() - took;
    for (int kind = 0; kind < KINDS; kind++)
        ended += all.ended[kind];
    ck_assert_int_eq(ended, state->waits ? WAITS : 0);
    ck_assert_int_eq(all.results_wrong, 0);
    ck_assert_int_eq(posts_run, state->posts ? 10 : 0);
    return took;
}

START_TEST(destroy_drains_in_bounded_time_and_leaves_nothing_open)
{
    const struct state *state = &states[_i];
    size_t before = test_descriptors(), opened;
    coil_duration longest = 0;

    open_all();
    opened = test_descriptors();
    for (int i = 0; i < ROUNDS / STATES; i++) {
        coil_duration took = destroy_in_state(state);

        longest = took > longest ? took : longest;
    }
    ck_assert_uint_eq(test_descriptors(), opened);
    close_all();
    ck_assert_uint_eq(test_descriptors(), before);
    printf("%s: destroyed %d times, the slowest took %.2f ms\n", state->name,
           ROUNDS / STATES, (double)longest / 1e6);
    ck_assert_int_lt(longest, COIL_S(5));
}
END_TEST

/* ------------------------------------------------- the memory of what waited */

enum { READERS = 20, SENT = 65536, PATTERN = 0x5a };

static struct reader {
    coil_tcp_socket socket;
    int peer;
    char *data; /* on the task's stack */
} readers[READERS];

enum { READ_SIZE = 8192 };

static int reading_task(void *arg)
{
    struct reader *reader = arg;
    char data[READ_SIZE];

    reader->data = data;
    assert_result(coil_tcp_read_some(&reader->socket, data, sizeof(data)),
                  -ECANCELED);
    return 0;
}

static void reader_open(struct reader *reader)
{
    int pair[2], size = 4 * SENT;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair),
                     0);
    reader->peer = pair[1];
    ck_assert_int_eq(
        setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)), 0);
    assert_result(coil_handle_open(&reader->socket.handle, pair[0]), 0);
}

/* The stack is gone; other memory takes its place. */
static char *reader_refill(const struct reader *reader)
{
    const uintptr_t page = 4096;
    uintptr_t address = (uintptr_t)reader->data / page * page;
    char *memory =
        mmap((void *)address, READ_SIZE + page, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    ck_assert_ptr_eq(memory, (void *)address);
    memset(memory, PATTERN, READ_SIZE + page);
    return memory;
}

/* All that was sent is in the socket, none of it in the memory. */
static void reader_check(struct reader *reader, char *memory)
{
    static char sent[SENT], received[SENT];
    const size_t size = READ_SIZE + 4096;

    memset(sent, 1, SENT);
    ck_assert_int_eq(send(reader->peer, sent, SENT, 0), SENT);
    ck_assert_int_eq(
        recv(coil_tcp_descriptor(&reader->socket), received, SENT, MSG_WAITALL),
        SENT);
    for (size_t i = 0; i < size; i++)
        ck_assert_int_eq(memory[i], PATTERN);
    munmap(memory, size);
    assert_result(coil_tcp_close(&reader->socket), 0);
    close(reader->peer);
}

START_TEST(destroyed_context_writes_to_no_memory)
{
    coil_context *context = test_context();

    for (int i = 0; i < READERS; i++) {
        reader_open(&readers[i]);
        assert_result(coil_spawn(context, reading_task, &readers[i], 0), 0);
    }
    assert_result(coil_spawn(context, failing_task, NULL, 0), 0);
    assert_result(coil_context_run(context), -EINVAL);
    coil__seam = (struct coil__seam){.fail_call = COIL__CALL_COUNT};
    assert_result(coil_context_destroy(context), 0);
    for (int i = 0; i < READERS; i++)
        reader_check(&readers[i], reader_refill(&readers[i]));
}
END_TEST

/* ------------------------------------------------------ a ring that is lost */

/* The ring fails for good: the memory of what it may still write to is given
 * up, the sink says so, and the caller hears why. */
START_TEST(destroy_with_a_ring_that_is_lost_says_what_is_given_up)
{
    coil_context *context = test_context();
    size_t before;

    test_catch_messages();
    open_all();
    spawn_waits(context);
    assert_result(coil_spawn(context, failing_task, NULL, 0), 0);
    assert_result(coil_context_run(context), -EINVAL);
    coil__seam = (struct coil__seam){.fail_call = COIL__CALL_ENTER,
                                     .fail_error = -EINVAL,
                                     .fail_at = 1,
                                     .fail_repeat = UINT32_MAX};
    before = test_descriptors();
    assert_result(coil_context_destroy(context), -EINVAL);
    coil__seam = (struct coil__seam){.fail_call = COIL__CALL_COUNT};
    ck_assert_uint_eq(test_descriptors(), before - 2); /* ring and wake-up */
    ck_assert_uint_eq(test_messages.of_kind[COIL_MESSAGE_LEAK], 1);
    ck_assert_ptr_nonnull(strstr(test_messages.last, "EINVAL"));
    /* Sleepers need no ring; whoever waits in the kernel stays where he is. */
    for (int kind = 0; kind < KINDS; kind++)
        ck_assert_int_eq(all.ended[kind],
                         kind == SLEEP ? (WAITS + KINDS - 1) / KINDS : 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("destroy");
    TCase *tcase = tcase_create("destroy");

    suite_add_tcase(suite, tcase);
    tcase_set_timeout(tcase, 60);
    tcase_add_loop_test(tcase,
                        destroy_drains_in_bounded_time_and_leaves_nothing_open,
                        0, STATES);
    tcase_add_test(tcase, destroyed_context_writes_to_no_memory);
    tcase_add_test(tcase,
                   destroy_with_a_ring_that_is_lost_says_what_is_given_up);
    return test_main(suite);
}
