#include "net/endpoint.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

void coil__endpoint_make(union coil__endpoint *ret_endpoint,
                         coil_address address, uint16_t port)
{
    memset(ret_endpoint, 0, sizeof(*ret_endpoint));
    if (coil_address_is_v4(&address)) {
        ret_endpoint->v4.sin_family = AF_INET;
        ret_endpoint->v4.sin_port = htons(port);
        memcpy(&ret_endpoint->v4.sin_addr, address.bytes, 4);
    } else if (coil_address_is_v6(&address)) {
        ret_endpoint->v6.sin6_family = AF_INET6;
        ret_endpoint->v6.sin6_port = htons(port);
        ret_endpoint->v6.sin6_scope_id = address.zone;
        memcpy(&ret_endpoint->v6.sin6_addr, address.bytes, 16);
    }
}

coil_address coil__endpoint_address(const union coil__endpoint *endpoint)
{
    coil_address address = {0};

    if (endpoint->base.sa_family == AF_INET) {
        address.family = AF_INET;
        memcpy(address.bytes, &endpoint->v4.sin_addr, 4);
    } else if (endpoint->base.sa_family == AF_INET6) {
        address.family = AF_INET6;
        address.zone = endpoint->v6.sin6_scope_id;
        memcpy(address.bytes, &endpoint->v6.sin6_addr, 16);
    }
    return address;
}

uint16_t coil__endpoint_port(const union coil__endpoint *endpoint)
{
    if (endpoint->base.sa_family == AF_INET)
        return ntohs(endpoint->v4.sin_port);
    if (endpoint->base.sa_family == AF_INET6)
        return ntohs(endpoint->v6.sin6_port);
    return 0;
}

/* ------------------------------------------------------------------- text */

/* All of the text must be the number. */
static int endpoint_parse_port(const char *text, size_t length,
                               uint16_t *ret_port)
{
    unsigned value = 0;

    if (length < 1 || length > 5 || (length > 1 && text[0] == '0'))
        return -EINVAL;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9')
            return -EINVAL;
        value = 10 * value + (unsigned)(text[i] - '0');
    }
    if (value > UINT16_MAX)
        return -EINVAL;
    *ret_port = (uint16_t)value;
    return 0;
}

/* Finds the address in `text`, without brackets, and where the port begins. */
static int endpoint_split(const char *text, size_t length,
                          const char **ret_address, size_t *ret_length)
{
    const char *end;

    if (!length)
        return -EINVAL;
    if (*text != '[') {
        end = memchr(text, ':', length);
        *ret_address = text;
        *ret_length = end ? (size_t)(end - text) : 0;
        return end ? (int)(end - text) + 1 : -EINVAL;
    }
    end = memchr(text, ']', length);
    if (!end || end + 1 == text + length || end[1] != ':')
        return -EINVAL;
    *ret_address = text + 1;
    *ret_length = (size_t)(end - text) - 1;
    return (int)(end - text) + 2;
}

/* More than any endpoint has: the sums above stay small. */
enum { ENDPOINT_LONGEST = 256 };

int coil__endpoint_parse(union coil__endpoint *ret_endpoint, const char *text,
                         size_t length)
{
    const char *address_text;
    size_t address_length;
    coil_address address;
    uint16_t port;
    int begin, result;

    if (length > ENDPOINT_LONGEST)
        return -EINVAL;
    begin = endpoint_split(text, length, &address_text, &address_length);
    if (begin < 0)
        return begin;
    result = coil_address_parse(&address, address_text, address_length);
    if (result < 0)
        return result;
    /* IPv6 has brackets and IPv4 has none. */
    if (coil_address_is_v6(&address) != (*text == '['))
        return -EINVAL;
    result = endpoint_parse_port(text + begin, length - (size_t)begin, &port);
    if (result >= 0)
        coil__endpoint_make(ret_endpoint, address, port);
    return result;
}

int coil__endpoint_print(const union coil__endpoint *endpoint, char *ret_text,
                         size_t capacity)
{
    char text[COIL_ADDRESS_TEXT_MAX + 8], name[COIL_ADDRESS_TEXT_MAX];
    coil_address address = coil__endpoint_address(endpoint);
    int length;

    coil_address_print(&address, name, sizeof(name));
    if (!address.family)
        length = snprintf(text, sizeof(text), "%s", name);
    else
        length = snprintf(text, sizeof(text),
                          coil_address_is_v6(&address) ? "[%s]:%u" : "%s:%u",
                          name, coil__endpoint_port(endpoint));
    if ((size_t)length >= capacity)
        return -ENOSPC;
    memcpy(ret_text, text, (size_t)length + 1);
    return length;
}

/* ------------------------------------------------------------ comparisons */

int coil__endpoint_compare(const union coil__endpoint *left,
                           const union coil__endpoint *right)
{
    coil_address left_address = coil__endpoint_address(left);
    coil_address right_address = coil__endpoint_address(right);
    int order = coil_address_compare(&left_address, &right_address);

    return order ? order
                 : coil__endpoint_port(left) - coil__endpoint_port(right);
}

uint64_t coil__endpoint_hash(const union coil__endpoint *endpoint)
{
    coil_address address = coil__endpoint_address(endpoint);
    uint64_t hash = coil_address_hash(&address) + coil__endpoint_port(endpoint);

    hash *= UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

/* ----------------------------------------------------------------- kernel */

socklen_t coil__endpoint_size(const union coil__endpoint *endpoint)
{
    if (endpoint->base.sa_family == AF_INET)
        return sizeof(endpoint->v4);
    return endpoint->base.sa_family == AF_INET6 ? sizeof(endpoint->v6) : 0;
}

int coil__endpoint_resize(union coil__endpoint *endpoint, socklen_t size)
{
    if (size >= sizeof(endpoint->base.sa_family) &&
        size <= sizeof(*endpoint) && coil__endpoint_size(endpoint) &&
        size >= coil__endpoint_size(endpoint))
        return 0;
    memset(endpoint, 0, sizeof(*endpoint));
    return -EINVAL;
}
