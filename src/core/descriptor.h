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
#include <assert.h>
#include <coil/extend.h>

enum {
    COIL__OPERATION_HAS_HANDLE =
        COIL_OPERATION_READS | COIL_OPERATION_WRITES | COIL_OPERATION_SHARES,
    COIL__DESCRIPTOR_CHUNK_BITS = 10,
    COIL__DESCRIPTOR_CHUNK = 1 << COIL__DESCRIPTOR_CHUNK_BITS,
    COIL__DESCRIPTOR_CHUNKS = 1 << 14
};

struct coil__descriptor {
    _Atomic uint32_t generation; /* of the live handle; 0: none */
    uint32_t last;               /* the last generation given out */
    /* Stays after the last request, so that the next one costs no claim. */
    _Atomic(coil_context *) owner;
    coil_request *places[2]; /* the reader and the writer */
    struct coil__list sharers;
    struct coil_task *closer;   /* waits in close for in_flight to be zero */
    _Atomic unsigned in_flight; /* stored by the owner's thread only; others
                                    look whether it is zero */
    bool closing;               /* the last request closes the descriptor */
};

static_assert(sizeof(struct coil__descriptor) == 64, "one cache line each");

extern _Atomic(struct coil__descriptor *)
    coil__descriptors[COIL__DESCRIPTOR_CHUNKS];

/* The entry of a number, or NULL if there never was a handle on it. */
static inline struct coil__descriptor *coil__descriptor_find(int descriptor)
{
    unsigned index = (unsigned)descriptor;
    struct coil__descriptor *chunk;

    if (__builtin_expect(
            index >> COIL__DESCRIPTOR_CHUNK_BITS >= COIL__DESCRIPTOR_CHUNKS, 0))
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

static inline unsigned
coil__descriptor_in_flight(const struct coil__descriptor *entry)
{
    return atomic_load_explicit(&entry->in_flight, memory_order_acquire);
}

/* Load and store, no locked instruction: only the owner's thread writes. The
 * release pairs with coil__descriptor_in_flight on another thread. */
static inline void coil__descriptor_count(struct coil__descriptor *entry,
                                          unsigned change)
{
    unsigned count =
        atomic_load_explicit(&entry->in_flight, memory_order_relaxed);

    atomic_store_explicit(&entry->in_flight, count + change,
                          memory_order_release);
}

/* Makes the context the owner, unless another has requests in flight. */
bool coil__descriptor_claim(struct coil__descriptor *entry,
                            coil_context *context);

/* Where a reader (1) or a writer (2) is noted. */
static inline coil_request **
coil__descriptor_place(struct coil__descriptor *entry, unsigned flags)
{
    return &entry->places[flags >> 1 & 1];
}

/* Takes a place on the handle for a request: 0, -EBADF or -EBUSY. */
static inline int coil__descriptor_enter(coil_context *context,
                                         coil_request *request, unsigned flags)
{
    coil_handle handle = request->operation.handle;
    struct coil__descriptor *entry = coil__descriptor_find(handle.descriptor);
    coil_request **place;

    if (__builtin_expect(!coil__descriptor_is(entry, handle), 0))
        return -EBADF;
    if (__builtin_expect(atomic_load_explicit(&entry->owner,
                                              memory_order_relaxed) != context,
                         0) &&
        !coil__descriptor_claim(entry, context))
        return -EBUSY;
    if (__builtin_expect(flags & COIL_OPERATION_SHARES, 0)) {
        coil__list_append(&entry->sharers, &request->sharers);
    } else {
        place = coil__descriptor_place(entry, flags);
        if (__builtin_expect(*place != NULL, 0))
            return -EBUSY;
        *place = request;
    }
    request->entry = entry;
    coil__descriptor_count(entry, 1);
    return 0;
}

/* What is left to do when the last request has left a closed handle. */
void coil__descriptor_last_left(coil_context *context,
                                struct coil__descriptor *entry, int descriptor);

/* Gives the place back; the last one out of a closed handle closes it. */
static inline void coil__descriptor_leave(coil_context *context,
                                          coil_request *request, unsigned flags)
{
    struct coil__descriptor *entry = request->entry;

    if (__builtin_expect(flags & COIL_OPERATION_SHARES, 0))
        coil__list_remove(&request->sharers);
    else
        *coil__descriptor_place(entry, flags) = NULL;
    coil__descriptor_count(entry, -1u);
    if (__builtin_expect(entry->closing, 0) &&
        !coil__descriptor_in_flight(entry))
        coil__descriptor_last_left(context, entry,
                                   request->operation.handle.descriptor);
}

/* The context is about to go: no entry may name it. */
void coil__descriptor_disown(const coil_context *context);

#endif
