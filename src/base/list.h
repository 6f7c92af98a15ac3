/*
 * An intrusive, circular, doubly linked list. A node that is on no list points
 * to itself, so that unlinking twice is harmless.
 */
#ifndef COIL_BASE_LIST_H
#define COIL_BASE_LIST_H

#include <coil/internal.h>
#include <stdbool.h>
#include <stddef.h>

/** The object of `type` whose `member` is the list node `node`. */
#define COIL__CONTAINER(node, type, member)                                    \
    ((type *)(void *)((char *)(node)-offsetof(type, member)))

static inline void coil__list_init(struct coil__list *list)
{
    list->next = list->previous = list;
}

static inline bool coil__list_is_empty(const struct coil__list *list)
{
    return list->next == list;
}

static inline void coil__list_append(struct coil__list *list,
                                     struct coil__list *node)
{
    node->previous = list->previous;
    node->next = list;
    list->previous->next = node;
    list->previous = node;
}

static inline void coil__list_remove(struct coil__list *node)
{
    node->previous->next = node->next;
    node->next->previous = node->previous;
    node->next = node->previous = node;
}

/* Moves all nodes of `from` to the end of the empty list `to`. */
static inline void coil__list_take_all(struct coil__list *to,
                                       struct coil__list *from)
{
    coil__list_init(to);
    if (coil__list_is_empty(from))
        return;
    *to = *from;
    to->next->previous = to;
    to->previous->next = to;
    coil__list_init(from);
}

#endif
