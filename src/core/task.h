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

enum coil__task_kind {
    COIL__TASK_SPAWNED, /* detached; waits in the root scope */
    COIL__TASK_CHILD,   /* of a group */
    COIL__TASK_OWNED    /* somebody awaits or destroys it */
};

/* Of an owned task; the others have always started. */
enum coil__task_state {
    COIL__TASK_CREATED,
    COIL__TASK_STARTED,
    COIL__TASK_ENDED /* its stack is kept for the result */
};

/* What of a task has no deadline yet. Bits. */
enum {
    COIL__UNSTAMPED_LISTED = 1, /* it is on the list of such tasks */
    COIL__UNSTAMPED_INSIDE = 2  /* scopes or started requests, too */
};

struct coil__wait;

struct coil_task {
    struct coil__stack stack; /* must be first: see coroutine/stack.h */

    /* What every wait touches: one cache line. */
    _Alignas(64) struct coil__coroutine coroutine;
    struct coil_task *next_ready;
    coil_scope *scope;       /* the innermost one */
    coil_request *waiting;   /* the request it is suspended on, if any */
    unsigned refusals;       /* refused waits in a row */
    bool ready;              /* on the ready queue */
    unsigned char unstamped; /* COIL__UNSTAMPED bits */
    unsigned char stack_class;
    unsigned char kind;

    /* The deadline of the present wait. One timer serves that and the task's
     * scopes. It stays armed when the wait ends early and is moved only for a
     * nearer deadline: in a loop of limited waits it is touched once per
     * limit, not once per wait. */
    coil_time deadline;
    coil_duration unstamped_limit; /* < 0: that wait has ended */
    struct coil_task *next_unstamped;
    struct coil__timer timer;

    struct coil__wait *wait;   /* for started requests, instead of waiting */
    struct coil__list started; /* its requests that run, oldest first */
    coil_scope *reaping;       /* waits until none of this scope's run, */
    size_t reap_left;          /* and there are so many */
    coil_time since;           /* when it was suspended, roughly */
    coil_context *context;
    struct coil__list siblings; /* on the context's list of live tasks */
    coil_task_fn *fn;
    void *arg;
    const char *name;

    /* All tasks but spawned ones. */
    coil_scope own;
    unsigned char state;
    bool direct;              /* its end switches straight to the awaiter */
    bool abandoned;           /* nobody will take the result */
    coil_task *awaiter;       /* who waits for its end, */
    coil_request *request;    /* or what does */
    coil_task *awaiting;      /* the other direction */
    struct coil_group *group; /* whose child it is, */
    size_t index;             /* and which */
    int result;
    char *top; /* where its stack begins */
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

    task->since = context->turn_began;
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

/* The timer goes off at `deadline` at the latest. */
static inline void coil__task_arm(coil_context *context, coil_task *task,
                                  coil_time deadline)
{
    if (deadline != COIL_FOREVER &&
        (!task->timer.armed || task->timer.node.near.key > deadline))
        coil__timer_arm(&context->timers, &task->timer, deadline);
}

/* The present wait ends at `deadline` at the latest. */
static inline void coil__task_set_deadline(coil_context *context,
                                           coil_task *task, coil_time deadline)
{
    task->deadline = deadline;
    coil__task_arm(context, task, deadline);
}

/* Something of the task counts from the next reading of the clock. */
static inline void coil__task_want_stamp(coil_context *context, coil_task *task,
                                         unsigned char what)
{
    if (!task->unstamped) {
        task->next_unstamped = NULL;
        *context->timers.last_unstamped = task;
        context->timers.last_unstamped = &task->next_unstamped;
    }
    task->unstamped |= what | COIL__UNSTAMPED_LISTED;
}

/* The present wait ends `limit` (> 0) after that reading. */
static inline void coil__task_set_limit(coil_context *context, coil_task *task,
                                        coil_duration limit)
{
    task->unstamped_limit = limit;
    coil__task_want_stamp(context, task, 0);
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

/* The innermost scope was cancelled: ends what the task waits for. */
void coil__task_interrupt(coil_context *context, coil_task *task);

/* In src/core/started.c. Cancels the requests the task has started in the
 * scope; the second also notes in reap_left how many have not ended. */
void coil__task_interrupt_started(coil_context *context, coil_task *task,
                                  const coil_scope *scope);
void coil__task_cancel_started(coil_context *context, coil_task *task,
                               coil_scope *scope);
void coil__task_stamp_started(coil_context *context, coil_task *task,
                              coil_time now);
void coil__wait_cancel(coil_context *context, struct coil__wait *wait);

/* In src/core/group.c: a child has ended. */
void coil__group_child_ended(coil_context *context, const coil_task *child,
                             int result);

/* In src/core/await.c: an owned task has ended. Returns who runs next, or
 * NULL: whoever is ready. */
struct coil__coroutine *coil__task_hand_over(coil_context *context,
                                             coil_task *task, int result);

/* ------------------------------------------------------------- its making */

/* How a task is made. */
struct coil__task_plan {
    const char *name;
    size_t stack_size; /* 0: the context's */
    coil_task_fn *fn;
    const void *arg;
    size_t size;
};

/* A task with its argument, neither started nor counted. */
int coil__task_make(coil_context *context, const struct coil__task_plan *plan,
                    coil_task **ret_task);

/* Reads the options that the caller knows; -EINVAL. */
int coil__task_read_options(struct coil__task_plan *plan,
                            const coil_task_options *options);

/* Counts it and prepares its first switch; it is in `scope` from then on. */
void coil__task_begin(coil_context *context, coil_task *task,
                      coil_scope *scope);

/* Gives back a task that does not run. */
void coil__task_free(coil_context *context, coil_task *task);

/* Tells the handler of detached failures. */
void coil__task_report_failure(coil_context *context, const coil_task *task,
                               int result);

/* ---------------------------------------------------------------- to look */

/* One line about the task. In src/core/dump.c. */
void coil__task_describe(const coil_task *task, char *ret_text,
                         size_t capacity);

/* Tells the message sink which tasks are alive. In src/core/dump.c. */
void coil__task_list_alive(const coil_context *context);

#endif
