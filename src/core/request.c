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

static void request_to_backlog(coil_context *context, coil_request *request,
                               bool pair)
{
    request->phase = COIL__REQUEST_BACKLOG;
    request->pair = pair;
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

/* `pair`: with a linked timeout. */
static inline bool request_prepare_either(coil_context *context,
                                          coil_request *request, bool pair)
{
    return pair ? coil__linked_prepare(context, request)
                : request_prepare(context, request);
}

static inline void request_submit(coil_context *context, coil_request *request,
                                  bool pair)
{
    if (__builtin_expect(!coil__list_is_empty(&context->backlog), 0) ||
        !request_prepare_either(context, request, pair))
        request_to_backlog(context, request, pair);
}

static bool request_queue_cancel(coil_context *context, coil_request *request)
{
    struct io_uring_sqe *sqe = coil__scheduler_sqe(&context->scheduler);
    uint64_t target = (uintptr_t)request;

    if (!sqe)
        return false;
    if (request->phase == COIL__REQUEST_LINKED)
        target |= COIL__TAG_OPERATION;
    io_uring_prep_cancel64(sqe, target, 0);
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

        if (!request_prepare_either(context, request, request->pair))
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

/* The interruption is the result, and the scope takes note of it; but where a
 * task waits for several requests the outcome of that wait counts. */
static void request_take_reason(coil_request *request)
{
    coil_scope *scope = request->task ? request->task->scope : request->scope;

    request->result = request->reason;
    if (request->reason == -ECANCELED && scope->cancelled &&
        (request->task || !request->wait))
        scope->refused = true;
}

void coil__request_settle(coil_context *context, coil_request *request,
                          int again)
{
    if (!again && request_was_interrupted((int)request->result)) {
        if (request->reason)
            request_take_reason(request);
        else if (request->result == -EINTR)
            again = COIL_REQUEST_AGAIN;
    } else if (again && request->reason) {
        request_take_reason(request);
        again = COIL_REQUEST_ENDED;
    }
    if (again)
        request_submit(context, request, false);
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

/* Its type has a say: what waits for a task cancels that and goes on. */
static bool request_unpark(coil_request *request)
{
    const coil_operation_type *type = request->operation.type;

    if (type->cancel)
        return type->cancel(request) == COIL_REQUEST_ENDED;
    coil__list_remove(&request->queue);
    return true;
}

static void request_interrupt_in_kernel(coil_context *context,
                                        coil_request *request)
{
    if (request->cancel != COIL__CANCEL_NONE ||
        request_queue_cancel(context, request))
        return;
    request->cancel = COIL__CANCEL_WAITING;
    coil__list_append(&context->cancels, &request->queue);
}

void coil__request_interrupt(coil_context *context, coil_request *request,
                             int reason)
{
    if (request->phase == COIL__REQUEST_ENDED)
        return;
    request->reason = request_stronger(request->reason, reason);
    switch (request->phase) {
    case COIL__REQUEST_BACKLOG:
        coil__list_remove(&request->queue);
        break;
    case COIL__REQUEST_TIMER:
        break;
    case COIL__REQUEST_PARKED:
        if (request_unpark(request))
            break;
        return;
    default:
        request_interrupt_in_kernel(context, request);
        return;
    }
    request_take_reason(request);
    coil__request_end(context, request);
}

void coil_request_finish(coil_request *request, ssize_t result)
{
    if (request->phase != COIL__REQUEST_PARKED)
        return;
    request->result = result;
    if (result == -ECANCELED && request->reason)
        request_take_reason(request);
    coil__request_end(coil__request_context(request), request);
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

ssize_t coil__request_wait(coil_context *context, coil_request *request,
                           coil_task *task)
{
    request_wait(context, request, task);
    return request_report(request, request->result);
}

static bool request_ended_at_once(coil_context *context, coil_request *request)
{
    const coil_operation_type *type = request->operation.type;

    request->phase = COIL__REQUEST_ENDED;
    if (type->end)
        type->end(request);
    if (request->entry)
        coil__descriptor_leave(context, request, type->flags);
    return false;
}

bool coil__request_launch(coil_context *context, coil_request *request,
                          bool pair)
{
    const coil_operation_type *type = request->operation.type;
    int result;

    request->reason = 0;
    request->cancel = COIL__CANCEL_NONE;
    request->entry = NULL;
    if (type->flags & COIL__OPERATION_HAS_HANDLE) {
        result = coil__descriptor_enter(context, request, type->flags);
        if (result < 0) {
            request->result = result;
            request->phase = COIL__REQUEST_ENDED;
            return false;
        }
    }
    if (!(type->flags & COIL_OPERATION_PARKS)) {
        request_submit(context, request, pair);
        return true;
    }
    request->phase = COIL__REQUEST_PARKED;
    if (type->start(request) != COIL_REQUEST_ENDED)
        return true;
    return request_ended_at_once(context, request);
}

/* The rarer half of coil_request_run: a wait that the kernel has no part in,
 * or that goes on in a cancelled scope. */
static ssize_t request_run_parked(coil_context *context, coil_request *request,
                                  coil_task *task)
{
    request->task = task;
    task->waiting = request;
    task->refusals = 0;
    if (!coil__request_launch(context, request, false)) {
        task->waiting = NULL;
        return request_report(request, request->result);
    }
    if (task->scope->cancelled)
        coil__request_interrupt(context, request, -ECANCELED);
    return coil__request_wait(context, request, task);
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
    if (__builtin_expect(task->scope->cancelled, 0) &&
        !(flags & COIL_OPERATION_ENDS))
        return request_report(request, coil__task_refuse(context, task));
    if (flags & COIL__OPERATION_HAS_HANDLE) {
        int result = coil__descriptor_enter(context, request, flags);

        if (__builtin_expect(result < 0, 0))
            return request_report(request, result);
    } else if (flags & COIL_OPERATION_PARKS) {
        return request_run_parked(context, request, task);
    } else {
        request->entry = NULL;
    }
    request_begin(request, task);
    request_submit(context, request, false);
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
