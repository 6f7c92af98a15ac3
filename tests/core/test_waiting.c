/*
 * Events, semaphores and mutexes: who goes on when, in which order, and that
 * neither a limit nor a cancel loses a wake-up or a unit.
 */
#include "support/test.h"
#include <pthread.h>
#include <semaphore.h>

enum { WAITERS = 20 };

static uint32_t seed;

static uint32_t random_below(uint32_t bound)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % bound;
}

static void random_start(void)
{
    seed = (uint32_t)coil_now();
    printf("seed %u\n", seed);
}

#define TASK_TEST(name, fn)                                                    \
    START_TEST(name)                                                           \
    {                                                                          \
        assert_result(test_run(fn, NULL), 0);                                  \
    }                                                                          \
    END_TEST

/* Who went on, in which order. */
static int order[WAITERS], ordered;

/* ------------------------------------------------------------------- event */

static coil_event event;

static int event_waiter(void *arg)
{
    int number = *(int *)arg;

    assert_result(coil_event_wait(&event), 0);
    order[ordered++] = number;
    return 0;
}

static int event_task(void *arg)
{
    (void)arg;
    ordered = 0;
    ck_assert(!coil_event_is_set(&event));
    for (int i = 0; i < WAITERS; i++)
        assert_result(coil_spawn(NULL, event_waiter, &i, sizeof(i)), 0);
    assert_result(coil_yield(), 0);
    assert_result(coil_timeout(coil_event_wait_op(&event), COIL_MS(2)), -ETIME);
    ck_assert_int_eq(ordered, 0);
    /* Cleared before any of them runs, it was set for them all the same. */
    coil_event_set(&event);
    ck_assert(coil_event_is_set(&event));
    coil_event_clear(&event);
    ck_assert(!coil_event_is_set(&event));
    assert_result(coil_timeout(coil_event_wait_op(&event), 0), -ETIME);
    assert_result(coil_yield(), 0);
    ck_assert_int_eq(ordered, WAITERS);
    for (int i = 0; i < WAITERS; i++)
        ck_assert_int_eq(order[i], i);
    coil_event_set(&event);
    coil_event_set(&event);
    for (int i = 0; i < 10; i++)
        assert_result(coil_event_wait(&event), 0);
    assert_result(coil_timeout(coil_event_wait_op(&event), 0), 0);
    coil_event_clear(&event);
    return 0;
}

static int event_cancel_task(void *arg)
{
    coil_scope scope;

    (void)arg;
    coil_scope_begin(&scope, COIL_MS(2));
    assert_result(coil_event_wait(&event), -ECANCELED);
    coil_event_set(&event);
    /* Cancellation comes first, also if there would be nothing to wait for. */
    assert_result(coil_event_wait(&event), -ECANCELED);
    assert_result(coil_scope_end(&scope), -ETIME);
    assert_result(coil_event_wait(&event), 0);
    return 0;
}

TASK_TEST(event_lets_all_waiters_go_on_in_order, event_task)
TASK_TEST(event_wait_can_be_cancelled, event_cancel_task)

/* --------------------------------------------------------------- semaphore */

static coil_semaphore semaphore;

struct demand {
    int number;
    size_t units;
    coil_duration limit;
    ssize_t result;
};

static int semaphore_waiter(void *arg)
{
    struct demand *demand = arg;

    demand->result = coil_timeout(
        coil_semaphore_acquire_op(&semaphore, demand->units), demand->limit);
    if (demand->result == 0)
        order[ordered++] = demand->number;
    return 0;
}

static void spawn_demand(struct demand *demand)
{
    assert_result(coil_spawn(NULL, semaphore_waiter, demand, 0), 0);
}

