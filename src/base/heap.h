/*
 * A pairing heap of deadlines whose nodes live in the waiting frames: nothing
 * is allocated, so arming cannot fail. Equal deadlines leave in the order in
 * which they came.
 */
#ifndef COIL_BASE_HEAP_H
#define COIL_BASE_HEAP_H

#include <coil/internal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct coil__heap {
    struct coil__heap_node *root;
    uint64_t inserted;
};

static inline struct coil__heap_node *
coil__heap_first(const struct coil__heap *heap)
{
    return heap->root;
}

void coil__heap_insert(struct coil__heap *heap, struct coil__heap_node *node,
                       int64_t key);
void coil__heap_remove(struct coil__heap *heap, struct coil__heap_node *node);

#endif
