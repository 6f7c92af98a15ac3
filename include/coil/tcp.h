/**
 * @file
 * TCP: connected sockets and acceptors.
 *
 * Both are handles, small values that may be copied and moved at any time,
 * also while an operation on them waits. Any call through a copy of a closed
 * one is -EBADF; closing it again is 0. Neither belongs to a context: the
 * first request binds it to the current one until nothing is in flight. On a
 * socket one task may read and one may write at a time; a second one gets
 * -EBUSY. On an acceptor any number may wait.
 *
 * Unless a comment says otherwise, calls that wait suspend the task, are
 * cancellation points, belong on the context's thread, and outside a task
 * return -EPERM; calls that do not wait may be made on any thread, one at a
 * time per socket. Besides what is listed, calls return -EBADF for a stale
 * handle and what the named system call says.
 *
 * Descriptors are close-on-exec and blocking. Writing to a peer that has gone
 * is -EPIPE, never SIGPIPE.
 */
#ifndef COIL_TCP_H
#define COIL_TCP_H

#include <coil/endpoint.h>
#include <coil/stream.h>

COIL_BEGIN_DECLS

/** A TCP socket that connects, or that was accepted. Zeroed: closed. */
typedef struct coil_tcp_socket {
    coil_handle handle; /**< its place in the table of descriptors */
} coil_tcp_socket;

/** A TCP socket that listens. Zeroed: closed. */
typedef struct coil_tcp_acceptor {
    coil_handle handle; /**< its place in the table of descriptors */
} coil_tcp_acceptor;

/** An int-valued option of a TCP socket; users may make their own. */
typedef struct coil_tcp_option {
    int level; /**< as setsockopt(2) */
    int name;  /**< as setsockopt(2) */
} coil_tcp_option;

/** An int-valued option of a TCP acceptor; users may make their own. */
typedef struct coil_tcp_acceptor_option {
    int level; /**< as setsockopt(2) */
    int name;  /**< as setsockopt(2) */
} coil_tcp_acceptor_option;

/** 1: send small segments at once (TCP_NODELAY). */
COIL_API extern const coil_tcp_option coil_tcp_no_delay;
/** 1: bind also while old connections linger (SO_REUSEADDR). */
COIL_API extern const coil_tcp_option coil_tcp_reuse_address;
/** 1: bind also if others with this option are bound (SO_REUSEPORT). */
COIL_API extern const coil_tcp_option coil_tcp_reuse_port;
/** 1: listen also while old connections linger (SO_REUSEADDR). */
COIL_API extern const coil_tcp_acceptor_option coil_tcp_acceptor_reuse_address;
/** 1: share the port with other acceptors (SO_REUSEPORT). */
COIL_API extern const coil_tcp_acceptor_option coil_tcp_acceptor_reuse_port;

/* ----------------------------------------------------------------- socket */

/**
 * Open a socket to connect.
 *
 *   family  AF_INET or AF_INET6
 *
 * Returns 0, -EAFNOSUPPORT, -EMFILE, -ENFILE, -ENOMEM. Waits: no.
 */
COIL_API int coil_tcp_open(coil_tcp_socket *ret_socket, int family);

/** Choose the local endpoint before connecting; as bind(2). Waits: no. */
COIL_API int coil_tcp_bind(const coil_tcp_socket *socket,
                           const coil_tcp_endpoint *endpoint);

/** The operation of coil_tcp_connect. */
COIL_API extern const coil_operation_type coil_tcp_connect_type;

/** coil_tcp_connect as a value; borrows the endpoint until the wait returns. */
COIL_API coil_operation coil_tcp_connect_op(const coil_tcp_socket *socket,
                                            const coil_tcp_endpoint *endpoint);

/**
 * Connect an open socket.
 *
 *   endpoint  the peer; borrowed
 *
 * Returns 0, or -ECONNREFUSED, -ETIMEDOUT, -EISCONN, ... as connect(2), or
 * -ECANCELED. After a failure, a limit or a cancel the attempt is dissolved:
 * the same socket may connect again, with its options kept.
 *
 * Waits.
 */
COIL_API int coil_tcp_connect(const coil_tcp_socket *socket,
                              const coil_tcp_endpoint *endpoint);

/** coil_tcp_read_some as a value; borrows `data` until the wait returns. */
static inline coil_operation
coil_tcp_read_some_op(const coil_tcp_socket *socket, void *data, size_t size)
{
    return coil_stream_operation(&coil_stream_read_some_type, socket->handle,
                                 data, size);
}

