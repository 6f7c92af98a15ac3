/*
 * What every socket shares, whatever its type: opening, addresses, options.
 */
#ifndef COIL_NET_SOCKET_H
#define COIL_NET_SOCKET_H

#include <coil/extend.h>
#include <sys/socket.h>

int coil__socket_open(coil_handle *ret_handle, int family, int type,
                      int protocol);
int coil__socket_bind(coil_handle handle, const struct sockaddr *address,
                      socklen_t size);
int coil__socket_set(coil_handle handle, int level, int name, int value);
int coil__socket_get(coil_handle handle, int level, int name, int *ret_value);

#endif
