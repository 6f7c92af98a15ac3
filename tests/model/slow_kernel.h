/*
 * A kernel whose completions come a turn or more late, now and then, so that
 * cancels overtake them; and the random numbers of the model test.
 */
#ifndef TESTS_MODEL_SLOW_KERNEL_H
#define TESTS_MODEL_SLOW_KERNEL_H

#include "base/seam.h"
#include <liburing.h>
#include <stdbool.h>

enum { HELD_MOST = 4096 };

static unsigned draw_seed = 1;

static unsigned draw(unsigned below)
{
    /* xorshift: rand() would dominate the profile. */
    draw_seed ^= draw_seed << 13;
    draw_seed ^= draw_seed >> 17;
    draw_seed ^= draw_seed << 5;
    return draw_seed % below;
}

static bool chance(unsigned percent)
{
    return draw(100) < percent;
}

/* Completions that the loop is not shown yet. */
static struct {
    struct io_uring_cqe cqes[HELD_MOST];
    unsigned count;
} held;

/* Now and then one comes a turn or more later, so that cancels overtake it. */
static unsigned hold_some(struct io_uring_cqe *cqes, unsigned count,
                          unsigned capacity)
{
    struct io_uring_cqe before[64];
    unsigned taken = 0, kept = 0;

    while (held.count && taken < 64)
        before[taken++] = held.cqes[--held.count];
    for (unsigned i = 0; i < count; i++)
        if (cqes[i].user_data > 15 && held.count < HELD_MOST - 64 && chance(10))
            held.cqes[held.count++] = cqes[i];
        else
            cqes[kept++] = cqes[i];
    while (taken)
        if (kept < capacity && chance(50))
            cqes[kept++] = before[--taken];
        else
            held.cqes[held.count++] = before[--taken];
    coil__seam.withheld = held.count > 0;
    return kept;
}

#endif
