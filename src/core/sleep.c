#include "core/sleep.h"
#include "core/request.h"
#include "core/task.h"

/* No prepare: the kernel has no part in it. */
const coil_operation_type coil_sleep_type = {
    .size = sizeof(coil_operation_type), .name = "sleep"};

/* extra[1] is what coil__request_expire gives as the result. */
static void sleep_begin(coil_request *request, coil_task *task, int result)
{
    *request = (coil_request){.operation = {.type = &coil_sleep_type,
                                            .limit = COIL_FOREVER,
                                            .extra = {0, (uint64_t)result}},
                              .task = task,
                              .phase = COIL__REQUEST_TIMER};
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
