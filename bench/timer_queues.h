/*
 * The timer queues that bench_timers compares, behind one interface, and their
 * driver's settings. Included by that program alone.
 */
#ifndef BENCH_TIMER_QUEUES_H
#define BENCH_TIMER_QUEUES_H

#include "base/timer_queue.h"
#include "timer_wheel.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    STEP = 100, /* ns */
    TURN = 32,  /* steps */
    STEPS_LEAST = 200000,
    SPARES = 16,
    FIFOS = 4,
    STRUCTURES = 8,
    REPETITIONS_MOST = 99,
    COLOURS = 8,
    COLOUR = 128,
    PAGE = 4096,
    /* A page has room for the timers of four structures, each in its own
     * quarter, so that the largest size fits into memory. */
    SHARE = COLOUR * COLOURS,
    SHARES = PAGE / SHARE,
    STACK = 17 * PAGE, /* 64 KiB and the guard */
};

#define SECOND   INT64_C(1000000000)
#define START    (1000 * SECOND)
#define CONSTANT (30 * SECOND)

/* The node in a cache line, as the library's are. */
struct timer {
    alignas(64) union {
        struct coil__heap_node heap;
        struct wheel_node wheel;
        struct coil__list list;
        struct coil__timer own;
    } node;
    int64_t deadline;
    bool armed;
    bool in_heap;       /* heap+lazy, heap+fifo, wheel+heap+lazy */
    unsigned char fifo; /* heap+fifo */
};

struct fifo {
    struct coil__list timers;
    int64_t limit;
};

struct subject;

struct structure {
    const char *name;
    int64_t lateness; /* at most */
    void (*init)(struct subject *subject);
    /* timer->deadline is set; `limit` is where it came from. */
    void (*arm)(struct subject *subject, struct timer *timer, int64_t limit);
    void (*cancel)(struct subject *subject, struct timer *timer);
    /* When to expire next, WHEEL_NEVER if nothing is armed. */
    int64_t (*next)(struct subject *subject);
    /* Takes out one that is due, or returns NULL. */
    struct timer *(*expire)(struct subject *subject);
};

/* A structure with its timers. */
struct subject {
    const struct structure *structure;
    struct coil__heap heap;
    uint64_t inserted;
    struct coil__timer_queue queue;
    struct wheel wheel;
    struct fifo fifos[FIFOS];
    char *timers;
    size_t stride;
    size_t colours; /* less one */
    size_t count;   /* armed; the spares lie behind them */
    size_t oldest;
    int64_t now;
    uint64_t random;
    bool uniform;
    double results[REPETITIONS_MOST];
};

struct layout {
    const char *name;
    size_t stride;
    size_t colours; /* less one */
    size_t share;   /* bytes from one structure's timers to the next one's */
    size_t shares;  /* structures that share the memory */
    char *memory;
    size_t part; /* bytes for these */
};

struct bench_case {
    const char *name;
    void (*run)(struct subject *subject, size_t steps);
    bool uniform_too;
    bool scattered; /* armed in another order than they lie in memory */
    bool expires;
    bool once; /* one step, after setting up anew */
};

static struct subject subjects[STRUCTURES];

static _Noreturn void fail(const struct subject *subject, const char *what)
{
    fprintf(stderr, "bench_timers: %s: %s\n",
            subject ? subject->structure->name : "memory", what);
    exit(1);
}

static struct timer *timer_at(const struct subject *subject, size_t index)
{
    return (void *)(subject->timers + index * subject->stride +
                    (index & subject->colours) * COLOUR);
}

static uint64_t draw(struct subject *subject)
{
    uint64_t x = subject->random;

    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return subject->random = x;
}

static uint64_t draw_below(struct subject *subject, uint64_t bound)
{
    return (uint64_t)((unsigned __int128)draw(subject) * bound >> 64);
}

/* touch */

static void touch_init(struct subject *subject)
{
    (void)subject;
}

static void touch_arm(struct subject *subject, struct timer *timer,
                      int64_t limit)
{
    (void)subject;
    timer->node.heap.key = limit;
}

static void touch_cancel(struct subject *subject, struct timer *timer)
{
    (void)subject;
    timer->node.heap.key = 0;
}

/* heap */

static struct timer *of_heap(struct coil__heap_node *node)
{
    return COIL__CONTAINER(node, struct timer, node.heap);
}

