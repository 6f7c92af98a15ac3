/**
 * @file
 * Types that public structures contain but that only the library reads and
 * writes. Nothing here is for the user.
 */
#ifndef COIL_INTERNAL_H
#define COIL_INTERNAL_H

#include <coil/export.h>

/** @cond internal */
struct coil_context;

struct coil__list {
    struct coil__list *next, *previous;
};

struct coil__heap_node {
    int64_t key;
    uint64_t order; /* breaks ties */
    struct coil__heap_node *child, *next;
    struct coil__heap_node *previous; /* elder sibling, or parent; NULL: root */
};

struct coil__timer {
    union {
        struct coil__heap_node near;
        struct {
            int64_t key;
            uint64_t order; /* these two as in `near` */
            struct coil__list slot;
        } far;
    } node;
    void (*expire)(struct coil_context *context, struct coil__timer *timer);
    bool armed;
    bool is_far;
};
/** @endcond */

#endif
