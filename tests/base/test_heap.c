/*
 * The heap of deadlines against a model that is too simple to be wrong.
 */
#include "base/heap.h"
#include "support/test.h"

enum { HEAP_LIVE = 1000, HEAP_STEPS = TEST_SLOW ? 100000 : 1000000 };

struct entry {
    struct coil__heap_node node;
    int64_t key;
    uint64_t order;
    bool live;
};

static struct entry entries[HEAP_LIVE];
static uint64_t inserted;
static uint32_t seed;

static uint32_t random_number(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

/* Keys are few, so the least live one is found by
 * looking at a bucket per key, each in order of insertion. */
enum { KEYS = 64 };
static unsigned live_of_key[KEYS];

static struct entry *model_first(void)
{
    struct entry *first = NULL;
    int key = 0;

    while (key < KEYS && !live_of_key[key])
        key++;
    for (int i = 0; key < KEYS && i < HEAP_LIVE; i++)
        if (entries[i].live && entries[i].key == key &&
            (!first || entries[i].order < first->order))
            first = &entries[i];
    return first;
}

static void insert(struct coil__heap *heap, struct entry *entry)
{
    entry->key = random_number() % KEYS;
    entry->order = inserted++;
    entry->live = true;
    live_of_key[entry->key]++;
    entry->node.key = entry->key;
    entry->node.order = entry->order;
    coil__heap_insert(heap, &entry->node);
}

static void take(struct coil__heap *heap, struct entry *entry)
{
    entry->live = false;
    live_of_key[entry->key]--;
    coil__heap_remove(heap, &entry->node);
}

START_TEST(heap_agrees_with_a_model)
{
    struct coil__heap heap = {0};
    unsigned compared = 0;

    seed = (uint32_t)coil_now();
    printf("seed %u\n", seed);
    for (int step = 0; step < HEAP_STEPS; step++) {
        struct entry *entry = &entries[random_number() % HEAP_LIVE];

        if (!entry->live)
            insert(&heap, entry);
        else
            take(&heap, entry);
        if (step % 50 == 0) {
            struct entry *first = model_first();

            ck_assert_ptr_eq(coil__heap_first(&heap),
                             first ? &first->node : NULL);
            if (first && step % 100 == 0)
                take(&heap, first);
            compared++;
        }
    }
    printf("%d steps, compared %u times\n", HEAP_STEPS, compared);
}
END_TEST

START_TEST(heap_gives_equal_keys_in_order)
{
    struct coil__heap heap = {0};

    for (int i = 0; i < HEAP_LIVE; i++) {
        entries[i].node.key = i % 2;
        entries[i].node.order = (uint64_t)i;
        coil__heap_insert(&heap, &entries[i].node);
    }
    for (int i = 0; i < HEAP_LIVE; i++) {
        int expected = i < HEAP_LIVE / 2 ? 2 * i : 2 * i - HEAP_LIVE + 1;
        struct coil__heap_node *first = coil__heap_first(&heap);

        ck_assert_ptr_eq(first, &entries[expected].node);
        coil__heap_remove(&heap, first);
    }
    ck_assert_ptr_null(coil__heap_first(&heap));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("heap");
    TCase *tests = tcase_create("heap");

    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, heap_agrees_with_a_model);
    tcase_add_test(tests, heap_gives_equal_keys_in_order);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
