/**
 * @file
 * The context: one ring, one thread, one event loop.
 *
 * Life cycle: create, spawn the first tasks, run until there is no work left,
 * destroy. stop() ends a run from anywhere: it cancels every wait, each task
 * ends by its own code, and then run() returns. A context may be run again.
 *
 * Work is what run() stays for: live tasks, accepted posts and what add_work
 * announced.
 *
 * From its first run a context belongs to that thread for good; before that,
 * one thread at a time may use it. Calls marked "any thread" are exceptions.
 */
#ifndef COIL_CONTEXT_H
#define COIL_CONTEXT_H

#include <coil/error.h>
#include <coil/export.h>
#include <coil/time.h>
#include <stdio.h>

COIL_BEGIN_DECLS

/** An event loop; see the top of this file. */
typedef struct coil_context coil_context;

/** What a task runs: takes its argument, returns a result of its own, by
 * convention >= 0 or a negative errno. */
typedef int coil_task_fn(void *arg);

/** How a context is made. Zero in any field means its default. */
typedef struct coil_context_options {
    size_t size; /**< sizeof(coil_context_options) */
    /** Submission queue entries, at least 4; default 1024. */
    unsigned sq_entries;
    /** Completion queue entries, at least 8; default 4096. Halved as often as
     * needed when the limit on locked memory forbids so many. */
    unsigned cq_entries;
    /** Usable bytes of a task's stack; default 64 KiB, least 16 KiB. */
    size_t stack_size;
    /** From stop on, how long tasks may take to end before on_drain_limit is
     * called; default 10 s. */
    coil_duration drain_limit;
    /** A detached task returned a negative result, other than -ECANCELED
     * after a stop. `name` is borrowed during the call. NULL: nobody. */
    void (*on_task_failed)(coil_context *context, const char *name,
                           coil_task_fn *fn, int result);
    /** The drain limit passed and tasks are still alive; the run goes on
     * waiting for them. NULL: nobody. */
    void (*on_drain_limit)(coil_context *context);
} coil_context_options;

/** Counters of a context since it was made. Only ever grows at its end. */
typedef struct coil_stats {
    uint64_t sqes;          /**< submission queue entries filled */
    uint64_t cqes;          /**< completions taken */
    uint64_t enters;        /**< calls of io_uring_enter */
    uint64_t in_flight;     /**< entries not completed at this moment, the
                                 library's own included */
    uint64_t tasks_spawned; /**< tasks ever made */
    uint64_t tasks_live;    /**< tasks that have not ended */
    uint64_t turns;         /**< turns of the loop */
    uint64_t posts;         /**< posted functions run */
    uint64_t timers_armed;  /**< timers in the queue at this moment */
    uint64_t refused_waits; /**< waits refused because of a cancel */
    uint64_t stacks;        /**< stacks mapped, used or not */
} coil_stats;

/**
 * Run one task and all it spawns on a context of its own.
 *
 *   fn, arg, size  as for coil_spawn
 *
 * SIGINT and SIGTERM stop it (unless they were ignored before), and so does a
 * negative result of `fn`.
 *
 * Returns fn's result, 0 if that is -ECANCELED after a stop, or why the
 * context could not be made or run.
 *
 * Waits: blocks the calling thread. Not inside a task: -EPERM.
 */
COIL_API int coil_run(coil_task_fn *fn, const void *arg, size_t size);

/**
 * Make a context.
 *
 *   ret_context  returned owned: release with coil_context_destroy
 *   options      borrowed; NULL: all defaults
 *   ret_error    on failure, the reason in words; may be NULL
 *
 * Returns 0, or
 *   -EINVAL  an option is out of range, or the kernel is older than 6.1
 *   -ENOSYS  the kernel has no io_uring
 *   -EPERM   a sysctl or a seccomp profile forbids io_uring
 *   -ENOMEM  no memory, or the limit on locked memory is too low
 *   other    what io_uring_setup(2) or eventfd(2) says
 *
 * Waits: no. Any thread.
 */
COIL_API int coil_context_create(coil_context **ret_context,
                                 const coil_context_options *options,
                                 coil_error *ret_error);

/**
 * Run tasks until there is no work left, or until stop() and the last task
 * has ended.
 *
 * Returns 0, or
 *   -EPERM  called on another thread than the first run, in a forked child,
 *           or inside a task or post of any context
 *   -EBUSY  this context is running already
 *   other   the ring failed with this errno; tasks are left as they are
 *
 * Waits: blocks the calling thread, which becomes the context's for good.
 */
COIL_API int coil_context_run(coil_context *context);

/**
 * Cancel every wait of every task and let run() return when the last task has
 * ended. Latched: if nothing runs, the next run honours it. The run() that
 * honoured it clears it on return.
 *
 * Waits: no. Any thread, any signal handler, any number of times.
 */
COIL_API void coil_context_stop(coil_context *context);

/**
 * Have fn(arg) called by the loop, outside any task. It may spawn; waiting
 * calls inside it are -EPERM.
 *
 *   arg  passed on; if this returns 0, fn runs exactly once, at the latest in
 *        coil_context_destroy
 *
 * Returns 0, or -ENOMEM and fn will not run; -EINVAL if fn is NULL.
 *
 * Waits: no. Any thread; allocates, so not in signal handlers.
 */
COIL_API int coil_context_post(coil_context *context, void (*fn)(void *),
                               void *arg);

/**
 * Keep run() from returning for lack of work until coil_context_drop_work is
 * called as often. A stop overrides it. Waits: no. Any thread.
 */
COIL_API void coil_context_add_work(coil_context *context);

/** Undo one coil_context_add_work. Waits: no. Any thread. */
COIL_API void coil_context_drop_work(coil_context *context);

/**
 * Cancel and drain what is left, then free the context.
 *
 *   context  taken; NULL is fine. Kept if this fails
 *
 * Returns 0, or
 *   -EPERM  there are tasks to drain and this is not the context's thread, or
 *           this is inside a task or post
 *   -EBUSY  it is running
 *   other   the ring failed with tasks alive: their memory is given up
 *
 * In a forked child it frees without entering the ring.
 *
 * Waits: blocks the thread until every task has ended by its own code. No
 * other thread may still call stop, post or add_work.
 */
COIL_API int coil_context_destroy(coil_context *context);

/** The context that runs on this thread, borrowed; NULL if none does. Any
 * thread. */
COIL_API coil_context *coil_context_current(void);

/**
 * Copy the counters.
 *
 *   ret_stats  the first `size` bytes are written, and no more
 *   size       sizeof(coil_stats) as the caller knows it
 *
 * Waits: no. The context's thread only.
 */
COIL_API void coil_context_stats(const coil_context *context,
                                 coil_stats *ret_stats, size_t size);

/**
 * Print every live task, a line each: its name, state, what it waits for and
 * since when, and its limits.
 *
 *   stream  borrowed during the call
 *
 * Waits: no. The context's thread, or any while it does not run.
 */
COIL_API void coil_context_dump(const coil_context *context, FILE *stream);

/** The ring's descriptor, borrowed, to look at from outside. Any thread. */
COIL_API int coil_context_ring_fd(const coil_context *context);

COIL_END_DECLS

#endif
