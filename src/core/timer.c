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
    coil__list_init(&timers->unstamped);
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

    if (coil__list_is_empty(&timers->unstamped))
        return;
    timers->now = coil__kernel_now();
    while (!coil__list_is_empty(&timers->unstamped)) {
        coil_task *task =
            COIL__CONTAINER(timers->unstamped.next, coil_task, unstamped);

        coil__list_remove(&task->unstamped);
        coil__task_set_deadline(
            task, coil__time_after(timers->now, task->unstamped_limit));
    }
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
