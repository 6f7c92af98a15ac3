#include "core/sleep.h"
#include "core/request.h"
#include "core/task.h"

/*
 * A sleep is a request that only its timer ends: with 0, or with -ETIME where
 * a limit is nearer than the time asked for. extra[1] holds which.
 */

/* When started beside others it has a timer of its own, armed for the limit. */
static int sleep_start(coil_request *request)
{
    coil_operation *operation = &request->operation;
    coil_duration duration = (coil_duration)operation->extra[0];

    request->result = 0;
    if (duration <= 0)
        return COIL_REQUEST_ENDED;
    operation->extra[1] = (uint64_t)(int64_t)-ETIME;
    if (duration <= operation->limit) {
        operation->extra[1] = 0;
        operation->limit = duration;
    }
    request->phase = COIL__REQUEST_TIMER;
    return COIL_REQUEST_PARKED;
}

const coil_operation_type coil_sleep_type = {
    .size = sizeof(coil_operation_type),
    .name = "sleep",
    .flags = COIL_OPERATION_PARKS,
    .start = sleep_start,
};

static void sleep_begin(coil_request *request, coil_task *task, int result)
{
    coil_request_init(request, &coil_sleep_type);
    request->operation.extra[1] = (uint64_t)(int64_t)result;
    request->task = task;
    request->entry = NULL;
    request->reason = 0;
    request->cancel = COIL__CANCEL_NONE;
    request->phase = COIL__REQUEST_TIMER;
    task->waiting = request;
    task->refusals = 0;
}

static int sleep_wait(const coil_request *request, coil_task *task)
{
    coil__task_suspend(task->context, task);
    coil__task_drop_limit(task);
    return (int)request->result;
}

int coil__sleep_for(coil_duration duration, coil_duration limit)
{
    coil_task *task = coil_task_current();
    int result = duration <= limit || duration <= 0 ? 0 : -ETIME;
    coil_request request;

    if (!task)
        return -EPERM;
    if (task->scope->cancelled)
        return coil__task_refuse(task->context, task);
    if (duration <= 0 || limit <= 0) {
        coil__task_pass(task->context, task);
        return result;
    }
    sleep_begin(&request, task, result);
    coil__task_set_limit(task->context, task,
                         duration < limit ? duration : limit);
    return sleep_wait(&request, task);
}

int coil_sleep(coil_duration duration)
{
    return coil__sleep_for(duration, COIL_FOREVER);
}

int coil_sleep_until(coil_time time)
{
    coil_task *task = coil_task_current();
    coil_request request;

    if (!task)
        return -EPERM;
    if (task->scope->cancelled)
        return coil__task_refuse(task->context, task);
    sleep_begin(&request, task, 0);
    coil__task_set_deadline(task->context, task, time);
    return sleep_wait(&request, task);
}
