/*
 * Tasks that go on waiting although they are cancelled: they cannot freeze the
 * loop, the others end, and the message sink names them.
 */
#include "core/context.h"
#include "support/test.h"
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* -------------------------------------------------------- the refused waits */

static struct {
    bool over;
    int descriptor;
    unsigned passes; /* of the other task through the ready queue */
    unsigned checked;
} refusing;

static int passing_task(void *arg)
{
    (void)arg;
    while (!refusing.over) {
        refusing.passes++;
        (void)coil_yield();
    }
    return 0;
}

static int wait_of_kind(int kind)
{
    static coil_tcp_acceptor acceptor; /* closed: the cancel comes first */
    coil_tcp_socket socket = {0};
    char byte;

    switch (kind) {
    case 0:
        return coil_yield();
    case 1:
        return coil_sleep(0);
    case 2:
        return coil_sleep(COIL_FOREVER);
    case 3:
        return coil_sleep_until(0);
    case 4:
        return coil_poll(refusing.descriptor, POLLIN); /* ready */
    case 5:
        return (int)coil_timeout(coil_sleep_op(COIL_S(1)), 0);
    case 6:
        return (int)coil_timeout(coil_poll_op(refusing.descriptor, POLLIN), -1);
    case 7:
        return (int)coil_tcp_read_some(&socket, &byte, 1);
    case 8:
        return coil_tcp_write_all(&socket, &byte, 1, NULL);
    default:
        return coil_tcp_accept(&acceptor, &socket, NULL);
    }
}

/* Every wait of a cancelled task lets the other one run exactly once. */
static int refused_task(void *arg)
{
    (void)arg;
    coil_context_stop(coil_context_current());
    while (coil_yield() == 0)
        ;
    for (int i = 0; i < 300; i++) {
        unsigned before = refusing.passes;

        assert_result(wait_of_kind(i % 10), -ECANCELED);
        assert_result(coil_check(), -ECANCELED);
        ck_assert_uint_eq(refusing.passes, before + 1);
        refusing.checked++;
    }
    refusing.over = true;
    return -ECANCELED;
}

START_TEST(refused_wait_passes_once_through_the_ready_queue)
{
    coil_context *context = test_context();
    coil_stats stats;

    refusing.descriptor = eventfd(1, EFD_CLOEXEC);
    assert_result(coil_spawn(context, refused_task, NULL, 0), 0);
    assert_result(coil_spawn(context, passing_task, NULL, 0), 0);
    assert_result(coil_context_run(context), 0);
    ck_assert_uint_eq(refusing.checked, 300);
    coil_context_stats(context, &stats, sizeof(stats));
    ck_assert_uint_ge(stats.refused_waits, 600);
    test_context_end(context);
    close(refusing.descriptor);
}
END_TEST

static int refuse_often(void *arg)
{
    for (int i = *(int *)arg; i > 0; i--)
        assert_result(coil_sleep(0), -ECANCELED);
    return 0;
}

static void refuse_named(coil_context *context, const char *name, int times)
{
    coil_task_options options = {.size = sizeof(options), .name = name};

    assert_result(
        coil_spawn_with(context, &options, refuse_often, &times, sizeof(times)),
        0);
}

START_TEST(thousandth_refusal_of_a_series_is_reported_once)
{
    coil_context *context = test_context();

    test_catch_messages();
    coil_context_stop(context);
    refuse_named(context, "modest", COIL__REFUSALS_REPORTED - 1);
    assert_result(coil_context_run(context), 0);
    ck_assert_uint_eq(test_messages.count, 0);
    coil_context_stop(context);
    refuse_named(context, "stubborn", COIL__REFUSALS_REPORTED);
    assert_result(coil_context_run(context), 0);
    ck_assert_uint_eq(test_messages.count, 1);
    ck_assert_ptr_nonnull(strstr(test_messages.last, "\"stubborn\""));
    coil_context_stop(context);
    refuse_named(context, "mule", 25 * COIL__REFUSALS_REPORTED);
    refuse_named(context, "modest", COIL__REFUSALS_REPORTED - 1);
    refuse_named(context, "donkey", 20 * COIL__REFUSALS_REPORTED);
    assert_result(coil_context_run(context), 0);
    ck_assert_uint_eq(test_messages.count, 3);
    ck_assert_uint_eq(test_messages.of_kind[COIL_MESSAGE_STALL], 3);
    ck_assert_ptr_nonnull(strstr(test_messages.all, "\"mule\""));
    ck_assert_ptr_nonnull(strstr(test_messages.all, "\"donkey\""));
    ck_assert_ptr_null(strstr(test_messages.all, "\"modest\""));
    test_context_end(context);
}
END_TEST

