/**
 * @file
 * Operations and requests.
 *
 * Every call that waits exists twice: plain, and as `<call>_op`, the same
 * request described by a value. An operation is copied at will and the kernel
 * never sees it; what it points to is borrowed until the wait returns. Limits
 * and the other combinators take any operation.
 *
 *     n = coil_timeout(coil_tcp_read_some_op(&client, data, size), COIL_S(5));
 *
 * A request is one execution of an operation. The kernel may write to what it
 * names until its completion was taken, so it stays where it is from start to
 * end, and nothing returns before that: not for a limit, not for a cancel. Its
 * own completion always wins, however late the task resumes.
 */
#ifndef COIL_OPERATION_H
#define COIL_OPERATION_H

#include <coil/export.h>
#include <coil/internal.h>
#include <coil/time.h>

COIL_BEGIN_DECLS

/** What an operation does, see coil/extend.h. */
typedef struct coil_operation_type coil_operation_type;

/** A descriptor and the generation it had when it was opened. Zeroed: closed.
 * Copies name the same object; a copy of a closed one is stale for ever. */
typedef struct coil_handle {
    int descriptor;      /**< meaningless unless the generation is current */
    uint32_t generation; /**< 0 is never given out */
} coil_handle;

/** A description of one asynchronous request; made by the `_op` calls. */
typedef struct coil_operation {
    const coil_operation_type *type; /**< what to do */
    coil_duration limit;             /**< COIL_FOREVER: none */
    coil_handle handle;              /**< on what, for those that need it */
    void *data;                      /**< borrowed until the wait returns */
    size_t size;                     /**< bytes at data */
    size_t *ret_done;                /**< bytes moved, exactly; or NULL */
    uint64_t extra[2];               /**< the type's own */
} coil_operation;

/** One execution of an operation. Pinned from start until it has ended; a
 * zeroed one was never started. All members but the first three belong to the
 * library. */
typedef struct coil_request {
    coil_operation operation; /**< what is being done */
    ssize_t result;           /**< once it has ended */
    size_t transferred;       /**< bytes moved so far */
    /** @cond internal */
    struct coil_task *task; /* waits for it in its own frame; NULL: started */
    struct coil__descriptor *entry;
    int reason; /* why it is being ended, or 0 */
    unsigned char phase;
    unsigned char cancel;
    unsigned char pair;        /* completions of a linked pair still to come */
    bool unstamped;            /* its limit has no deadline yet */
    struct coil__list queue;   /* for an entry, or of what it is parked on */
    struct coil__list sharers; /* others on the same descriptor */
    /* Of started requests only. */
    struct coil_task *owner;   /* who started it */
    struct coil_scope *scope;  /* the owner's innermost one then */
    struct coil__wait *wait;   /* who waits for it, if anyone */
    struct coil__list started; /* the owner's others, oldest first */
    struct coil__timer timer;
    /** @endcond */
} coil_request;

/** An operation of `type` with every other field at its default. */
static inline coil_operation
coil_operation_make(const coil_operation_type *type)
{
    coil_operation operation;

    operation.type = type;
    operation.limit = COIL_FOREVER;
    operation.handle.descriptor = -1;
    operation.handle.generation = 0;
    operation.data = NULL;
    operation.size = 0;
    operation.ret_done = NULL;
    operation.extra[0] = 0;
    operation.extra[1] = 0;
    return operation;
}

/** coil_await over a pointer, which is borrowed during the call. */
COIL_API ssize_t coil_await_operation(const coil_operation *operation);

/**
 * Carry out an operation and wait for its end.
 *
 * Returns what the plain call would, or -ETIME if the operation's limit passed
 * first. A limit <= 0 is a try: one pass through the kernel.
 *
 * Waits: suspends the task; cancellation point.
 */
static inline ssize_t coil_await(coil_operation operation)
{
    return coil_await_operation(&operation);
}

