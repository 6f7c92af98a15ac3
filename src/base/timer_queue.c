#include "base/timer_queue.h"

/* So many timers of a slot are looked at to find its first deadline: a loop
 * with few timers then sleeps up to the deadline itself. */
enum { QUEUE_LOOK = 4 };

static struct coil__timer *timer_of(struct coil__list *node)
{
    return COIL__CONTAINER(node, struct coil__timer, node.far.slot);
}

void coil__timer_queue_init(struct coil__timer_queue *queue, int64_t now)
{
    *queue =
        (struct coil__timer_queue){.tick = (uint64_t)now >> COIL__TICK_BITS};
    for (unsigned level = 0; level < COIL__WHEEL_LEVELS; level++)
        for (unsigned slot = 0; slot < COIL__WHEEL_SLOTS; slot++)
            coil__list_init(&queue->slots[level][slot]);
}

static uint64_t tick_of(int64_t deadline)
{
    return deadline > 0 ? (uint64_t)deadline >> COIL__TICK_BITS : 0;
}

/*
 * The level is that of the highest bit in which the tick differs from the
 * present one. So a level holds only slots that lie ahead within the present
 * slot of the level above: the first one is the lowest bit that is set, and no
 * level holds anything later than what is on the levels above it.
 */
static void queue_file(struct coil__timer_queue *queue,
                       struct coil__timer *timer)
{
    uint64_t tick = tick_of(timer->node.near.key);
    unsigned level, slot;

    timer->is_far = tick > queue->tick;
    if (!timer->is_far) {
        coil__heap_insert(&queue->near, &timer->node.near);
        return;
    }
    level = (63 - (unsigned)__builtin_clzll(tick ^ queue->tick)) /
            COIL__WHEEL_SLOT_BITS;
    slot = (tick >> level * COIL__WHEEL_SLOT_BITS) & (COIL__WHEEL_SLOTS - 1);
    queue->filled[level] |= (uint64_t)1 << slot;
    coil__list_append(&queue->slots[level][slot], &timer->node.far.slot);
}

void coil__timer_queue_insert(struct coil__timer_queue *queue,
                              struct coil__timer *timer, int64_t deadline)
{
    if (deadline < queue->next)
        queue->next = deadline;
    timer->node.near.key = deadline;
    timer->node.near.order = queue->armed++;
    queue_file(queue, timer);
}

/* Leaves the slot's bit as it is: whoever looks for the next slot finds this
 * one empty and clears it. */
void coil__timer_queue_remove(struct coil__timer_queue *queue,
                              struct coil__timer *timer)
{
    if (timer->node.near.key == queue->next)
        queue->next_known = false;
    if (timer->is_far)
        coil__list_remove(&timer->node.far.slot);
    else
        coil__heap_remove(&queue->near, &timer->node.near);
}

/* The first slot that holds something, and the tick at which it begins. */
static struct coil__list *queue_first_slot(struct coil__timer_queue *queue,
                                           uint64_t *ret_tick)
{
    for (unsigned level = 0; level < COIL__WHEEL_LEVELS; level++)
        while (queue->filled[level]) {
            unsigned slot = (unsigned)__builtin_ctzll(queue->filled[level]);
            unsigned shift = level * COIL__WHEEL_SLOT_BITS;
            uint64_t above = queue->tick >> shift >> COIL__WHEEL_SLOT_BITS;

            if (!coil__list_is_empty(&queue->slots[level][slot])) {
                *ret_tick = (above << COIL__WHEEL_SLOT_BITS | slot) << shift;
                return &queue->slots[level][slot];
            }
            queue->filled[level] &= queue->filled[level] - 1;
        }
    return NULL;
}

/* Brings `tick` up to `target`. A slot whose time has come is filed anew: on a
 * level below, or in the heap. */
static void queue_advance(struct coil__timer_queue *queue, uint64_t target)
{
    struct coil__list *slot, arrived;
    uint64_t tick;

    while ((slot = queue_first_slot(queue, &tick)) && tick <= target) {
        queue->tick = tick;
        coil__list_take_all(&arrived, slot);
        while (!coil__list_is_empty(&arrived)) {
            struct coil__list *node = arrived.next;

            __builtin_prefetch(node->next->next, 1);
            coil__list_remove(node);
            queue_file(queue, timer_of(node));
        }
    }
    if (target > queue->tick)
        queue->tick = target;
}

static int64_t queue_find_next(struct coil__timer_queue *queue)
{
    const struct coil__heap_node *first = coil__heap_first(&queue->near);
    struct coil__list *slot, *node;
    int64_t next = INT64_MAX;
    uint64_t tick;
    int looked = 0;

    if (first)
        return first->key;
    slot = queue_first_slot(queue, &tick);
    if (!slot)
        return INT64_MAX;
    for (node = slot->next; node != slot; node = node->next) {
        int64_t deadline = timer_of(node)->node.near.key;

        if (looked++ == QUEUE_LOOK)
            return (int64_t)(tick << COIL__TICK_BITS);
        if (deadline < next)
            next = deadline;
    }
    return next;
}

void coil__timer_queue_find_next(struct coil__timer_queue *queue)
{
    queue->next = queue_find_next(queue);
    queue->next_known = true;
}

struct coil__timer *coil__timer_queue_take(struct coil__timer_queue *queue,
                                           int64_t now)
{
    struct coil__heap_node *first;

    if (tick_of(now) > queue->tick)
        queue_advance(queue, tick_of(now));
    if (now >= queue->next)
        queue->next_known = false;
    first = coil__heap_first(&queue->near);
    if (!first || first->key > now)
        return NULL;
    coil__heap_remove(&queue->near, first);
    return COIL__CONTAINER(first, struct coil__timer, node.near);
}