/* ------------------------------------------- a server that will not listen */

enum { SLEEPERS = 100, READERS = 100, OTHERS = SLEEPERS + READERS };

/* What the child tells the parent, line by line. */
static int report;
static unsigned others_ended, drain_limits;
static coil_time stopped;

static void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void tell(const char *format, ...)
{
    char line[640];
    va_list arguments;
    int length;

    va_start(arguments, format);
    length = vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    if (write(report, line, (size_t)length) != length)
        _exit(3);
}

static void tell_message(coil_message_kind kind, const char *text)
{
    tell("message %d after %d ms: %s\n", (int)kind,
         (int)((coil_now() - stopped) / 1000000), text);
}

static void tell_drain_limit(coil_context *context)
{
    coil_stats stats;

    coil_context_stats(context, &stats, sizeof(stats));
    tell("drain limit %u after %d ms, %u alive\n", ++drain_limits,
         (int)((coil_now() - stopped) / 1000000), (unsigned)stats.tasks_live);
}

static int end_other(int result)
{
    if (result == -ECANCELED && ++others_ended == OTHERS)
        tell("%u others ended after %d ms\n", others_ended,
             (int)((coil_now() - stopped) / 1000000));
    return result;
}

static int sleeper_task(void *arg)
{
    (void)arg;
    return end_other(coil_sleep(COIL_FOREVER));
}

static int reader_task(void *arg)
{
    coil_handle *handle = arg;
    char byte;
    int result = (int)coil_await(
        coil_stream_operation(&coil_stream_read_some_type, *handle, &byte, 1));

    (void)coil_handle_close(*handle);
    return end_other(result);
}

static int accept_for_ever(void *arg)
{
    coil_tcp_endpoint endpoint;
    coil_tcp_acceptor acceptor = test_listen(&endpoint);
    coil_tcp_socket client;
    unsigned accepted = 0;

    (void)arg;
    while (1)
        if (coil_tcp_accept(&acceptor, &client, NULL) >= 0)
            accepted += coil_tcp_close(&client) == 0;
    return (int)accepted;
}

static int signal_task(void *arg)
{
    coil_signal_set *set = arg;
    int number = coil_signal_set_wait(set);

    stopped = coil_now();
    coil_context_stop(coil_context_current());
    tell("signal %d\n", number);
    return 0;
}

/* Goes on for ever beside the stubborn one: both still get their turn. */
static int ticking_task(void *arg)
{
    coil_time next;

    (void)arg;
    while (!stopped)
        if (coil_sleep(COIL_MS(1)) < 0)
            break;
    next = coil_now();
    for (unsigned ticks = 0; drain_limits == 0 || ticks < 6;) {
        (void)coil_yield();
        if (coil_now() < next)
            continue;
        tell("tick %u\n", ++ticks);
        next += COIL_MS(500);
    }
    return 0;
}

