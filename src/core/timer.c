#include "core/timer.h"
#include "base/kernel.h"
#include "core/context.h"
#include "core/task.h"

coil_time coil_now(void)
{
    return coil__kernel_now();
}

void coil__timers_init(struct coil__timers *timers)
{
    timers->now = coil__kernel_now();
    coil__timer_queue_init(&timers->queue, timers->now);
    timers->armed = 0;
    timers->first_unstamped = NULL;
    timers->last_unstamped = &timers->first_unstamped;
}

void coil__timer_arm(struct coil__timers *timers, struct coil__timer *timer,
                     coil_time when)
{
    coil__timer_cancel(timers, timer);
    coil__timer_queue_insert(&timers->queue, timer, when);
    timer->armed = true;
    timers->armed++;
}

void coil__timer_cancel(struct coil__timers *timers, struct coil__timer *timer)
{
    if (!timer->armed)
        return;
    coil__timer_queue_remove(&timers->queue, timer);
    timer->armed = false;
    timers->armed--;
}

void coil__timers_stamp(struct coil_context *context)
{
    struct coil__timers *timers = &context->timers;
    coil_task *task = timers->first_unstamped;

    if (!task)
        return;
    timers->now = coil__kernel_now();
    for (; task; task = task->next_unstamped) {
        if (task->unstamped_limit >= 0)
            coil__task_set_deadline(
                context, task,
                coil__time_after(timers->now, task->unstamped_limit));
        if (__builtin_expect(task->unstamped & COIL__UNSTAMPED_INSIDE, 0)) {
            coil__scope_stamp(context, task, timers->now);
            coil__task_stamp_started(context, task, timers->now);
        }
        task->unstamped = 0;
        task->unstamped_limit = -1;
    }
    timers->first_unstamped = NULL;
    timers->last_unstamped = &timers->first_unstamped;
}

void coil__timers_forget(struct coil__timers *timers, coil_task *task)
{
    coil_task **link = &timers->first_unstamped;

    while (*link != task)
        link = &(*link)->next_unstamped;
    *link = task->next_unstamped;
    if (!*link)
        timers->last_unstamped = link;
    task->unstamped = 0;
}

coil_duration coil__timers_until_next(struct coil__timers *timers)
{
    coil_time next, now;

    if (!timers->armed)
        return COIL_FOREVER;
    next = coil__timer_queue_next(&timers->queue);
    /* Not the last reading: the tasks of this turn may have computed long. */
    now = coil__kernel_now();
    return next <= now ? 0 : next - now;
}

void coil__timers_expire(struct coil_context *context)
{
    struct coil__timers *timers = &context->timers;
    struct coil__timer *timer;

    if (!timers->armed)
        return;
    timers->now = coil__kernel_now();
    while ((timer = coil__timer_queue_take(&timers->queue, timers->now))) {
        timer->armed = false;
        timers->armed--;
        timer->expire(context, timer);
    }
}