/** The same operation with a time limit over all its steps; of two limits the
 * smaller one holds. Waits: no. */
static inline coil_operation coil_limit(coil_operation operation,
                                        coil_duration limit)
{
    if (limit < operation.limit)
        operation.limit = limit;
    return operation;
}

/** coil_await(coil_limit(operation, limit)). */
static inline ssize_t coil_timeout(coil_operation operation,
                                   coil_duration limit)
{
    if (limit < operation.limit)
        operation.limit = limit;
    return coil_await_operation(&operation);
}

/** coil_timeout_linked over a pointer, which is borrowed during the call. */
COIL_API ssize_t coil_timeout_linked_operation(const coil_operation *operation,
                                               coil_duration limit);

/**
 * coil_timeout, but the kernel keeps the time: a second entry is linked to the
 * first. Worth its price only where the loop may be late, for instance beside
 * tasks that compute for long.
 *
 * Returns as coil_timeout, or -EINVAL for an operation that may take more than
 * one step (single-shot are connect, read_some, write_some, poll).
 *
 * Waits: suspends the task; cancellation point.
 */
static inline ssize_t coil_timeout_linked(coil_operation operation,
                                          coil_duration limit)
{
    return coil_timeout_linked_operation(&operation, limit);
}

/* -------------------------------------------------- requests side by side */

/** coil_request_start over a pointer, which is borrowed during the call. */
COIL_API void coil_request_start_operation(coil_request *request,
                                           const coil_operation *operation);

/**
 * Start an operation and go on. It belongs to the task's innermost scope:
 * cancelling that cancels it, and the end of that scope cancels it and waits
 * for it.
 *
 *   request  need not be initialized; pinned until it has ended. Must not be
 *            in use
 *
 * What cannot be started has ended at once with its error: -ECANCELED in a
 * cancelled scope, -EPERM outside a task, or what the operation says.
 *
 * Waits: no.
 */
static inline void coil_request_start(coil_request *request,
                                      coil_operation operation)
{
    coil_request_start_operation(request, &operation);
}

/**
 * Wait for the end of a started request, also one of another task. If the
 * waiting task is cancelled, so is the request.
 *
 * Returns its result, the same again for one that has ended already, or
 *   -EBUSY   another task waits for it
 *   -EINVAL  it was never started
 *   -EXDEV   it belongs to another context
 *   -EPERM   outside a task
 *
 * Waits: suspends the task until the request has ended.
 */
COIL_API ssize_t coil_request_await(coil_request *request);

/** Have it end with -ECANCELED unless its own result comes first. Await it all
 * the same. Harmless if it has ended. Waits: no. The context's thread. */
COIL_API void coil_request_cancel(coil_request *request);

/** True once it has ended. Waits: no. The context's thread. */
COIL_API bool coil_request_done(const coil_request *request);

/** Bytes moved so far; exact once it has ended. Waits: no. */
COIL_API size_t coil_request_transferred(const coil_request *request);

/**
 * Wait until one of several started requests has ended; then the rest are
 * cancelled, and all have ended when this returns. Others than the one
 * returned may have succeeded too: look at each result.
 *
 * Returns the lowest index of those that ended by themselves, or
 *   -ECANCELED  the task was cancelled before any of them ended
 *   -EINVAL     `count` is 0 or beyond INT_MAX, or one was never started
 *   -EBUSY, -EXDEV, -EPERM  as coil_request_await; nothing was changed
 *
 * Waits: suspends the task; cancellation point.
 */
COIL_API int coil_await_any(coil_request requests[], size_t count);

/**
 * Wait until all of several started requests have ended. The first failure (a
 * negative result) cancels the rest.
 *
 * Returns 0, or that failure, or as coil_await_any; 0 for none.
 *
 * Waits: suspends the task; cancellation point.
 */
COIL_API int coil_await_all(coil_request requests[], size_t count);

COIL_END_DECLS

#endif