static int semaphore_order_task(void *arg)
{
    struct demand large = {0, 3, COIL_FOREVER, 1},
                  small = {1, 1, COIL_FOREVER, 1};

    (void)arg;
    ordered = 0;
    coil_semaphore_init(&semaphore, 2);
    spawn_demand(&large);
    spawn_demand(&small);
    assert_result(coil_yield(), 0);
    ck_assert_int_eq(ordered, 0); /* the small one does not overtake */
    assert_result(coil_timeout(coil_semaphore_acquire_op(&semaphore, 1), 0),
                  -ETIME);
    coil_semaphore_release(&semaphore, 1);
    assert_result(coil_yield(), 0);
    ck_assert_int_eq(ordered, 1);
    ck_assert_uint_eq(coil_semaphore_units(&semaphore), 0);
    coil_semaphore_release(&semaphore, 5);
    ck_assert_uint_eq(coil_semaphore_units(&semaphore), 4);
    assert_result(coil_yield(), 0);
    ck_assert_int_eq(order[0], 0);
    ck_assert_int_eq(order[1], 1);
    assert_result(coil_timeout(coil_semaphore_acquire_op(&semaphore, 4), 0), 0);
    assert_result(coil_timeout(coil_semaphore_acquire_op(&semaphore, 1), 0),
                  -ETIME);
    assert_result(coil_semaphore_acquire(&semaphore, 0), 0);
    return 0;
}

/* One that gives up at the head lets those behind it go on. */
static int semaphore_head_task(void *arg)
{
    struct demand large = {0, 3, COIL_MS(3), 1},
                  small = {1, 1, COIL_FOREVER, 1};

    (void)arg;
    ordered = 0;
    coil_semaphore_init(&semaphore, 2);
    spawn_demand(&large);
    spawn_demand(&small);
    assert_result(coil_sleep(COIL_MS(1)), 0);
    ck_assert_int_eq(ordered, 0);
    assert_result(coil_sleep(COIL_MS(10)), 0);
    assert_result(large.result, -ETIME);
    assert_result(small.result, 0);
    ck_assert_uint_eq(coil_semaphore_units(&semaphore), 1);
    return 0;
}

enum { UNITS = 7, STORM = 200, ROUNDS = 50 };

static size_t held, acquired, gave_up;

static int semaphore_storm_child(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        size_t units = 1 + random_below(UNITS);
        coil_duration limit =
            random_below(3) ? COIL_US(random_below(200)) : COIL_FOREVER;
        ssize_t result =
            coil_timeout(coil_semaphore_acquire_op(&semaphore, units), limit);

        if (result == -ECANCELED)
            return (int)result;
        if (result == -ETIME) {
            gave_up++;
            continue;
        }
        assert_result(result, 0);
        acquired++;
        held += units;
        ck_assert_uint_le(held, UNITS);
        if (random_below(4) == 0)
            (void)coil_sleep(COIL_US(random_below(50)));
        held -= units;
        coil_semaphore_release(&semaphore, units);
    }
    return 0;
}

/* Some of the children are in scopes that pass away. */
static int semaphore_storm_scoped(void *arg)
{
    coil_scope scope;

    (void)arg;
    coil_scope_begin(&scope, COIL_US(random_below(100000)));
    (void)semaphore_storm_child(NULL);
    (void)coil_scope_end(&scope);
    return 0;
}

static int semaphore_storm_task(void *arg)
{
    coil_group group;

    (void)arg;
    random_start();
    coil_semaphore_init(&semaphore, UNITS);
    coil_group_begin(&group, COIL_GROUP_ALL);
    for (int i = 0; i < STORM; i++)
        assert_result(coil_group_spawn(&group,
                                       i % 3 ? semaphore_storm_child
                                             : semaphore_storm_scoped,
                                       NULL, 0),
                      0);
    assert_result(coil_group_end(&group, NULL), 0);
    ck_assert_uint_eq(held, 0);
    ck_assert_uint_eq(coil_semaphore_units(&semaphore), UNITS);
    printf("semaphore: %zu acquired, %zu gave up\n", acquired, gave_up);
    ck_assert_uint_gt(acquired, 0);
    ck_assert_uint_gt(gave_up, 0);
    return 0;
}

TASK_TEST(semaphore_serves_in_turn, semaphore_order_task)
TASK_TEST(semaphore_serves_those_behind_one_that_gave_up, semaphore_head_task)
TASK_TEST(semaphore_loses_no_unit, semaphore_storm_task)

/* ------------------------------------------------------------------- mutex */

static coil_mutex mutex;

static int mutex_waiter(void *arg)
{
    int number = *(int *)arg;
    ssize_t result = coil_timeout(coil_mutex_lock_op(&mutex),
                                  number % 3 == 1 ? COIL_MS(2) : COIL_FOREVER);

    assert_result(result, number % 3 == 1 ? -ETIME : 0);
    if (result < 0)
        return 0;
    order[ordered++] = number;
    assert_result(coil_yield(), 0);
    assert_result(coil_mutex_unlock(&mutex), 0);
    return 0;
}

