/*
 * What the endpoint types of the internet protocols share: all are the same
 * socket address under a name of their own.
 */
#ifndef COIL_NET_ENDPOINT_H
#define COIL_NET_ENDPOINT_H

#include <coil/address.h>
#include <netinet/in.h>
#include <sys/socket.h>

union coil__endpoint {
    struct sockaddr base;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_storage storage;
};

void coil__endpoint_make(union coil__endpoint *ret_endpoint,
                         coil_address address, uint16_t port);
int coil__endpoint_parse(union coil__endpoint *ret_endpoint, const char *text,
                         size_t length);
int coil__endpoint_print(const union coil__endpoint *endpoint, char *ret_text,
                         size_t capacity);
coil_address coil__endpoint_address(const union coil__endpoint *endpoint);
uint16_t coil__endpoint_port(const union coil__endpoint *endpoint);
int coil__endpoint_compare(const union coil__endpoint *left,
                           const union coil__endpoint *right);
uint64_t coil__endpoint_hash(const union coil__endpoint *endpoint);
socklen_t coil__endpoint_size(const union coil__endpoint *endpoint);
int coil__endpoint_resize(union coil__endpoint *endpoint, socklen_t size);

#endif
