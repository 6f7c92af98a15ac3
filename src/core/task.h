/*
 * The task object, and the ready queue.
 *
 * A task is ready (on the queue), running, or waiting for exactly one thing:
 *
 *   ready -> running       taken from the queue, oldest first
 *   running -> waiting     coil__task_suspend
 *   waiting -> ready       coil__task_make_ready, once per wait, by what was
 *                          waited for
 *   running -> (gone)      its function returned
 *
 * A task may be made ready just before it suspends; that is how it passes
 * once through the queue.
 */
#ifndef COIL_CORE_TASK_H
#define COIL_CORE_TASK_H

#include "core/context.h"
#include <assert.h>

struct coil_task {
    struct coil__stack stack; /* must be first: see coroutine/stack.h */

    /* What every wait touches: one cache line. */
    _Alignas(64) struct coil__coroutine coroutine;
    struct coil_task *next_ready;
    struct coil__scope *scope; /* the innermost one */
    coil_request *waiting;     /* the request it is suspended on, if any */
    unsigned refusals;         /* refused waits in a row */
    bool ready;                /* on the ready queue */
    bool unstamped;            /* on the list of limits without a deadline */
    unsigned char stack_class;

    /* The deadline of the present wait. The timer stays armed when the wait
     * ends early and is moved only for a nearer deadline: in a loop of limited
     * waits it is touched once per limit, not once per wait. */
    coil_time deadline;
    coil_duration unstamped_limit; /* < 0: that wait has ended */
    struct coil_task *next_unstamped;
    struct coil__timer timer;

    coil_context *context;
    struct coil__list siblings; /* on the context's list of live tasks */
    coil_task_fn *fn;
    void *arg;
    const char *name;
};

static inline void coil__task_make_ready(coil_context *context, coil_task *task)
{
    assert(!task->ready);
    task->ready = true;
    task->next_ready = NULL;
    if (context->ready_first)
        context->ready_last->next_ready = task;
    else
        context->ready_first = task;
    context->ready_last = task;
}

static inline coil_task *coil__task_take_ready(coil_context *context)
{
    coil_task *task = context->ready_first;

    context->ready_first = task->next_ready;
    task->ready = false;
    context->running = task;
    return task;
}

/* Leaves the running task until it is made ready again: straight to the next
 * ready one, or to the loop when there is none or the turn is over. */
static inline void coil__task_suspend(coil_context *context, coil_task *task)
{
    struct coil__coroutine *next;

    if (context->ready_first && context->budget) {
        context->budget--;
        next = &coil__task_take_ready(context)->coroutine;
        if (next == &task->coroutine)
            return;
    } else {
        context->running = NULL;
        next = &context->loop;
    }
    coil__coroutine_switch(&task->coroutine, next);
}

/* The present wait ends at `deadline` at the latest. */
static inline void coil__task_set_deadline(coil_context *context,
                                           coil_task *task, coil_time deadline)
{
    task->deadline = deadline;
    if (deadline != COIL_FOREVER &&
        (!task->timer.armed || task->timer.node.key > deadline))
        coil__timer_arm(&context->timers, &task->timer, deadline);
}

/* ... or `limit` (> 0) after the next reading of the clock. */
static inline void coil__task_set_limit(coil_context *context, coil_task *task,
                                        coil_duration limit)
{
    task->unstamped_limit = limit;
    if (task->unstamped)
        return;
    task->unstamped = true;
    task->next_unstamped = NULL;
    *context->timers.last_unstamped = task;
    context->timers.last_unstamped = &task->next_unstamped;
}

/* The wait with the limit has ended. */
static inline void coil__task_drop_limit(coil_task *task)
{
    task->deadline = COIL_FOREVER;
    task->unstamped_limit = -1;
}

/* Passes the running task once through the ready queue. */
void coil__task_pass(coil_context *context, coil_task *task);

/* Refuses a wait of the running task in a cancelled scope: once through the
 * ready queue, then -ECANCELED. */
int coil__task_refuse(coil_context *context, coil_task *task);

/* Has every wait in the root scope end with -ECANCELED. */
void coil__task_cancel_all(coil_context *context);

/* Tells the message sink which tasks are alive. */
void coil__task_list_alive(const coil_context *context);

#endif
