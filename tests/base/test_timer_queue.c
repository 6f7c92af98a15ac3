/*
 * The timer queue against a model that is too simple to be wrong: deadlines
 * from the past to the end of time, inserted, removed, moved and expired, with
 * steps of the clock from a nanosecond to centuries.
 */
#include "base/timer_queue.h"
#include "support/test.h"

enum { QUEUE_LIVE = 400, QUEUE_STEPS = TEST_SLOW ? 200000 : 1000000 };

struct entry {
    struct coil__timer timer;
    int64_t deadline;
    uint64_t order;
    bool live;
};

static struct entry entries[QUEUE_LIVE];
static struct coil__timer_queue queue;
static int64_t now;
static uint64_t inserted, seed;
static unsigned live;

static uint64_t random_number(void)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return seed >> 24;
}

/* Any number of bits, so that every level of the wheel has its share. */
static int64_t random_duration(unsigned bits)
{
    return (int64_t)(random_number() & (((uint64_t)1 << bits) - 1));
}

static int64_t random_deadline(void)
{
    int64_t limit = random_duration((unsigned)random_number() % 40);

    switch (random_number() % 16) {
    case 0:
        return INT64_MAX - 1 - limit;
    case 1:
        return (int64_t)random_number() - (1 << 30);
    case 2: /* many alike */
        return now / 4096 * 4096 + 4096;
    default:
        return now > INT64_MAX - limit ? INT64_MAX - 1 : now + limit;
    }
}

static void insert(struct entry *entry)
{
    entry->deadline = random_deadline();
    entry->order = inserted++;
    entry->live = true;
    live++;
    coil__timer_queue_insert(&queue, &entry->timer, entry->deadline);
}

static void take_off(struct entry *entry)
{
    entry->live = false;
    live--;
}

static struct entry *model_first(void)
{
    struct entry *first = NULL;

    for (int i = 0; i < QUEUE_LIVE; i++) {
        struct entry *entry = &entries[i];

        if (entry->live && (!first || entry->deadline < first->deadline ||
                            (entry->deadline == first->deadline &&
                             entry->order < first->order)))
            first = entry;
    }
    return first;
}

/* Everything that is due comes, in order, and nothing else does. */
static unsigned expire(void)
{
    unsigned expired = 0;

    for (;;) {
        struct entry *first = model_first();
        struct coil__timer *timer = coil__timer_queue_take(&queue, now);

        if (!first || first->deadline > now) {
            ck_assert_ptr_null(timer);
            return expired;
        }
        ck_assert_ptr_eq(timer, &first->timer);
        take_off(first);
        expired++;
    }
}

/* To the queue's own idea of when to look, or anywhere. */
static void pass_time(void)
{
    int64_t next = coil__timer_queue_next(&queue);
    const struct entry *first = model_first();

    if (!first) {
        ck_assert_int_eq(next, INT64_MAX);
    } else if (next > first->deadline) {
        ck_abort_msg("the queue would have slept too long");
    }
    if (random_number() % 4) {
        if (next > now && next != INT64_MAX)
            now = next;
    } else {
        now += random_duration((unsigned)random_number() % 40);
    }
}

static void step(struct entry *entry)
{
    if (!entry->live) {
        insert(entry);
    } else {
        coil__timer_queue_remove(&queue, &entry->timer);
        take_off(entry);
        if (random_number() % 2)
            insert(entry);
    }
}

static void start(int64_t when)
{
    now = when;
    seed = (uint64_t)coil_now();
    printf("seed %llu\n", (unsigned long long)seed);
    coil__timer_queue_init(&queue, now);
}

START_TEST(queue_agrees_with_a_model)
{
    unsigned expired = 0, looked = 0;

    start((int64_t)1 << 40);
    for (int i = 0; i < QUEUE_STEPS; i++) {
        step(&entries[random_number() % QUEUE_LIVE]);
        if (i % 40 == 0) {
            pass_time();
            expired += expire();
            looked++;
        }
    }
    now = INT64_MAX;
    expired += expire();
    ck_assert_uint_eq(live, 0);
    ck_assert_int_eq(coil__timer_queue_next(&queue), INT64_MAX);
    printf("%d steps, expired %u in %u turns\n", QUEUE_STEPS, expired, looked);
    ck_assert_uint_gt(expired, QUEUE_STEPS / 40);
}
END_TEST

/* However far away it was armed, few looks lead up to it and none past it. */
START_TEST(queue_needs_few_looks)
{
    unsigned looks = 0, most = 0;

    start((int64_t)1 << 40);
    for (unsigned bits = 0; bits < 62; bits++) {
        for (int i = 0; i < 8; i++) {
            entries[i].deadline = now + ((int64_t)1 << bits) + i;
            coil__timer_queue_insert(&queue, &entries[i].timer,
                                     entries[i].deadline);
        }
        looks = 0;
        for (int i = 0; i < 8;) {
            int64_t next = coil__timer_queue_next(&queue);

            ck_assert_int_le(next, entries[i].deadline);
            if (next > now)
                now = next;
            looks++;
            while (coil__timer_queue_take(&queue, now))
                i++;
        }
        if (looks > most)
            most = looks;
    }
    printf("at most %u looks for 8 deadlines in a row\n", most);
    ck_assert_uint_le(most, 8 + COIL__WHEEL_LEVELS + 1);
}
END_TEST

/* Few timers: no look is in vain. */
START_TEST(queue_sleeps_up_to_the_deadline)
{
    start((int64_t)1 << 40);
    for (unsigned bits = 0; bits < 62; bits++) {
        int64_t deadline = now + ((int64_t)1 << bits);

        coil__timer_queue_insert(&queue, &entries[0].timer, deadline);
        coil__timer_queue_insert(&queue, &entries[1].timer, deadline + 1);
        ck_assert_int_eq(coil__timer_queue_next(&queue), deadline);
        now = deadline;
        ck_assert_ptr_eq(coil__timer_queue_take(&queue, now),
                         &entries[0].timer);
        ck_assert_ptr_null(coil__timer_queue_take(&queue, now));
        now++;
        ck_assert_ptr_eq(coil__timer_queue_take(&queue, now),
                         &entries[1].timer);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("timer queue");
    TCase *tests = tcase_create("timer queue");

    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, queue_agrees_with_a_model);
    tcase_add_test(tests, queue_needs_few_looks);
    tcase_add_test(tests, queue_sleeps_up_to_the_deadline);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
