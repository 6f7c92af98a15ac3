/*
 * Which thread may do what to a context: it belongs to the one that runs it
 * first; add_work and drop_work come from anywhere.
 */
#include "support/test.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

/* --------------------------------------------------- calls on other threads */

struct call {
    int (*fn)(coil_context *);
    coil_context *context;
    int result;
};

static void *call_thread(void *arg)
{
    struct call *call = arg;

    call->result = call->fn(call->context);
    return NULL;
}

/* What fn returns on a thread of its own. */
static int on_thread(int (*fn)(coil_context *), coil_context *context)
{
    struct call call = {fn, context, -ENODATA};
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, call_thread, &call), 0);
    pthread_join(thread, NULL);
    return call.result;
}

static int counted;

static int count_task(void *arg)
{
    (void)arg;
    if (coil_sleep(COIL_US(10)) == 0)
        counted++;
    return 0;
}

static int spawn_call(coil_context *context)
{
    return coil_spawn(context, count_task, NULL, 0);
}

static int spawn_with_call(coil_context *context)
{
    return coil_spawn_with(context, NULL, count_task, NULL, 0);
}

static int spawn_current_call(coil_context *context)
{
    (void)context;
    return coil_spawn(NULL, count_task, NULL, 0);
}

static int create_call(coil_context *context)
{
    coil_context_options options = test_options();

    return coil_context_create((coil_context **)(void *)context, &options,
                               NULL);
}

/* ------------------------------------------------------ whose context it is */

START_TEST(context_belongs_to_the_thread_that_runs_it_first)
{
    size_t before = test_descriptors();
    coil_context *context = NULL;

    assert_result(on_thread(create_call, (coil_context *)(void *)&context), 0);
    /* Until it runs, one thread at a time may use it. */
    assert_result(spawn_call(context), 0);
    assert_result(on_thread(spawn_call, context), 0);
    assert_result(on_thread(coil_context_run, context), 0);
    ck_assert_int_eq(counted, 2);
    /* From then on this one may not, and none after it either. */
    assert_result(coil_context_run(context), -EPERM);
    assert_result(on_thread(coil_context_run, context), -EPERM);
    assert_result(spawn_call(context), -EPERM);
    assert_result(spawn_with_call(context), -EPERM);
    assert_result(on_thread(spawn_call, context), -EPERM);
    ck_assert_int_eq(counted, 2);
    /* Nothing is left to drain, so any thread may destroy it. */
    assert_result(coil_context_destroy(context), 0);
    ck_assert_uint_eq(test_descriptors(), before);
}
END_TEST

START_TEST(context_runs_again_on_its_thread_only)
{
    coil_context *context = test_context();

    for (int i = 1; i <= 5; i++) {
        assert_result(spawn_call(context), 0);
        assert_result(on_thread(spawn_call, context), i == 1 ? 0 : -EPERM);
        assert_result(coil_context_run(context), 0);
        ck_assert_int_eq(counted, i + 1);
        assert_result(on_thread(coil_context_run, context), -EPERM);
    }
    assert_result(on_thread(coil_context_destroy, context), 0);
}
END_TEST

START_TEST(context_with_tasks_is_destroyed_on_its_thread_only)
{
    size_t before = test_descriptors();
    coil_context *context = test_context();

    assert_result(coil_context_run(context), 0);
    assert_result(spawn_call(context), 0);
    assert_result(on_thread(coil_context_destroy, context), -EPERM);
    assert_result(coil_context_run(context), 0); /* it is still good */
    ck_assert_int_eq(counted, 1);
    assert_result(spawn_call(context), 0);
    assert_result(coil_context_destroy(context), 0);
    ck_assert_int_eq(counted, 1); /* that one saw -ECANCELED */
    context = test_context();
    assert_result(spawn_call(context), 0);
    assert_result(on_thread(coil_context_destroy, context), 0); /* never ran */
    ck_assert_uint_eq(test_descriptors(), before);
}
END_TEST

static void count_post(void *arg)
{
    (void)arg;
    counted++;
}

START_TEST(context_with_a_post_is_destroyed_on_its_thread_only)
{
    coil_context *context = test_context();

    assert_result(coil_context_run(context), 0);
    assert_result(coil_context_post(context, count_post, NULL), 0);
    assert_result(on_thread(coil_context_destroy, context), -EPERM);
    ck_assert_int_eq(counted, 0);
    assert_result(coil_context_destroy(context), 0);
    ck_assert_int_eq(counted, 1);
}
END_TEST

/* ------------------------------------------------------ while it is running */

static coil_context *other;

static int wrong_calls_task(void *arg)
{
    coil_context *own = arg;

    /* From another thread, while this one is in the middle of it. */
    assert_result(on_thread(coil_context_run, own), -EBUSY);
    assert_result(on_thread(coil_context_destroy, own), -EBUSY);
    assert_result(on_thread(spawn_call, own), -EPERM);
    assert_result(on_thread(spawn_with_call, own), -EPERM);
    assert_result(on_thread(spawn_current_call, own), -EINVAL);
    /* Another context inside this one's task. */
    assert_result(coil_context_run(other), -EPERM);
    assert_result(coil_context_destroy(own), -EPERM);
    assert_result(coil_check(), 0);
    return coil_yield();
}

