/*
 * The process-wide table of descriptors: which generation of a number is
 * live, which context has requests on it, and which requests those are.
 *
 * Generation and owner are atomic: any thread may compare a handle. The rest
 * belongs to the owner's thread while requests are in flight, and otherwise to
 * whoever uses the socket, one at a time.
 */
#ifndef COIL_CORE_DESCRIPTOR_H
#define COIL_CORE_DESCRIPTOR_H

#include "core/context.h"
#include <coil/extend.h>

enum {
    COIL__OPERATION_HAS_HANDLE = COIL_OPERATION_READS | COIL_OPERATION_WRITES |
                                 COIL_OPERATION_SHARES,
    COIL__DESCRIPTOR_CHUNK_BITS = 10,
    COIL__DESCRIPTOR_CHUNK = 1 << COIL__DESCRIPTOR_CHUNK_BITS,
    COIL__DESCRIPTOR_CHUNKS = 1 << 14
};

struct coil__descriptor {
    _Atomic uint32_t generation; /* of the live handle; 0: none */
    uint32_t last;               /* the last generation given out */
    /* Stays after the last request, so that the next one costs no claim. */
    _Atomic(coil_context *) owner;
    _Atomic unsigned in_flight;  /* stored by the owner's thread only; others
                                    look whether it is zero */
    coil_request *reader, *writer;
    struct coil__list sharers;
    struct coil_task *closer;    /* waits in close for in_flight to be zero */
    int close_result;
    bool closing;                /* the last request closes the descriptor */
};

extern _Atomic(struct coil__descriptor *)
    coil__descriptors[COIL__DESCRIPTOR_CHUNKS];

/* The entry of a number, or NULL if there never was a handle on it. */
static inline struct coil__descriptor *coil__descriptor_find(int descriptor)
{
    unsigned index = (unsigned)descriptor;
    struct coil__descriptor *chunk;

    if (__builtin_expect(index >> COIL__DESCRIPTOR_CHUNK_BITS >=
                             COIL__DESCRIPTOR_CHUNKS, 0))
        return NULL;
    /* Acquire pairs with the release that published the chunk. */
    chunk = atomic_load_explicit(
        &coil__descriptors[index >> COIL__DESCRIPTOR_CHUNK_BITS],
        memory_order_acquire);
    return chunk ? &chunk[index % COIL__DESCRIPTOR_CHUNK] : NULL;
}

static inline bool coil__descriptor_is(const struct coil__descriptor *entry,
                                       coil_handle handle)
{
    return entry && handle.generation &&
           atomic_load_explicit(&entry->generation, memory_order_relaxed) ==
               handle.generation;
}

/* Takes a place on the handle for a request: 0, -EBADF or -EBUSY. */
int coil__descriptor_enter(coil_context *context, coil_request *request);

/* Gives the place back; the last one out of a closed handle closes it. */
void coil__descriptor_leave(coil_context *context, coil_request *request);

/* The context is about to go: no entry may name it. */
void coil__descriptor_disown(const coil_context *context);

#endif
