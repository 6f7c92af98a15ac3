/*
 * The context as the rest of src/core sees it, and which context and task are
 * current. It coordinates the scheduler, the ready queue, the timers and the
 * work count, and does none of their jobs.
 */
#ifndef COIL_CORE_CONTEXT_H
#define COIL_CORE_CONTEXT_H

#include "base/list.h"
#include "core/post.h"
#include "core/scope.h"
#include "core/timer.h"
#include "coroutine/coroutine.h"
#include "coroutine/stack.h"
#include "ring/scheduler.h"
#include <coil/context.h>
#include <coil/task.h>
#include <stdatomic.h>

enum {
    /* Classes of stack sizes: 16 KiB, 32 KiB, ... */
    COIL__STACK_CLASSES = 18,
    COIL__STACK_LEAST = 16 * 1024,
    /* Tasks that may run in one turn. Large enough that a full batch of
     * completions needs one enter, small enough that a task that yields in a
     * loop delays the others by microseconds. */
    COIL__TURN_BUDGET = 1024,
    /* Refused waits in a row after which a task is reported. */
    COIL__REFUSALS_REPORTED = 1000
};

struct coil_context {
    /* Everything up to the line below is the loop's thread's alone. */
    struct coil_task *running; /* NULL: the loop itself */
    struct coil_task *ready_first, *ready_last;
    unsigned budget;             /* tasks that may still run this turn */
    struct coil__coroutine loop; /* where a task switches if none is ready */
    struct coil__scheduler scheduler;
    coil_scope root;
    struct coil__timers timers;
    struct coil__list backlog; /* requests without an SQE, oldest first */
    struct coil__list cancels; /* requests whose cancel has no SQE yet */
    struct coil__list tasks;   /* alive, oldest first */
    size_t tasks_live;
    struct coil__stack_pool stacks[COIL__STACK_CLASSES];
    struct coil__timer drain; /* armed by a stop */
    coil_context_options options;
    uint64_t spawned, turns, posts_run, refused;
    uint64_t thread;      /* once owned; see context_thread */
    bool owned;           /* some run() has made it a thread's own */
    bool draining;        /* a stop was honoured */
    bool unshielded;      /* its drain limit has passed */
    size_t kept;          /* tasks created, not yet awaited or destroyed */
    coil_time turn_began; /* to some milliseconds */
    uint64_t fork;        /* of the process that made it */

    /* ------------------------------------------------ any thread */
    _Atomic bool in_run;
    _Atomic bool stop;   /* set by stop, taken by the loop */
    _Atomic bool asleep; /* the loop may be about to sleep in the kernel:
                                whoever changes stop, posts or held must wake
                                it. Stored before its last look at those
                                and `requested`, loaded after changing one */
    _Atomic size_t held; /* add_work minus drop_work */
    struct coil__posts posts;
    /* Scopes that a stop source wants cancelled, newest first. */
    _Atomic(struct coil__binding *) requested;
};

/* The context whose run() is on this thread's stack. Its tasks never move to
 * another thread, so the address of this variable may be kept over a wait. */
extern _Thread_local coil_context *coil__current
    __attribute__((tls_model("initial-exec")));

/* Counts the forks between the first process and this one. */
extern uint64_t coil__forks;

/* The context belongs to another process: nothing may enter its ring. */
static inline bool coil__context_is_foreign(const coil_context *context)
{
    return __builtin_expect(context->fork != coil__forks, 0);
}

/* May this thread use what belongs to the context's thread? */
bool coil__context_is_mine(const coil_context *context);

/* The loop, src/core/loop.c. */
int coil__loop_run(coil_context *context);

/* If stop was called: cancels the root scope. */
void coil__loop_honour_stop(coil_context *context);

/* In src/core/stop_source.c: cancels what stop sources have asked for. */
void coil__stop_sources_run(coil_context *context);

/* Wakes the loop if it sleeps, after a change it must see. Any thread. */
static inline void coil__context_nudge(coil_context *context)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&context->asleep, memory_order_relaxed))
        coil__scheduler_wake(&context->scheduler);
}

#endif