static void heap_init(struct subject *subject)
{
    subject->heap = (struct coil__heap){0};
    subject->inserted = 0;
}

static void heap_insert(struct subject *subject, struct timer *timer)
{
    timer->node.heap.key = timer->deadline;
    timer->node.heap.order = subject->inserted++;
    coil__heap_insert(&subject->heap, &timer->node.heap);
}

static void heap_arm(struct subject *subject, struct timer *timer,
                     int64_t limit)
{
    (void)limit;
    heap_insert(subject, timer);
}

static void heap_cancel(struct subject *subject, struct timer *timer)
{
    coil__heap_remove(&subject->heap, &timer->node.heap);
}

static int64_t heap_next(struct subject *subject)
{
    const struct coil__heap_node *first = coil__heap_first(&subject->heap);

    return first ? first->key : WHEEL_NEVER;
}

static struct timer *heap_expire(struct subject *subject)
{
    struct coil__heap_node *first = coil__heap_first(&subject->heap);

    if (!first || first->key > subject->now)
        return NULL;
    coil__heap_remove(&subject->heap, first);
    return of_heap(first);
}

/* heap+lazy */

static void lazy_arm(struct subject *subject, struct timer *timer,
                     int64_t limit)
{
    (void)limit;
    if (timer->in_heap) {
        if (timer->deadline >= timer->node.heap.key)
            return;
        coil__heap_remove(&subject->heap, &timer->node.heap);
    }
    timer->in_heap = true;
    heap_insert(subject, timer);
}

/* The driver has cleared timer->armed. */
static void lazy_cancel(struct subject *subject, struct timer *timer)
{
    (void)subject;
    (void)timer;
}

/* Makes the first node of the heap one that is where it belongs. */
static int64_t lazy_next(struct subject *subject)
{
    struct coil__heap_node *first;

    while ((first = coil__heap_first(&subject->heap))) {
        struct timer *timer = of_heap(first);

        if (timer->armed && timer->deadline == first->key)
            return first->key;
        coil__heap_remove(&subject->heap, first);
        timer->in_heap = timer->armed;
        if (timer->armed)
            heap_insert(subject, timer);
    }
    return WHEEL_NEVER;
}

static struct timer *lazy_expire(struct subject *subject)
{
    int64_t next = lazy_next(subject);
    struct timer *timer;

    if (next == WHEEL_NEVER || next > subject->now)
        return NULL;
    timer = of_heap(coil__heap_first(&subject->heap));
    coil__heap_remove(&subject->heap, &timer->node.heap);
    timer->in_heap = false;
    return timer;
}

/* heap+fifo */

static struct timer *of_list(struct coil__list *list)
{
    return COIL__CONTAINER(list, struct timer, node.list);
}

static void fifo_init(struct subject *subject)
{
    heap_init(subject);
    for (int i = 0; i < FIFOS; i++) {
        coil__list_init(&subject->fifos[i].timers);
        subject->fifos[i].limit = 0;
    }
}

/* An empty list serves any limit. */
static unsigned char fifo_of(struct subject *subject, int64_t limit)
{
    unsigned char found = FIFOS;

    for (unsigned char i = 0; i < FIFOS; i++) {
        if (subject->fifos[i].limit == limit)
            return i;
        if (coil__list_is_empty(&subject->fifos[i].timers))
            found = i;
    }
    return found;
}

static void fifo_arm(struct subject *subject, struct timer *timer,
                     int64_t limit)
{
    unsigned char i = fifo_of(subject, limit);

    timer->in_heap = i == FIFOS;
    if (timer->in_heap) {
        heap_arm(subject, timer, limit);
        return;
    }
    timer->fifo = i;
    subject->fifos[i].limit = limit;
    coil__list_append(&subject->fifos[i].timers, &timer->node.list);
}

static void fifo_cancel(struct subject *subject, struct timer *timer)
{
    if (timer->in_heap)
        heap_cancel(subject, timer);
    else
        coil__list_remove(&timer->node.list);
}

static struct timer *fifo_first(struct subject *subject)
{
    struct coil__heap_node *node = coil__heap_first(&subject->heap);
    struct timer *first = node ? of_heap(node) : NULL;

    for (int i = 0; i < FIFOS; i++) {
        struct coil__list *list = &subject->fifos[i].timers;

        if (!coil__list_is_empty(list) &&
            (!first || of_list(list->next)->deadline < first->deadline))
            first = of_list(list->next);
    }
    return first;
}

