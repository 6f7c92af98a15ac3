/*
 * The Nth call of the library into the kernel or the allocator fails, for
 * every N and several errors, in a scenario that uses most of it: an echo
 * over TCP with limits, a sleep, a signal set and a stop. Whatever fails, the
 * scenario ends, nothing crashes, and no descriptor or allocation is left.
 */
#include "base/seam.h"
#include "support/test.h"
#include <signal.h>

enum { SWEEP_MOST = 2000, SWEEP_LIMIT_MS = 3000 };

struct scenario {
    coil_tcp_acceptor acceptor;
    coil_tcp_endpoint endpoint;
    bool echoed;
    coil_signal_set signals;
};

static int echo_task(void *arg)
{
    coil_tcp_socket *socket = arg;
    char data[64];
    ssize_t n;

    while ((n = coil_timeout(coil_tcp_read_some_op(socket, data, sizeof(data)),
                             COIL_S(5))) > 0)
        if (coil_timeout(coil_tcp_write_all_op(socket, data, (size_t)n, NULL),
                         COIL_S(5)) < 0)
            break;
    coil_tcp_close(socket);
    return (int)n;
}

static int accept_task(void *arg)
{
    struct scenario *scenario = *(struct scenario **)arg;
    coil_tcp_endpoint peer;
    coil_tcp_socket socket;
    int result;

    result = coil_tcp_accept(&scenario->acceptor, &socket, &peer);
    if (result >= 0 && coil_spawn(NULL, echo_task, &socket, sizeof(socket)) < 0)
        coil_tcp_close(&socket);
    coil_tcp_acceptor_close(&scenario->acceptor);
    return result;
}

