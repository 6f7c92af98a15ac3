/*
 * Sends every connection its own bytes back, until SIGINT or SIGTERM.
 *
 *   echo_server [--listen ENDPOINT] [--quiet]
 */
#include "arguments.h"
#include <coil.h>
#include <signal.h>
#include <time.h>

struct session {
    coil_tcp_socket socket;
    coil_tcp_endpoint peer;
};

static struct {
    bool quiet;
    uint64_t connections, ended, bytes;
} server;

/* --------------------------------------------------------------- the log */

static void print_peer(const coil_tcp_endpoint *peer, const char *what)
{
    char text[COIL_ENDPOINT_TEXT_MAX], stamp[32];
    struct timespec now;
    struct tm date;

    if (server.quiet)
        return;
    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &date);
    strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", &date);
    coil_tcp_endpoint_print(peer, text, sizeof(text));
    printf("%s.%03ld %s %s\n", stamp, now.tv_nsec / 1000000, text, what);
}

static void print_summary(const coil_context *context)
{
    coil_stats stats;

    coil_context_stats(context, &stats, sizeof(stats));
    printf("connections %llu ended %llu bytes %llu sqes %llu cqes %llu "
           "enters %llu\n",
           (unsigned long long)server.connections,
           (unsigned long long)server.ended, (unsigned long long)server.bytes,
           (unsigned long long)stats.sqes, (unsigned long long)stats.cqes,
           (unsigned long long)stats.enters);
}

/* One line that says what and why. */
static int fail(const char *what, int result)
{
    fprintf(stderr, "%s: %s (%s)\n", what, coil_error_text(result),
            coil_error_name(result));
    return result;
}

/* ------------------------------------------------------------- the tasks */

static int session_task(void *arg)
{
    struct session *session = arg; /* the task's own copy */
    char data[4096];
    ssize_t n;

    print_peer(&session->peer, "connected");
    while ((n = coil_tcp_read_some(&session->socket, data, sizeof(data))) > 0) {
        if (coil_timeout(
                coil_tcp_write_all_op(&session->socket, data, (size_t)n, NULL),
                COIL_S(5)) < 0)
            break;
        server.bytes += (uint64_t)n;
    }
    print_peer(&session->peer, "disconnected");
    server.ended++;
    return coil_tcp_close(&session->socket);
}

static int accept_task(void *arg)
{
    coil_tcp_acceptor *acceptor = arg;
    struct session session;
    int result;

    while ((result = coil_tcp_accept(acceptor, &session.socket,
                                     &session.peer)) >= 0) {
        server.connections++;
        if (coil_spawn(NULL, session_task, &session, sizeof(session)) < 0)
            coil_tcp_close(&session.socket);
    }
    coil_tcp_acceptor_close(acceptor);
    if (result != -ECANCELED) {
        fail("accept", result);
        coil_context_stop(coil_context_current());
    }
    return result;
}

static int signal_task(void *arg)
{
    coil_signal_set *signals = arg;
    int number = coil_signal_set_wait(signals);

    coil_context_stop(coil_context_current());
    coil_signal_set_close(signals);
    return number < 0 ? number : 0;
}

/* -------------------------------------------------------------- the main */

static int start_listening(coil_context *context, const char *text)
{
    char name[COIL_ENDPOINT_TEXT_MAX];
    coil_tcp_acceptor acceptor;
    coil_tcp_endpoint endpoint;
    int result = coil_tcp_listen_text(&acceptor, text, NULL);

    if (result < 0) {
        fprintf(stderr, "cannot listen on \"%s\": %s (%s)\n", text,
                result == -EINVAL ? "not an endpoint such as 127.0.0.1:7777"
                                  : coil_error_text(result),
                coil_error_name(result));
        return result;
    }
    result = coil_spawn(context, accept_task, &acceptor, sizeof(acceptor));
    if (result < 0) {
        coil_tcp_acceptor_close(&acceptor);
        return fail("spawn", result);
    }
    coil_tcp_acceptor_local_endpoint(&acceptor, &endpoint);
    coil_tcp_endpoint_print(&endpoint, name, sizeof(name));
    printf("listening on %s\n", name);
    fflush(stdout);
    return 0;
}

static int start_watching(coil_context *context)
{
    const int numbers[] = {SIGINT, SIGTERM};
    coil_signal_set signals;
    int result = coil_signal_set_open(&signals, numbers, 2);

    if (result < 0)
        return fail("signals", result);
    result = coil_spawn(context, signal_task, &signals, sizeof(signals));
    if (result < 0) {
        coil_signal_set_close(&signals);
        return fail("spawn", result);
    }
    return 0;
}

static int serve(const char *listen)
{
    coil_context *context;
    coil_error error;
    int result = coil_context_create(&context, NULL, &error);

    if (result < 0) {
        fprintf(stderr, "%s\n", error.text);
        return result;
    }
    result = start_watching(context);
    if (result >= 0)
        result = start_listening(context, listen);
    if (result < 0)
        coil_context_stop(context);
    if (coil_context_run(context) < 0 || result < 0) {
        coil_context_destroy(context);
        return -1;
    }
    print_summary(context);
    return coil_context_destroy(context);
}

int main(int argc, char **argv)
{
    const char *listen = "127.0.0.1:7777";
    const struct argument arguments[] = {
        {.name = "--listen", .text = &listen},
        {.name = "--quiet", .flag = &server.quiet},
        {.name = NULL},
    };

    (void)argc;
    if (!arguments_parse(arguments, argv))
        return 2;
    return serve(listen) < 0 ? 2 : 0;
}
