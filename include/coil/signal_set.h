/**
 * @file
 * Signals, received by waiting for them.
 *
 * A signal belongs to at most one open set in the process. Opening a set
 * blocks its signals in the calling thread; open it before other threads are
 * started, so that they inherit that and no other thread takes the signal.
 * Signals that came before the first wait are not lost.
 */
#ifndef COIL_SIGNAL_SET_H
#define COIL_SIGNAL_SET_H

#include <coil/extend.h>

COIL_BEGIN_DECLS

/** Some signals; a handle that may be copied. */
typedef struct coil_signal_set {
    coil_handle handle; /**< the signal descriptor */
    uint64_t signals;   /**< bit n-1 is signal n */
    uint64_t blocked;   /**< those that open has blocked */
} coil_signal_set;

/**
 * Receive some signals through this set from now on.
 *
 *   ret_set  close with coil_signal_set_close
 *   signals  `count` signal numbers; borrowed during the call
 *
 * Returns 0, or
 *   -EINVAL  no signal, or one that cannot be caught
 *   -EBUSY   one of them belongs to another open set
 *   -EMFILE, -ENFILE, -ENOMEM  as signalfd(2)
 *
 * Waits: no. Any thread; blocks the signals in this one.
 */
COIL_API int coil_signal_set_open(coil_signal_set *ret_set, const int *signals,
                                  size_t count);

/** The operation of coil_signal_set_wait. */
COIL_API extern const coil_operation_type coil_signal_set_wait_type;

/** coil_signal_set_wait as a value. */
static inline coil_operation coil_signal_set_wait_op(const coil_signal_set *set)
{
    coil_operation operation = coil_operation_make(&coil_signal_set_wait_type);

    operation.handle = set->handle;
    return operation;
}

/**
 * Wait for one of the signals.
 *
 * Returns its number, > 0, or -ECANCELED, or -EBADF if the set was closed.
 * Several tasks may wait; each signal goes to one of them.
 *
 * Waits: suspends the task; cancellation point. -EPERM outside a task.
 */
COIL_API int coil_signal_set_wait(const coil_signal_set *set);

/**
 * Close: waiters get -EBADF, pending signals of the set are consumed, and what
 * open has blocked is unblocked in the calling thread. Closing again is 0.
 *
 * Waits: only for those waiters; no cancellation point.
 */
COIL_API int coil_signal_set_close(const coil_signal_set *set);

/**
 * Unblock every signal in the calling thread, for a child process just before
 * exec: it would inherit what open sets have blocked.
 *
 * Returns 0. Any thread; safe between fork and exec.
 */
COIL_API int coil_signal_mask_default(void);

COIL_END_DECLS

#endif
