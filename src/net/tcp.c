#include "base/kernel.h"
#include "net/socket.h"
#include "net/stream.h"
#include <coil/tcp.h>
#include <netinet/tcp.h>

const coil_tcp_option coil_tcp_no_delay = {IPPROTO_TCP, TCP_NODELAY};
const coil_tcp_option coil_tcp_reuse_address = {SOL_SOCKET, SO_REUSEADDR};
const coil_tcp_option coil_tcp_reuse_port = {SOL_SOCKET, SO_REUSEPORT};

int coil_tcp_open(coil_tcp_socket *ret_socket, int family)
{
    return coil__socket_open(&ret_socket->handle, family, SOCK_STREAM,
                             IPPROTO_TCP);
}

int coil_tcp_bind(const coil_tcp_socket *socket,
                  const coil_tcp_endpoint *endpoint)
{
    return coil__socket_bind(socket->handle, coil_tcp_endpoint_data(endpoint),
                             coil_tcp_endpoint_size(endpoint));
}

/* ---------------------------------------------------------------- connect */

/* extra[0] is not 0 once the kernel was asked. */
static void tcp_connect_prepare(coil_request *request, struct io_uring_sqe *sqe)
{
    request->operation.extra[0] = 1;
    io_uring_prep_connect(sqe, request->operation.handle.descriptor,
                          request->operation.data,
                          (socklen_t)request->operation.size);
}

/* An attempt that came to nothing is dissolved, so that the socket may connect
 * again. An association that was there before stays: -EISCONN tells of one, and
 * with -EINVAL or without asking the kernel nothing was attempted. */
static void tcp_connect_end(coil_request *request)
{
    if (request->result < 0 && request->result != -EISCONN &&
        request->result != -EINVAL && request->operation.extra[0])
        (void)coil__kernel_dissolve(request->operation.handle.descriptor);
}

const coil_operation_type coil_tcp_connect_type = {
    .size = sizeof(coil_operation_type),
    .name = "connect",
    .flags = COIL_OPERATION_WRITES | COIL_OPERATION_SINGLE_SHOT,
    .prepare = tcp_connect_prepare,
    .end = tcp_connect_end,
};

coil_operation coil_tcp_connect_op(const coil_tcp_socket *socket,
                                   const coil_tcp_endpoint *endpoint)
{
    return coil_stream_operation(
        &coil_tcp_connect_type, socket->handle,
        (void *)(uintptr_t)coil_tcp_endpoint_data(endpoint),
        coil_tcp_endpoint_size(endpoint));
}

int coil_tcp_connect(const coil_tcp_socket *socket,
                     const coil_tcp_endpoint *endpoint)
{
    return (int)coil_await(coil_tcp_connect_op(socket, endpoint));
}

/* --------------------------------------------------------------- transfer */

ssize_t coil_tcp_read_some(const coil_tcp_socket *socket, void *data,
                           size_t size)
{
    return coil__stream_run(&coil_stream_read_some_type, socket->handle, data,
                            size, NULL);
}

ssize_t coil_tcp_write_some(const coil_tcp_socket *socket, const void *data,
                            size_t size)
{
    return coil__stream_run(&coil_stream_write_some_type, socket->handle, data,
                            size, NULL);
}

int coil_tcp_write_all(const coil_tcp_socket *socket, const void *data,
                       size_t size, size_t *ret_done)
{
    return (int)coil__stream_run(&coil_stream_write_all_type, socket->handle,
                                 data, size, ret_done);
}

/* ------------------------------------------------------------------ close */

int coil_tcp_shutdown(const coil_tcp_socket *socket, int how)
{
    int descriptor = coil_handle_descriptor(socket->handle);

    return descriptor < 0 ? descriptor : coil__kernel_shutdown(descriptor, how);
}

int coil_tcp_close(const coil_tcp_socket *socket)
{
    return coil_handle_close(socket->handle);
}

int coil_tcp_close_gracefully(const coil_tcp_socket *socket,
                              coil_duration limit)
{
    return coil__stream_close_gracefully(socket->handle, limit);
}

/* -------------------------------------------------------------- endpoints */

typedef int tcp_name_call(int descriptor, struct sockaddr *ret_address,
                          socklen_t *size);

static int tcp_endpoint(coil_handle handle, tcp_name_call *name,
                        coil_tcp_endpoint *ret_endpoint)
{
    int descriptor = coil_handle_descriptor(handle);
    coil_tcp_endpoint endpoint = {0};
    socklen_t size = coil_tcp_endpoint_capacity(&endpoint);
    int result;

    if (descriptor < 0)
        return descriptor;
    result = name(descriptor, coil_tcp_endpoint_storage(&endpoint), &size);
    if (result >= 0)
        result = coil_tcp_endpoint_resize(&endpoint, size);
    if (result >= 0)
        *ret_endpoint = endpoint;
    return result;
}

int coil_tcp_local_endpoint(const coil_tcp_socket *socket,
                            coil_tcp_endpoint *ret_endpoint)
{
    return tcp_endpoint(socket->handle, coil__kernel_local_name, ret_endpoint);
}

int coil_tcp_remote_endpoint(const coil_tcp_socket *socket,
                             coil_tcp_endpoint *ret_endpoint)
{
    return tcp_endpoint(socket->handle, coil__kernel_peer_name, ret_endpoint);
}

int coil_tcp_acceptor_local_endpoint(const coil_tcp_acceptor *acceptor,
                                     coil_tcp_endpoint *ret_endpoint)
{
    return tcp_endpoint(acceptor->handle, coil__kernel_local_name,
                        ret_endpoint);
}

int coil_tcp_descriptor(const coil_tcp_socket *socket)
{
    return coil_handle_descriptor(socket->handle);
}

int coil_tcp_set(const coil_tcp_socket *socket, coil_tcp_option option,
                 int value)
{
    return coil__socket_set(socket->handle, option.level, option.name, value);
}

int coil_tcp_get(const coil_tcp_socket *socket, coil_tcp_option option,
                 int *ret_value)
{
    return coil__socket_get(socket->handle, option.level, option.name,
                            ret_value);
}
