#include "load.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    SQ_ENTRIES = 4096,
    CQ_ENTRIES = 16384,
    BUFFERS = 512,
    BUFFER_GROUP = 0,
    BUFFER_SIZE_MAX = 16384,
    PATTERN_STARTS = 4096,
    SPIN_NS = 100000,
};

enum tag { TAG_RECEIVE, TAG_SEND, TAG_BITS = 1 };

static _Noreturn void fail(const char *what, int error)
{
    fprintf(stderr, "echo_load: %s: %s\n", what, strerror(error));
    exit(1);
}

uint64_t load_clock(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static struct io_uring_sqe *get_sqe(struct load *load, unsigned index,
                                    enum tag tag)
{
    struct io_uring_sqe *sqe;

    while (!(sqe = io_uring_get_sqe(&load->ring)))
        io_uring_submit(&load->ring);
    memset(sqe, 0, sizeof(*sqe));
    sqe->fd = (int)index;
    sqe->flags = IOSQE_FIXED_FILE;
    sqe->user_data = (uint64_t)index << TAG_BITS | tag;
    return sqe;
}

static void queue_receive(struct load *load, unsigned index)
{
    struct io_uring_sqe *sqe = get_sqe(load, index, TAG_RECEIVE);

    sqe->opcode = IORING_OP_RECV;
    sqe->ioprio = IORING_RECV_MULTISHOT;
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = BUFFER_GROUP;
}

static void queue_send(struct load *load, unsigned index)
{
    struct io_uring_sqe *sqe = get_sqe(load, index, TAG_SEND);

    sqe->opcode = IORING_OP_SEND;
    sqe->addr = (uintptr_t)(load->pattern + load->connections[index].pattern);
    sqe->len = load->size;
    sqe->msg_flags = MSG_NOSIGNAL | MSG_WAITALL;
    sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
}

/* The open loop's schedule goes round the connections, one request each. */
static uint64_t due(const struct load *load, uint64_t request)
{
    return load->began + (uint64_t)((double)request * load->phase.interval);
}

static void start(struct load *load, unsigned index)
{
    struct load_connection *connection = &load->connections[index];

    connection->started_at = load->now;
    if (load->phase.interval > 0)
        connection->started_at =
            due(load, connection->requests * load->count + index);
    /* Another piece each time, so that an old reply is not taken for it. */
    connection->pattern = (connection->pattern + 13) % PATTERN_STARTS;
    connection->received = 0;
    connection->busy = true;
    connection->requests++;
    load->in_flight++;
    queue_send(load, index);
}

static void drop(struct load *load, unsigned index)
{
    struct load_connection *connection = &load->connections[index];

    if (connection->failed)
        return;
    connection->failed = true;
    load->errors++;
    load->alive--;
    if (connection->busy)
        load->in_flight--;
}

/* The first round of a phase is started before this is asked. */
static bool may_start(const struct load *load)
{
    if (load->phase.requests)
        return load->started < load->phase.requests;
    return load->now - load->began < load->phase.duration;
}

static void finish(struct load *load, unsigned index)
{
    struct load_connection *connection = &load->connections[index];

    histogram_record(&load->latency, load->now - connection->started_at);
    connection->busy = false;
    load->in_flight--;
    load->finished++;
    if (load->phase.interval > 0) {
        if (connection->waiting) {
            connection->waiting--;
            start(load, index);
        }
    } else if (may_start(load)) {
        load->started++;
        start(load, index);
    }
}

static void take(struct load *load, unsigned index, const char *data,
                 unsigned length)
{
    struct load_connection *connection = &load->connections[index];
    const char *wanted =
        load->pattern + connection->pattern + connection->received;

    if (connection->failed)
        return;
    if (!connection->busy || length > load->size - connection->received ||
        memcmp(data, wanted, length) != 0) {
        drop(load, index);
        return;
    }
    connection->received += length;
    if (connection->received == load->size)
        finish(load, index);
}

static char *buffer_at(const struct load *load, unsigned id)
{
    return load->buffers + id * load->buffer_size;
}

static void return_buffer(struct load *load, unsigned id)
{
    io_uring_buf_ring_add(load->buffer_ring, buffer_at(load, id),
                          (unsigned)load->buffer_size, (unsigned short)id,
                          BUFFERS - 1, (int)load->returned++);
}

static void handle(struct load *load, const struct io_uring_cqe *cqe)
{
    unsigned index = (unsigned)(cqe->user_data >> TAG_BITS);
    unsigned id = cqe->flags >> IORING_CQE_BUFFER_SHIFT;

    /* A send that posts a completion has failed. */
    if ((cqe->user_data & TAG_SEND) ||
        (cqe->res <= 0 && cqe->res != -ENOBUFS)) {
        drop(load, index);
        return;
    }
    if (cqe->res > 0)
        take(load, index, buffer_at(load, id), (unsigned)cqe->res);
    if (cqe->flags & IORING_CQE_F_BUFFER)
        return_buffer(load, id);
    if (!(cqe->flags & IORING_CQE_F_MORE))
        queue_receive(load, index);
}

static void start_due(struct load *load)
{
    while (load->phase.interval > 0 && may_start(load) &&
           due(load, load->started) <= load->now) {
        unsigned index = (unsigned)(load->started++ % load->count);

        if (load->connections[index].failed)
            continue;
        if (load->connections[index].busy)
            load->connections[index].waiting++;
        else
            start(load, index);
    }
}

static bool has_task_work(const struct load *load)
{
    return IO_URING_READ_ONCE(*load->ring.sq.kflags) & IORING_SQ_TASKRUN;
}

/* Until a reply or the next request that is due. */
static void wait_open_loop(struct load *load)
{
    uint64_t next = may_start(load) ? due(load, load->started) : UINT64_MAX;
    uint64_t left = next > load->now ? next - load->now : 0;
    struct __kernel_timespec limit = {
        .tv_sec = (long long)(left / 1000000000u),
        .tv_nsec = (long long)(left % 1000000000u),
    };
    struct io_uring_cqe *cqe;

    if (next == UINT64_MAX && load->in_flight)
        io_uring_submit_and_wait(&load->ring, 1);
    else if (io_uring_sq_ready(&load->ring) || has_task_work(load))
        io_uring_submit_and_get_events(&load->ring);
    else if (left > (load->spin ? SPIN_NS : 0))
        io_uring_wait_cqes(&load->ring, &cqe, 1, &limit, NULL);
}

static void turn(struct load *load)
{
    struct io_uring_cqe *cqe;
    unsigned head;
    unsigned count = 0;

    if (load->phase.interval > 0)
        wait_open_loop(load);
    else
        io_uring_submit_and_wait(&load->ring, 1);
    load->now = load_clock();
    io_uring_for_each_cqe(&load->ring, head, cqe)
    {
        handle(load, cqe);
        count++;
    }
    io_uring_cq_advance(&load->ring, count);
    io_uring_buf_ring_advance(load->buffer_ring, (int)load->returned);
    load->returned = 0;
    start_due(load);
}

static void begin(struct load *load, struct load_phase phase)
{
    memset(&load->latency, 0, sizeof(load->latency));
    load->phase = phase;
    load->began = load->now = load_clock();
    load->started = load->finished = 0;
    for (unsigned i = 0; i < load->count; i++)
        load->connections[i].requests = load->connections[i].waiting = 0;
}

void load_run(struct load *load, struct load_phase phase)
{
    begin(load, phase);
    for (unsigned i = 0; i < load->count && phase.interval == 0; i++) {
        if (load->connections[i].failed ||
            (phase.requests && load->started == phase.requests))
            continue;
        load->started++;
        start(load, i);
    }
    while (load->alive && (load->in_flight || may_start(load)))
        turn(load);
}

static void open_ring(struct load *load)
{
    struct io_uring_params params = {
        .flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                 IORING_SETUP_SUBMIT_ALL | IORING_SETUP_TASKRUN_FLAG |
                 IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE,
        .cq_entries = CQ_ENTRIES,
    };
    int error = io_uring_queue_init_params(SQ_ENTRIES, &load->ring, &params);

    if (error < 0)
        fail("io_uring_setup", -error);
    (void)io_uring_register_ring_fd(&load->ring);
}

static void *allocate(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        fail("mmap", errno);
    return memory;
}

/* An odd number of cache lines each: a power of two would use few cache sets */
static void open_buffers(struct load *load)
{
    struct io_uring_buf_reg registration = {
        .ring_entries = BUFFERS,
        .bgid = BUFFER_GROUP,
    };
    size_t lines = (load->size + 63) / 64;
    int error;

    if (lines > BUFFER_SIZE_MAX / 64)
        lines = BUFFER_SIZE_MAX / 64;
    load->buffer_size = (lines | 1) * 64;
    load->buffers = allocate(BUFFERS * load->buffer_size);
    load->buffer_ring = allocate(BUFFERS * sizeof(struct io_uring_buf));
    registration.ring_addr = (uintptr_t)load->buffer_ring;
    error = io_uring_register_buf_ring(&load->ring, &registration, 0);
    if (error < 0)
        fail("buffer ring", -error);
    for (unsigned i = 0; i < BUFFERS; i++)
        return_buffer(load, i);
    io_uring_buf_ring_advance(load->buffer_ring, BUFFERS);
    load->returned = 0;
}

static void open_pattern(struct load *load)
{
    uint32_t state = 2463534242u;

    load->pattern = allocate(load->size + PATTERN_STARTS);
    for (size_t i = 0; i < load->size + PATTERN_STARTS; i++) {
        state = state * 1664525u + 1013904223u;
        load->pattern[i] = (char)(state >> 24);
    }
}

static int connect_one(struct sockaddr_in server)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        fail("socket", errno);
    if (connect(fd, (struct sockaddr *)&server, sizeof(server)) < 0)
        fail("connect", errno);
    return fd;
}

