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
