/*
 * The life of a request, from its first submission queue entry to the last
 * completion.
 *
 *   BACKLOG    no entry could be had; on the context's backlog
 *   IN_FLIGHT  an entry was filled and its completion has not been taken
 *   TIMER      waits for its time only, the kernel knows nothing of it
 *   ENDED      result holds; nothing refers to it any more
 *
 *   BACKLOG -> IN_FLIGHT -> (again: BACKLOG or IN_FLIGHT) -> ENDED
 *   BACKLOG -> ENDED and TIMER -> ENDED when interrupted
 */
#ifndef COIL_CORE_REQUEST_H
#define COIL_CORE_REQUEST_H

#include "core/context.h"
#include "core/descriptor.h"
#include "core/task.h"
#include <coil/extend.h>

enum coil__request_phase {
    COIL__REQUEST_BACKLOG,
    COIL__REQUEST_IN_FLIGHT,
    COIL__REQUEST_TIMER,
    COIL__REQUEST_ENDED
};

/* How far its cancel has come. */
enum coil__request_cancel {
    COIL__CANCEL_NONE,
    COIL__CANCEL_WAITING, /* on the context's list, for want of an entry */
    COIL__CANCEL_QUEUED   /* an entry holds it */
};

/* The rest of coil__request_complete where something is out of the ordinary:
 * `again` is what `complete` said. */
void coil__request_settle(coil_context *context, coil_request *request,
                          int again);

/* Nothing refers to the request any more; its task is made ready. */
static inline void coil__request_end(coil_context *context,
                                     coil_request *request)
{
    const coil_operation_type *type = request->operation.type;
    coil_task *task = request->task;

    request->phase = COIL__REQUEST_ENDED;
    if (__builtin_expect(request->cancel == COIL__CANCEL_WAITING, 0))
        coil__list_remove(&request->queue);
    if (__builtin_expect(type->end != NULL, 0))
        type->end(request);
    if (request->entry)
        coil__descriptor_leave(context, request, type->flags);
    task->waiting = NULL;
    coil__task_make_ready(context, task);
}

/* The completion of a request's entry. */
static inline void coil__request_complete(coil_context *context,
                                          coil_request *request, int res,
                                          unsigned flags)
{
    const coil_operation_type *type = request->operation.type;
    int again = COIL_REQUEST_ENDED;

    if (type->complete)
        again = type->complete(request, res, flags);
    else
        request->result = res;
    if (__builtin_expect(!again && request->result >= 0, 1))
        coil__request_end(context, request);
    else
        coil__request_settle(context, request, again);
}

/* Has the request end with `reason` unless its own result comes first. */
void coil__request_interrupt(coil_context *context, coil_request *request,
                             int reason);

/* Its limit, or the time it waited for, has come. */
void coil__request_expire(coil_context *context, coil_request *request);

/* Gives entries to what could not have one. Returns true if all have. */
bool coil__request_submit_backlog(coil_context *context);

#endif
