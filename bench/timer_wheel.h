/*
 * A hierarchical timer wheel, to compare with the library's queue.
 *
 * Eight levels of 64 slots cover all deadlines of 63 bits. A slot of the lowest
 * level is a tick of 2^20 ns; one of the next level is as long as all of the
 * level below it. A deadline is rounded up to a tick, so nothing fires early
 * and everything within 1.05 ms. Within a tick the order is arbitrary.
 *
 * Nodes live in the waiting objects: nothing is allocated, arming cannot fail.
 */
#ifndef BENCH_TIMER_WHEEL_H
#define BENCH_TIMER_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

enum {
    WHEEL_TICK_BITS = 20,
    WHEEL_SLOT_BITS = 6,
    WHEEL_SLOTS = 1 << WHEEL_SLOT_BITS,
    WHEEL_LEVELS = 8,
};

#define WHEEL_NEVER INT64_MAX

struct wheel_node {
    struct wheel_node *next, **link; /* link: what points here, NULL: idle */
    int64_t deadline;
    uint64_t filed; /* the tick at which the node's slot is looked at */
};

struct wheel {
    uint64_t tick;               /* everything up to it is in `due` */
    uint64_t bits[WHEEL_LEVELS]; /* may be set for a slot emptied since */
    struct wheel_node *slots[WHEEL_LEVELS][WHEEL_SLOTS];
    struct wheel_node *due;
};

void wheel_init(struct wheel *wheel, int64_t now);
void wheel_insert(struct wheel *wheel, struct wheel_node *node,
                  int64_t deadline);
void wheel_remove(struct wheel_node *node);

/* Arms an idle or a resting node, or moves an armed one. A node that moves to
 * a later time keeps its slot, and so costs no access to its neighbours; it is
 * filed anew when the slot's turn comes. */
void wheel_move(struct wheel *wheel, struct wheel_node *node, int64_t deadline);

/* Disarms a node that outlives it: it keeps its slot until that one's turn. */
void wheel_rest(struct wheel_node *node);

/* When to call wheel_expire next: never after the first deadline's tick, but
 * possibly before it, when slots of a higher level have to be sorted. */
int64_t wheel_next(struct wheel *wheel);

/* Takes out one node that is due, or returns NULL. */
struct wheel_node *wheel_expire(struct wheel *wheel, int64_t now);

#endif
