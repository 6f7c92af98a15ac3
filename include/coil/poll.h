/**
 * @file
 * Waiting for a descriptor that belongs to somebody else.
 */
#ifndef COIL_POLL_H
#define COIL_POLL_H

#include <coil/operation.h>

COIL_BEGIN_DECLS

/** The operation of coil_poll. */
COIL_API extern const coil_operation_type coil_poll_type;

/** coil_poll as a value. */
static inline coil_operation coil_poll_op(int descriptor, short events)
{
    coil_operation operation = coil_operation_make(&coil_poll_type);

    operation.extra[0] = (uint64_t)(unsigned)descriptor;
    operation.extra[1] = (uint64_t)(unsigned short)events;
    return operation;
}

/**
 * Wait until a descriptor is ready, as poll(2) has it.
 *
 *   descriptor  borrowed; any descriptor that can be polled. It must stay open
 *               until this returns
 *   events      POLLIN, POLLOUT, ... ; POLLERR and POLLHUP always count
 *
 * Returns the events that are, > 0, or
 *   -ECANCELED  the scope was cancelled
 *   -EBADF      no such descriptor
 *
 * Waits: suspends the task; cancellation point. -EPERM outside a task.
 */
COIL_API int coil_poll(int descriptor, short events);

COIL_END_DECLS

#endif
