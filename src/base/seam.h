/*
 * What a test build may do to the library at the seam (base/kernel.h). Without
 * COIL_SEAM each hook is a constant, and the compiler leaves nothing of it.
 */
#ifndef COIL_BASE_SEAM_H
#define COIL_BASE_SEAM_H

#include <stdbool.h>
#include <stdint.h>

struct io_uring_cqe;

enum coil__call {
    COIL__CALL_ALLOCATE,
    COIL__CALL_MAP,
    COIL__CALL_PROTECT,
    COIL__CALL_ADVISE,
    COIL__CALL_RING_OPEN,
    COIL__CALL_RING_ENABLE,
    COIL__CALL_RING_REGISTER,
    COIL__CALL_ENTER,
    COIL__CALL_EVENTFD,
    COIL__CALL_READ,
    COIL__CALL_CLOSE,
    COIL__CALL_SIGNALFD,
    COIL__CALL_SIGNAL_MASK,
    COIL__CALL_SOCKET,
    COIL__CALL_BIND,
    COIL__CALL_LISTEN,
    COIL__CALL_SHUTDOWN,
    COIL__CALL_DISSOLVE,
    COIL__CALL_NAME,
    COIL__CALL_OPTION,
    COIL__CALL_COUNT
};

#ifdef COIL_SEAM

/*
 * The plan of the running test. Belongs to the thread under test: calls of
 * other threads are not counted and never fail.
 */
struct coil__seam {
    /* The call `fail_at` (1 is the next one, 0 none) of kind `fail_call`, or
     * of any kind if that is COIL__CALL_COUNT, fails with `fail_error`, a
     * negative errno, and so do the `fail_repeat` ones after it. */
    uint64_t fail_at;
    uint64_t fail_repeat;
    enum coil__call fail_call;
    int fail_error;
    uint64_t calls;                      /* so far, of the watched kind */
    uint64_t calls_of[COIL__CALL_COUNT]; /* so far, by kind */

    /* Sees each batch of completions; changes, removes, adds and reorders
     * them and returns their new number. While `withheld` is set the loop does
     * not sleep in the kernel. */
    unsigned (*completions)(struct io_uring_cqe *cqes, unsigned count,
                            unsigned capacity);
    bool withheld;

    int64_t time_offset; /* added to every clock reading, ns */
    int64_t time_fixed;  /* if not 0, what every clock reading gives, ns */
};

extern _Thread_local struct coil__seam coil__seam;

/* Allocations of the library that were not freed yet, on all threads. */
extern _Atomic long coil__seam_allocations;

static inline void coil__seam_count_allocations(long change)
{
    coil__seam_allocations += change;
}

int coil__seam_error(enum coil__call call);

static inline int64_t coil__seam_time(int64_t now)
{
    if (coil__seam.time_fixed)
        return coil__seam.time_fixed;
    return now + coil__seam.time_offset;
}

static inline unsigned coil__seam_wait(unsigned wait)
{
    return coil__seam.withheld ? 0 : wait;
}

static inline unsigned coil__seam_completions(struct io_uring_cqe *cqes,
                                              unsigned count, unsigned capacity)
{
    if (!coil__seam.completions)
        return count;
    return coil__seam.completions(cqes, count, capacity);
}

#else

static inline void coil__seam_count_allocations(long change)
{
    (void)change;
}

static inline int coil__seam_error(enum coil__call call)
{
    (void)call;
    return 0;
}

static inline int64_t coil__seam_time(int64_t now)
{
    return now;
}

static inline unsigned coil__seam_wait(unsigned wait)
{
    return wait;
}

static inline unsigned coil__seam_completions(struct io_uring_cqe *cqes,
                                              unsigned count, unsigned capacity)
{
    (void)cqes;
    (void)capacity;
    return count;
}

#endif
#endif
