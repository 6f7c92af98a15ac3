/*
 * Sends messages over many connections at once and verifies that every byte
 * comes back.
 *
 *   echo_client --connect ENDPOINT [--connections N] [--messages M]
 *               [--size BYTES]
 */
#include "arguments.h"
#include <coil.h>

static struct {
    coil_tcp_endpoint endpoint;
    unsigned long connections, messages, size;
    uint64_t completed, verified, mismatched, failed;
    int first_error;
} client = {.connections = 1, .messages = 1, .size = 64};

/* The bytes of a message depend on who sends it and when, so that no other
 * message can be taken for it. */
static void fill(unsigned char *data, unsigned long connection,
                 unsigned long message)
{
    uint32_t state = (uint32_t)(connection * 2654435761u + message * 40503u);

    for (unsigned long i = 0; i < client.size; i++) {
        state = state * 1664525u + 1013904223u;
        data[i] = (unsigned char)(state >> 24);
    }
}

static int read_exactly(const coil_tcp_socket *socket, unsigned char *data,
                        size_t size)
{
    while (size > 0) {
        ssize_t n = coil_tcp_read_some(socket, data, size);

        if (n <= 0)
            return n < 0 ? (int)n : -ECONNABORTED;
        data += n;
        size -= (size_t)n;
    }
    return 0;
}

/* A message larger than the socket buffers on the way would block both sides
 * if this end did not read while it writes, so long ones go in pieces. */
static int exchange(const coil_tcp_socket *socket, const unsigned char *sent,
                    unsigned char *received)
{
    size_t done = 0;

    while (done < client.size) {
        size_t piece = client.size - done < 16384 ? client.size - done : 16384;
        int result = coil_tcp_write_all(socket, sent + done, piece, NULL);

        if (result >= 0)
            result = read_exactly(socket, received + done, piece);
        if (result < 0)
            return result;
        done += piece;
    }
    return 0;
}

static int run_messages(const coil_tcp_socket *socket, unsigned char *sent,
                        unsigned char *received, unsigned long connection)
{
    for (unsigned long message = 0; message < client.messages; message++) {
        int result;

        fill(sent, connection, message);
        result = exchange(socket, sent, received);
        if (result < 0)
            return result;
        if (memcmp(sent, received, client.size) != 0)
            client.mismatched++;
        else
            client.verified++;
    }
    return 0;
}

static int run_connection(const coil_tcp_socket *socket,
                          unsigned long connection)
{
    unsigned char *memory = malloc(2 * client.size);
    int result = memory ? 0 : -ENOMEM;

    if (result >= 0)
        result = coil_tcp_connect(socket, &client.endpoint);
    if (result >= 0)
        result = run_messages(socket, memory, memory + client.size, connection);
    free(memory);
    return result;
}

static int connection_task(void *arg)
{
    unsigned long connection = *(unsigned long *)arg;
    coil_address address = coil_tcp_endpoint_address(&client.endpoint);
    coil_tcp_socket socket;
    int result = coil_tcp_open(
        &socket, coil_address_is_v4(&address) ? AF_INET : AF_INET6);

    if (result >= 0) {
        result = run_connection(&socket, connection);
        coil_tcp_close(&socket);
    }
    if (result < 0) {
        client.failed++;
        if (!client.first_error)
            client.first_error = result;
    } else {
        client.completed++;
    }
    return result;
}

static int client_task(void *arg)
{
    (void)arg;
    for (unsigned long i = 0; i < client.connections; i++) {
        int result = coil_spawn(NULL, connection_task, &i, sizeof(i));

        if (result < 0)
            return result;
    }
    return 0;
}

static int report(int result)
{
    printf("connections %llu messages %llu bytes %llu mismatched %llu failed "
           "%llu\n",
           (unsigned long long)client.completed,
           (unsigned long long)client.verified,
           (unsigned long long)(client.verified * client.size),
           (unsigned long long)client.mismatched,
           (unsigned long long)client.failed);
    if (result >= 0)
        result = client.first_error;
    if (result < 0)
        fprintf(stderr, "echo_client: %s (%s)\n", coil_error_text(result),
                coil_error_name(result));
    return result < 0 || client.mismatched ? 2 : 0;
}

int main(int argc, char **argv)
{
    const char *connect = NULL;
    const struct argument arguments[] = {
        {.name = "--connect", .text = &connect},
        {.name = "--connections",
         .number = &client.connections,
         .least = 1,
         .most = 1000000},
        {.name = "--messages",
         .number = &client.messages,
         .least = 1,
         .most = 1000000000},
        {.name = "--size", .number = &client.size, .least = 1, .most = 1 << 30},
        {.name = NULL},
    };

    (void)argc;
    if (!arguments_parse(arguments, argv))
        return 2;
    if (!connect || coil_tcp_endpoint_parse(&client.endpoint, connect,
                                            strlen(connect)) < 0) {
        fprintf(stderr,
                "--connect: \"%s\" is not an endpoint such as "
                "127.0.0.1:7777\n",
                connect ? connect : "");
        return 2;
    }
    return report(coil_run(client_task, NULL, 0));
}
