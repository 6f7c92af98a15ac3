#include "base/heap.h"

/*
 * Inserting compares with the root only, and a node without children leaves
 * by being unlinked: the life of nearly every limit, which is armed and then
 * cancelled, costs no comparison with other nodes. Only removing the first
 * node has to sort, by joining its children in pairs.
 */

static bool heap_before(const struct coil__heap_node *left,
                        const struct coil__heap_node *right)
{
    return left->key < right->key ||
           (left->key == right->key && left->order < right->order);
}

/* Makes the later of two roots the first child of the earlier one. */
static struct coil__heap_node *heap_join(struct coil__heap_node *left,
                                         struct coil__heap_node *right)
{
    struct coil__heap_node *parent = left, *child = right;

    if (heap_before(right, left)) {
        parent = right;
        child = left;
    }
    child->next = parent->child;
    if (child->next)
        child->next->previous = child;
    child->previous = parent;
    parent->child = child;
    return parent;
}

/* Joins a chain of siblings into one tree: first in pairs from the left, then
 * the pairs from the right. The pairs wait on a stack made of their `next`. */
static struct coil__heap_node *heap_join_all(struct coil__heap_node *sibling)
{
    struct coil__heap_node *pairs = NULL, *joined = NULL;

    while (sibling) {
        struct coil__heap_node *second = sibling->next, *rest = NULL;

        if (second) {
            rest = second->next;
            sibling = heap_join(sibling, second);
        }
        sibling->next = pairs;
        pairs = sibling;
        sibling = rest;
    }
    while (pairs) {
        struct coil__heap_node *rest = pairs->next;

        joined = joined ? heap_join(joined, pairs) : pairs;
        pairs = rest;
    }
    return joined;
}

static void heap_unlink(struct coil__heap_node *node)
{
    if (node->previous->child == node)
        node->previous->child = node->next;
    else
        node->previous->next = node->next;
    if (node->next)
        node->next->previous = node->previous;
}

static void heap_set_root(struct coil__heap *heap, struct coil__heap_node *node)
{
    heap->root = node;
    if (node) {
        node->previous = NULL;
        node->next = NULL;
    }
}

void coil__heap_insert(struct coil__heap *heap, struct coil__heap_node *node)
{
    node->child = NULL;
    node->next = NULL;
    heap_set_root(heap, heap->root ? heap_join(heap->root, node) : node);
}

void coil__heap_remove(struct coil__heap *heap, struct coil__heap_node *node)
{
    struct coil__heap_node *rest = node->child;

    if (node == heap->root) {
        heap_set_root(heap, heap_join_all(rest));
        return;
    }
    heap_unlink(node);
    if (rest)
        heap_set_root(heap, heap_join(heap->root, heap_join_all(rest)));
}
