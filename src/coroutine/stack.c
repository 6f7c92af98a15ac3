#include "coroutine/stack.h"
#include "base/kernel.h"
#include "coroutine/note.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * A stack and its guard page together have an odd number of pages when the
 * stack has a power of two, so the tops of neighbours fall into different
 * cache sets; sixteen colours, a few cache lines each, spread them further.
 * Slabs double in size: a million stacks are some thirty mappings, as long as
 * the kernel has guards that split none (Linux 6.13). Before that, mprotect
 * cuts a slab in two per stack, and vm.max_map_count ends it at about 32,000.
 */
enum {
    STACK_COLOURS = 16,
    STACK_COLOUR_BYTES = 64,
    STACK_SLAB_FIRST = 16,
    STACK_SLAB_MOST = COIL__INSTRUMENTED ? 256 : 65536,
    STACK_GUARD_BY_PROTECT = -1
};

struct coil__stack_slab {
    struct coil__stack_slab *next;
    char *memory;
    size_t size;
    unsigned stacks, carved;
};

/* Threads may meet here: each finds out the same. */
size_t coil__page_size(void)
{
    static _Atomic size_t page_size;
    size_t size = atomic_load_explicit(&page_size, memory_order_relaxed);

    if (!size) {
        size = (size_t)sysconf(_SC_PAGESIZE);
        atomic_store_explicit(&page_size, size, memory_order_relaxed);
    }
    return size;
}

static size_t stack_stride(const struct coil__stack_pool *pool)
{
    return pool->size + coil__page_size();
}

void coil__stack_pool_init(struct coil__stack_pool *pool, size_t size,
                           size_t object_size)
{
    size_t page = coil__page_size();

    *pool = (struct coil__stack_pool){
        .size = (size + page - 1) / page * page,
        .object_size = (object_size + 63) / 64 * 64,
        .slab_stacks = STACK_SLAB_FIRST,
        /* The leak checker reads whole slabs and must see where not to. */
        .guard_advice =
            COIL__INSTRUMENTED ? STACK_GUARD_BY_PROTECT : MADV_GUARD_INSTALL,
    };
}

/* The object's place: at the top, lower by the colour of the stack's turn. */
static struct coil__stack *stack_object(const struct coil__stack_pool *pool,
                                        char *low, unsigned index)
{
    size_t colour = index % STACK_COLOURS * STACK_COLOUR_BYTES;

    return (struct coil__stack *)(void *)(low + pool->size - colour -
                                          pool->object_size);
}

static char *stack_low(const struct coil__stack_pool *pool,
                       const struct coil__stack_slab *slab, unsigned index)
{
    return slab->memory + index * stack_stride(pool) + coil__page_size();
}

static void stack_slab_destroy(struct coil__stack_pool *pool,
                               struct coil__stack_slab *slab)
{
    for (unsigned i = 0; i < slab->carved; i++)
        coil__note_stack_gone(
            stack_object(pool, stack_low(pool, slab, i), i)->valgrind_id);
    coil__note_slab_gone(slab->memory, slab->size);
    coil__kernel_unmap(slab->memory, slab->size);
    coil__kernel_free(slab);
}

void coil__stack_pool_destroy(struct coil__stack_pool *pool)
{
    while (pool->slabs) {
        struct coil__stack_slab *slab = pool->slabs;

        pool->slabs = slab->next;
        stack_slab_destroy(pool, slab);
    }
    pool->free = NULL;
}

/* Adds a slab; one of half the size each time address space is refused. */
static bool stack_add_slab(struct coil__stack_pool *pool)
{
    struct coil__stack_slab *slab = coil__kernel_allocate(sizeof(*slab));
    unsigned stacks = pool->slab_stacks;

    if (!slab)
        return false;
    for (; stacks > 0; stacks /= 2) {
        slab->size = stacks * stack_stride(pool);
        slab->memory = coil__kernel_map(slab->size);
        if (slab->memory)
            break;
    }
    if (!slab->memory) {
        coil__kernel_free(slab);
        return false;
    }
    slab->stacks = stacks;
    slab->next = pool->slabs;
    pool->slabs = slab;
    if (pool->slab_stacks < STACK_SLAB_MOST)
        pool->slab_stacks *= 2;
    /* A huge page would back sixteen shallow stacks with 2 MiB. A kernel
     * without huge pages refuses; nothing is lost. */
    (void)coil__kernel_advise(slab->memory, slab->size, MADV_NOHUGEPAGE);
    coil__note_slab(slab->memory, slab->size);
    return true;
}

/* Makes the page below a stack fault on every access. */
static bool stack_guard(struct coil__stack_pool *pool, char *page)
{
    size_t size = coil__page_size();

    if (pool->guard_advice != STACK_GUARD_BY_PROTECT) {
        int result = coil__kernel_advise(page, size, pool->guard_advice);

        if (result >= 0)
            return true;
        if (result != -EINVAL)
            return false;
        pool->guard_advice = STACK_GUARD_BY_PROTECT;
    }
    return coil__kernel_protect(page, size) >= 0;
}

struct coil__stack *coil__stack_carve(struct coil__stack_pool *pool)
{
    struct coil__stack_slab *slab = pool->slabs;
    struct coil__stack *stack;
    char *low;

    if (!slab || slab->carved == slab->stacks) {
        if (!stack_add_slab(pool))
            return NULL;
        slab = pool->slabs;
    }
    low = stack_low(pool, slab, slab->carved);
    if (!stack_guard(pool, low - coil__page_size()))
        return NULL;
    stack = stack_object(pool, low, slab->carved++);
    stack->low = low;
    stack->valgrind_id = coil__note_stack(low, low + pool->size);
    pool->carved++;
    pool->in_use++;
    return stack;
}
