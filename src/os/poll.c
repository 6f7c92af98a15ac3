#include "base/kernel.h"
#include <coil/extend.h>
#include <coil/poll.h>

static void poll_prepare(coil_request *request, struct io_uring_sqe *sqe)
{
    io_uring_prep_poll_add(sqe, (int)request->operation.extra[0],
                           (unsigned)request->operation.extra[1]);
}

const coil_operation_type coil_poll_type = {
    .size = sizeof(coil_operation_type),
    .name = "poll",
    .flags = COIL_OPERATION_SINGLE_SHOT,
    .prepare = poll_prepare,
};

int coil_poll(int descriptor, short events)
{
    return (int)coil_await(coil_poll_op(descriptor, events));
}
