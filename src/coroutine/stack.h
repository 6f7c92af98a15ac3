/*
 * Stacks of one size, cut from slabs of address space. Below each lies a guard
 * page; the object that owns the stack sits in its top page and begins with
 * the header declared here, so that one page serves a shallow task.
 */
#ifndef COIL_COROUTINE_STACK_H
#define COIL_COROUTINE_STACK_H

#include <stddef.h>

struct coil__stack {
    char *low;                /* lowest usable byte; the guard is below it */
    struct coil__stack *next; /* on the free list */
    unsigned valgrind_id;
};

struct coil__stack_slab;

struct coil__stack_pool {
    size_t size;                    /* usable bytes of a stack, whole pages */
    size_t object_size;             /* of the object in the top page */
    struct coil__stack *free;       /* last in, first out: the hot one first */
    struct coil__stack_slab *slabs; /* newest first; only it has room */
    unsigned slab_stacks;           /* in the next slab */
    int guard_advice;               /* how guards are made, see stack.c */
    size_t in_use;
    size_t carved; /* stacks that exist */
};

/* `size` is rounded up to whole pages. */
void coil__stack_pool_init(struct coil__stack_pool *pool, size_t size,
                           size_t object_size);

/* Gives back the address space; no stack may be in use. */
void coil__stack_pool_destroy(struct coil__stack_pool *pool);

/* The slow path of coil__stack_acquire: a stack that was never used. */
struct coil__stack *coil__stack_carve(struct coil__stack_pool *pool);

/* A stack, as the object in its top page, or NULL: out of memory. The object
 * keeps what its last user left behind, but for the header. */
static inline struct coil__stack *
coil__stack_acquire(struct coil__stack_pool *pool)
{
    struct coil__stack *stack = pool->free;

    if (__builtin_expect(!stack, 0))
        return coil__stack_carve(pool);
    pool->free = stack->next;
    pool->in_use++;
    return stack;
}

/* Whoever still runs on the stack must leave it before the next acquire. */
static inline void coil__stack_release(struct coil__stack_pool *pool,
                                       struct coil__stack *stack)
{
    stack->next = pool->free;
    pool->free = stack;
    pool->in_use--;
}

size_t coil__page_size(void);

#endif
