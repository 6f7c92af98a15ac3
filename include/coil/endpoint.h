/**
 * @file
 * Endpoints: an address and a port, a type of its own per protocol, so that a
 * call takes no other protocol's endpoint.
 *
 * An endpoint is a plain value that may be copied and made on any thread;
 * nothing here waits or allocates. It is laid out as the kernel wants it, with
 * room for every kind of address. A zeroed endpoint is unspecified: it has
 * neither address nor port, and the kernel refuses it with -EINVAL.
 *
 * In text the address comes first, in brackets if it is IPv6, then a colon and
 * the port: `1.2.3.4:80`, `[::1]:80`, `[fe80::1%lo]:80`. The port is one to
 * five digits, at most 65535, without sign, spaces or leading zeros; 0 lets the
 * kernel choose when binding.
 */
#ifndef COIL_ENDPOINT_H
#define COIL_ENDPOINT_H

#include <coil/address.h>
#include <netinet/in.h>
#include <sys/socket.h>

COIL_BEGIN_DECLS

/** Room that every printed endpoint fits in, with its terminator. */
#define COIL_ENDPOINT_TEXT_MAX (COIL_ADDRESS_TEXT_MAX + 8)

/** What endpoints consist of; use the calls on their types instead. */
typedef union coil_endpoint_storage {
    struct sockaddr any;          /**< its family says which of these it is */
    struct sockaddr_in v4;        /**< AF_INET */
    struct sockaddr_in6 v6;       /**< AF_INET6 */
    struct sockaddr_storage room; /**< what the kernel may fill */
} coil_endpoint_storage;

/** Where a TCP socket is or connects to. Zeroed: unspecified. */
typedef struct coil_tcp_endpoint {
    coil_endpoint_storage storage; /**< unspecified if its family is */
} coil_tcp_endpoint;

/* ------------------------------------------------------------------- make */

/** The endpoint of an address, with its zone, and a port in host order;
 * unspecified if the address is neither IPv4 nor IPv6. */
COIL_API coil_tcp_endpoint coil_tcp_endpoint_make(coil_address address,
                                                  uint16_t port);

/**
 * Make an endpoint from an address in text form, as coil_address_parse takes
 * it, without brackets, and a port in host order.
 *
 * Returns 0 or what coil_address_parse says.
 */
COIL_API COIL_MUST_USE int
coil_tcp_endpoint_from_text(coil_tcp_endpoint *ret_endpoint, const char *text,
                            size_t length, uint16_t port);

/**
 * Read an endpoint from exactly `length` bytes of text.
 *
 *   text    borrowed; needs no terminator
 *   length  all of it must be the endpoint: anything after the port is an error
 *
 * Returns 0, or
 *   -EINVAL  not an endpoint: no port, IPv6 without brackets or IPv4 in them
 *   other    what coil_address_parse says of the address
 */
COIL_API COIL_MUST_USE int
coil_tcp_endpoint_parse(coil_tcp_endpoint *ret_endpoint, const char *text,
                        size_t length);

/**
 * Print an endpoint: the address as coil_address_print has it, in brackets if
 * it is IPv6, a colon and the port; or "unspecified".
 *
 *   capacity  bytes at `ret_text`; COIL_ENDPOINT_TEXT_MAX is always enough
 *
 * Returns the length without the terminator, or -ENOSPC if the text with its
 * terminator does not fit: then it is the empty text, or with a capacity of 0
 * nothing is written.
 */
COIL_API ssize_t coil_tcp_endpoint_print(const coil_tcp_endpoint *endpoint,
                                         char *ret_text, size_t capacity);

/* ---------------------------------------------------------------- inquire */

/** Whether it has an address and a port. */
static inline bool
coil_tcp_endpoint_is_specified(const coil_tcp_endpoint *endpoint)
{
    return endpoint->storage.any.sa_family != AF_UNSPEC;
}

/** The address with its zone; zeroed if unspecified. */
COIL_API coil_address
coil_tcp_endpoint_address(const coil_tcp_endpoint *endpoint);

/** The port in host order; 0 if unspecified. */
COIL_API uint16_t coil_tcp_endpoint_port(const coil_tcp_endpoint *endpoint);

/** Total order: by address as coil_address_compare, then by port. Returns
 * < 0, 0 or > 0. */
COIL_API int coil_tcp_endpoint_compare(const coil_tcp_endpoint *left,
                                       const coil_tcp_endpoint *right);

/** Whether both have the same address, zone and port, or are unspecified. */
COIL_API bool coil_tcp_endpoint_equal(const coil_tcp_endpoint *left,
                                      const coil_tcp_endpoint *right);

/** A hash for tables, as coil_address_hash. */
COIL_API uint64_t coil_tcp_endpoint_hash(const coil_tcp_endpoint *endpoint);

/* ------------------------------------------------------------- the kernel */

/** What system calls take, with coil_tcp_endpoint_size. Borrowed from the
 * endpoint. */
static inline const struct sockaddr *
coil_tcp_endpoint_data(const coil_tcp_endpoint *endpoint)
{
    return &endpoint->storage.any;
}

/** Bytes that go to the kernel: 16 for IPv4, 28 for IPv6, 0 if unspecified. */
COIL_API socklen_t coil_tcp_endpoint_size(const coil_tcp_endpoint *endpoint);

/** Where the kernel may write coil_tcp_endpoint_capacity bytes; then call
 * coil_tcp_endpoint_resize. Borrowed from the endpoint. */
static inline struct sockaddr *
coil_tcp_endpoint_storage(coil_tcp_endpoint *endpoint)
{
    return &endpoint->storage.any;
}

/** Bytes that the kernel may fill. */
static inline socklen_t
coil_tcp_endpoint_capacity(const coil_tcp_endpoint *endpoint)
{
    return (socklen_t)sizeof(endpoint->storage);
}

/**
 * Accept what the kernel wrote to coil_tcp_endpoint_storage.
 *
 *   size  bytes that it says it wrote; 0 makes the endpoint unspecified
 *
 * Returns 0, or with the endpoint made unspecified
 *   -EINVAL        more than the capacity, or too few for the family
 *   -EAFNOSUPPORT  a family other than IPv4 and IPv6
 */
COIL_API COIL_MUST_USE int coil_tcp_endpoint_resize(coil_tcp_endpoint *endpoint,
                                                    socklen_t size);

COIL_END_DECLS

#endif
