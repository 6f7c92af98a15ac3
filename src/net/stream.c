#include "net/stream.h"
#include "base/kernel.h"

/* More than the kernel moves in one call, whatever is asked for. */
enum { STREAM_CHUNK = 1 << 30 };

static unsigned stream_chunk(size_t size)
{
    return size < STREAM_CHUNK ? (unsigned)size : STREAM_CHUNK;
}

/* A transfer of nothing never waits for the peer. */
static void stream_read_some_prepare(coil_request *request,
                                     struct io_uring_sqe *sqe)
{
    const coil_operation *operation = &request->operation;

    if (operation->size)
        io_uring_prep_recv(sqe, operation->handle.descriptor, operation->data,
                           stream_chunk(operation->size), 0);
    else
        io_uring_prep_nop(sqe);
}

static void stream_send_prepare(coil_request *request, struct io_uring_sqe *sqe,
                                int flags)
{
    const coil_operation *operation = &request->operation;
    size_t rest = operation->size - request->transferred;

    if (rest)
        io_uring_prep_send(sqe, operation->handle.descriptor,
                           (char *)operation->data + request->transferred,
                           stream_chunk(rest), MSG_NOSIGNAL | flags);
    else
        io_uring_prep_nop(sqe);
}

static void stream_write_some_prepare(coil_request *request,
                                      struct io_uring_sqe *sqe)
{
    stream_send_prepare(request, sqe, 0);
}

/* The kernel goes on until all is sent; a short count is an interruption. */
static void stream_write_all_prepare(coil_request *request,
                                     struct io_uring_sqe *sqe)
{
    stream_send_prepare(request, sqe, MSG_WAITALL);
}

static int stream_write_all_complete(coil_request *request, int res,
                                     unsigned flags)
{
    (void)flags;
    if (res < 0) {
        request->result = res;
        return COIL_REQUEST_ENDED;
    }
    request->transferred += (unsigned)res;
    request->result = 0;
    return request->transferred == request->operation.size ? COIL_REQUEST_ENDED
                                                           : COIL_REQUEST_AGAIN;
}

const coil_operation_type coil_stream_read_some_type = {
    .size = sizeof(coil_operation_type),
    .name = "read_some",
    .flags = COIL_OPERATION_READS | COIL_OPERATION_SINGLE_SHOT,
    .prepare = stream_read_some_prepare,
};

const coil_operation_type coil_stream_write_some_type = {
    .size = sizeof(coil_operation_type),
    .name = "write_some",
    .flags = COIL_OPERATION_WRITES | COIL_OPERATION_SINGLE_SHOT,
    .prepare = stream_write_some_prepare,
};

const coil_operation_type coil_stream_write_all_type = {
    .size = sizeof(coil_operation_type),
    .name = "write_all",
    .flags = COIL_OPERATION_WRITES,
    .prepare = stream_write_all_prepare,
    .complete = stream_write_all_complete,
};

/* Reads and throws away until end of stream; the limit is over all reads. */
static int stream_discard(coil_handle handle, coil_duration limit)
{
    coil_time end = coil_now();
    char data[4096];
    ssize_t count;

    end = limit > COIL_FOREVER - end ? COIL_FOREVER : end + limit;
    do {
        coil_operation operation = coil_stream_operation(
            &coil_stream_read_some_type, handle, data, sizeof(data));

        if (end != COIL_FOREVER)
            operation.limit = end - coil_now();
        count = coil_await_operation(&operation);
        /* A try takes what is there: a peer that goes on sending must not
         * keep this from ending. */
        if (count > 0 && end != COIL_FOREVER && coil_now() >= end)
            return -ETIME;
    } while (count > 0);
    return (int)count;
}

int coil__stream_close_gracefully(coil_handle handle, coil_duration limit)
{
    int descriptor = coil_handle_descriptor(handle);
    int result = 0, closed;

    if (descriptor < 0)
        return 0;
    if (limit > 0 && coil__kernel_shutdown(descriptor, SHUT_WR) >= 0)
        result = stream_discard(handle, limit);
    closed = coil_handle_close(handle);
    return result < 0 ? result : closed;
}
