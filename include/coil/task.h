/**
 * @file
 * Tasks: coroutines with a stack of their own.
 *
 * A task runs until it waits; then the next ready task runs. Nothing preempts
 * it. It lives until its function returns: nobody can end it from outside,
 * only cancel what it waits for.
 *
 * The default stack of 64 KiB fits printf("%f"); getaddrinfo and other large
 * users of stack want 256 KiB or more (coil_task_options). Below each stack
 * lies a page that faults. Code with large arrays or alloca should be compiled
 * with -fstack-clash-protection so that it cannot step over that page.
 *
 * The floating-point control words belong to the thread, not to the task.
 */
#ifndef COIL_TASK_H
#define COIL_TASK_H

#include <coil/context.h>
#include <coil/operation.h>

COIL_BEGIN_DECLS

/** A coroutine that a context runs. */
typedef struct coil_task coil_task;

/** How a task is made. Zero in any field means its default. */
typedef struct coil_task_options {
    size_t size;       /**< sizeof(coil_task_options) */
    const char *name;  /**< for messages; borrowed until the task ends */
    size_t stack_size; /**< usable bytes, rounded up to a power of two */
} coil_task_options;

/**
 * Start a detached task: it runs for the first time in the next turn of the
 * loop, in spawn order, and the context waits for its end.
 *
 *   context  NULL: the current one
 *   fn       its result, if negative, goes to on_task_failed
 *   arg      `size` bytes are copied into the task, aligned to 16, and fn gets
 *            the copy; with size 0 fn gets `arg` itself. On failure all that
 *            arg names still belongs to the caller
 *   size     bytes, at most a quarter of the stack
 *
 * Returns 0, or
 *   -EINVAL  no function, or no current context
 *   -E2BIG   the argument is too large
 *   -ENOMEM  no memory or address space for the stack
 *   -EPERM   not the context's thread
 *
 * A task that was spawned always runs, also in a stopped context: it sees
 * -ECANCELED at its first wait and releases what its argument owns.
 *
 * Waits: no. The context's thread; before the first run, any one thread.
 */
COIL_API int coil_spawn(coil_context *context, coil_task_fn *fn,
                        const void *arg, size_t size);

/** coil_spawn with options, which are borrowed during the call; -EINVAL also
 * for an option out of range. */
COIL_API int coil_spawn_with(coil_context *context,
                             const coil_task_options *options, coil_task_fn *fn,
                             const void *arg, size_t size);

/**
 * Make a task without starting it. It then belongs to the caller, who awaits
 * it, at most once, or destroys it.
 *
 *   ret_task       returned owned: coil_task_await or coil_task_destroy
 *   fn, arg, size  as for coil_spawn; `arg` is copied now. If the task is
 *                  destroyed before it ran, all that arg names still belongs
 *                  to the caller
 *
 * Returns 0, or as coil_spawn, in the current context. Waits: no.
 */
COIL_API int coil_task_create(coil_task **ret_task, coil_task_fn *fn,
                              const void *arg, size_t size);

/** coil_task_create with options, which are borrowed during the call; NULL:
 * defaults. In `context`, NULL: the current one. */
COIL_API int coil_task_create_with(coil_task **ret_task, coil_context *context,
                                   const coil_task_options *options,
                                   coil_task_fn *fn, const void *arg,
                                   size_t size);

/**
 * Run a task that was created beside its creator, from the next turn on. It
 * has a scope of its own under the context's root; while someone awaits or
 * destroys it, cancelling that one's scope cancels it too.
 *
 * Returns 0, -EBUSY if it was started already, -EPERM on another thread.
 * Waits: no.
 */
COIL_API int coil_task_start(coil_task *task);

/**
 * Take a task's result and free it.
 *
 * One that was not started is switched to directly, and its end switches
 * directly back; it runs in the caller's scope.
 *
 *   task  taken: *task is NULL afterwards. Kept on the errors below
 *
 * Returns the result of its function, or
 *   -EINVAL   *task is NULL, or was spawned
 *   -EBUSY    another task awaits it
 *   -EDEADLK  it waits for the caller
 *   -EXDEV    it belongs to another context
 *   -EPERM    outside a task
 *
 * Waits: until it has ended; no cancellation point, but cancelling the caller
 * cancels it.
 */
COIL_API int coil_task_await(coil_task **task);

/** The operation of coil_task_await. */
COIL_API extern const coil_operation_type coil_task_await_type;

/** coil_task_await as a value. The task is taken when the operation starts. If
 * that is cancelled or limited the task is cancelled, and the operation
 * finishes when it has ended: with its result, where -ECANCELED becomes -ETIME
 * if the limit was the cause. */
static inline coil_operation coil_task_await_op(coil_task **task)
{
    coil_operation operation = coil_operation_make(&coil_task_await_type);

    operation.data = task;
    return operation;
}

/** True once its function has returned. Waits: no. */
COIL_API bool coil_task_done(const coil_task *task);

/**
 * Free a task without its result. If it runs it is cancelled and waited for;
 * where waiting is impossible (in a post) it frees itself at its end.
 *
 *   task  taken: *task is NULL afterwards; NULL is fine
 *
 * Waits: until it has ended; no cancellation point.
 */
COIL_API void coil_task_destroy(coil_task **task);

/**
 * Let every other ready task run first.
 *
 * Returns 0, -ECANCELED if cancelled (the others ran all the same), -EPERM
 * outside a task. Waits: passes once through the ready queue.
 */
COIL_API int coil_yield(void);

/** -ECANCELED if the task is cancelled, else 0, for loops that compute; -EPERM
 * outside a task. Waits: no. */
COIL_API int coil_check(void);

/**
 * Wait for a time to pass.
 *
 *   duration  nanoseconds; <= 0 passes once through the ready queue
 *
 * Returns 0 when the time has passed, never earlier, or -ECANCELED; -EPERM
 * outside a task. Waits: suspends the task; cancellation point.
 */
COIL_API int coil_sleep(coil_duration duration);

/** Wait until a point in time, otherwise like coil_sleep. */
COIL_API int coil_sleep_until(coil_time time);

/** The operation of coil_sleep; as a value, see coil/operation.h. */
COIL_API extern const coil_operation_type coil_sleep_type;

/** coil_sleep as a value. */
static inline coil_operation coil_sleep_op(coil_duration duration)
{
    coil_operation operation = coil_operation_make(&coil_sleep_type);

    operation.extra[0] = (uint64_t)duration;
    return operation;
}

/** The running task, borrowed; NULL outside a task. Any thread. */
COIL_API coil_task *coil_task_current(void);

/** The name a task was given, "task" if none; borrowed until it ends. */
COIL_API const char *coil_task_name(const coil_task *task);

COIL_END_DECLS

#endif
