/**
 * @file
 * Endpoints: an address and a port, a distinct type per protocol so that one
 * cannot be taken for another. Plain values; all calls here may be made on any
 * thread and none waits.
 */
#ifndef COIL_ENDPOINT_H
#define COIL_ENDPOINT_H

#include <coil/address.h>
#include <netinet/in.h>
#include <sys/socket.h>

COIL_BEGIN_DECLS

/** Room for every printed endpoint, with its terminator. */
#define COIL_ENDPOINT_TEXT_MAX (COIL_ADDRESS_TEXT_MAX + 8)

/** Where a TCP peer is. Zeroed: unspecified. */
typedef struct coil_tcp_endpoint {
    /** What the kernel sees. */
    union {
        struct sockaddr base;            /**< its family */
        struct sockaddr_in v4;           /**< if that is AF_INET */
        struct sockaddr_in6 v6;          /**< if that is AF_INET6 */
        struct sockaddr_storage storage; /**< the room there is */
    } address; /**< the socket address */
} coil_tcp_endpoint;

/** An endpoint of an address and a port. */
COIL_API coil_tcp_endpoint coil_tcp_endpoint_make(coil_address address,
                                                  uint16_t port);

/** An endpoint of an address in text form, as coil_address_parse, and a port.
 */
COIL_API int coil_tcp_endpoint_from_text(coil_tcp_endpoint *ret_endpoint,
                                         const char *text, size_t length,
                                         uint16_t port);

/**
 * Read an endpoint such as `1.2.3.4:80`, `[::1]:80` or `[fe80::1%lo]:80`.
 *
 *   text  `length` bytes, no terminator needed; nothing after them is read
 *
 * The port is one to five decimal digits up to 65535, without leading zeros.
 *
 * Returns 0, -EINVAL if it is no endpoint or something follows it, -ENODEV if
 * the zone names no interface.
 */
COIL_API int coil_tcp_endpoint_parse(coil_tcp_endpoint *ret_endpoint,
                                     const char *text, size_t length);

/**
 * Write an endpoint as text that coil_tcp_endpoint_parse reads; "unspecified"
 * for one that is not set.
 *
 *   ret_text  `capacity` bytes; COIL_ENDPOINT_TEXT_MAX is always enough
 *
 * Returns the length without the terminator, or -ENOSPC with nothing written.
 */
COIL_API int coil_tcp_endpoint_print(const coil_tcp_endpoint *endpoint,
                                     char *ret_text, size_t capacity);

/** Its address; of no family if the endpoint is unspecified. */
COIL_API coil_address
coil_tcp_endpoint_address(const coil_tcp_endpoint *endpoint);
/** Its port; 0 if the endpoint is unspecified. */
COIL_API uint16_t coil_tcp_endpoint_port(const coil_tcp_endpoint *endpoint);
/** Has it been set? */
COIL_API bool
coil_tcp_endpoint_is_specified(const coil_tcp_endpoint *endpoint);
/** < 0, 0 or > 0: a total order by address, then port. */
COIL_API int coil_tcp_endpoint_compare(const coil_tcp_endpoint *left,
                                       const coil_tcp_endpoint *right);
/** Same address and port? */
COIL_API bool coil_tcp_endpoint_equal(const coil_tcp_endpoint *left,
                                      const coil_tcp_endpoint *right);
/** A hash for tables; equal endpoints have equal ones. */
COIL_API uint64_t coil_tcp_endpoint_hash(const coil_tcp_endpoint *endpoint);

/** What goes to the kernel, borrowed. */
COIL_API const struct sockaddr *
coil_tcp_endpoint_data(const coil_tcp_endpoint *endpoint);
/** How many bytes of it; 0 if the endpoint is unspecified. */
COIL_API socklen_t coil_tcp_endpoint_size(const coil_tcp_endpoint *endpoint);
/** What the kernel may fill, borrowed; then call coil_tcp_endpoint_resize. */
COIL_API struct sockaddr *
coil_tcp_endpoint_storage(coil_tcp_endpoint *endpoint);
/** How many bytes the kernel may fill. */
COIL_API socklen_t
coil_tcp_endpoint_capacity(const coil_tcp_endpoint *endpoint);
/** The kernel has filled `size` bytes. Returns 0, or -EINVAL if they are no
 * whole IPv4 or IPv6 endpoint; then the endpoint is unspecified. */
COIL_API int coil_tcp_endpoint_resize(coil_tcp_endpoint *endpoint,
                                      socklen_t size);

COIL_END_DECLS

#endif