START_TEST(running_context_refuses_a_second_run_and_others_calls)
{
    coil_context *context = test_context();

    other = test_context();
    assert_result(coil_spawn(other, count_task, NULL, 0), 0);
    assert_result(coil_spawn(context, wrong_calls_task, context, 0), 0);
    assert_result(coil_context_run(context), 0);
    ck_assert_int_eq(counted, 0);
    assert_result(coil_context_run(other), 0);
    ck_assert_int_eq(counted, 1);
    test_context_end(context);
    test_context_end(other);
}
END_TEST

/* Its result is not seen, so what is wrong it leaves undone. */
static int checking_task(void *arg)
{
    if (coil_context_current() != arg || coil_sleep(COIL_US(10)) < 0)
        coil_context_add_work(arg); /* the run never ends */
    return 0;
}

static pthread_barrier_t made;

/* Contexts of several threads know nothing of each other, also when all do
 * everything for the first time at once. */
static int run_one(coil_context *context)
{
    coil_context_options options = test_options();
    int result = coil_context_create(&context, &options, NULL);

    pthread_barrier_wait(&made);
    for (int i = 0; i < 200 && result >= 0; i++) {
        result = coil_spawn(context, checking_task, context, 0);
        if (result >= 0)
            result = coil_context_run(context);
    }
    return result < 0 ? result : coil_context_destroy(context);
}

static void *run_one_thread(void *arg)
{
    *(int *)arg = run_one(NULL);
    return NULL;
}

START_TEST(contexts_of_four_threads_run_side_by_side)
{
    size_t before = test_descriptors();
    int results[4] = {-ENODATA, -ENODATA, -ENODATA, -ENODATA};
    pthread_t threads[4];

    ck_assert_int_eq(pthread_barrier_init(&made, NULL, 4), 0);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, run_one_thread, &results[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_result(results[i], 0);
    }
    pthread_barrier_destroy(&made);
    ck_assert_uint_eq(test_descriptors(), before);
}
END_TEST

/* -------------------------------------------------------------------- work */

enum { WORKERS = 4, ROUNDS = 1000 };
static coil_context *worked;
static atomic_int holders, over_early;
static atomic_bool run_over;

/* Keeps the run alive, each time for a while of its own. */
static void *work_thread(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg + 1;

    for (int i = 0; i < ROUNDS; i++) {
        coil_context_add_work(worked);
        seed = seed * 1103515245 + 12345;
        for (unsigned j = seed >> 16 & 7; j > 0; j--)
            sched_yield();
        atomic_fetch_add(&over_early, atomic_load(&run_over));
        coil_context_drop_work(worked);
    }
    atomic_fetch_add(&over_early, atomic_load(&run_over));
    atomic_fetch_sub(&holders, 1);
    coil_context_drop_work(worked); /* what the test has added for it */
    return NULL;
}

START_TEST(work_of_other_threads_keeps_a_run_alive_until_it_is_dropped)
{
    pthread_t threads[WORKERS];
    coil_stats stats;

    worked = test_context();
    for (int round = 0; round < 20; round++) {
        atomic_store(&run_over, false);
        atomic_store(&holders, WORKERS);
        for (int i = 0; i < WORKERS; i++) {
            coil_context_add_work(worked);
            ck_assert_int_eq(pthread_create(&threads[i], NULL, work_thread,
                                            (void *)(intptr_t)i),
                             0);
        }
        assert_result(coil_context_run(worked), 0);
        ck_assert_int_eq(atomic_load(&holders), 0);
        atomic_store(&run_over, true);
        for (int i = 0; i < WORKERS; i++)
            pthread_join(threads[i], NULL);
        ck_assert_int_eq(atomic_load(&over_early), 0);
    }
    coil_context_stats(worked, &stats, sizeof(stats));
    printf("20 runs with %d pairs of add and drop each, %llu turns\n",
           WORKERS * ROUNDS, (unsigned long long)stats.turns);
    test_context_end(worked);
}
END_TEST

static void *drop_thread(void *arg)
{
    (void)arg;
    for (int i = 0; i < counted % 50; i++)
        sched_yield();
    coil_context_drop_work(worked);
    return NULL;
}

/* The last drop and the loop's decision to sleep, a thousand times. */
START_TEST(last_drop_ends_the_run_at_any_moment)
{
    coil_time begin = coil_now();

    worked = test_context();
    for (counted = 0; counted < 1000; counted++) {
        pthread_t thread;

        coil_context_add_work(worked);
        ck_assert_int_eq(pthread_create(&thread, NULL, drop_thread, NULL), 0);
        assert_result(coil_context_run(worked), 0);
        pthread_join(thread, NULL);
    }
    printf("1000 runs were ended by a drop in %.2f s\n",
           (double)(coil_now() - begin) / 1e9);
    test_context_end(worked);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("threads");
    TCase *owner = tcase_create("owner"), *work = tcase_create("work");

    suite_add_tcase(suite, owner);
    suite_add_tcase(suite, work);
    tcase_set_timeout(owner, 30);
    tcase_set_timeout(work, 30);
    tcase_add_test(owner, context_belongs_to_the_thread_that_runs_it_first);
    tcase_add_test(owner, context_runs_again_on_its_thread_only);
    tcase_add_test(owner, context_with_tasks_is_destroyed_on_its_thread_only);
    tcase_add_test(owner, context_with_a_post_is_destroyed_on_its_thread_only);
    tcase_add_test(owner,
                   running_context_refuses_a_second_run_and_others_calls);
    tcase_add_test(owner, contexts_of_four_threads_run_side_by_side);
    tcase_add_test(work,
                   work_of_other_threads_keeps_a_run_alive_until_it_is_dropped);
    tcase_add_test(work, last_drop_ends_the_run_at_any_moment);
    return test_main(suite);
}
