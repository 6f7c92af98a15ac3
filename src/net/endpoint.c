/*
 * The calls on storage do the work for every protocol; the typed ones below
 * give them a name per protocol and nothing else.
 */
#include "net/address_text.h"
#include <coil/endpoint.h>
#include <errno.h>
#include <string.h>

/* ---------------------------------------------------------------- storage */

static coil_endpoint_storage endpoint_make(const coil_address *address,
                                           uint16_t port)
{
    coil_endpoint_storage storage;

    memset(&storage, 0, sizeof(storage));
    if (coil_address_is_v4(address)) {
        storage.v4.sin_family = AF_INET;
        storage.v4.sin_port = htons(port);
        memcpy(&storage.v4.sin_addr, address->bytes, 4);
    } else if (coil_address_is_v6(address)) {
        storage.v6.sin6_family = AF_INET6;
        storage.v6.sin6_port = htons(port);
        memcpy(&storage.v6.sin6_addr, address->bytes, 16);
        storage.v6.sin6_scope_id = address->zone;
    }
    return storage;
}

static socklen_t endpoint_size(const coil_endpoint_storage *storage)
{
    switch (storage->any.sa_family) {
    case AF_INET:
        return sizeof(storage->v4);
    case AF_INET6:
        return sizeof(storage->v6);
    default:
        return 0;
    }
}

static coil_address endpoint_address(const coil_endpoint_storage *storage)
{
    switch (storage->any.sa_family) {
    case AF_INET:
        return coil_address_v4(ntohl(storage->v4.sin_addr.s_addr));
    case AF_INET6:
        return coil_address_v6(storage->v6.sin6_addr.s6_addr,
                               storage->v6.sin6_scope_id);
    default:
        return (coil_address){0};
    }
}

static uint16_t endpoint_port(const coil_endpoint_storage *storage)
{
    switch (storage->any.sa_family) {
    case AF_INET:
        return ntohs(storage->v4.sin_port);
    case AF_INET6:
        return ntohs(storage->v6.sin6_port);
    default:
        return 0;
    }
}

/* Whether `size` bytes from the kernel are an endpoint; 0 if so. */
static int endpoint_check(const coil_endpoint_storage *storage, socklen_t size)
{
    if (size > sizeof(*storage) || size < sizeof(storage->any.sa_family))
        return -EINVAL;
    if (storage->any.sa_family == AF_UNSPEC)
        return 0;
    if (endpoint_size(storage) == 0)
        return -EAFNOSUPPORT;
    return size < endpoint_size(storage) ? -EINVAL : 0;
}

/* Making it anew drops the flow label, which is no part of an endpoint, and
 * whatever was in the rest of the storage. */
static int endpoint_resize(coil_endpoint_storage *storage, socklen_t size)
{
    int result = size ? endpoint_check(storage, size) : 0;
    coil_address address = {0};
    uint16_t port = 0;

    if (size && result >= 0) {
        address = endpoint_address(storage);
        port = endpoint_port(storage);
    }
    *storage = endpoint_make(&address, port);
    return result;
}

static int endpoint_compare(const coil_endpoint_storage *left,
                            const coil_endpoint_storage *right)
{
    coil_address left_address = endpoint_address(left);
    coil_address right_address = endpoint_address(right);
    int order = coil_address_compare(&left_address, &right_address);

    return order ? order : endpoint_port(left) - endpoint_port(right);
}

/* The low bits of a product depend on the low bits of its factors only, so the
 * high ones are folded in before and after. */
static uint64_t endpoint_hash(const coil_endpoint_storage *storage)
{
    coil_address address = endpoint_address(storage);
    uint64_t hash = coil_address_hash(&address);

    hash ^= endpoint_port(storage) * 0x9e3779b97f4a7c15;
    hash = (hash ^ hash >> 32) * 0xbf58476d1ce4e5b9;
    return hash ^ hash >> 29;
}

/* ------------------------------------------------------------------- text */

/* Takes a colon and a port that ends the text. */
static bool endpoint_take_port(struct address_text *text, uint16_t *ret_port)
{
    uint32_t port;

    if (!address_text_take(text, ':') ||
        !address_text_take_number(text, UINT16_MAX, &port) ||
        !address_text_ends(text))
        return false;
    *ret_port = (uint16_t)port;
    return true;
}

/* The place of the last `]`, for the name of an interface may contain others;
 * or NULL. */
