/**
 * @file
 * Channels: a bounded queue of items, copied by value, between tasks of one
 * context.
 *
 *     while (coil_channel_receive(&jobs, &job) > 0)
 *         work(&job);
 *
 * Senders wait while it is full, receivers while it is empty, each in turn. An
 * item is in exactly one place: a send that returned 0 has handed it over, any
 * other result has not; the same for a receive that returned 1. With capacity
 * 0 a send waits for a receive. A channel must stay where it is.
 */
#ifndef COIL_CHANNEL_H
#define COIL_CHANNEL_H

#include <coil/extend.h>

COIL_BEGIN_DECLS

/** A channel; all members belong to the library. */
typedef struct coil_channel {
    /** @cond internal */
    char *items;
    size_t item_size, capacity;
    size_t first, count; /* the oldest item, and how many */
    bool closed;
    struct coil__list senders, receivers; /* oldest first */
    /** @endcond */
} coil_channel;

/**
 * Make a channel.
 *
 *   capacity   items it holds; 0: none
 *   item_size  bytes of one
 *
 * Returns 0 (destroy with coil_channel_destroy), -ENOMEM, or -EINVAL if the
 * size is 0 or the product too large. Waits: no. Any thread.
 */
COIL_API int coil_channel_create(coil_channel *ret_channel, size_t capacity,
                                 size_t item_size);

/** Close it and free what it holds. Returns 0, or -EBUSY while tasks of
 * another context wait. Waits: no. */
COIL_API int coil_channel_destroy(coil_channel *channel);

/** No more items: senders get -EPIPE, receivers what is left and then 0. Again
 * is harmless. Waits: no. The context's thread. */
COIL_API void coil_channel_close(coil_channel *channel);

/** Items in it. Waits: no. */
COIL_API size_t coil_channel_count(const coil_channel *channel);

/** The operation of coil_channel_send. */
COIL_API extern const coil_operation_type coil_channel_send_type;
/** The operation of coil_channel_receive. */
COIL_API extern const coil_operation_type coil_channel_receive_type;

/** coil_channel_send as a value; the item is borrowed until the wait returns. */
static inline coil_operation coil_channel_send_op(coil_channel *channel,
                                                  const void *item)
{
    coil_operation operation = coil_operation_make(&coil_channel_send_type);

    operation.data = channel;
    operation.extra[0] = (uintptr_t)item;
    return operation;
}

/** coil_channel_receive as a value; borrows the output until the wait
 * returns. */
static inline coil_operation coil_channel_receive_op(coil_channel *channel,
                                                     void *ret_item)
{
    coil_operation operation = coil_operation_make(&coil_channel_receive_type);

    operation.data = channel;
    operation.extra[0] = (uintptr_t)ret_item;
    return operation;
}

/**
 * Put a copy of an item at the end.
 *
 * Returns 0, or -EPIPE if it is closed, -ECANCELED, -EXDEV if tasks of another
 * context wait, -EPERM outside a task. With a limit <= 0 it is a try.
 *
 * Waits: suspends the task while it is full; cancellation point.
 */
COIL_API int coil_channel_send(coil_channel *channel, const void *item);

/**
 * Take the oldest item.
 *
 * Returns 1 and the item, 0 if the channel is closed and empty, or -ECANCELED,
 * -EXDEV, -EPERM as coil_channel_send.
 *
 * Waits: suspends the task while it is empty; cancellation point.
 */
COIL_API int coil_channel_receive(coil_channel *channel, void *ret_item);

COIL_END_DECLS

#endif
