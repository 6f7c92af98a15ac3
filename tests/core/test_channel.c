/*
 * Channels: order, bounds, closing, and that an item is always in exactly one
 * place, whatever gives up meanwhile.
 */
#include "base/seam.h"
#include "support/test.h"

static uint32_t seed;

static uint32_t random_below(uint32_t bound)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % bound;
}

#define TASK_TEST(name, fn)                                                    \
    START_TEST(name)                                                           \
    {                                                                          \
        assert_result(test_run(fn, NULL), 0);                                  \
    }                                                                          \
    END_TEST

static coil_channel channel;

static void create(size_t capacity)
{
    assert_result(coil_channel_create(&channel, capacity, sizeof(int)), 0);
}

static int try_send(int item)
{
    return (int)coil_timeout(coil_channel_send_op(&channel, &item), 0);
}

static int try_receive(int *ret_item)
{
    return (int)coil_timeout(coil_channel_receive_op(&channel, ret_item), 0);
}

/* ------------------------------------------------------------------- alone */

static int bounds_task(void *arg)
{
    int item = -1;

    (void)arg;
    for (int capacity = 1; capacity < 5; capacity++) {
        create((size_t)capacity);
        for (int round = 0; round < 3 * capacity; round++) {
            for (int i = 0; i < capacity; i++)
                assert_result(try_send(round * 10 + i), 0);
            assert_result(try_send(99), -ETIME);
            ck_assert_uint_eq(coil_channel_count(&channel), (size_t)capacity);
            assert_result(try_receive(&item), 1);
            ck_assert_int_eq(item, round * 10);
            assert_result(try_send(round * 10 + capacity), 0);
            for (int i = 1; i <= capacity; i++) {
                assert_result(try_receive(&item), 1);
                ck_assert_int_eq(item, round * 10 + i);
            }
            item = -1;
            assert_result(try_receive(&item), -ETIME);
            ck_assert_int_eq(item, -1);
        }
        assert_result(coil_channel_destroy(&channel), 0);
    }
    return 0;
}

static int close_task(void *arg)
{
    int item = -1;

    (void)arg;
    create(2);
    assert_result(try_send(1), 0);
    coil_channel_close(&channel);
    coil_channel_close(&channel);
    assert_result(try_send(2), -EPIPE);
    assert_result(coil_channel_send(&channel, &item), -EPIPE);
    assert_result(coil_channel_receive(&channel, &item), 1);
    ck_assert_int_eq(item, 1);
    item = -1;
    assert_result(coil_channel_receive(&channel, &item), 0);
    assert_result(try_receive(&item), 0);
    ck_assert_int_eq(item, -1);
    assert_result(coil_channel_destroy(&channel), 0);
    assert_result(coil_channel_destroy(&channel), 0);
    return 0;
}

TASK_TEST(channel_holds_its_capacity_in_order, bounds_task)
TASK_TEST(closed_channel_gives_what_is_left, close_task)

START_TEST(channel_that_cannot_be_made_is_refused)
{
    assert_result(coil_channel_create(&channel, 1, 0), -EINVAL);
    assert_result(coil_channel_create(&channel, SIZE_MAX / 2, 4), -EINVAL);
    coil__seam.fail_call = COIL__CALL_ALLOCATE;
    coil__seam.fail_error = -ENOMEM;
    coil__seam.fail_at = 1;
    assert_result(coil_channel_create(&channel, 1, 4), -ENOMEM);
    create(1);
    assert_result(try_send(1), -EPERM);
    ck_assert_uint_eq(coil_channel_count(&channel), 0);
    assert_result(coil_channel_destroy(&channel), 0);
}
END_TEST

/* ---------------------------------------------------------------- with many */

enum { MANY = 10 };

static int order[MANY], ordered;

static int sender(void *arg)
{
    int item = *(int *)arg;
    int result = coil_channel_send(&channel, &item);

    order[ordered++] = item;
    return result;
}

/* A send waits for its receive, and both go on in the order of the calls. */
static int rendezvous_task(void *arg)
{
    int item;

    (void)arg;
    create(0);
    for (int i = 0; i < MANY; i++)
        assert_result(coil_spawn(NULL, sender, &i, sizeof(i)), 0);
    assert_result(coil_yield(), 0);
    ck_assert_int_eq(ordered, 0);
    for (int i = 0; i < MANY; i++) {
        assert_result(coil_channel_receive(&channel, &item), 1);
        ck_assert_int_eq(item, i);
    }
    assert_result(try_receive(&item), -ETIME);
    assert_result(coil_yield(), 0);
    ck_assert_int_eq(ordered, MANY);
    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(order[i], i);
    assert_result(coil_channel_destroy(&channel), 0);
    return 0;
}

static int waiting_receiver(void *arg)
{
    int item = -1, result = coil_channel_receive(&channel, &item);

    (void)arg;
    assert_result(result, 0);
    ck_assert_int_eq(item, -1);
    ordered++;
    return 0;
}

static int waiting_sender(void *arg)
{
    int item = 1;

    (void)arg;
    assert_result(coil_channel_send(&channel, &item), -EPIPE);
    ordered++;
    return 0;
}

static int close_waiters_task(void *arg)
{
    coil_task_fn *fns[] = {waiting_receiver, waiting_sender};

    (void)arg;
    for (int kind = 0; kind < 2; kind++) {
        ordered = 0;
        create(0);
        for (int i = 0; i < MANY; i++)
            assert_result(coil_spawn(NULL, fns[kind], NULL, 0), 0);
        assert_result(coil_yield(), 0);
        ck_assert_int_eq(ordered, 0);
        assert_result(coil_channel_destroy(&channel), 0);
        assert_result(coil_yield(), 0);
        ck_assert_int_eq(ordered, MANY);
    }
    return 0;
}