static const char *endpoint_find_bracket(const struct address_text *text)
{
    const char *at = text->end;

    while (at > text->at)
        if (*--at == ']')
            return at;
    return NULL;
}

/* The port is read first: an endpoint without one is malformed, whatever its
 * zone. An IPv4 address has no colon, so the first one ends it. */
static int endpoint_parse(coil_endpoint_storage *ret_storage, const char *text,
                          size_t length)
{
    struct address_text front = {text, NULL}, rest;
    coil_address address;
    uint16_t port;
    bool bracket;
    int result;

    if (length == 0)
        return -EINVAL;
    front.end = text + length;
    rest = front;
    bracket = address_text_take(&front, '[');
    rest.at =
        bracket ? endpoint_find_bracket(&front) : memchr(text, ':', length);
    if (!rest.at)
        return -EINVAL;
    front.end = rest.at;
    rest.at += bracket;
    if (!endpoint_take_port(&rest, &port))
        return -EINVAL;
    result =
        coil_address_parse(&address, front.at, (size_t)(front.end - front.at));
    if (result >= 0 && coil_address_is_v6(&address) != bracket)
        result = -EINVAL;
    if (result >= 0)
        *ret_storage = endpoint_make(&address, port);
    return result;
}

/* Writes at most COIL_ENDPOINT_TEXT_MAX - 1 characters and a terminator;
 * returns the length. */
static size_t endpoint_put(char *text, const coil_endpoint_storage *storage)
{
    coil_address address = endpoint_address(storage);
    bool bracket = coil_address_is_v6(&address);
    char *at = text;

    *at = '[';
    at += bracket;
    at += coil_address_print(&address, at, COIL_ADDRESS_TEXT_MAX);
    *at = ']';
    at += bracket;
    if (endpoint_size(storage)) {
        *at++ = ':';
        at = address_text_put_number(at, endpoint_port(storage), 10);
    }
    *at = '\0';
    return (size_t)(at - text);
}

static ssize_t endpoint_print(const coil_endpoint_storage *storage,
                              char *ret_text, size_t capacity)
{
    char text[COIL_ENDPOINT_TEXT_MAX];
    size_t length = endpoint_put(text, storage);

    if (length >= capacity) {
        if (capacity)
            *ret_text = '\0';
        return -ENOSPC;
    }
    memcpy(ret_text, text, length + 1);
    return (ssize_t)length;
}

/* -------------------------------------------------------------------- TCP */

coil_tcp_endpoint coil_tcp_endpoint_make(coil_address address, uint16_t port)
{
    return (coil_tcp_endpoint){endpoint_make(&address, port)};
}

int coil_tcp_endpoint_from_text(coil_tcp_endpoint *ret_endpoint,
                                const char *text, size_t length, uint16_t port)
{
    coil_address address;
    int result = coil_address_parse(&address, text, length);

    if (result >= 0)
        *ret_endpoint = coil_tcp_endpoint_make(address, port);
    return result;
}

int coil_tcp_endpoint_parse(coil_tcp_endpoint *ret_endpoint, const char *text,
                            size_t length)
{
    return endpoint_parse(&ret_endpoint->storage, text, length);
}

ssize_t coil_tcp_endpoint_print(const coil_tcp_endpoint *endpoint,
                                char *ret_text, size_t capacity)
{
    return endpoint_print(&endpoint->storage, ret_text, capacity);
}

coil_address coil_tcp_endpoint_address(const coil_tcp_endpoint *endpoint)
{
    return endpoint_address(&endpoint->storage);
}

uint16_t coil_tcp_endpoint_port(const coil_tcp_endpoint *endpoint)
{
    return endpoint_port(&endpoint->storage);
}

int coil_tcp_endpoint_compare(const coil_tcp_endpoint *left,
                              const coil_tcp_endpoint *right)
{
    return endpoint_compare(&left->storage, &right->storage);
}

bool coil_tcp_endpoint_equal(const coil_tcp_endpoint *left,
                             const coil_tcp_endpoint *right)
{
    return endpoint_compare(&left->storage, &right->storage) == 0;
}

uint64_t coil_tcp_endpoint_hash(const coil_tcp_endpoint *endpoint)
{
    return endpoint_hash(&endpoint->storage);
}

socklen_t coil_tcp_endpoint_size(const coil_tcp_endpoint *endpoint)
{
    return endpoint_size(&endpoint->storage);
}

int coil_tcp_endpoint_resize(coil_tcp_endpoint *endpoint, socklen_t size)
{
    return endpoint_resize(&endpoint->storage, size);
}
