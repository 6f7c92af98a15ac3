/*
 * Functions that other threads hand to the loop: a stack to which anyone
 * pushes and which only the loop takes, whole.
 */
#ifndef COIL_CORE_POST_H
#define COIL_CORE_POST_H

#include <coil/context.h>
#include <stdatomic.h>
#include <stdbool.h>

struct coil__post;

struct coil__posts {
    _Atomic(struct coil__post *) newest;
};

static inline bool coil__posts_are_empty(const struct coil__posts *posts)
{
    return atomic_load_explicit(&posts->newest, memory_order_relaxed) == NULL;
}

/* Runs what was posted before the call, oldest first. */
void coil__posts_run(coil_context *context);

#endif
