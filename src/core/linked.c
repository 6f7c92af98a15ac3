#include "base/kernel.h"
#include "core/request.h"

/*
 * A request with a timeout that the kernel keeps: two linked entries in one
 * submission. Both completions are taken before the request ends; the
 * operation's own decides, and the timeout's only tells why it was cut short.
 *
 * The timeout is an absolute time, so it stays right however late the entries
 * are submitted. If the kernel could not start it, or the operation must be
 * tried again, the task's own timer takes over.
 */
struct coil__linked {
    coil_request request; /* first: found through it */
    struct __kernel_timespec when;
    coil_time deadline;
    unsigned left;  /* completions to come */
    bool ended;     /* the operation's was taken */
    bool fired;     /* the timeout has cancelled the operation, or tried to */
    int res;        /* of the operation */
    unsigned flags; /* of its completion */
};

static struct coil__linked *linked_of(coil_request *request)
{
    return (struct coil__linked *)(void *)request;
}

bool coil__linked_prepare(coil_context *context, coil_request *request)
{
    struct coil__linked *linked = linked_of(request);
    struct io_uring_sqe *sqe, *timeout;

    if (!coil__scheduler_has_room(&context->scheduler, 2))
        return false;
    sqe = coil__scheduler_sqe(&context->scheduler);
    request->operation.type->prepare(request, sqe);
    sqe->flags |= IOSQE_IO_LINK;
    sqe->user_data = (uintptr_t)request | COIL__TAG_OPERATION;
    timeout = coil__scheduler_sqe(&context->scheduler);
    io_uring_prep_link_timeout(timeout, &linked->when, IORING_TIMEOUT_ABS);
    timeout->user_data = (uintptr_t)request | COIL__TAG_TIMEOUT;
    linked->left = 2;
    request->phase = COIL__REQUEST_LINKED;
    return true;
}

/* Both completions are in. Where no cancel of ours was the reason, the timeout
 * was: for -ECANCELED always, for -EINTR if it has fired. */
static void linked_end(coil_context *context, struct coil__linked *linked)
{
    coil_request *request = &linked->request;

    request->phase = COIL__REQUEST_IN_FLIGHT;
    if (!request->reason &&
        (linked->res == -ECANCELED || (linked->res == -EINTR && linked->fired)))
        request->reason = -ETIME;
    else if (linked->res == -EINTR)
        coil__task_set_deadline(context, request->task, linked->deadline);
    coil__request_complete(context, request, linked->res, linked->flags);
}

static void linked_timeout_completed(coil_context *context,
                                     struct coil__linked *linked, int res)
{
    linked->fired = res == -ETIME || res == -EALREADY;
    if (!linked->ended && !linked->fired)
        coil__task_set_deadline(context, linked->request.task,
                                linked->deadline);
}

void coil__linked_complete(coil_context *context, coil_request *request,
                           unsigned tag, int res, unsigned flags)
{
    struct coil__linked *linked = linked_of(request);

    if (tag == COIL__TAG_TIMEOUT) {
        linked_timeout_completed(context, linked, res);
    } else {
        linked->ended = true;
        linked->res = res;
        linked->flags = flags;
    }
    if (--linked->left == 0)
        linked_end(context, linked);
}

static ssize_t linked_run(struct coil__linked *linked, coil_task *task)
{
    coil_context *context = task->context;
    coil_request *request = &linked->request;
    ssize_t result;

    if (task->scope->cancelled)
        return coil__task_refuse(context, task);
    request->task = task;
    task->waiting = request;
    task->refusals = 0;
    if (coil__request_launch(context, request, true)) {
        result = coil__request_wait(context, request, task);
        coil__task_drop_limit(task);
        return result;
    }
    task->waiting = NULL;
    return request->result;
}

ssize_t coil_timeout_linked_operation(const coil_operation *operation,
                                      coil_duration limit)
{
    coil_task *task = coil_task_current();
    struct coil__linked linked = {.request.operation = *operation};

    if (!(operation->type->flags & COIL_OPERATION_SINGLE_SHOT))
        return -EINVAL;
    if (operation->limit < limit)
        limit = operation->limit;
    linked.request.operation.limit = limit;
    /* A try asks the kernel once and needs no timeout. */
    if (limit <= 0 || limit == COIL_FOREVER)
        return coil_await_operation(&linked.request.operation);
    if (!task)
        return -EPERM;
    linked.request.operation.limit = COIL_FOREVER;
    linked.deadline = coil__time_after(coil__kernel_now(), limit);
    linked.when.tv_sec = linked.deadline / 1000000000;
    linked.when.tv_nsec = linked.deadline % 1000000000;
    return linked_run(&linked, task);
}
