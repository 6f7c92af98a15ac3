#include "base/kernel.h"
#include "net/socket.h"
#include <coil/tcp.h>
#include <string.h>

enum { TCP_BACKLOG = 4096 };

const coil_tcp_acceptor_option coil_tcp_acceptor_reuse_address = {SOL_SOCKET,
                                                                  SO_REUSEADDR};
const coil_tcp_acceptor_option coil_tcp_acceptor_reuse_port = {SOL_SOCKET,
                                                               SO_REUSEPORT};

/* ----------------------------------------------------------------- listen */

int coil_tcp_acceptor_open(coil_tcp_acceptor *ret_acceptor, int family)
{
    return coil__socket_open(&ret_acceptor->handle, family, SOCK_STREAM,
                             IPPROTO_TCP);
}

int coil_tcp_acceptor_bind(const coil_tcp_acceptor *acceptor,
                           const coil_tcp_endpoint *endpoint)
{
    return coil__socket_bind(acceptor->handle, coil_tcp_endpoint_data(endpoint),
                             coil_tcp_endpoint_size(endpoint));
}

int coil_tcp_acceptor_start(const coil_tcp_acceptor *acceptor, int backlog)
{
    int descriptor = coil_handle_descriptor(acceptor->handle);

    if (descriptor < 0)
        return descriptor;
    return coil__kernel_listen(descriptor, backlog > 0 ? backlog : TCP_BACKLOG);
}

/* What must be in force before bind. The system's default for IPv4 on `[::]`
 * is a sysctl, so it is always set. */
static int tcp_listen_set_options(const coil_tcp_acceptor *acceptor, int family,
                                  const coil_tcp_listen_options *options)
{
    int result =
        coil_tcp_acceptor_set(acceptor, coil_tcp_acceptor_reuse_address, 1);

    if (result >= 0 && options->reuse_port)
        result =
            coil_tcp_acceptor_set(acceptor, coil_tcp_acceptor_reuse_port, 1);
    if (result >= 0 && family == AF_INET6)
        result = coil__socket_set(acceptor->handle, IPPROTO_IPV6, IPV6_V6ONLY,
                                  options->v6_only);
    return result;
}

static int tcp_listen_open(const coil_tcp_acceptor *acceptor,
                           const coil_tcp_endpoint *endpoint,
                           const coil_tcp_listen_options *options)
{
    int family = coil_tcp_endpoint_data(endpoint)->sa_family;
    int result = tcp_listen_set_options(acceptor, family, options);

    if (result >= 0)
        result = coil_tcp_acceptor_bind(acceptor, endpoint);
    if (result >= 0)
        result = coil_tcp_acceptor_start(acceptor, options->backlog);
    return result;
}

int coil_tcp_listen(coil_tcp_acceptor *ret_acceptor,
                    const coil_tcp_endpoint *endpoint,
                    const coil_tcp_listen_options *options)
{
    coil_tcp_listen_options known = {0};
    coil_tcp_acceptor acceptor;
    int result;

    if (!coil_tcp_endpoint_is_specified(endpoint))
        return -EINVAL;
    if (options && options->size < sizeof(options->size))
        return -EINVAL;
    if (options)
        memcpy(&known, options,
               options->size < sizeof(known) ? options->size : sizeof(known));
    result = coil_tcp_acceptor_open(
        &acceptor, coil_tcp_endpoint_data(endpoint)->sa_family);
    if (result < 0)
        return result;
    result = tcp_listen_open(&acceptor, endpoint, &known);
    if (result < 0) {
        (void)coil_tcp_acceptor_close(&acceptor);
        return result;
    }
    *ret_acceptor = acceptor;
    return 0;
}

int coil_tcp_listen_text(coil_tcp_acceptor *ret_acceptor, const char *text,
                         const coil_tcp_listen_options *options)
{
    coil_tcp_endpoint endpoint;
    int result = coil_tcp_endpoint_parse(&endpoint, text, strlen(text));

    if (result < 0)
        return result;
    return coil_tcp_listen(ret_acceptor, &endpoint, options);
}

