#include "core/request.h"
#include "core/sleep.h"

/*
 * Three rules keep a request's memory and result safe.
 *
 * It ends only when its own completion was taken: a limit or a cancel queues a
 * cancel entry and goes on waiting. The entries of a ring are carried out in
 * order, so a cancel finds its target or nothing; the address cannot belong to
 * a later request yet, since that one's entry comes after. What the cancel
 * itself returns does not matter.
 *
 * Its own completion is the truth. The reason of an interruption replaces only
 * what the interruption caused: -ECANCELED and -EINTR.
 *
 * A full submission queue is no error: it is submitted, and what the kernel
 * does not take then waits on the backlog, in order.
 */

static void request_to_backlog(coil_context *context, coil_request *request)
{
    request->phase = COIL__REQUEST_BACKLOG;
    coil__list_append(&context->backlog, &request->queue);
}

/* Fills an entry, if one can be had. */
static inline bool request_prepare(coil_context *context, coil_request *request)
{
    struct io_uring_sqe *sqe = coil__scheduler_sqe(&context->scheduler);

    if (__builtin_expect(!sqe, 0))
        return false;
    request->operation.type->prepare(request, sqe);
    sqe->user_data = (uintptr_t)request;
    request->phase = COIL__REQUEST_IN_FLIGHT;
    return true;
}

static inline void request_submit(coil_context *context, coil_request *request)
{
    if (__builtin_expect(!coil__list_is_empty(&context->backlog), 0) ||
        !request_prepare(context, request))
        request_to_backlog(context, request);
}

static bool request_queue_cancel(coil_context *context, coil_request *request)
{
    struct io_uring_sqe *sqe = coil__scheduler_sqe(&context->scheduler);

    if (!sqe)
        return false;
    io_uring_prep_cancel64(sqe, (uintptr_t)request, 0);
    sqe->user_data = COIL__DATA_CANCEL;
    request->cancel = COIL__CANCEL_QUEUED;
    return true;
}

bool coil__request_submit_backlog(coil_context *context)
{
    while (!coil__list_is_empty(&context->cancels)) {
        coil_request *request =
            COIL__CONTAINER(context->cancels.next, coil_request, queue);

        if (!request_queue_cancel(context, request))
            return false;
        coil__list_remove(&request->queue);
    }
    while (!coil__list_is_empty(&context->backlog)) {
        coil_request *request =
            COIL__CONTAINER(context->backlog.next, coil_request, queue);

        if (!request_prepare(context, request))
            return false;
        coil__list_remove(&request->queue);
    }
    return true;
}

/* -------------------------------------------------------- its completion */

/* True if the kernel gave up for a reason that was ours or a passing one. */
static bool request_was_interrupted(int result)
{
    return result == -ECANCELED || result == -EINTR;
}

void coil__request_settle(coil_context *context, coil_request *request,
                          int again)
{
    if (!again && request_was_interrupted((int)request->result)) {
        if (request->reason)
            request->result = request->reason;
        else if (request->result == -EINTR)
            again = COIL_REQUEST_AGAIN;
    } else if (again && request->reason) {
        request->result = request->reason;
        again = COIL_REQUEST_ENDED;
    }
    if (again)
        request_submit(context, request);
    else
        coil__request_end(context, request);
}

/* ---------------------------------------------------------- interruption */

/* An outer cancel is told rather than the own limit; a closed object rather
 * than either. */
static int request_stronger(int present, int reason)
{
    if (present == -EBADF || reason == -EBADF)
        return -EBADF;
    if (present == -ECANCELED || reason == -ECANCELED)
        return -ECANCELED;
    return reason;
}

void coil__request_interrupt(coil_context *context, coil_request *request,
                             int reason)
{
    if (request->phase == COIL__REQUEST_ENDED)
        return;
    request->reason = request_stronger(request->reason, reason);
    if (request->phase != COIL__REQUEST_IN_FLIGHT) {
        if (request->phase == COIL__REQUEST_BACKLOG)
            coil__list_remove(&request->queue);
        request->result = request->reason;
        coil__request_end(context, request);
        return;
    }
    if (request->cancel != COIL__CANCEL_NONE)
        return;
    if (request_queue_cancel(context, request))
        return;
    request->cancel = COIL__CANCEL_WAITING;
    coil__list_append(&context->cancels, &request->queue);
}

void coil__request_expire(coil_context *context, coil_request *request)
{
    if (request->phase == COIL__REQUEST_TIMER) {
        request->result = (ssize_t)request->operation.extra[1];
        coil__request_end(context, request);
    } else {
        coil__request_interrupt(context, request, -ETIME);
    }
}

/* ------------------------------------------------------------- the wait */

static inline ssize_t request_report(const coil_request *request,
                                     ssize_t result)
{
    if (request->operation.ret_done)
        *request->operation.ret_done = request->transferred;
    return result;
}

/* What the task and the request tell each other while it is suspended. */
static inline void request_begin(coil_request *request, coil_task *task)
{
    request->task = task;
    request->reason = 0;
    request->cancel = COIL__CANCEL_NONE;
    task->waiting = request;
    task->refusals = 0;
}

/* Suspends with the operation's limit, if it has one. */
static inline void request_wait(coil_context *context, coil_request *request,
                                coil_task *task)
{
    coil_duration limit = request->operation.limit;

    if (limit == COIL_FOREVER) {
        coil__task_suspend(context, task);
        return;
    }
    if (limit > 0)
        coil__task_set_limit(context, task, limit);
    else
        coil__request_interrupt(context, request, -ETIME);
    coil__task_suspend(context, task);
    coil__task_drop_limit(task);
}

ssize_t coil_request_run(coil_request *request)
{
    coil_context *context = coil__current;
    unsigned flags = request->operation.type->flags;
    coil_task *task;

    request->transferred = 0;
    if (__builtin_expect(!context || !context->running, 0))
        return request_report(request, -EPERM);
    task = context->running;
    if (__builtin_expect(task->scope->cancelled, 0))
        return request_report(request, coil__task_refuse(context, task));
    if (flags & COIL__OPERATION_HAS_HANDLE) {
        int result = coil__descriptor_enter(context, request, flags);

        if (__builtin_expect(result < 0, 0))
            return request_report(request, result);
    } else {
        request->entry = NULL;
    }
    request_begin(request, task);
    request_submit(context, request);
    request_wait(context, request, task);
    return request_report(request, request->result);
}

ssize_t coil_await_operation(const coil_operation *operation)
{
    coil_request request;

    if (operation->type == &coil_sleep_type)
        return coil__sleep_for((coil_duration)operation->extra[0],
                               operation->limit);
    request.operation = *operation;
    return coil_request_run(&request);
}
