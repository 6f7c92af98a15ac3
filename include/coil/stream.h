/**
 * @file
 * What all stream sockets share: the operations behind the read and write
 * calls of each typed socket. Use those; these are for code that is generic
 * over them.
 */
#ifndef COIL_STREAM_H
#define COIL_STREAM_H

#include <coil/operation.h>

COIL_BEGIN_DECLS

/** Read at least one byte; 0 at end of stream. */
COIL_API extern const coil_operation_type coil_stream_read_some_type;
/** Write at least one byte. */
COIL_API extern const coil_operation_type coil_stream_write_some_type;
/** Write every byte. */
COIL_API extern const coil_operation_type coil_stream_write_all_type;

/** A read or write of `size` bytes at `data`, as a value. */
static inline coil_operation
coil_stream_operation(const coil_operation_type *type, coil_handle handle,
                      void *data, size_t size)
{
    coil_operation operation = coil_operation_make(type);

    operation.handle = handle;
    operation.data = data;
    operation.size = size;
    return operation;
}

COIL_END_DECLS

#endif