static int mutex_order_task(void *arg)
{
    int expected = 0;

    (void)arg;
    ordered = 0;
    assert_result(coil_mutex_unlock(&mutex), -EINVAL);
    assert_result(coil_mutex_lock(&mutex), 0);
    for (int i = 0; i < WAITERS; i++)
        assert_result(coil_spawn(NULL, mutex_waiter, &i, sizeof(i)), 0);
    assert_result(coil_sleep(COIL_MS(20)), 0);
    ck_assert_int_eq(ordered, 0);
    assert_result(coil_mutex_unlock(&mutex), 0);
    assert_result(coil_mutex_lock(&mutex), 0); /* after all of them */
    for (int i = 0; i < WAITERS; i++)
        if (i % 3 != 1)
            ck_assert_int_eq(order[expected++], i);
    ck_assert_int_eq(ordered, expected);
    assert_result(coil_timeout(coil_mutex_lock_op(&mutex), 0), -ETIME);
    assert_result(coil_mutex_unlock(&mutex), 0);
    assert_result(coil_timeout(coil_mutex_lock_op(&mutex), 0), 0);
    assert_result(coil_mutex_unlock(&mutex), 0);
    assert_result(coil_mutex_unlock(&mutex), -EINVAL);
    return 0;
}

static bool inside;

static int mutex_storm_child(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        coil_scope scope;
        bool scoped = random_below(2);
        ssize_t result;

        coil_scope_begin(&scope,
                         scoped ? COIL_US(random_below(2000)) : COIL_FOREVER);
        result = coil_timeout(coil_mutex_lock_op(&mutex),
                              COIL_US(random_below(8000)));
        if (result == 0) {
            ck_assert(!inside);
            inside = true;
            acquired++;
            (void)coil_sleep(COIL_US(random_below(20)));
            inside = false;
            assert_result(coil_mutex_unlock(&mutex), 0);
        } else {
            ck_assert(result == -ETIME || (scoped && result == -ECANCELED));
            gave_up++;
        }
        (void)coil_scope_end(&scope);
    }
    return 0;
}

static int mutex_storm_task(void *arg)
{
    coil_group group;

    (void)arg;
    random_start();
    acquired = gave_up = 0;
    coil_group_begin(&group, COIL_GROUP_ALL);
    for (int i = 0; i < STORM; i++)
        assert_result(coil_group_spawn(&group, mutex_storm_child, NULL, 0), 0);
    assert_result(coil_group_end(&group, NULL), 0);
    assert_result(coil_timeout(coil_mutex_lock_op(&mutex), 0), 0);
    ck_assert_uint_eq(acquired + gave_up, STORM * ROUNDS);
    printf("mutex: %zu locked, %zu gave up\n", acquired, gave_up);
    ck_assert_uint_gt(acquired, 0);
    ck_assert_uint_gt(gave_up, 0);
    return 0;
}

TASK_TEST(mutex_is_handed_over_in_order_of_the_calls, mutex_order_task)
TASK_TEST(mutex_is_held_by_one_and_never_lost, mutex_storm_task)

/* ------------------------------------------------------------ side by side */

/* The units of a loser that had its result already are its own. */
static int any_task(void *arg)
{
    coil_request requests[3];

    (void)arg;
    coil_semaphore_init(&semaphore, 1);
    event = (coil_event){0};
    coil_request_start(&requests[0], coil_event_wait_op(&event));
    coil_request_start(&requests[1], coil_semaphore_acquire_op(&semaphore, 1));
    coil_request_start(&requests[2], coil_semaphore_acquire_op(&semaphore, 1));
    assert_result(coil_await_any(requests, 3), 1);
    assert_result(coil_request_await(&requests[0]), -ECANCELED);
    assert_result(coil_request_await(&requests[1]), 0);
    assert_result(coil_request_await(&requests[2]), -ECANCELED);
    ck_assert_uint_eq(coil_semaphore_units(&semaphore), 0);
    coil_semaphore_release(&semaphore, 1);
    ck_assert_uint_eq(coil_semaphore_units(&semaphore), 1);
    return 0;
}

/* What waits in a task that returns is taken off the queue. */
static int left_open(void *arg)
{
    coil_request *requests = arg;

    coil_request_start(&requests[0], coil_mutex_lock_op(&mutex));
    coil_request_start(&requests[1], coil_semaphore_acquire_op(&semaphore, 1));
    return 0;
}

