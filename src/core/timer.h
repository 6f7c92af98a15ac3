/*
 * The context's timer queue, and when deadlines are counted from.
 *
 * A limit counts from the first clock reading at or after the call. Reading
 * the clock at each call would cost more than the rest of arming, so limits
 * that were set during a turn wait on a list, and one reading just before the
 * loop enters the kernel stamps them all.
 */
#ifndef COIL_CORE_TIMER_H
#define COIL_CORE_TIMER_H

#include "base/timer_queue.h"
#include <coil/time.h>

struct coil_context;
struct coil_task;

struct coil__timers {
    struct coil__timer_queue queue;
    /* Tasks whose limit has no deadline yet, in the order of their calls. */
    struct coil_task *first_unstamped, **last_unstamped;
    coil_time now; /* the last reading */
    size_t armed;
};

void coil__timers_init(struct coil__timers *timers);

/* Arms, or moves if armed. */
void coil__timer_arm(struct coil__timers *timers, struct coil__timer *timer,
                     coil_time when);
void coil__timer_cancel(struct coil__timers *timers, struct coil__timer *timer);

/* `now` plus a duration, without overflow. */
static inline coil_time coil__time_after(coil_time now, coil_duration duration)
{
    if (duration <= 0)
        return now;
    return duration > COIL_FOREVER - now ? COIL_FOREVER : now + duration;
}

/* Gives every limit of this turn its deadline. */
void coil__timers_stamp(struct coil_context *context);

/* The task ends: its limit of this turn is forgotten. */
void coil__timers_forget(struct coil__timers *timers, struct coil_task *task);

/* How long the loop may sleep: 0 not at all, COIL_FOREVER without limit. */
coil_duration coil__timers_until_next(struct coil__timers *timers);

/* Reads the clock, if a timer is armed, and expires what is due. */
void coil__timers_expire(struct coil_context *context);

#endif
