/*
 * An echo server that stops gracefully: on SIGINT or SIGTERM it takes no more
 * connections, gives the sessions some time to end, then cancels them.
 *
 *   echo_graceful [--listen ENDPOINT] [--grace MILLISECONDS]
 */
#include "arguments.h"
#include <coil.h>
#include <signal.h>

static struct {
    unsigned long grace; /* ms */
    unsigned ended, cancelled;
} server = {.grace = 5000};

static int session_task(void *arg)
{
    coil_tcp_socket *socket = arg;
    char data[4096];
    ssize_t n;

    while ((n = coil_tcp_read_some(socket, data, sizeof(data))) > 0) {
        n = coil_tcp_write_all(socket, data, (size_t)n, NULL);
        if (n < 0)
            break;
    }
    if (n == -ECANCELED)
        server.cancelled++;
    else
        server.ended++;
    return coil_tcp_close(socket);
}

/* Accepts into the group until its task is cancelled. */
struct accepting {
    coil_tcp_acceptor acceptor;
    coil_group *sessions;
};

static int accept_task(void *arg)
{
    struct accepting *accepting = arg;
    coil_tcp_socket socket;
    int result;

    while ((result = coil_tcp_accept(&accepting->acceptor, &socket, NULL)) >= 0)
        if (coil_group_spawn(accepting->sessions, session_task, &socket,
                             sizeof(socket)) < 0)
            coil_tcp_close(&socket);
    coil_tcp_acceptor_close(&accepting->acceptor);
    return result;
}

/* Accepts until the signal comes. */
static int serve(struct accepting *accepting, const coil_signal_set *signals)
{
    coil_request requests[2];
    coil_task *accepter;
    int result =
        coil_task_create(&accepter, accept_task, accepting, sizeof(*accepting));

    if (result < 0)
        return result;
    coil_request_start(&requests[0], coil_task_await_op(&accepter));
    coil_request_start(&requests[1], coil_signal_set_wait_op(signals));
    result = coil_await_any(requests, 2);
    return result == 0 ? (int)requests[0].result : 0;
}

static int print_endpoint(const coil_tcp_acceptor *acceptor)
{
    char text[COIL_ENDPOINT_TEXT_MAX];
    coil_tcp_endpoint endpoint;
    int result = coil_tcp_acceptor_local_endpoint(acceptor, &endpoint);

    if (result >= 0)
        result = (int)coil_tcp_endpoint_print(&endpoint, text, sizeof(text));
    if (result >= 0)
        printf("listening on %s\n", text);
    fflush(stdout);
    return result;
}

static int server_task(void *arg)
{
    const int numbers[] = {SIGINT, SIGTERM};
    struct accepting accepting;
    coil_signal_set signals;
    coil_group sessions;
    int result = coil_tcp_listen_text(&accepting.acceptor, arg, NULL);

    if (result < 0)
        return result;
    result = coil_signal_set_open(&signals, numbers, 2);
    if (result < 0) {
        coil_tcp_acceptor_close(&accepting.acceptor);
        return result;
    }
    print_endpoint(&accepting.acceptor);
    coil_group_begin(&sessions, COIL_GROUP_EACH);
    accepting.sessions = &sessions;
    result = serve(&accepting, &signals);
    (void)coil_timeout(coil_group_end_op(&sessions, NULL),
                       COIL_MS(server.grace));
    coil_signal_set_close(&signals);
    printf("%u sessions ended, %u were cancelled\n", server.ended,
           server.cancelled);
    return result;
}

int main(int argc, char **argv)
{
    static char default_endpoint[] = "127.0.0.1:7777";
    const char *listen = default_endpoint;
    const struct argument arguments[] = {
        {.name = "--listen", .text = &listen},
        {.name = "--grace", .number = &server.grace, .most = 1000000},
        {.name = NULL},
    };
    int result;

    (void)argc;
    if (!arguments_parse(arguments, argv))
        return 2;
    /* The signals are awaited before coil_run's own handlers see them. */
    result = coil_run(server_task, listen, 0);
    if (result < 0)
        fprintf(stderr, "%s\n", coil_error_text(result));
    return result < 0 ? 2 : 0;
}