/* Both of two receives may have ended before the waiter looks: nothing that
 * was taken is lost, and nothing is taken for a receive that lost. */
static int any_task(void *arg)
{
    coil_request requests[2];
    int items[2] = {-1, -1}, item;
    size_t got = 0;

    (void)arg;
    create(4);
    for (int i = 0; i < 2; i++)
        coil_request_start(&requests[i],
                           coil_channel_receive_op(&channel, &items[i]));
    for (int i = 0; i < 3; i++)
        assert_result(try_send(i), 0);
    assert_result(coil_await_any(requests, 2), 0);
    for (int i = 0; i < 2; i++)
        if (coil_request_await(&requests[i]) == 1) {
            ck_assert_int_eq(items[i], (int)got);
            got++;
        }
    ck_assert_uint_eq(got + coil_channel_count(&channel), 3);
    while (try_receive(&item) == 1) {
        ck_assert_int_eq(item, (int)got);
        got++;
    }
    ck_assert_uint_eq(got, 3);
    assert_result(coil_channel_destroy(&channel), 0);
    return 0;
}

TASK_TEST(channel_without_room_passes_items_from_hand_to_hand, rendezvous_task)
TASK_TEST(closing_wakes_everybody, close_waiters_task)
TASK_TEST(any_over_receives_loses_nothing, any_task)

/* ------------------------------------------------------------------- storm */

enum { SENDERS = 100, RECEIVERS = 60, ITEMS = 100 };

static bool sent[SENDERS * ITEMS], received[SENDERS * ITEMS];
static size_t sent_count, received_count, failed_sends, failed_receives;
static size_t senders_left;

static coil_duration random_limit(void)
{
    return random_below(3) ? COIL_US(random_below(100)) : COIL_FOREVER;
}

/* The limit is the call's, or a scope's around it. */
static int limited(coil_operation operation, coil_duration limit)
{
    coil_scope scope;
    int result;

    if (random_below(2))
        return (int)coil_timeout(operation, limit);
    coil_scope_begin(&scope, limit);
    result = (int)coil_await(operation);
    (void)coil_scope_end(&scope);
    return result;
}

static int storm_sender(void *arg)
{
    int number = *(int *)arg;

    for (int i = 0; i < ITEMS; i++) {
        int item = number * ITEMS + i;
        int result =
            limited(coil_channel_send_op(&channel, &item), random_limit());

        sent[item] = result == 0;
        if (result == 0) {
            sent_count++;
        } else {
            ck_assert(result == -ETIME || result == -ECANCELED);
            failed_sends++;
        }
        item = -1; /* it was a copy */
        if (random_below(8) == 0)
            (void)coil_sleep(COIL_US(random_below(200)));
    }
    if (--senders_left == 0)
        coil_channel_close(&channel);
    return 0;
}

static int storm_receiver(void *arg)
{
    int last[SENDERS];

    (void)arg;
    memset(last, -1, sizeof(last));
    for (;;) {
        int item = -1;
        int result =
            limited(coil_channel_receive_op(&channel, &item), random_limit());

        if (result == 0)
            return 0;
        if (result < 0) {
            ck_assert(result == -ETIME || result == -ECANCELED);
            ck_assert_int_eq(item, -1);
            failed_receives++;
            continue;
        }
        if (item < 0 || received[item] || item <= last[item / ITEMS])
            ck_abort_msg("item %d is doubled or out of order", item);
        received[item] = true;
        last[item / ITEMS] = item;
        received_count++;
        if (random_below(2))
            (void)coil_sleep(COIL_US(random_below(400)));
    }
}

static int storm_task(void *arg)
{
    coil_group group;

    (void)arg;
    seed = (uint32_t)coil_now();
    printf("seed %u\n", seed);
    for (size_t capacity = 0; capacity < 4; capacity++) {
        memset(sent, 0, sizeof(sent));
        memset(received, 0, sizeof(received));
        sent_count = received_count = failed_sends = failed_receives = 0;
        senders_left = SENDERS;
        create(capacity * capacity);
        coil_group_begin(&group, COIL_GROUP_ALL);
        for (int i = 0; i < SENDERS; i++)
            assert_result(coil_group_spawn(&group, storm_sender, &i, sizeof(i)),
                          0);
        for (int i = 0; i < RECEIVERS; i++)
            assert_result(coil_group_spawn(&group, storm_receiver, NULL, 0), 0);
        assert_result(coil_group_end(&group, NULL), 0);
        ck_assert_int_eq(memcmp(sent, received, sizeof(sent)), 0);
        ck_assert_uint_eq(sent_count, received_count);
        printf("capacity %zu: %zu sent and received, %zu sends and %zu "
               "receives gave up\n",
               capacity * capacity, sent_count, failed_sends, failed_receives);
        ck_assert_uint_gt(failed_sends + failed_receives, 0);
        assert_result(coil_channel_destroy(&channel), 0);
    }
    return 0;
}

TASK_TEST(channel_neither_loses_nor_doubles_an_item, storm_task)

int main(void)
{
    Suite *suite = suite_create("channel");
    TCase *tests = tcase_create("channel");

    tcase_add_test(tests, channel_holds_its_capacity_in_order);
    tcase_add_test(tests, closed_channel_gives_what_is_left);
    tcase_add_test(tests, channel_that_cannot_be_made_is_refused);
    tcase_add_test(tests, channel_without_room_passes_items_from_hand_to_hand);
    tcase_add_test(tests, closing_wakes_everybody);
    tcase_add_test(tests, any_over_receives_loses_nothing);
    tcase_add_test(tests, channel_neither_loses_nor_doubles_an_item);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
