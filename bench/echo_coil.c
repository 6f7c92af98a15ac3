/*
 * The echo of the examples without its log, with a choice of limits:
 *
 *   echo_coil [--listen ENDPOINT] [--quiet] [--limits none|write|both|linked]
 */
#include <coil.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* LIMITS_LINKED: on both, kept by the kernel. */
enum limits { LIMITS_NONE, LIMITS_WRITE, LIMITS_BOTH, LIMITS_LINKED };

static enum limits limits = LIMITS_WRITE;
static unsigned long connections;

static ssize_t read_some(const coil_tcp_socket *socket, char *data, size_t size)
{
    if (limits == LIMITS_BOTH)
        return coil_timeout(coil_tcp_read_some_op(socket, data, size),
                            COIL_S(5));
    if (limits == LIMITS_LINKED)
        return coil_timeout_linked(coil_tcp_read_some_op(socket, data, size),
                                   COIL_S(5));
    return coil_tcp_read_some(socket, data, size);
}

/* A linked limit is for one step. */
static ssize_t write_all_linked(const coil_tcp_socket *socket, char *data,
                                size_t size)
{
    ssize_t n = 0;

    for (size_t done = 0; done < size && n >= 0; done += (size_t)n)
        n = coil_timeout_linked(
            coil_tcp_write_some_op(socket, data + done, size - done),
            COIL_S(5));
    return n < 0 ? n : 0;
}

static ssize_t write_all(const coil_tcp_socket *socket, char *data, size_t size)
{
    if (limits == LIMITS_NONE)
        return coil_tcp_write_all(socket, data, size, NULL);
    if (limits == LIMITS_LINKED)
        return write_all_linked(socket, data, size);
    return coil_timeout(coil_tcp_write_all_op(socket, data, size, NULL),
                        COIL_S(5));
}

static int session(void *arg)
{
    coil_tcp_socket *client = arg;
    char data[4096];
    ssize_t n;

    while ((n = read_some(client, data, sizeof(data))) > 0)
        if (write_all(client, data, (size_t)n) < 0)
            break;
    return coil_tcp_close(client);
}

static void print_endpoint(const coil_tcp_acceptor *acceptor)
{
    char text[COIL_ENDPOINT_TEXT_MAX];
    coil_tcp_endpoint endpoint;

    if (coil_tcp_acceptor_local_endpoint(acceptor, &endpoint) < 0 ||
        coil_tcp_endpoint_print(&endpoint, text, sizeof(text)) < 0)
        return;
    printf("listening on %s\n", text);
    fflush(stdout);
}

/* A signal set rather than the handlers of coil_run: Valgrind delivers no
 * signal to a handler while the thread waits for completions. */
static int watch(void *arg)
{
    const int numbers[] = {SIGINT, SIGTERM};
    coil_signal_set signals;
    int result = coil_signal_set_open(&signals, numbers, 2);

    (void)arg;
    if (result < 0)
        return result;
    result = coil_signal_set_wait(&signals);
    coil_context_stop(coil_context_current());
    coil_signal_set_close(&signals);
    return result;
}

static int server(void *arg)
{
    coil_tcp_acceptor acceptor;
    coil_tcp_socket client;
    coil_stats stats;
    int result = coil_tcp_listen_text(&acceptor, arg, NULL);

    if (result >= 0)
        result = coil_spawn(NULL, watch, NULL, 0);
    if (result < 0)
        return result;
    print_endpoint(&acceptor);
    while ((result = coil_tcp_accept(&acceptor, &client, NULL)) >= 0) {
        connections++;
        if (coil_spawn(NULL, session, &client, sizeof(client)) < 0)
            coil_tcp_close(&client);
    }
    coil_tcp_acceptor_close(&acceptor);
    coil_context_stats(coil_context_current(), &stats, sizeof(stats));
    printf("connections %lu sqes %llu cqes %llu enters %llu\n", connections,
           (unsigned long long)stats.sqes, (unsigned long long)stats.cqes,
           (unsigned long long)stats.enters);
    return result;
}

static bool parse(int argc, char **argv, char **ret_listen)
{
    static const char *const names[] = {"none", "write", "both", "linked"};

    for (int i = 1; i < argc; i++) {
        bool known = strcmp(argv[i], "--quiet") == 0;

        if (strcmp(argv[i], "--listen") == 0 && i + 1 < argc) {
            *ret_listen = argv[++i];
            known = true;
        } else if (strcmp(argv[i], "--limits") == 0 && i + 1 < argc) {
            i++;
            for (int j = 0; j < 4; j++)
                if (strcmp(argv[i], names[j]) == 0) {
                    limits = (enum limits)j;
                    known = true;
                }
        }
        if (!known) {
            fprintf(stderr, "echo_coil: bad argument \"%s\"\n", argv[i]);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    char default_endpoint[] = "127.0.0.1:7777", *listen = default_endpoint;
    int result;

    if (!parse(argc, argv, &listen))
        return 2;
    result = coil_run(server, listen, 0);
    if (result < 0)
        fprintf(stderr, "echo_coil: %s\n", coil_error_text(result));
    return result < 0 ? 2 : 0;
}