static int left_open_task(void *arg)
{
    coil_request requests[2];
    coil_task *task;

    (void)arg;
    test_catch_messages();
    coil_semaphore_init(&semaphore, 0);
    assert_result(coil_mutex_lock(&mutex), 0);
    assert_result(coil_task_create(&task, left_open, requests, 0), 0);
    assert_result(coil_task_await(&task), 0);
    ck_assert(coil_request_done(&requests[0]));
    ck_assert(coil_request_done(&requests[1]));
    memset(requests, 0xa5, sizeof(requests));
    assert_result(coil_mutex_unlock(&mutex), 0);
    coil_semaphore_release(&semaphore, 1);
    ck_assert_uint_eq(coil_semaphore_units(&semaphore), 1);
    assert_result(coil_mutex_lock(&mutex), 0);
    return 0;
}

TASK_TEST(any_over_queues_takes_from_the_winner_only, any_task)
TASK_TEST(nothing_of_a_returned_task_stays_on_a_queue, left_open_task)

/* --------------------------------------------------------- wrong contexts */

static sem_t parked;
static coil_context *first;

static int foreign_waiter(void *arg)
{
    (void)arg;
    return coil_event_wait(&event);
}

static int foreign_locker(void *arg)
{
    (void)arg;
    assert_result(coil_mutex_lock(&mutex), 0);
    assert_result(coil_mutex_lock(&mutex), 0);
    return 0;
}

static int foreign_parked(void *arg)
{
    (void)arg;
    sem_post(&parked);
    return 0;
}

static void foreign_release(void *arg)
{
    (void)arg;
    coil_event_set(&event);
    assert_result(coil_mutex_unlock(&mutex), 0);
}

static int foreign_task(void *arg)
{
    (void)arg;
    assert_result(coil_event_wait(&event), -EXDEV);
    assert_result(coil_mutex_lock(&mutex), -EXDEV);
    return 0;
}

static void *foreign_thread(void *arg)
{
    (void)arg;
    sem_wait(&parked);
    test_run(foreign_task, NULL);
    assert_result(coil_context_post(first, foreign_release, NULL), 0);
    return NULL;
}

START_TEST(waiting_with_another_context_is_refused)
{
    pthread_t thread;

    event = (coil_event){0};
    mutex = (coil_mutex){0};
    sem_init(&parked, 0, 0);
    first = test_context();
    assert_result(coil_spawn(first, foreign_waiter, NULL, 0), 0);
    assert_result(coil_spawn(first, foreign_locker, NULL, 0), 0);
    assert_result(coil_spawn(first, foreign_parked, NULL, 0), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, foreign_thread, NULL), 0);
    assert_result(coil_context_run(first), 0);
    pthread_join(thread, NULL);
    test_context_end(first);
}
END_TEST

START_TEST(waiting_outside_a_task_is_refused)
{
    coil_semaphore_init(&semaphore, 1);
    assert_result(coil_event_wait(&event), -EPERM);
    assert_result(coil_mutex_lock(&mutex), -EPERM);
    assert_result(coil_semaphore_acquire(&semaphore, 1), -EPERM);
    ck_assert_uint_eq(coil_semaphore_units(&semaphore), 1);
    assert_result(coil_mutex_unlock(&mutex), -EINVAL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("waiting for each other");
    TCase *tests = tcase_create("waiting");

    tcase_add_test(tests, event_lets_all_waiters_go_on_in_order);
    tcase_add_test(tests, event_wait_can_be_cancelled);
    tcase_add_test(tests, semaphore_serves_in_turn);
    tcase_add_test(tests, semaphore_serves_those_behind_one_that_gave_up);
    tcase_add_test(tests, semaphore_loses_no_unit);
    tcase_add_test(tests, mutex_is_handed_over_in_order_of_the_calls);
    tcase_add_test(tests, mutex_is_held_by_one_and_never_lost);
    tcase_add_test(tests, any_over_queues_takes_from_the_winner_only);
    tcase_add_test(tests, nothing_of_a_returned_task_stays_on_a_queue);
    tcase_add_test(tests, waiting_with_another_context_is_refused);
    tcase_add_test(tests, waiting_outside_a_task_is_refused);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
