/*
 * The plain calls on stream sockets, shared by every kind of them: the request
 * is filled in place.
 */
#ifndef COIL_NET_STREAM_H
#define COIL_NET_STREAM_H

#include <coil/extend.h>
#include <coil/stream.h>

static inline ssize_t coil__stream_run(const coil_operation_type *type,
                                       coil_handle handle, const void *data,
                                       size_t size, size_t *ret_done)
{
    coil_request request;

    coil_request_init(&request, type);
    request.operation.handle = handle;
    request.operation.data = (void *)(uintptr_t)data;
    request.operation.size = size;
    request.operation.ret_done = ret_done;
    return coil_request_run(&request);
}

/* Sends end of stream, waits for the peer's, and closes. */
int coil__stream_close_gracefully(coil_handle handle, coil_duration limit);

#endif
