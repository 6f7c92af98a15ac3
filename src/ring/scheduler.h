/*
 * The ring driver: submission queue entries out, completions in, and the
 * descriptor that wakes a sleeping loop. What a completion means is decided in
 * src/core.
 */
#ifndef COIL_RING_SCHEDULER_H
#define COIL_RING_SCHEDULER_H

#include "base/kernel.h"
#include <coil/error.h>
#include <stdbool.h>
#include <stdint.h>

/* user_data of the library's own requests. All others are the addresses of
 * requests, which are larger; their low three bits are zero, and src/core may
 * put a tag there. */
enum {
    COIL__DATA_WAKE = 1,   /* the read on the wake-up descriptor */
    COIL__DATA_CANCEL = 2, /* a cancel: its result changes nothing */
    COIL__DATA_LAST = 15
};

enum { COIL__BATCH = 256 };

struct coil__scheduler {
    struct io_uring ring;
    unsigned enter_flags; /* IORING_ENTER_REGISTERED_RING, once registered */
    bool enabled;         /* some thread owns the ring for good */
    bool wake_armed;
    int wake_fd;
    uint64_t wake_value; /* where the kernel puts the eventfd's count */
    uint64_t sqes;       /* entries filled */
    uint64_t cqes;       /* completions taken */
    uint64_t ended;      /* of those, the last of their entry */
    uint64_t enters;
    struct io_uring_cqe batch[COIL__BATCH];
};

/* Fails with a sentence in ret_error: too old, forbidden, out of memory. */
int coil__scheduler_open(struct coil__scheduler *scheduler, unsigned sq_entries,
                         unsigned cq_entries, coil_error *ret_error);
void coil__scheduler_close(struct coil__scheduler *scheduler);

/* Binds the ring to the calling thread, once. */
int coil__scheduler_enable(struct coil__scheduler *scheduler);

/* Registers the ring's descriptor with the running thread, and undoes that. */
void coil__scheduler_register(struct coil__scheduler *scheduler);
void coil__scheduler_unregister(struct coil__scheduler *scheduler);

/* io_uring_get_sqe for the kind of ring we have: entries of 64 bytes, and no
 * kernel thread that takes them behind our back. NULL: the queue is full. */
static inline struct io_uring_sqe *
coil__scheduler_next(struct coil__scheduler *scheduler)
{
    struct io_uring_sq *sq = &scheduler->ring.sq;
    unsigned tail = sq->sqe_tail;

    if (__builtin_expect(
            tail - IO_URING_READ_ONCE(*sq->khead) >= sq->ring_entries, 0))
        return NULL;
    sq->sqe_tail = tail + 1;
    return &sq->sqes[tail & sq->ring_mask];
}

/* An entry after submitting the full queue, or NULL if the kernel takes none
 * at present. */
struct io_uring_sqe *
coil__scheduler_make_room(struct coil__scheduler *scheduler);

/* The next entry, or NULL if the kernel takes none at present: then keep what
 * you wanted to submit and try in the next turn. The caller fills it. */
static inline struct io_uring_sqe *
coil__scheduler_sqe(struct coil__scheduler *scheduler)
{
    struct io_uring_sqe *sqe = coil__scheduler_next(scheduler);

    if (__builtin_expect(!sqe, 0))
        sqe = coil__scheduler_make_room(scheduler);
    if (__builtin_expect(sqe != NULL, 1))
        scheduler->sqes++;
    return sqe;
}

/* True if the next `count` entries can be had and will be submitted together;
 * submits the queue if it must. */
bool coil__scheduler_has_room(struct coil__scheduler *scheduler,
                              unsigned count);

/* Entries whose last completion has not been taken. */
static inline uint64_t
coil__scheduler_in_flight(const struct coil__scheduler *scheduler)
{
    return scheduler->sqes - scheduler->ended;
}

/* There is something to enter for, though nobody waits for it. */
bool coil__scheduler_wants_enter(const struct coil__scheduler *scheduler);

/*
 * Submits everything and collects. Waits for one completion for at most
 * `limit` nanoseconds (COIL_FOREVER: no limit), not at all if that is 0.
 * Returns 0, also when the limit passed or a signal came or the kernel was
 * short of something: look at the completions. Otherwise the ring has failed.
 */
int coil__scheduler_enter(struct coil__scheduler *scheduler, int64_t limit);

/* Takes completions into scheduler->batch and returns how many. */
unsigned coil__scheduler_take(struct coil__scheduler *scheduler);

/* Arms the read that a wake-up completes, unless it is armed. */
void coil__scheduler_arm_wake(struct coil__scheduler *scheduler);

/* Ends it; the completion is still to be taken. Returns false if it must be
 * tried again. */
bool coil__scheduler_cancel_wake(struct coil__scheduler *scheduler);

/* The read has completed. */
static inline void coil__scheduler_woken(struct coil__scheduler *scheduler)
{
    scheduler->wake_armed = false;
}

/* Makes a loop that sleeps, or is about to, take another turn. Any thread,
 * any signal handler. */
void coil__scheduler_wake(struct coil__scheduler *scheduler);

#endif
