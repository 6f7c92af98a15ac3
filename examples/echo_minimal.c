/*
 * The whole of an echo server. Usage: echo_minimal [ENDPOINT]
 */
#include <coil.h>
#include <stdio.h>

static int session(void *arg)
{
    coil_tcp_socket *client = arg; /* the task's own copy */
    char data[4096];
    ssize_t n;

    while ((n = coil_tcp_read_some(client, data, sizeof(data))) > 0)
        if (coil_timeout(coil_tcp_write_all_op(client, data, (size_t)n, NULL),
                         COIL_S(5)) < 0)
            break;
    return coil_tcp_close(client);
}

static int server(void *arg)
{
    coil_tcp_acceptor acceptor;
    coil_tcp_socket client;
    int result = coil_tcp_listen_text(&acceptor, arg, NULL);

    if (result < 0)
        return result;
    while ((result = coil_tcp_accept(&acceptor, &client, NULL)) >= 0)
        if (coil_spawn(NULL, session, &client, sizeof(client)) < 0)
            coil_tcp_close(&client);
    coil_tcp_acceptor_close(&acceptor);
    return result; /* -ECANCELED on SIGINT, SIGTERM */
}

int main(int argc, char **argv)
{
    int result = coil_run(server, argc > 1 ? argv[1] : "127.0.0.1:7777", 0);

    if (result < 0)
        fprintf(stderr, "%s\n", coil_error_name(result));
    return result < 0 ? 2 : 0;
}