static void open_connections(struct load *load, struct sockaddr_in server)
{
    int *fds = calloc(load->count, sizeof(*fds));
    struct rlimit limit;
    int error;

    load->connections = calloc(load->count, sizeof(*load->connections));
    if (!fds || !load->connections || getrlimit(RLIMIT_NOFILE, &limit) < 0)
        fail("connections", errno);
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    for (unsigned i = 0; i < load->count; i++) {
        fds[i] = load->connections[i].fd = connect_one(server);
        load->connections[i].pattern = i * 8 % PATTERN_STARTS;
    }
    error = io_uring_register_files(&load->ring, fds, load->count);
    if (error < 0)
        fail("register files", -error);
    free(fds);
}

void load_open(struct load *load, struct sockaddr_in server, unsigned count,
               unsigned size)
{
    load->count = load->alive = count;
    load->size = size;
    load->spin = sysconf(_SC_NPROCESSORS_ONLN) > 1;
    open_ring(load);
    open_pattern(load);
    open_buffers(load);
    open_connections(load, server);
    for (unsigned i = 0; i < count; i++)
        queue_receive(load, i);
}

void load_close(struct load *load)
{
    /* close(2) alone would say nothing: the ring holds the sockets as well. */
    for (unsigned i = 0; i < load->count; i++) {
        shutdown(load->connections[i].fd, SHUT_RDWR);
        close(load->connections[i].fd);
    }
    io_uring_queue_exit(&load->ring);
}
