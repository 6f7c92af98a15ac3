/*
 * A pairing heap of deadlines whose nodes live in the waiting frames: nothing
 * is allocated, so arming cannot fail. Equal deadlines leave in the order of
 * `order`.
 */
#ifndef COIL_BASE_HEAP_H
#define COIL_BASE_HEAP_H

#include <coil/internal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct coil__heap {
    struct coil__heap_node *root;
};

static inline struct coil__heap_node *
coil__heap_first(const struct coil__heap *heap)
{
    return heap->root;
}

/* The node's key and order are set. */
void coil__heap_insert(struct coil__heap *heap, struct coil__heap_node *node);
void coil__heap_remove(struct coil__heap *heap, struct coil__heap_node *node);

#endif