static void spawn_others(coil_context *context)
{
    for (int i = 0; i < SLEEPERS; i++)
        assert_result(coil_spawn(context, sleeper_task, NULL, 0), 0);
    for (int i = 0; i < READERS; i++) {
        int pair[2];
        coil_handle handle;

        ck_assert_int_eq(
            socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
        assert_result(coil_handle_open(&handle, pair[0]), 0);
        assert_result(coil_spawn(context, reader_task, &handle, sizeof(handle)),
                      0);
    }
}

static _Noreturn void serve_for_ever(void)
{
    static const int signals[] = {SIGTERM};
    coil_task_options named = {.size = sizeof(named), .name = "acceptor"};
    coil_context_options options = test_options();
    coil_context *context;
    coil_signal_set set;

    options.drain_limit = COIL_S(2);
    options.on_drain_limit = tell_drain_limit;
    coil_set_message_handler(tell_message);
    assert_result(coil_context_create(&context, &options, NULL), 0);
    assert_result(coil_signal_set_open(&set, signals, 1), 0);
    assert_result(coil_spawn_with(context, &named, accept_for_ever, NULL, 0),
                  0);
    spawn_others(context);
    named.name = "ticker";
    assert_result(coil_spawn_with(context, &named, ticking_task, NULL, 0), 0);
    assert_result(coil_spawn(context, signal_task, &set, sizeof(set)), 0);
    tell("ready\n");
    (void)coil_context_run(context);
    _exit(4); /* it must not come to this */
}

/* Reads what the child tells until `text` comes; false if it does not within
 * the limit. */
static bool child_tells(int descriptor, char *heard, size_t capacity,
                        const char *text, int milliseconds)
{
    coil_time end = coil_now() + milliseconds * COIL_MS(1);

    while (!strstr(heard, text)) {
        struct pollfd ready = {.fd = descriptor, .events = POLLIN};
        int left = (int)((end - coil_now()) / 1000000);
        size_t used = strlen(heard);
        ssize_t count;

        if (left <= 0 || poll(&ready, 1, left) < 1)
            return false;
        count = read(descriptor, heard + used, capacity - used - 1);
        if (count <= 0)
            return false;
        heard[used + (size_t)count] = 0;
    }
    return true;
}

/* The number after `text`. */
static int number_after(const char *heard, const char *text)
{
    const char *place = strstr(heard, text);
    int number = -1;

    if (place)
        (void)sscanf(place + strlen(text), "%d", &number);
    return number;
}

static unsigned count_of(const char *heard, const char *text)
{
    unsigned count = 0;

    while ((heard = strstr(heard, text))) {
        heard += strlen(text);
        count++;
    }
    return count;
}

START_TEST(stubborn_acceptor_is_named_and_hinders_nobody)
{
    static char heard[64 * 1024];
    int pipes[2], status = 0;
    bool in_time;
    pid_t child;

    ck_assert_int_eq(pipe(pipes), 0);
    fflush(stdout);
    child = fork();
    ck_assert_int_ge(child, 0);
    report = pipes[1];
    if (!child)
        serve_for_ever();
    close(pipes[1]);
    in_time =
        child_tells(pipes[0], heard, sizeof(heard), "ready\n", 10000) &&
        kill(child, SIGTERM) == 0 &&
        child_tells(pipes[0], heard, sizeof(heard), "drain limit 1", 9000) &&
        /* the loop goes on, and the limit does not come again */
        child_tells(pipes[0], heard, sizeof(heard), "tick 6\n", 9000);
    kill(child, SIGKILL);
    (void)child_tells(pipes[0], heard, sizeof(heard), "end of file", 2000);
    close(pipes[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    printf("%s", heard);
    ck_assert_msg(in_time, "not in time, heard: %s", heard);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    ck_assert_int_eq(number_after(heard, "signal "), SIGTERM);
    ck_assert_uint_eq(count_of(heard, "others ended after"), 1);
    ck_assert_int_lt(number_after(heard, "others ended after "), 1000);
    ck_assert_uint_eq(count_of(heard, "\"acceptor\""), 2);
    ck_assert_uint_eq(count_of(heard, "goes on waiting"),
                      2); /* and the ticker */
    ck_assert_int_lt(number_after(heard, "message 1 after "), 1000);
    ck_assert_uint_eq(count_of(heard, "still alive"), 2);
    ck_assert_uint_eq(count_of(heard, "drain limit passed with 2 tasks"), 1);
    ck_assert_uint_eq(count_of(heard, "drain limit 1 after"), 1);
    ck_assert_uint_eq(count_of(heard, "drain limit 2"), 0);
    ck_assert_int_ge(number_after(heard, "drain limit 1 after "), 2000);
    ck_assert_int_lt(number_after(heard, "drain limit 1 after "), 6000);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stubborn");
    TCase *refused = tcase_create("refused"), *server = tcase_create("server");

    suite_add_tcase(suite, refused);
    suite_add_tcase(suite, server);
    tcase_set_timeout(refused, 30);
    tcase_set_timeout(server, 60);
    tcase_add_test(refused, refused_wait_passes_once_through_the_ready_queue);
    tcase_add_test(refused, thousandth_refusal_of_a_series_is_reported_once);
    tcase_add_test(server, stubborn_acceptor_is_named_and_hinders_nobody);
    return test_main(suite);
}
