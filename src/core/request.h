/*
 * The life of a request, from its first submission queue entry to the last
 * completion.
 *
 *   NEW        zeroed: was never started
 *   BACKLOG    no entry could be had; on the context's backlog
 *   IN_FLIGHT  an entry was filled and its completion has not been taken
 *   LINKED     the same, with a linked timeout: two completions are to come
 *   TIMER      waits for its time only, the kernel knows nothing of it
 *   PARKED     waits for coil_request_finish, and so does the kernel
 *   ENDED      result holds; nothing refers to it any more
 *
 *   BACKLOG -> IN_FLIGHT or LINKED -> (again: BACKLOG, IN_FLIGHT) -> ENDED
 *   BACKLOG, TIMER -> ENDED when interrupted
 *   PARKED -> ENDED when finished, or when interrupted if its type agrees
 *
 * Most requests lie in the frame of the call that waits for them (`task` is
 * set, and task->waiting points back). Others were started (`task` is NULL):
 * they are on their owner's list and may have a coil__wait.
 */
#ifndef COIL_CORE_REQUEST_H
#define COIL_CORE_REQUEST_H

#include "core/context.h"
#include "core/descriptor.h"
#include "core/task.h"
#include <coil/extend.h>

enum coil__request_phase {
    COIL__REQUEST_NEW,
    COIL__REQUEST_BACKLOG,
    COIL__REQUEST_IN_FLIGHT,
    COIL__REQUEST_LINKED,
    COIL__REQUEST_TIMER,
    COIL__REQUEST_PARKED,
    COIL__REQUEST_ENDED
};

/* What the low bits of user_data say beside the address of the request. Zero
 * is an ordinary entry. */
enum {
    COIL__TAG_OPERATION = 1, /* the first of a linked pair */
    COIL__TAG_TIMEOUT = 2,   /* the second */
    COIL__TAG_MASK = 7
};

/* How far its cancel has come. */
enum coil__request_cancel {
    COIL__CANCEL_NONE,
    COIL__CANCEL_WAITING, /* on the context's list, for want of an entry */
    COIL__CANCEL_QUEUED   /* an entry holds it */
};

/* A task that waits for one or more started requests. */
struct coil__wait {
    coil_task *task;
    coil_request *requests;
    size_t count;
    size_t running;        /* that have not ended */
    coil_request *decider; /* the one because of which the rest is cancelled */
    bool any;              /* any end decides, else only a failure */
    bool cancelled;        /* the task was, before anything was decided */
    bool suspended;        /* there was something to wait for */
};

/* The context of a request that has not ended. */
static inline coil_context *coil__request_context(const coil_request *request)
{
    return (request->task ? request->task : request->owner)->context;
}

/* A started request has ended. In src/core/started.c. */
void coil__request_end_started(coil_context *context, coil_request *request);

/* One of the two completions of a linked pair. In src/core/linked.c. */
void coil__linked_complete(coil_context *context, coil_request *request,
                           unsigned tag, int res, unsigned flags);

/* Fills the two entries of a pair, if they can be had together. */
bool coil__linked_prepare(coil_context *context, coil_request *request);

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
    if (__builtin_expect(!task, 0)) {
        coil__request_end_started(context, request);
        return;
    }
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

/*
 * Begins a request whose `operation`, `task` and `transferred` are set: takes
 * its place on the handle and submits or parks it; `pair` submits it with a
 * linked timeout. Returns false if it has ended at once; then nobody was told.
 */
bool coil__request_launch(coil_context *context, coil_request *request,
                          bool pair);

/* Waits in the running task for a request in its frame that was begun. */
ssize_t coil__request_wait(coil_context *context, coil_request *request,
                           coil_task *task);

/* Gives entries to what could not have one. Returns true if all have. */
bool coil__request_submit_backlog(coil_context *context);

#endif