static bool exchange(const coil_tcp_socket *socket)
{
    char data[5] = "ping";
    size_t done = 0;

    if (coil_tcp_write_all(socket, data, sizeof(data), NULL) < 0)
        return false;
    memset(data, 0, sizeof(data));
    while (done < sizeof(data)) {
        ssize_t n =
            coil_tcp_read_some(socket, data + done, sizeof(data) - done);

        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return strcmp(data, "ping") == 0;
}

/* Ends the scenario however far it came. */
static int client_task(void *arg)
{
    struct scenario *scenario = *(struct scenario **)arg;
    coil_tcp_endpoint own;
    coil_tcp_socket socket;

    if (coil_tcp_open(&socket, AF_INET) >= 0) {
        coil_tcp_set(&socket, coil_tcp_no_delay, 1);
        if (coil_timeout(coil_tcp_connect_op(&socket, &scenario->endpoint),
                         COIL_MS(500)) >= 0 &&
            coil_tcp_local_endpoint(&socket, &own) >= 0)
            scenario->echoed = exchange(&socket);
        coil_tcp_close_gracefully(&socket, COIL_MS(500));
    }
    coil_sleep(COIL_US(100));
    coil_context_stop(coil_context_current());
    return 0;
}

static int signal_task(void *arg)
{
    struct scenario *scenario = *(struct scenario **)arg;
    int result = coil_signal_set_wait(&scenario->signals);

    coil_signal_set_close(&scenario->signals);
    return result;
}

/* False if what ends the scenario could not be started. */
static bool spawn_all(coil_context *context, struct scenario *scenario)
{
    const int numbers[] = {SIGUSR1};

    if (coil_signal_set_open(&scenario->signals, numbers, 1) >= 0 &&
        coil_spawn(context, signal_task, &scenario, sizeof(scenario)) < 0)
        coil_signal_set_close(&scenario->signals);
    if (coil_tcp_listen_text(&scenario->acceptor, "127.0.0.1:0", NULL) < 0)
        return false;
    if (coil_tcp_acceptor_local_endpoint(&scenario->acceptor,
                                         &scenario->endpoint) < 0 ||
        coil_spawn(context, accept_task, &scenario, sizeof(scenario)) < 0) {
        coil_tcp_acceptor_close(&scenario->acceptor);
        return false;
    }
    return coil_spawn(context, client_task, &scenario, sizeof(scenario)) >= 0;
}

/* Returns whether the echo came back. */
static bool play(void)
{
    struct scenario scenario = {0};
    coil_context_options options = test_options();
    coil_context *context;
    coil_error error;

    if (coil_context_create(&context, &options, &error) < 0) {
        ck_assert_int_lt(error.code, 0);
        return false;
    }
    if (!spawn_all(context, &scenario))
        coil_context_stop(context);
    /* The run may fail (it cannot be enabled); destroy then drains. */
    while (coil_context_run(context) < 0)
        coil_context_stop(context);
    assert_result(coil_context_destroy(context), 0);
    return scenario.echoed;
}

/* Errors that the kernel may give and that pass; nothing that says the ring
 * itself is gone. */
static const struct {
    enum coil__call call;
    int error;
} sweeps[] = {
    {COIL__CALL_COUNT, -ENOMEM},       {COIL__CALL_COUNT, -EAGAIN},
    {COIL__CALL_ALLOCATE, -ENOMEM},    {COIL__CALL_MAP, -ENOMEM},
    {COIL__CALL_ADVISE, -EINVAL},      {COIL__CALL_RING_OPEN, -EPERM},
    {COIL__CALL_ENTER, -EBUSY},        {COIL__CALL_ENTER, -EINTR},
    {COIL__CALL_EVENTFD, -EMFILE},     {COIL__CALL_SOCKET, -EMFILE},
    {COIL__CALL_CLOSE, -EIO},          {COIL__CALL_READ, -EAGAIN},
    {COIL__CALL_OPTION, -ENOPROTOOPT},
};

/* Fails the call after call until the scenario no longer comes to it. */
static unsigned sweep(int which, unsigned *ret_echoed)
{
    unsigned tried = 0;

    *ret_echoed = 0;
    for (unsigned at = 1; at < SWEEP_MOST; at++) {
        size_t descriptors = test_descriptors();
        long allocations = coil__seam_allocations;
        coil_time began = coil_now();

        memset(&coil__seam, 0, sizeof(coil__seam));
        coil__seam.fail_call = sweeps[which].call;
        coil__seam.fail_error = sweeps[which].error;
        coil__seam.fail_at = at;
        *ret_echoed += play();
        coil__seam.fail_at = 0;
        ck_assert_msg(coil_now() - began <
                          COIL_MS(SWEEP_LIMIT_MS) * (TEST_SLOW ? 5 : 1),
                      "sweep %d, call %u took too long", which, at);
        ck_assert_msg(test_descriptors() == descriptors,
                      "sweep %d, call %u: %zu descriptors, before %zu", which,
                      at, test_descriptors(), descriptors);
        ck_assert_msg(coil__seam_allocations == allocations,
                      "sweep %d, call %u: %ld allocations, before %ld", which,
                      at, coil__seam_allocations, allocations);
        tried++;
        if (coil__seam.calls < at)
            break;
    }
    ck_assert_uint_lt(tried, SWEEP_MOST - 1);
    return tried;
}

START_TEST(nth_call_fails_without_hang_crash_or_leak)
{
    unsigned tried, echoed;

    memset(&coil__seam, 0, sizeof(coil__seam));
    coil__seam.fail_call = COIL__CALL_COUNT;
    ck_assert(play()); /* what is made once in a process is made now */
    tried = sweep(_i, &echoed);
    printf("sweep %d (%s): %u runs, %u echoes came back all the same\n", _i,
           coil_error_name(sweeps[_i].error), tried, echoed);
    ck_assert_uint_ge(tried, 1);
    /* The last run met no failure. */
    ck_assert_uint_ge(echoed, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sweep");
    TCase *tests = tcase_create("sweep");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, nth_call_fails_without_hang_crash_or_leak, 0,
                        (int)(sizeof(sweeps) / sizeof(sweeps[0])));
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