/**
 * Read at least one byte, at most `size`.
 *
 *   data  borrowed: the kernel may write to it until this returns
 *   size  bytes; 0 returns 0 without waiting for the peer
 *
 * Returns bytes > 0, 0 at end of stream, or
 *   -ECANCELED  the scope was cancelled; no byte was taken
 *   -EBADF      the socket was closed, perhaps while this waited
 *   -EBUSY      another task is reading
 *   other       what recv(2) says
 *
 * Waits.
 */
COIL_API ssize_t coil_tcp_read_some(const coil_tcp_socket *socket, void *data,
                                    size_t size);

/** coil_tcp_write_some as a value; borrows `data` until the wait returns. */
static inline coil_operation
coil_tcp_write_some_op(const coil_tcp_socket *socket, const void *data,
                       size_t size)
{
    return coil_stream_operation(&coil_stream_write_some_type, socket->handle,
                                 (void *)(uintptr_t)data, size);
}

/**
 * Write at least one byte, at most `size`.
 *
 * Returns bytes > 0 (0 if size is 0), or -ECANCELED with no byte written,
 * -EPIPE, -ECONNRESET, -EBUSY if another task is writing, or what send(2) says.
 *
 * Waits.
 */
COIL_API ssize_t coil_tcp_write_some(const coil_tcp_socket *socket,
                                     const void *data, size_t size);

/** coil_tcp_write_all as a value; borrows `data` and `ret_done` until the wait
 * returns. */
static inline coil_operation
coil_tcp_write_all_op(const coil_tcp_socket *socket, const void *data,
                      size_t size, size_t *ret_done)
{
    coil_operation operation =
        coil_stream_operation(&coil_stream_write_all_type, socket->handle,
                              (void *)(uintptr_t)data, size);

    operation.ret_done = ret_done;
    return operation;
}

/**
 * Write every byte.
 *
 *   ret_done  bytes written, exactly, whatever the result; may be NULL
 *
 * Returns 0 when every byte was written, else as coil_tcp_write_some.
 *
 * Waits.
 */
COIL_API int coil_tcp_write_all(const coil_tcp_socket *socket, const void *data,
                                size_t size, size_t *ret_done);

/**
 * End one or both directions; as shutdown(2).
 *
 *   how  SHUT_RD, SHUT_WR or SHUT_RDWR
 *
 * A read under way then ends with 0, a write with -EPIPE. Waits: no.
 */
COIL_API int coil_tcp_shutdown(const coil_tcp_socket *socket, int how);

/**
 * Close. Tasks that wait on the socket get -EBADF; when their requests have
 * ended the descriptor is closed. Input that was not read makes the kernel
 * reset the connection: see coil_tcp_close_gracefully.
 *
 * Returns 0, also if it was closed; -EBUSY on another thread than the one
 * whose requests are in flight.
 *
 * Waits: only for what it cancelled, with nothing in flight never; no
 * cancellation point.
 */
COIL_API int coil_tcp_close(const coil_tcp_socket *socket);

/**
 * End the outgoing direction, read and discard until the peer ends its own,
 * then close: what was written arrives even if input was left unread.
 *
 *   limit  for the peer; <= 0 closes at once
 *
 * Returns 0, -ETIME if the peer was too slow, -ECANCELED, or what recv(2) says;
 * closed in every case.
 *
 * Waits.
 */
COIL_API int coil_tcp_close_gracefully(const coil_tcp_socket *socket,
                                       coil_duration limit);

/** The local endpoint; as getsockname(2). Waits: no. */
COIL_API int coil_tcp_local_endpoint(const coil_tcp_socket *socket,
                                     coil_tcp_endpoint *ret_endpoint);

/** The peer's endpoint; as getpeername(2): -ENOTCONN if there is none or it
 * has gone. Waits: no. */
COIL_API int coil_tcp_remote_endpoint(const coil_tcp_socket *socket,
                                      coil_tcp_endpoint *ret_endpoint);

/** The descriptor, borrowed. Waits: no. */
COIL_API int coil_tcp_descriptor(const coil_tcp_socket *socket);

/** Set an option; as setsockopt(2). Waits: no. */
COIL_API int coil_tcp_set(const coil_tcp_socket *socket, coil_tcp_option option,
                          int value);

