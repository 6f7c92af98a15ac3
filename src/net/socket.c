#include "net/socket.h"
#include "base/kernel.h"

int coil__socket_open(coil_handle *ret_handle, int family, int type,
                      int protocol)
{
    int descriptor = coil__kernel_socket(family, type, protocol);
    int result;

    if (descriptor < 0)
        return descriptor;
    result = coil_handle_open(ret_handle, descriptor);
    if (result < 0)
        (void)coil__kernel_close(descriptor);
    return result;
}

int coil__socket_bind(coil_handle handle, const struct sockaddr *address,
                      socklen_t size)
{
    int descriptor = coil_handle_descriptor(handle);

    if (descriptor < 0)
        return descriptor;
    return coil__kernel_bind(descriptor, address, size);
}

int coil__socket_set(coil_handle handle, int level, int name, int value)
{
    int descriptor = coil_handle_descriptor(handle);

    if (descriptor < 0)
        return descriptor;
    return coil__kernel_set_option(descriptor, level, name, &value,
                                   sizeof(value));
}

int coil__socket_get(coil_handle handle, int level, int name, int *ret_value)
{
    int descriptor = coil_handle_descriptor(handle);
    socklen_t size = sizeof(*ret_value);
    int value = 0, result;

    if (descriptor < 0)
        return descriptor;
    result = coil__kernel_get_option(descriptor, level, name, &value, &size);
    if (result >= 0)
        *ret_value = value;
    return result;
}
