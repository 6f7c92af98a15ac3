/**
 * @file
 * Events: tasks of one context wait until somebody says so.
 *
 * A zeroed event is valid and not set. It must stay where it is while tasks
 * wait. Tasks of other contexts get -EXDEV while some do; to reach another
 * thread use coil_context_post.
 */
#ifndef COIL_EVENT_H
#define COIL_EVENT_H

#include <coil/extend.h>

COIL_BEGIN_DECLS

/** An event; all members belong to the library. */
typedef struct coil_event {
    /** @cond internal */
    bool set;
    struct coil__list waiters; /* oldest first; zeroed: none */
    /** @endcond */
} coil_event;

/** Set it: every waiter goes on, and each later wait returns at once, until
 * coil_event_clear. Waits: no. The context's thread. */
COIL_API void coil_event_set(coil_event *event);

/** Let later waits wait. Waits: no. The context's thread. */
COIL_API void coil_event_clear(coil_event *event);

/** True between set and clear. Waits: no. */
COIL_API bool coil_event_is_set(const coil_event *event);

/** The operation of coil_event_wait. */
COIL_API extern const coil_operation_type coil_event_wait_type;

/** coil_event_wait as a value. */
static inline coil_operation coil_event_wait_op(coil_event *event)
{
    coil_operation operation = coil_operation_make(&coil_event_wait_type);

    operation.data = event;
    return operation;
}

/**
 * Wait until it is set; a waiter it was set for gets 0 even if it is cleared
 * before it runs.
 *
 * Returns 0, or -ECANCELED, -EXDEV, -EPERM outside a task. Waits: suspends the
 * task unless set; cancellation point.
 */
COIL_API int coil_event_wait(coil_event *event);

COIL_END_DECLS

#endif