/** Read an option; as getsockopt(2). Waits: no. */
COIL_API int coil_tcp_get(const coil_tcp_socket *socket, coil_tcp_option option,
                          int *ret_value);

/* --------------------------------------------------------------- acceptor */

/** How to listen. Zero in any field means its default. */
typedef struct coil_tcp_listen_options {
    size_t size;     /**< sizeof(coil_tcp_listen_options) */
    bool reuse_port; /**< share the port with other acceptors */
    bool v6_only;    /**< `[::]` takes no IPv4 connections */
    int backlog;     /**< connections that may wait; default 4096 */
} coil_tcp_listen_options;

/**
 * Open, bind and listen in one step, with SO_REUSEADDR.
 *
 *   options  borrowed; NULL: defaults
 *
 * Returns 0, -EADDRINUSE, -EACCES, -EADDRNOTAVAIL, ... as socket(2), bind(2)
 * and listen(2); -EINVAL for an endpoint that was not set. On failure nothing
 * stays open. Waits: no.
 */
COIL_API int coil_tcp_listen(coil_tcp_acceptor *ret_acceptor,
                             const coil_tcp_endpoint *endpoint,
                             const coil_tcp_listen_options *options);

/** coil_tcp_listen on an endpoint in text form, such as "127.0.0.1:80" or
 * "[::]:80"; -EINVAL if it is none. Waits: no. */
COIL_API int coil_tcp_listen_text(coil_tcp_acceptor *ret_acceptor,
                                  const char *text,
                                  const coil_tcp_listen_options *options);

/** Open an acceptor to set options on before coil_tcp_acceptor_bind and
 * coil_tcp_acceptor_start. As coil_tcp_open. Waits: no. */
COIL_API int coil_tcp_acceptor_open(coil_tcp_acceptor *ret_acceptor,
                                    int family);

/** Choose where to listen; as bind(2). Waits: no. */
COIL_API int coil_tcp_acceptor_bind(const coil_tcp_acceptor *acceptor,
                                    const coil_tcp_endpoint *endpoint);

/** Start to listen; as listen(2). `backlog` <= 0: 4096. Waits: no. */
COIL_API int coil_tcp_acceptor_start(const coil_tcp_acceptor *acceptor,
                                     int backlog);

/** The operation of coil_tcp_accept. */
COIL_API extern const coil_operation_type coil_tcp_accept_type;

/** coil_tcp_accept as a value; borrows both outputs until the wait returns. */
COIL_API coil_operation coil_tcp_accept_op(const coil_tcp_acceptor *acceptor,
                                           coil_tcp_socket *ret_socket,
                                           coil_tcp_endpoint *ret_peer);

/**
 * Accept a connection.
 *
 *   ret_socket  the new socket: close it
 *   ret_peer    its peer, unspecified if it has gone already; may be NULL
 *
 * Returns 0, or -ECANCELED, -EBADF if the acceptor was closed, -EMFILE or
 * -ENFILE without a descriptor to spare, -ENOMEM. Connections that were broken
 * off before they could be accepted are passed over.
 *
 * Waits.
 */
COIL_API int coil_tcp_accept(const coil_tcp_acceptor *acceptor,
                             coil_tcp_socket *ret_socket,
                             coil_tcp_endpoint *ret_peer);

/** Close; waiters get -EBADF. As coil_tcp_close. */
COIL_API int coil_tcp_acceptor_close(const coil_tcp_acceptor *acceptor);

/** Where it listens, with the port the kernel chose for port 0. Waits: no. */
COIL_API int coil_tcp_acceptor_local_endpoint(const coil_tcp_acceptor *acceptor,
                                              coil_tcp_endpoint *ret_endpoint);

/** The descriptor, borrowed. Waits: no. */
COIL_API int coil_tcp_acceptor_descriptor(const coil_tcp_acceptor *acceptor);

/** Set an option; as setsockopt(2). Waits: no. */
COIL_API int coil_tcp_acceptor_set(const coil_tcp_acceptor *acceptor,
                                   coil_tcp_acceptor_option option, int value);

/** Read an option; as getsockopt(2). Waits: no. */
COIL_API int coil_tcp_acceptor_get(const coil_tcp_acceptor *acceptor,
                                   coil_tcp_acceptor_option option,
                                   int *ret_value);

COIL_END_DECLS

#endif
