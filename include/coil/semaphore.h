/**
 * @file
 * Semaphores: a number of units, taken and given back by tasks of one context.
 *
 * Units go to waiters first come, first served: a large demand at the head is
 * not overtaken by small ones. A semaphore must stay where it is while tasks
 * wait.
 */
#ifndef COIL_SEMAPHORE_H
#define COIL_SEMAPHORE_H

#include <coil/extend.h>

COIL_BEGIN_DECLS

/** A semaphore; all members belong to the library. Zeroed: no units. */
typedef struct coil_semaphore {
    /** @cond internal */
    size_t units;
    struct coil__list waiters; /* oldest first; zeroed: none */
    /** @endcond */
} coil_semaphore;

/** Make a semaphore with some units. Waits: no. Any thread. */
COIL_API void coil_semaphore_init(coil_semaphore *semaphore, size_t units);

/** Units nobody has. Waits: no. */
COIL_API size_t coil_semaphore_units(const coil_semaphore *semaphore);

/** Give units back, or add some. Waits: no. The context's thread. */
COIL_API void coil_semaphore_release(coil_semaphore *semaphore, size_t units);

/** The operation of coil_semaphore_acquire. */
COIL_API extern const coil_operation_type coil_semaphore_acquire_type;

/** coil_semaphore_acquire as a value. */
static inline coil_operation
coil_semaphore_acquire_op(coil_semaphore *semaphore, size_t units)
{
    coil_operation operation =
        coil_operation_make(&coil_semaphore_acquire_type);

    operation.data = semaphore;
    operation.size = units;
    return operation;
}

/**
 * Take units, all at once, in turn.
 *
 * Returns 0 and they are taken, or -ECANCELED, -EXDEV if tasks of another
 * context wait, -EPERM outside a task, and none is. With a limit <= 0 it takes
 * them only if that needs no waiting.
 *
 * Waits: suspends the task unless they are there; cancellation point.
 */
COIL_API int coil_semaphore_acquire(coil_semaphore *semaphore, size_t units);

COIL_END_DECLS

#endif
