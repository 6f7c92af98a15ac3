/**
 * @file
 * For those who add operations of their own. The library's sockets and signal
 * sets are built on exactly this.
 *
 * An operation type says how to fill one submission queue entry (prepare) and
 * what its completion means (complete). A minimal one, which syncs a file:
 *
 *     static void prepare(coil_request *request, struct io_uring_sqe *sqe)
 *     {
 *         io_uring_prep_fsync(sqe, (int)request->operation.extra[0], 0);
 *     }
 *     static const coil_operation_type file_sync_type = {
 *         .size = sizeof(coil_operation_type),
 *         .name = "fsync",
 *         .prepare = prepare,
 *     };
 *
 * Then an operation is coil_operation_make(&file_sync_type) with its fields
 * filled in, and limits and cancellation work on it as on every other.
 *
 * An operation need not involve the kernel: with COIL_OPERATION_PARKS it waits
 * until somebody calls coil_request_finish. Events, semaphores and channels
 * are made so.
 *
 * This header only declares struct io_uring_sqe: who fills one includes
 * <liburing.h>.
 */
#ifndef COIL_EXTEND_H
#define COIL_EXTEND_H

#include <coil/context.h>
#include <coil/operation.h>

struct io_uring_sqe;

COIL_BEGIN_DECLS

/** What kind of operation a type describes; bits of `flags`. */
enum {
    /** Takes the reader's place on its handle: a second one is -EBUSY. */
    COIL_OPERATION_READS = 1,
    /** Takes the writer's place on its handle. */
    COIL_OPERATION_WRITES = 2,
    /** Uses its handle beside any number of others. */
    COIL_OPERATION_SHARES = 4,
    /** The kernel is asked exactly once: complete never asks for more. */
    COIL_OPERATION_SINGLE_SHOT = 8,
    /** The kernel has no part in it: `start` instead of `prepare`. */
    COIL_OPERATION_PARKS = 16,
    /** It ends something, so it is carried out in a cancelled scope too; with
     * COIL_OPERATION_PARKS only. */
    COIL_OPERATION_ENDS = 32
};

/** What `complete` returns. */
enum {
    COIL_REQUEST_ENDED = 0, /**< request->result holds the result */
    COIL_REQUEST_AGAIN = 1, /**< prepare another entry, unless cancelled */
    COIL_REQUEST_PARKED = 2 /**< of `start`, `cancel`: not ended yet */
};

/** How to carry out an operation. One constant object per type. */
struct coil_operation_type {
    size_t size;      /**< sizeof(coil_operation_type) */
    const char *name; /**< for messages */
    unsigned flags;   /**< COIL_OPERATION_ bits */
    /** Fill `sqe` by one of liburing's prep calls. user_data is the
     * library's. Must not call anything that waits or submits. */
    void (*prepare)(coil_request *request, struct io_uring_sqe *sqe);
    /** The entry completed with `res` and `flags`: set request->result (and
     * request->transferred) and say whether that is the end. A result of
     * -ECANCELED or -EINTR is afterwards replaced by the reason of a cancel,
     * or by another try if there was none. NULL: the result is `res`. */
    int (*complete)(coil_request *request, int res, unsigned flags);
    /** The request ended, whatever the result, before its task resumes; may
     * change the result. NULL: nothing to do. */
    void (*end)(coil_request *request);
    /** With COIL_OPERATION_PARKS: do it now, set request->result and return
     * COIL_REQUEST_ENDED, or put the request on a queue of your own (its
     * member `queue` is free for that) and return COIL_REQUEST_PARKED. */
    int (*start)(coil_request *request);
    /** A parked request is cancelled or its limit passed. Take it off the
     * queue and return COIL_REQUEST_ENDED: it ends with the reason. Or return
     * COIL_REQUEST_PARKED: it will be finished later. Called once per reason.
     * NULL: unlinks `queue`. */
    int (*cancel)(coil_request *request);
};

/** Set the fields that every request needs; then fill in what the type uses
 * and call coil_request_run. Saves building an operation first. */
static inline void coil_request_init(coil_request *request,
                                     const coil_operation_type *type)
{
    request->operation.type = type;
    request->operation.limit = COIL_FOREVER;
    request->operation.ret_done = NULL;
}

/**
 * Carry out the operation in `request` and wait for its end.
 *
 * Returns its result, and in request->transferred what it moved.
 *
 * Waits: suspends the task; cancellation point. -EPERM outside a task.
 */
COIL_API ssize_t coil_request_run(coil_request *request);

/**
 * End a parked request: its task becomes ready. Take it off its queue before.
 *
 *   result  -ECANCELED is replaced by the reason if it was interrupted
 *
 * Waits: no. The context's thread.
 */
COIL_API void coil_request_finish(coil_request *request, ssize_t result);

/**
 * Enter a descriptor into the table, from which on the handle stands for it.
 *
 *   descriptor  owned by the handle on success
 *   ret_handle  the new handle
 *
 * Returns 0, -ENOMEM, -EBADF for a negative number, -EMFILE beyond what the
 * table can hold. An old handle on the same number is dead: it was closed
 * behind the library's back, and the message handler hears of it.
 *
 * Waits: no. Any thread.
 */
COIL_API int coil_handle_open(coil_handle *ret_handle, int descriptor);

/** The descriptor, borrowed, or -EBADF if the handle is stale. Any thread. */
COIL_API int coil_handle_descriptor(coil_handle handle);

/**
 * Close: the handle is dead from here on, requests on it are cancelled with
 * -EBADF and have ended before the descriptor is closed. Stale: 0.
 *
 * Returns 0, what close(2) says, or -EBUSY if requests are in flight and this
 * is another thread than theirs. In a post with requests in flight it returns
 * 0 and the last of them closes.
 *
 * Waits: only for what it cancelled; no cancellation point. Any thread.
 */
COIL_API int coil_handle_close(coil_handle handle);

/**
 * Take the descriptor out of the table, to be used and closed by the caller.
 *
 * Returns the descriptor, -EBADF if stale, -EBUSY with requests in flight.
 * Waits: no. Any thread.
 */
COIL_API int coil_handle_release(coil_handle handle);

COIL_END_DECLS

#endif
