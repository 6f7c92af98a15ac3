#include "timer_wheel.h"

#include <stddef.h>

static uint64_t tick_after(int64_t deadline)
{
    const uint64_t rest = ((uint64_t)1 << WHEEL_TICK_BITS) - 1;

    if (deadline <= 0)
        return 0;
    return ((uint64_t)deadline + rest) >> WHEEL_TICK_BITS;
}

static void push(struct wheel_node **list, struct wheel_node *node)
{
    node->next = *list;
    if (node->next)
        node->next->link = &node->next;
    node->link = list;
    *list = node;
}

/*
 * The level is that of the highest bit in which the tick differs from the
 * present one. So a level holds only slots that lie ahead within the present
 * slot of the level above: the first one is simply the lowest bit that is set,
 * and no level holds anything later than what is on the levels above it.
 */
static void file(struct wheel *wheel, struct wheel_node *node)
{
    uint64_t tick = tick_after(node->deadline), slot;
    unsigned level;

    if (tick <= wheel->tick) {
        node->filed = wheel->tick;
        push(&wheel->due, node);
        return;
    }
    level =
        (63 - (unsigned)__builtin_clzll(tick ^ wheel->tick)) / WHEEL_SLOT_BITS;
    slot = tick >> level * WHEEL_SLOT_BITS;
    node->filed = slot << level * WHEEL_SLOT_BITS;
    slot %= WHEEL_SLOTS;
    wheel->bits[level] |= (uint64_t)1 << slot;
    push(&wheel->slots[level][slot], node);
}

void wheel_init(struct wheel *wheel, int64_t now)
{
    *wheel = (struct wheel){.tick = (uint64_t)now >> WHEEL_TICK_BITS};
}

void wheel_insert(struct wheel *wheel, struct wheel_node *node,
                  int64_t deadline)
{
    node->deadline = deadline;
    file(wheel, node);
}

/* Leaves the slot's bit as it is: to clear it, the node would have to know its
 * slot. Whoever looks for the next slot finds it empty and clears it. */
void wheel_remove(struct wheel_node *node)
{
    *node->link = node->next;
    if (node->next)
        node->next->link = node->link;
    node->link = NULL;
}

void wheel_move(struct wheel *wheel, struct wheel_node *node, int64_t deadline)
{
    node->deadline = deadline;
    if (node->link) {
        if (tick_after(deadline) >= node->filed)
            return;
        wheel_remove(node);
    }
    file(wheel, node);
}

void wheel_rest(struct wheel_node *node)
{
    node->deadline = WHEEL_NEVER;
}

/* The first slot that holds something, and the tick at which its turn is. */
static struct wheel_node **first_slot(struct wheel *wheel, unsigned *ret_level,
                                      uint64_t *ret_tick)
{
    for (unsigned level = 0; level < WHEEL_LEVELS; level++) {
        while (wheel->bits[level]) {
            unsigned slot = (unsigned)__builtin_ctzll(wheel->bits[level]);
            unsigned shift = level * WHEEL_SLOT_BITS;
            uint64_t above = wheel->tick >> shift >> WHEEL_SLOT_BITS;

            if (wheel->slots[level][slot]) {
                *ret_level = level;
                *ret_tick = (above << WHEEL_SLOT_BITS | slot) << shift;
                return &wheel->slots[level][slot];
            }
            wheel->bits[level] &= wheel->bits[level] - 1;
        }
    }
    return NULL;
}

/* Files all nodes of a slot anew: one level down, to `due`, or farther away if
 * they have moved. */
static void empty_slot(struct wheel *wheel, struct wheel_node **slot)
{
    struct wheel_node *node = *slot;

    *slot = NULL;
    while (node) {
        struct wheel_node *next = node->next;

        if (next)
            __builtin_prefetch(next->next, 1);
        if (node->deadline == WHEEL_NEVER)
            node->link = NULL;
        else
            file(wheel, node);
        node = next;
    }
}

static void advance(struct wheel *wheel, uint64_t target)
{
    struct wheel_node **slot;
    unsigned level;
    uint64_t tick;

    while ((slot = first_slot(wheel, &level, &tick)) && tick <= target) {
        wheel->tick = tick;
        wheel->bits[level] &= wheel->bits[level] - 1;
        empty_slot(wheel, slot);
    }
    if (target > wheel->tick)
        wheel->tick = target;
}

int64_t wheel_next(struct wheel *wheel)
{
    unsigned level;
    uint64_t tick;

    if (wheel->due)
        return (int64_t)(wheel->tick << WHEEL_TICK_BITS);
    if (!first_slot(wheel, &level, &tick) ||
        tick > WHEEL_NEVER >> WHEEL_TICK_BITS)
        return WHEEL_NEVER;
    return (int64_t)(tick << WHEEL_TICK_BITS);
}

struct wheel_node *wheel_expire(struct wheel *wheel, int64_t now)
{
    for (;;) {
        struct wheel_node *node;

        if (!wheel->due)
            advance(wheel, (uint64_t)now >> WHEEL_TICK_BITS);
        node = wheel->due;
        if (!node)
            return NULL;
        wheel_remove(node);
        if (node->deadline == WHEEL_NEVER)
            continue;
        if (tick_after(node->deadline) <= wheel->tick)
            return node;
        file(wheel, node);
    }
}
