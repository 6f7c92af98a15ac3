/*
 * Asks a server and waits for its answer under one limit over everything:
 * connecting, sending, receiving.
 *
 *   request_limit [--connect ENDPOINT] [--limit MILLISECONDS]
 */
#include "arguments.h"
#include <coil.h>
#include <string.h>

struct question {
    coil_tcp_endpoint endpoint;
    unsigned long limit; /* ms */
};

static int ask(const coil_tcp_endpoint *endpoint)
{
    static char text[] = "what time is it?\n";
    char answer[256];
    coil_tcp_socket socket;
    ssize_t n;
    int result =
        coil_tcp_open(&socket, coil_tcp_endpoint_data(endpoint)->sa_family);

    if (result < 0)
        return result;
    result = coil_tcp_connect(&socket, endpoint);
    if (result >= 0)
        result = coil_tcp_write_all(&socket, text, strlen(text), NULL);
    if (result >= 0) {
        n = coil_tcp_read_some(&socket, answer, sizeof(answer));
        result = n < 0 ? (int)n : n > 0 ? 0 : -ECONNRESET;
        if (n > 0)
            printf("%.*s", (int)n, answer);
    }
    coil_tcp_close(&socket); /* does its work in a cancelled scope, too */
    return result;
}

static int question_task(void *arg)
{
    struct question *question = arg;
    coil_scope scope;
    int result, ended;

    coil_scope_begin(&scope, COIL_MS(question->limit));
    result = ask(&question->endpoint);
    ended = coil_scope_end(&scope);
    if (ended == -ETIME)
        printf("no answer within %lu ms\n", question->limit);
    else if (result < 0)
        fprintf(stderr, "%s\n", coil_error_text(result));
    return ended < 0 ? ended : result;
}

int main(int argc, char **argv)
{
    const char *connect = "127.0.0.1:7777";
    struct question question = {.limit = 1000};
    const struct argument arguments[] = {
        {.name = "--connect", .text = &connect},
        {.name = "--limit",
         .number = &question.limit,
         .least = 1,
         .most = 1000000},
        {.name = NULL},
    };

    (void)argc;
    if (!arguments_parse(arguments, argv))
        return 2;
    if (coil_tcp_endpoint_parse(&question.endpoint, connect, strlen(connect)) <
        0) {
        fprintf(stderr, "\"%s\" is not an endpoint\n", connect);
        return 2;
    }
    return coil_run(question_task, &question, sizeof(question)) < 0 ? 2 : 0;
}
