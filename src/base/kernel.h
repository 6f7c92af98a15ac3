/*
 * The seam: every kernel call, allocation, clock reading and completion of the
 * library passes one of these inline functions. In a test build (COIL_SEAM)
 * the Nth call can be made to fail and completions can be changed, withheld or
 * put in another order, see base/seam.h; otherwise nothing is left of it.
 *
 * All return >= 0 or a negative errno, or NULL where they return a pointer.
 */
#ifndef COIL_BASE_KERNEL_H
#define COIL_BASE_KERNEL_H

#include "base/seam.h"
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Constants newer than liburing 2.3 and glibc 2.36. */
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

/* The value of a system call, or what it left in errno. */
static inline int coil__kernel_result(long value)
{
    return value < 0 ? -errno : (int)value;
}

/* ------------------------------------------------------------- memory */

static inline void *coil__kernel_allocate(size_t size)
{
    void *memory;

    if (coil__seam_error(COIL__CALL_ALLOCATE))
        return NULL;
    memory = calloc(1, size);
    coil__seam_count_allocations(memory != NULL);
    return memory;
}

static inline void coil__kernel_free(void *memory)
{
    coil__seam_count_allocations(-(memory != NULL));
    free(memory);
}

/* Reserves address space; pages come when they are touched. */
static inline void *coil__kernel_map(size_t size)
{
    void *memory;

    if (coil__seam_error(COIL__CALL_MAP))
        return NULL;
    memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static inline void coil__kernel_unmap(void *memory, size_t size)
{
    munmap(memory, size);
}

static inline int coil__kernel_protect(void *memory, size_t size)
{
    int error = coil__seam_error(COIL__CALL_PROTECT);

    if (error)
        return error;
    return coil__kernel_result(mprotect(memory, size, PROT_NONE));
}

static inline int coil__kernel_advise(void *memory, size_t size, int advice)
{
    int error = coil__seam_error(COIL__CALL_ADVISE);

    if (error)
        return error;
    return coil__kernel_result(madvise(memory, size, advice));
}

/* --------------------------------------------------------------- time */

static inline int64_t coil__kernel_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return coil__seam_time((int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
}

/* The same clock as of its last tick, some milliseconds ago: much cheaper. */
static inline int64_t coil__kernel_coarse_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return coil__seam_time((int64_t)now.tv_sec * 1000000000 + now.tv_nsec);
}

/* ----------------------------------------------------------- the ring */

static inline int coil__kernel_ring_open(struct io_uring *ring,
                                         unsigned entries,
                                         struct io_uring_params *params)
{
    int error = coil__seam_error(COIL__CALL_RING_OPEN);

    if (error)
        return error;
    return io_uring_queue_init_params(entries, ring, params);
}

static inline void coil__kernel_ring_close(struct io_uring *ring)
{
    io_uring_queue_exit(ring);
}

static inline int coil__kernel_ring_enable(struct io_uring *ring)
{
    int error = coil__seam_error(COIL__CALL_RING_ENABLE);

    if (error)
        return error;
    /* liburing 2.3 declares a function for this and does not export it. */
    return coil__kernel_result(syscall(__NR_io_uring_register, ring->ring_fd,
                                       IORING_REGISTER_ENABLE_RINGS, NULL, 0));
}

static inline int coil__kernel_ring_register_self(struct io_uring *ring)
{
    int error = coil__seam_error(COIL__CALL_RING_REGISTER);

    if (error)
        return error;
    return io_uring_register_ring_fd(ring);
}

static inline void coil__kernel_ring_unregister_self(struct io_uring *ring)
{
    io_uring_unregister_ring_fd(ring);
}

/* Submits and, with GETEVENTS, collects; `argument` as the flags say. */
static inline int coil__kernel_enter(int fd, unsigned submit, unsigned wait,
                                     unsigned flags, void *argument,
                                     size_t size)
{
    int error = coil__seam_error(COIL__CALL_ENTER);

    if (error)
        return error;
    return io_uring_enter2((unsigned)fd, submit, coil__seam_wait(wait), flags,
                           (sigset_t *)argument, size);
}

/* Copies out at most `capacity` completions and moves the head once. */
static inline unsigned coil__kernel_completions(struct io_uring *ring,
                                                struct io_uring_cqe *ret_cqes,
                                                unsigned capacity)
{
    unsigned head = *ring->cq.khead;
    unsigned first = head & *ring->cq.kring_mask;
    unsigned count = io_uring_smp_load_acquire(ring->cq.ktail) - head;
    unsigned straight = ring->cq.ring_entries - first; /* up to the end */

    if (count > capacity)
        count = capacity;
    if (straight > count)
        straight = count;
    memcpy(ret_cqes, &ring->cq.cqes[first], straight * sizeof(*ret_cqes));
    memcpy(ret_cqes + straight, ring->cq.cqes,
           (count - straight) * sizeof(*ret_cqes));
    io_uring_smp_store_release(ring->cq.khead, head + count);
    return coil__seam_completions(ret_cqes, count, capacity);
}

/* -------------------------------------------------------- descriptors */

static inline int coil__kernel_eventfd(void)
{
    int error = coil__seam_error(COIL__CALL_EVENTFD);

    if (error)
        return error;
    return coil__kernel_result(eventfd(0, EFD_CLOEXEC));
}

static inline ssize_t coil__kernel_write(int fd, const void *data, size_t size)
{
    ssize_t written = write(fd, data, size);

    return written < 0 ? -errno : written;
}

static inline ssize_t coil__kernel_read(int fd, void *data, size_t size)
{
    int error = coil__seam_error(COIL__CALL_READ);
    ssize_t count;

    if (error)
        return error;
    count = read(fd, data, size);
    return count < 0 ? -errno : count;
}

/* The descriptor is closed whatever this returns. */
static inline int coil__kernel_close(int fd)
{
    int result = coil__kernel_result(close(fd));
    int error = coil__seam_error(COIL__CALL_CLOSE);

    return error ? error : result;
}

static inline int coil__kernel_signalfd(const sigset_t *signals)
{
    int error = coil__seam_error(COIL__CALL_SIGNALFD);

    if (error)
        return error;
    return coil__kernel_result(
        signalfd(-1, signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

static inline int coil__kernel_signal_mask(int how, const sigset_t *signals,
                                           sigset_t *ret_before)
{
    int error = coil__seam_error(COIL__CALL_SIGNAL_MASK);

    return error ? error : -pthread_sigmask(how, signals, ret_before);
}

/* Takes one pending signal of the set: its number, or -EAGAIN. */
static inline int coil__kernel_take_signal(const sigset_t *signals)
{
    struct timespec none = {0};

    return coil__kernel_result(sigtimedwait(signals, NULL, &none));
}

/* ------------------------------------------------------------ sockets */

static inline int coil__kernel_socket(int family, int type, int protocol)
{
    int error = coil__seam_error(COIL__CALL_SOCKET);

    if (error)
        return error;
    return coil__kernel_result(socket(family, type | SOCK_CLOEXEC, protocol));
}

static inline int coil__kernel_bind(int fd, const struct sockaddr *address,
                                    socklen_t size)
{
    int error = coil__seam_error(COIL__CALL_BIND);

    if (error)
        return error;
    return coil__kernel_result(bind(fd, address, size));
}

static inline int coil__kernel_listen(int fd, int backlog)
{
    int error = coil__seam_error(COIL__CALL_LISTEN);

    if (error)
        return error;
    return coil__kernel_result(listen(fd, backlog));
}

static inline int coil__kernel_shutdown(int fd, int how)
{
    int error = coil__seam_error(COIL__CALL_SHUTDOWN);

    if (error)
        return error;
    return coil__kernel_result(shutdown(fd, how));
}

/* Dissolves whatever association a socket has or is still attempting. */
static inline int coil__kernel_dissolve(int fd)
{
    struct sockaddr none = {.sa_family = AF_UNSPEC};
    int error = coil__seam_error(COIL__CALL_DISSOLVE);

    if (error)
        return error;
    return coil__kernel_result(connect(fd, &none, sizeof(none)));
}

static inline int coil__kernel_local_name(int fd, struct sockaddr *ret_address,
                                          socklen_t *size)
{
    int error = coil__seam_error(COIL__CALL_NAME);

    if (error)
        return error;
    return coil__kernel_result(getsockname(fd, ret_address, size));
}

static inline int coil__kernel_peer_name(int fd, struct sockaddr *ret_address,
                                         socklen_t *size)
{
    int error = coil__seam_error(COIL__CALL_NAME);

    if (error)
        return error;
    return coil__kernel_result(getpeername(fd, ret_address, size));
}

static inline int coil__kernel_set_option(int fd, int level, int name,
                                          const void *value, socklen_t size)
{
    int error = coil__seam_error(COIL__CALL_OPTION);

    if (error)
        return error;
    return coil__kernel_result(setsockopt(fd, level, name, value, size));
}

static inline int coil__kernel_get_option(int fd, int level, int name,
                                          void *ret_value, socklen_t *size)
{
    int error = coil__seam_error(COIL__CALL_OPTION);

    if (error)
        return error;
    return coil__kernel_result(getsockopt(fd, level, name, ret_value, size));
}

#endif
