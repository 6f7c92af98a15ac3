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
    *timers = (struct coil__timers){0};
    timers->last_unstamped = &timers->first_unstamped;
}

void coil__timer_arm(struct coil__timers *timers, struct coil__timer *timer,
                     coil_time when)
{
    coil__timer_cancel(timers, timer);
    coil__heap_insert(&timers->heap, &timer->node, when);
    timer->armed = true;
    timers->armed++;
}

void coil__timer_cancel(struct coil__timers *timers, struct coil__timer *timer)
{
    if (!timer->armed)
        return;
    coil__heap_remove(&timers->heap, &timer->node);
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

coil_duration coil__timers_until_next(const struct coil__timers *timers)
{
    const struct coil__heap_node *first = coil__heap_first(&timers->heap);
    coil_time now;

    if (!first)
        return COIL_FOREVER;
    /* Not the last reading: the tasks of this turn may have computed long. */
    now = coil__kernel_now();
    return first->key <= now ? 0 : first->key - now;
}

void coil__timers_expire(struct coil_context *context)
{
    struct coil__timers *timers = &context->timers;
    struct coil__heap_node *first = coil__heap_first(&timers->heap);

    if (!first)
        return;
    timers->now = coil__kernel_now();
    while (first && first->key <= timers->now) {
        struct coil__timer *timer =
            COIL__CONTAINER(first, struct coil__timer, node);

        coil__timer_cancel(timers, timer);
        timer->expire(context, timer);
        first = coil__heap_first(&timers->heap);
    }
}
