/*
 * Connects to several hosts at once; the first connection wins. A host that
 * refuses does not lose the race for the others.
 *
 *   race_hosts ENDPOINT...
 */
#include <coil.h>
#include <errno.h>
#include <string.h>

struct host {
    const char *text;
    coil_tcp_socket *winner;
};

static int connect_task(void *arg)
{
    const struct host *host = arg;
    coil_tcp_endpoint endpoint;
    coil_tcp_socket socket;
    int result =
        coil_tcp_endpoint_parse(&endpoint, host->text, strlen(host->text));

    if (result >= 0)
        result = coil_tcp_open(&socket,
                               coil_tcp_endpoint_data(&endpoint)->sa_family);
    if (result < 0)
        return result;
    result = coil_tcp_connect(&socket, &endpoint);
    /* Two may connect in the same turn: the first one stays. */
    if (result >= 0 && !host->winner->handle.generation)
        *host->winner = socket;
    else
        coil_tcp_close(&socket);
    return result;
}

static int race_task(void *arg)
{
    char **texts = arg;
    coil_tcp_socket winner = {0};
    coil_group group;
    size_t index;
    int result;

    coil_group_begin(&group, COIL_GROUP_SUCCESS);
    for (char **text = texts; *text; text++) {
        struct host host = {*text, &winner};

        result = coil_group_spawn(&group, connect_task, &host, sizeof(host));
        if (result < 0)
            fprintf(stderr, "%s: %s\n", *text, coil_error_text(result));
    }
    result = (int)coil_timeout(coil_group_end_op(&group, &index), COIL_S(5));
    if (result < 0) {
        fprintf(stderr, "nobody answered: %s\n", coil_error_text(result));
        return result;
    }
    if (!winner.handle.generation) /* no host was given */
        return -EINVAL;
    printf("%s was first\n", texts[index]);
    return coil_tcp_close(&winner);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: race_hosts ENDPOINT...\n");
        return 2;
    }
    return coil_run(race_task, argv + 1, 0) < 0 ? 2 : 0;
}
