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

/** One execution of an operation. Pinned from start until it has ended. All
 * members but the first three belong to the library. */
typedef struct coil_request {
    coil_operation operation; /**< what is being done */
    ssize_t result;           /**< once it has ended */
    size_t transferred;       /**< bytes moved so far */
    /** @cond internal */
    struct coil_task *task;
    struct coil__descriptor *entry;
    int reason; /* why it is being ended, or 0 */
    unsigned char phase;
    unsigned char cancel;
    struct coil__list queue;   /* waiting for a submission queue entry */
    struct coil__list sharers; /* others on the same descriptor */
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

COIL_END_DECLS

#endif
