/*
 * A queue of deadlines, exact and in order: what is due within the present
 * tick lies in a heap; everything later waits, unsorted, on a hierarchical
 * wheel, and moves to the heap when its tick comes.
 *
 * Nearly every deadline is a limit, armed and cancelled long before it would
 * pass. It only ever sees the wheel, where both steps touch a list and nothing
 * else, however many are armed.
 *
 * Nodes live in the waiting frames: nothing is allocated, arming cannot fail.
 */
#ifndef COIL_BASE_TIMER_QUEUE_H
#define COIL_BASE_TIMER_QUEUE_H

#include "base/heap.h"
#include "base/list.h"

enum {
    COIL__TICK_BITS = 20, /* a tick is 2^20 ns, 1.05 ms */
    /* Eight levels of 64 slots hold all deadlines of 63 bits. A slot of the
     * lowest level is a tick; one of the next is as long as all of those. */
    COIL__WHEEL_LEVELS = 8,
    COIL__WHEEL_SLOT_BITS = 6,
    COIL__WHEEL_SLOTS = 1 << COIL__WHEEL_SLOT_BITS
};

struct coil__timer_queue {
    struct coil__heap near; /* due up to the end of `tick` */
    uint64_t tick;
    uint64_t armed;  /* ever; breaks ties */
    int64_t next;    /* what coil__timer_queue_find_next has found, */
    bool next_known; /* unless that is no longer so */
    /* A bit may be set for a slot that was emptied since. */
    uint64_t filled[COIL__WHEEL_LEVELS];
    struct coil__list slots[COIL__WHEEL_LEVELS][COIL__WHEEL_SLOTS];
};

void coil__timer_queue_init(struct coil__timer_queue *queue, int64_t now);

/* `timer` is not in the queue. */
void coil__timer_queue_insert(struct coil__timer_queue *queue,
                              struct coil__timer *timer, int64_t deadline);

/* `timer` is in the queue. */
void coil__timer_queue_remove(struct coil__timer_queue *queue,
                              struct coil__timer *timer);

void coil__timer_queue_find_next(struct coil__timer_queue *queue);

/* When to look again; INT64_MAX if nothing is armed. Never later than the
 * first deadline, but earlier when many lie close to it. */
static inline int64_t coil__timer_queue_next(struct coil__timer_queue *queue)
{
    if (!queue->next_known)
        coil__timer_queue_find_next(queue);
    return queue->next;
}

/* Takes out the first whose deadline has passed, or returns NULL. */
struct coil__timer *coil__timer_queue_take(struct coil__timer_queue *queue,
                                           int64_t now);

#endif
