#include "core/waiters.h"
#include <coil/channel.h>
#include <string.h>

/*
 * An item goes from hand to hand: from a sender into the queue or straight to
 * the oldest receiver, from the queue to a receiver. Whoever gets or gives one
 * is finished in the same step, so no cancel can come between. Receivers only
 * wait while the queue is empty, senders only while it is full.
 */

int coil_channel_create(coil_channel *ret_channel, size_t capacity,
                        size_t item_size)
{
    coil_channel channel = {.capacity = capacity, .item_size = item_size};
    size_t size;

    if (!item_size || __builtin_mul_overflow(capacity, item_size, &size))
        return -EINVAL;
    if (size) {
        channel.items = coil__kernel_allocate(size);
        if (!channel.items)
            return -ENOMEM;
    }
    *ret_channel = channel;
    return 0;
}

size_t coil_channel_count(const coil_channel *channel)
{
    return channel->count;
}

static bool channel_is_foreign(const coil_channel *channel)
{
    return coil__waiters_are_foreign(&channel->senders) ||
           coil__waiters_are_foreign(&channel->receivers);
}

/* ---------------------------------------------------------------- its ends */

void coil_channel_close(coil_channel *channel)
{
    coil_request *request;

    if (channel_is_foreign(channel))
        return;
    channel->closed = true;
    while ((request = coil__waiters_first(&channel->senders)))
        coil__waiters_finish(request, -EPIPE);
    while ((request = coil__waiters_first(&channel->receivers)))
        coil__waiters_finish(request, 0);
}

int coil_channel_destroy(coil_channel *channel)
{
    if (channel_is_foreign(channel))
        return -EBUSY;
    coil_channel_close(channel);
    coil__kernel_free(channel->items);
    channel->items = NULL;
    channel->capacity = channel->count = 0;
    return 0;
}

/* --------------------------------------------------------------- the queue */

static void *request_item(const coil_request *request)
{
    return (void *)(uintptr_t)request->operation.extra[0];
}

static char *channel_slot(const coil_channel *channel, size_t index)
{
    size_t slot = channel->first + index;

    if (slot >= channel->capacity)
        slot -= channel->capacity;
    return channel->items + slot * channel->item_size;
}

static void channel_push(coil_channel *channel, const coil_request *sender)
{
    memcpy(channel_slot(channel, channel->count), request_item(sender),
           channel->item_size);
    channel->count++;
}

static void channel_pop(coil_channel *channel, const coil_request *receiver)
{
    memcpy(request_item(receiver), channel_slot(channel, 0),
           channel->item_size);
    channel->first =
        channel->first + 1 < channel->capacity ? channel->first + 1 : 0;
    channel->count--;
}

static void channel_pass(const coil_channel *channel,
                         const coil_request *sender,
                         const coil_request *receiver)
{
    memcpy(request_item(receiver), request_item(sender), channel->item_size);
}

/* ------------------------------------------------------------ send, receive */

static int channel_send_start(coil_request *request)
{
    coil_channel *channel = request->operation.data;
    coil_request *receiver = coil__waiters_first(&channel->receivers);

    if (channel_is_foreign(channel))
        return coil__waiters_ended(request, -EXDEV);
    if (channel->closed)
        return coil__waiters_ended(request, -EPIPE);
    if (receiver) {
        channel_pass(channel, request, receiver);
        coil__waiters_finish(receiver, 1);
    } else if (channel->count < channel->capacity) {
        channel_push(channel, request);
    } else {
        return coil__waiters_park(&channel->senders, request);
    }
    return coil__waiters_ended(request, 0);
}

static int channel_receive_start(coil_request *request)
{
    coil_channel *channel = request->operation.data;
    coil_request *sender = coil__waiters_first(&channel->senders);

    if (channel_is_foreign(channel))
        return coil__waiters_ended(request, -EXDEV);
    if (channel->count) {
        channel_pop(channel, request);
        if (sender)
            channel_push(channel, sender);
    } else if (sender) {
        channel_pass(channel, sender, request);
    } else if (channel->closed) {
        return coil__waiters_ended(request, 0);
    } else {
        return coil__waiters_park(&channel->receivers, request);
    }
    if (sender)
        coil__waiters_finish(sender, 0);
    return coil__waiters_ended(request, 1);
}

const coil_operation_type coil_channel_send_type = {
    .size = sizeof(coil_operation_type),
    .name = "a channel's reader",
    .flags = COIL_OPERATION_PARKS,
    .start = channel_send_start,
};

const coil_operation_type coil_channel_receive_type = {
    .size = sizeof(coil_operation_type),
    .name = "a channel's writer",
    .flags = COIL_OPERATION_PARKS,
    .start = channel_receive_start,
};

int coil_channel_send(coil_channel *channel, const void *item)
{
    return (int)coil_await(coil_channel_send_op(channel, item));
}

int coil_channel_receive(coil_channel *channel, void *ret_item)
{
    return (int)coil_await(coil_channel_receive_op(channel, ret_item));
}
