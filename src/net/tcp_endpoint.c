#include "net/endpoint.h"
#include <coil/endpoint.h>

/* The public type under its name inside the library: the members of its union
 * are the same. */
static union coil__endpoint *tcp_endpoint_core(coil_tcp_endpoint *endpoint)
{
    return (union coil__endpoint *)(void *)&endpoint->address;
}

static const union coil__endpoint *
tcp_endpoint_look(const coil_tcp_endpoint *endpoint)
{
    return (const union coil__endpoint *)(const void *)&endpoint->address;
}

coil_tcp_endpoint coil_tcp_endpoint_make(coil_address address, uint16_t port)
{
    coil_tcp_endpoint endpoint;

    coil__endpoint_make(tcp_endpoint_core(&endpoint), address, port);
    return endpoint;
}

int coil_tcp_endpoint_from_text(coil_tcp_endpoint *ret_endpoint,
                                const char *text, size_t length, uint16_t port)
{
    coil_address address;
    int result = coil_address_parse(&address, text, length);

    if (result >= 0)
        coil__endpoint_make(tcp_endpoint_core(ret_endpoint), address, port);
    return result;
}

int coil_tcp_endpoint_parse(coil_tcp_endpoint *ret_endpoint, const char *text,
                            size_t length)
{
    return coil__endpoint_parse(tcp_endpoint_core(ret_endpoint), text, length);
}

int coil_tcp_endpoint_print(const coil_tcp_endpoint *endpoint, char *ret_text,
                            size_t capacity)
{
    return coil__endpoint_print(tcp_endpoint_look(endpoint), ret_text,
                                capacity);
}

coil_address coil_tcp_endpoint_address(const coil_tcp_endpoint *endpoint)
{
    return coil__endpoint_address(tcp_endpoint_look(endpoint));
}

uint16_t coil_tcp_endpoint_port(const coil_tcp_endpoint *endpoint)
{
    return coil__endpoint_port(tcp_endpoint_look(endpoint));
}

bool coil_tcp_endpoint_is_specified(const coil_tcp_endpoint *endpoint)
{
    return coil_tcp_endpoint_size(endpoint) != 0;
}

int coil_tcp_endpoint_compare(const coil_tcp_endpoint *left,
                              const coil_tcp_endpoint *right)
{
    return coil__endpoint_compare(tcp_endpoint_look(left),
                                  tcp_endpoint_look(right));
}

bool coil_tcp_endpoint_equal(const coil_tcp_endpoint *left,
                             const coil_tcp_endpoint *right)
{
    return coil_tcp_endpoint_compare(left, right) == 0;
}

uint64_t coil_tcp_endpoint_hash(const coil_tcp_endpoint *endpoint)
{
    return coil__endpoint_hash(tcp_endpoint_look(endpoint));
}

const struct sockaddr *coil_tcp_endpoint_data(const coil_tcp_endpoint *endpoint)
{
    return &endpoint->address.base;
}

socklen_t coil_tcp_endpoint_size(const coil_tcp_endpoint *endpoint)
{
    return coil__endpoint_size(tcp_endpoint_look(endpoint));
}

struct sockaddr *coil_tcp_endpoint_storage(coil_tcp_endpoint *endpoint)
{
    return &endpoint->address.base;
}

socklen_t coil_tcp_endpoint_capacity(const coil_tcp_endpoint *endpoint)
{
    return sizeof(endpoint->address);
}

int coil_tcp_endpoint_resize(coil_tcp_endpoint *endpoint, socklen_t size)
{
    return coil__endpoint_resize(tcp_endpoint_core(endpoint), size);
}
