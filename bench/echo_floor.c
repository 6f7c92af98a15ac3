/*
 * The floor: an echo server written by hand on liburing.
 *
 * It is what the library's echo server is measured against, so it does what
 * the library has to do (ordinary descriptors, one receive and one send per
 * echo, any number of connections) and nothing that it need not: no tasks, no
 * cancellation, no limits. One enter per turn submits everything and waits for
 * one completion; then all completions are handled and the head moves once.
 *
 * --poll-first makes each receive wait for readiness before it looks for data.
 * That saves a look in vain with many connections and costs a wait in vain with
 * few, so it is off: the plain receive is the floor.
 *
 * SIGTERM and SIGINT arrive through a signalfd that is read on the ring,
 * because a signal does not interrupt a blocked enter under Valgrind.
 */
#include "arguments.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <liburing.h>
#include <signal.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    SQ_ENTRIES = 1024,
    CQ_ENTRIES = 4096,
    BACKLOG = 4096,
    BUFFER_SIZE = 4096,
    CONNECTIONS_MAX = 65536,
};

/* The low bits of user_data; the rest of it is the connection's address. */
enum tag { TAG_RECEIVE, TAG_SEND, TAG_ACCEPT, TAG_SIGNAL, TAG_MASK = 7 };

/*
 * The line in front of the buffer makes the stride 65 cache lines. At a stride
 * of 4096 the first lines of all buffers would share one set of the cache.
 */
struct connection {
    alignas(64) int fd;
    unsigned received;
    unsigned sent;
    alignas(64) char buffer[BUFFER_SIZE];
};

struct floor {
    struct io_uring ring;
    struct connection *table; /* by descriptor */
    size_t capacity;
    int listener;
    int signals;
    uint16_t receive_flags; /* for the receive's ioprio */
    struct signalfd_siginfo signal;
    bool accepting;
    bool stopped;
    uint64_t connections;
    uint64_t bytes;
    uint64_t sqes;
    uint64_t cqes;
    uint64_t enters;
};

static _Noreturn void fail(const char *what, int error)
{
    fprintf(stderr, "echo_floor: %s: %s\n", what, strerror(error));
    exit(1);
}

static void count_enter(struct floor *floor, int submitted)
{
    floor->enters++;
    if (submitted > 0)
        floor->sqes += (unsigned)submitted;
    else if (submitted < 0 && submitted != -EINTR && submitted != -EBUSY &&
             submitted != -EAGAIN)
        fail("io_uring_enter", -submitted);
}

static struct io_uring_sqe *get_sqe(struct floor *floor)
{
    struct io_uring_sqe *sqe;

    while (!(sqe = io_uring_get_sqe(&floor->ring)))
        count_enter(floor, io_uring_submit(&floor->ring));
    return sqe;
}

static void queue_accept(struct floor *floor)
{
    struct io_uring_sqe *sqe = get_sqe(floor);

    io_uring_prep_multishot_accept(sqe, floor->listener, NULL, NULL,
                                   SOCK_CLOEXEC);
    io_uring_sqe_set_data64(sqe, TAG_ACCEPT);
    floor->accepting = true;
}

static void queue_signal(struct floor *floor)
{
    struct io_uring_sqe *sqe = get_sqe(floor);

    io_uring_prep_read(sqe, floor->signals, &floor->signal,
                       sizeof(floor->signal), 0);
    io_uring_sqe_set_data64(sqe, TAG_SIGNAL);
}

static void queue_receive(struct floor *floor, struct connection *connection)
{
    struct io_uring_sqe *sqe = get_sqe(floor);

    io_uring_prep_recv(sqe, connection->fd, connection->buffer, BUFFER_SIZE, 0);
    sqe->ioprio = floor->receive_flags;
    io_uring_sqe_set_data64(sqe, (uintptr_t)connection | TAG_RECEIVE);
}

static void queue_send(struct floor *floor, struct connection *connection)
{
    struct io_uring_sqe *sqe = get_sqe(floor);

    io_uring_prep_send(
        sqe, connection->fd, connection->buffer + connection->sent,
        connection->received - connection->sent, MSG_NOSIGNAL | MSG_WAITALL);
    io_uring_sqe_set_data64(sqe, (uintptr_t)connection | TAG_SEND);
}

static void close_connection(struct floor *floor, struct connection *connection)
{
    close(connection->fd);
    /* The accept may have ended for want of just this descriptor. */
    if (!floor->accepting)
        queue_accept(floor);
}

static void on_receive(struct floor *floor, struct connection *connection,
                       int result)
{
    if (result <= 0) {
        close_connection(floor, connection);
        return;
    }
    floor->bytes += (unsigned)result;
    connection->received = (unsigned)result;
    connection->sent = 0;
    queue_send(floor, connection);
}

static void on_send(struct floor *floor, struct connection *connection,
                    int result)
{
    if (result <= 0) {
        close_connection(floor, connection);
        return;
    }
    connection->sent += (unsigned)result;
    if (connection->sent < connection->received)
        queue_send(floor, connection);
    else
        queue_receive(floor, connection);
}