/* ----------------------------------------------------------------- accept */

/* extra[0] is the address of the peer's endpoint, or 0; extra[1] is where the
 * kernel leaves the size of what it wrote there. */
static coil_tcp_endpoint *tcp_accept_peer(const coil_request *request)
{
    return (coil_tcp_endpoint *)(uintptr_t)request->operation.extra[0];
}

static void tcp_accept_prepare(coil_request *request, struct io_uring_sqe *sqe)
{
    coil_tcp_endpoint *peer = tcp_accept_peer(request);
    int descriptor = request->operation.handle.descriptor;
    socklen_t size;

    if (!peer) {
        io_uring_prep_accept(sqe, descriptor, NULL, NULL, SOCK_CLOEXEC);
        return;
    }
    size = coil_tcp_endpoint_capacity(peer);
    memcpy(&request->operation.extra[1], &size, sizeof(size));
    io_uring_prep_accept(sqe, descriptor, coil_tcp_endpoint_storage(peer),
                         (void *)&request->operation.extra[1], SOCK_CLOEXEC);
}

/* A connection that broke before it was accepted concerns nobody. */
static bool tcp_accept_passes_over(int res)
{
    return res == -ECONNABORTED || res == -EPROTO;
}

/* A peer that has gone has no address any more. */
static void tcp_accept_set_peer(coil_request *request)
{
    coil_tcp_endpoint *peer = tcp_accept_peer(request);
    socklen_t size;

    if (!peer)
        return;
    memcpy(&size, &request->operation.extra[1], sizeof(size));
    if (coil_tcp_endpoint_resize(peer, size) < 0)
        *peer = (coil_tcp_endpoint){0};
}

static int tcp_accept_complete(coil_request *request, int res, unsigned flags)
{
    coil_tcp_socket *socket = request->operation.data;

    (void)flags;
    if (tcp_accept_passes_over(res))
        return COIL_REQUEST_AGAIN;
    request->result = res;
    if (res < 0)
        return COIL_REQUEST_ENDED;
    request->result = coil_handle_open(&socket->handle, res);
    if (request->result < 0)
        (void)coil__kernel_close(res);
    else
        tcp_accept_set_peer(request);
    return COIL_REQUEST_ENDED;
}

const coil_operation_type coil_tcp_accept_type = {
    .size = sizeof(coil_operation_type),
    .name = "accept",
    .flags = COIL_OPERATION_SHARES,
    .prepare = tcp_accept_prepare,
    .complete = tcp_accept_complete,
};

coil_operation coil_tcp_accept_op(const coil_tcp_acceptor *acceptor,
                                  coil_tcp_socket *ret_socket,
                                  coil_tcp_endpoint *ret_peer)
{
    coil_operation operation = coil_operation_make(&coil_tcp_accept_type);

    operation.handle = acceptor->handle;
    operation.data = ret_socket;
    operation.extra[0] = (uintptr_t)ret_peer;
    return operation;
}

int coil_tcp_accept(const coil_tcp_acceptor *acceptor,
                    coil_tcp_socket *ret_socket, coil_tcp_endpoint *ret_peer)
{
    return (int)coil_await(coil_tcp_accept_op(acceptor, ret_socket, ret_peer));
}

int coil_tcp_acceptor_close(const coil_tcp_acceptor *acceptor)
{
    return coil_handle_close(acceptor->handle);
}

int coil_tcp_acceptor_descriptor(const coil_tcp_acceptor *acceptor)
{
    return coil_handle_descriptor(acceptor->handle);
}

int coil_tcp_acceptor_set(const coil_tcp_acceptor *acceptor,
                          coil_tcp_acceptor_option option, int value)
{
    return coil__socket_set(acceptor->handle, option.level, option.name, value);
}

int coil_tcp_acceptor_get(const coil_tcp_acceptor *acceptor,
                          coil_tcp_acceptor_option option, int *ret_value)
{
    return coil__socket_get(acceptor->handle, option.level, option.name,
                            ret_value);
}
