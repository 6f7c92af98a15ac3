/**
 * @file
 * Mutexes between tasks of one context: for what must not be interleaved over
 * a wait. (Without a wait in between no mutex is needed: tasks of a context
 * never run at the same time.)
 *
 * First come, first served: unlocking hands the mutex to the oldest waiter. A
 * zeroed mutex is valid and unlocked. It must stay where it is while tasks
 * wait.
 */
#ifndef COIL_MUTEX_H
#define COIL_MUTEX_H

#include <coil/extend.h>

COIL_BEGIN_DECLS

struct coil_task;

/** A mutex; all members belong to the library. */
typedef struct coil_mutex {
    /** @cond internal */
    bool locked;
    struct coil__list waiters; /* oldest first; zeroed: none */
    /** @endcond */
} coil_mutex;

/** The operation of coil_mutex_lock. */
COIL_API extern const coil_operation_type coil_mutex_lock_type;

/** coil_mutex_lock as a value. */
static inline coil_operation coil_mutex_lock_op(coil_mutex *mutex)
{
    coil_operation operation = coil_operation_make(&coil_mutex_lock_type);

    operation.data = mutex;
    return operation;
}

/**
 * Lock it. Not recursive: a task that locks it twice waits for itself.
 *
 * Returns 0 and it is locked, or -ECANCELED, -EXDEV if tasks of another
 * context wait, -EPERM outside a task, and it is not.
 *
 * Waits: suspends the task unless it is free; cancellation point.
 */
COIL_API int coil_mutex_lock(coil_mutex *mutex);

/** Unlock; not necessarily by the task that locked it. Returns 0, or -EINVAL
 * if it is not locked. Waits: no. The context's thread. */
COIL_API int coil_mutex_unlock(coil_mutex *mutex);

COIL_END_DECLS

#endif