static bool out_of_descriptors(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS ||
           error == ENOMEM;
}

static void on_accept(struct floor *floor, const struct io_uring_cqe *cqe)
{
    int fd = cqe->res;

    if (!(cqe->flags & IORING_CQE_F_MORE))
        floor->accepting = false;
    if (fd >= 0 && (size_t)fd < floor->capacity) {
        floor->connections++;
        floor->table[fd].fd = fd;
        queue_receive(floor, &floor->table[fd]);
    } else if (fd >= 0) {
        close(fd);
    }
    /* Without a free descriptor it would fail at once: a close re-arms it. */
    if (!floor->accepting && !out_of_descriptors(-fd))
        queue_accept(floor);
}

static void handle(struct floor *floor, const struct io_uring_cqe *cqe)
{
    uintptr_t address = (uintptr_t)cqe->user_data & ~(uintptr_t)TAG_MASK;
    struct connection *connection = (struct connection *)address;

    switch ((enum tag)(cqe->user_data & TAG_MASK)) {
    case TAG_RECEIVE:
        on_receive(floor, connection, cqe->res);
        break;
    case TAG_SEND:
        on_send(floor, connection, cqe->res);
        break;
    case TAG_ACCEPT:
        on_accept(floor, cqe);
        break;
    default:
        floor->stopped = true;
        break;
    }
}

static void turn(struct floor *floor)
{
    struct io_uring *ring = &floor->ring;
    struct io_uring_cqe *cqe;
    unsigned head;
    unsigned count = 0;

    count_enter(floor, io_uring_submit_and_wait(ring, 1));
    io_uring_for_each_cqe(ring, head, cqe)
    {
        handle(floor, cqe);
        count++;
    }
    io_uring_cq_advance(ring, count);
    floor->cqes += count;
}

static void open_ring(struct floor *floor)
{
    struct io_uring_params params = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                 IORING_SETUP_SUBMIT_ALL | IORING_SETUP_TASKRUN_FLAG |
                 IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE,
        .cq_entries = CQ_ENTRIES,
    };
    int error = io_uring_queue_init_params(SQ_ENTRIES, &floor->ring, &params);

    if (error < 0)
        fail("io_uring_setup", -error);
    /* Saves a descriptor look-up per enter; it also works without. */
    (void)io_uring_register_ring_fd(&floor->ring);
}

static void open_table(struct floor *floor)
{
    struct rlimit limit;
    void *memory;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        fail("getrlimit", errno);
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    floor->capacity = CONNECTIONS_MAX;
    if (limit.rlim_max < floor->capacity)
        floor->capacity = limit.rlim_max;
    memory = mmap(NULL, floor->capacity * sizeof(struct connection),
                  PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        fail("mmap", errno);
    floor->table = memory;
}

static void open_signals(struct floor *floor)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
        fail("sigprocmask", errno);
    floor->signals = signalfd(-1, &set, SFD_CLOEXEC);
    if (floor->signals < 0)
        fail("signalfd", errno);
}

static void open_listener(struct floor *floor, struct sockaddr_in endpoint)
{
    socklen_t length = sizeof(endpoint);
    struct sockaddr *address = (struct sockaddr *)&endpoint;
    char text[INET_ADDRSTRLEN];
    const int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
        bind(fd, address, length) < 0 || listen(fd, BACKLOG) < 0 ||
        getsockname(fd, address, &length) < 0)
        fail("listen", errno);
    inet_ntop(AF_INET, &endpoint.sin_addr, text, sizeof(text));
    printf("listening on %s:%u\n", text, ntohs(endpoint.sin_port));
    fflush(stdout);
    floor->listener = fd;
}

static struct sockaddr_in parse_options(struct floor *floor, int argc,
                                        char **argv)
{
    static const struct option options[] = {
        {"listen", required_argument, NULL, 'l'},
        {"poll-first", no_argument, NULL, 'p'},
        /* Nothing to silence here: all echo servers take the same options. */
        {"quiet", no_argument, NULL, 'q'},
        {0},
    };
    const char *listen_on = "127.0.0.1:0";
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'l') {
            listen_on = optarg;
        } else if (option == 'p') {
            floor->receive_flags = IORING_RECVSEND_POLL_FIRST;
        } else if (option != 'q') {
            fputs("usage: echo_floor [--listen ADDRESS:PORT] [--poll-first]\n",
                  stderr);
            exit(2);
        }
    }
    return parse_endpoint(listen_on);
}

int main(int argc, char **argv)
{
    static struct floor floor;
    struct sockaddr_in endpoint = parse_options(&floor, argc, argv);

    open_signals(&floor);
    open_table(&floor);
    open_ring(&floor);
    open_listener(&floor, endpoint);
    queue_signal(&floor);
    queue_accept(&floor);
    while (!floor.stopped)
        turn(&floor);
    printf("connections %ju bytes %ju sqes %ju cqes %ju enters %ju\n",
           (uintmax_t)floor.connections, (uintmax_t)floor.bytes,
           (uintmax_t)floor.sqes, (uintmax_t)floor.cqes,
           (uintmax_t)floor.enters);
    return 0;
}