static int64_t fifo_next(struct subject *subject)
{
    const struct timer *first = fifo_first(subject);

    return first ? first->deadline : WHEEL_NEVER;
}

static struct timer *fifo_expire(struct subject *subject)
{
    struct timer *first = fifo_first(subject);

    if (!first || first->deadline > subject->now)
        return NULL;
    fifo_cancel(subject, first);
    return first;
}

/* wheel and wheel+lazy */

static void in_wheel_init(struct subject *subject)
{
    wheel_init(&subject->wheel, subject->now);
}

static void in_wheel_arm(struct subject *subject, struct timer *timer,
                         int64_t limit)
{
    (void)limit;
    wheel_insert(&subject->wheel, &timer->node.wheel, timer->deadline);
}

static void in_wheel_cancel(struct subject *subject, struct timer *timer)
{
    (void)subject;
    wheel_remove(&timer->node.wheel);
}

static void lazy_wheel_arm(struct subject *subject, struct timer *timer,
                           int64_t limit)
{
    (void)limit;
    wheel_move(&subject->wheel, &timer->node.wheel, timer->deadline);
}

static void lazy_wheel_cancel(struct subject *subject, struct timer *timer)
{
    (void)subject;
    wheel_rest(&timer->node.wheel);
}

static int64_t in_wheel_next(struct subject *subject)
{
    return wheel_next(&subject->wheel);
}

static struct timer *in_wheel_expire(struct subject *subject)
{
    struct wheel_node *node = wheel_expire(&subject->wheel, subject->now);

    return node ? COIL__CONTAINER(node, struct timer, node.wheel) : NULL;
}

/* wheel+heap and wheel+heap+lazy */

static void own_init(struct subject *subject)
{
    coil__timer_queue_init(&subject->queue, subject->now);
}

static void own_arm(struct subject *subject, struct timer *timer, int64_t limit)
{
    (void)limit;
    coil__timer_queue_insert(&subject->queue, &timer->node.own,
                             timer->deadline);
}

static void own_cancel(struct subject *subject, struct timer *timer)
{
    coil__timer_queue_remove(&subject->queue, &timer->node.own);
}

static int64_t own_next(struct subject *subject)
{
    return coil__timer_queue_next(&subject->queue);
}

static struct timer *own_expire(struct subject *subject)
{
    struct coil__timer *timer =
        coil__timer_queue_take(&subject->queue, subject->now);

    return timer ? COIL__CONTAINER(timer, struct timer, node.own) : NULL;
}

/* As the timer of a task. */
static void lazy_own_arm(struct subject *subject, struct timer *timer,
                         int64_t limit)
{
    if (timer->in_heap) {
        if (timer->deadline >= timer->node.own.node.near.key)
            return;
        own_cancel(subject, timer);
    }
    timer->in_heap = true;
    own_arm(subject, timer, limit);
}

static struct timer *lazy_own_expire(struct subject *subject)
{
    struct timer *timer;

    while ((timer = own_expire(subject))) {
        timer->in_heap = false;
        if (timer->armed && timer->deadline <= subject->now)
            return timer;
        if (timer->armed)
            lazy_own_arm(subject, timer, 0);
    }
    return NULL;
}

#define WHEEL_LATENESS (((int64_t)1 << WHEEL_TICK_BITS) - 1)

static const struct structure structures[STRUCTURES] = {
    {"touch", 0, touch_init, touch_arm, touch_cancel, NULL, NULL},
    {"heap", 0, heap_init, heap_arm, heap_cancel, heap_next, heap_expire},
    {"heap+fifo", 0, fifo_init, fifo_arm, fifo_cancel, fifo_next, fifo_expire},
    {"heap+lazy", 0, heap_init, lazy_arm, lazy_cancel, lazy_next, lazy_expire},
    {"wheel", WHEEL_LATENESS, in_wheel_init, in_wheel_arm, in_wheel_cancel,
     in_wheel_next, in_wheel_expire},
    {"wheel+lazy", WHEEL_LATENESS, in_wheel_init, lazy_wheel_arm,
     lazy_wheel_cancel, in_wheel_next, in_wheel_expire},
    {"wheel+heap", 0, own_init, own_arm, own_cancel, own_next, own_expire},
    {"wheel+heap+lazy", 0, own_init, lazy_own_arm, lazy_cancel, own_next,
     lazy_own_expire},
};

#endif
