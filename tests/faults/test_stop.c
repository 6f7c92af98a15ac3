/*
 * stop(): before a run, twice, from a task, from another thread at any moment
 * and from a signal handler, and that the context runs again afterwards.
 */
#include "base/seam.h"
#include "ring/scheduler.h"
#include "support/test.h"
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>

enum {
    WAITERS = 8,
    STOPS = TEST_SLOW ? 10000 : 100000,
    ALARM_RUNS = TEST_SLOW ? 20 : 200 /* to be ended by signals */
};

static int waits_ended; /* waits that ended with -ECANCELED */

static int first_wait_task(void *arg)
{
    (void)arg;
    assert_result(coil_sleep(COIL_FOREVER), -ECANCELED);
    assert_result(coil_check(), -ECANCELED);
    assert_result(coil_yield(), -ECANCELED);
    waits_ended++;
    return -ECANCELED;
}

static void spawn_waiters(coil_context *context, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_result(coil_spawn(context, first_wait_task, NULL, 0), 0);
}

static int sleeping_task(void *arg)
{
    assert_result(coil_check(), 0);
    assert_result(coil_sleep(COIL_US(100)), 0);
    assert_result(coil_yield(), 0);
    ++*(int *)arg;
    return 0;
}

/* Nothing of a stop is left: tasks wait and end as ever. */
static void check_runs_again(coil_context *context)
{
    int count = 0;

    for (int i = 0; i < WAITERS; i++)
        assert_result(coil_spawn(context, sleeping_task, &count, 0), 0);
    assert_result(coil_context_run(context), 0);
    ck_assert_int_eq(count, WAITERS);
}

static void check_nothing_left(const coil_context *context)
{
    coil_stats stats;

    coil_context_stats(context, &stats, sizeof(stats));
    ck_assert_uint_eq(stats.in_flight, 0);
    ck_assert_uint_eq(stats.tasks_live, 0);
    ck_assert_uint_eq(stats.timers_armed, 0);
}

/* ------------------------------------------------------------ before a run */

START_TEST(stop_before_a_run_cancels_the_first_wait_of_every_task)
{
    coil_context *context = test_context();

    for (int round = 1; round <= 3; round++) {
        for (int i = 0; i < round; i++)
            coil_context_stop(context);
        spawn_waiters(context, 100);
        coil_context_add_work(context); /* a stop overrides it */
        assert_result(coil_context_run(context), 0);
        coil_context_drop_work(context);
        ck_assert_int_eq(waits_ended, 100 * round);
        check_nothing_left(context);
        check_runs_again(context);
    }
    test_context_end(context);
}
END_TEST

START_TEST(stop_before_a_run_without_tasks_ends_that_run_only)
{
    coil_context *context = test_context();

    coil_context_add_work(context);
    for (int i = 0; i < 100; i++) {
        coil_context_stop(context);
        assert_result(coil_context_run(context), 0);
    }
    coil_context_drop_work(context);
    check_runs_again(context);
    test_context_end(context);
}
END_TEST

/* ------------------------------------------------------------- from inside */

static int stopping_task(void *arg)
{
    coil_context *context = coil_context_current();

    for (int i = 0; i < *(int *)arg; i++)
        coil_context_stop(context);
    assert_result(coil_sleep(COIL_FOREVER), -ECANCELED);
    coil_context_stop(context); /* while the first one is being honoured */
    /* Spawned into a stopped context it runs all the same. */
    assert_result(coil_spawn(NULL, first_wait_task, NULL, 0), 0);
    return -ECANCELED;
}

START_TEST(stop_from_a_task_ends_the_run)
{
    coil_context *context = test_context();

    for (int times = 1; times <= 2; times++) {
        waits_ended = 0;
        spawn_waiters(context, WAITERS);
        assert_result(coil_spawn(context, stopping_task, &times, sizeof(times)),
                      0);
        assert_result(coil_context_run(context), 0);
        ck_assert_int_eq(waits_ended, WAITERS + 1);
        check_nothing_left(context);
        check_runs_again(context);
    }
    test_context_end(context);
}
END_TEST

static void stop_it(void *arg)
{
    coil_context_stop(arg);
}

START_TEST(stop_from_a_post_ends_the_run)
{
    coil_context *context = test_context();

    spawn_waiters(context, WAITERS);
    assert_result(coil_context_post(context, stop_it, context), 0);
    assert_result(coil_context_run(context), 0);
    ck_assert_int_eq(waits_ended, WAITERS);
    check_runs_again(context);
    test_context_end(context);
}
END_TEST

/* ------------------------------------------------------ from other threads */

static struct {
    coil_context *context;
    int pipe[2];
    atomic_bool done;
    atomic_uint runs;
    int waited[3]; /* cancelled waits of each kind */
} storm;

/* Waits of every kind, over and over, until a stop ends one. */
static int storm_task(void *arg)
{
    int kind = (int)(intptr_t)arg % 3, result;

    do {
        if (kind == 0)
            result = coil_sleep(COIL_US(20));
        else if (kind == 1)
            result = coil_poll(storm.pipe[0], POLLIN);
        else
            result = (int)coil_timeout(coil_poll_op(storm.pipe[0], POLLIN),
                                       COIL_US(50));
    } while (result == 0 || result == -ETIME);
    assert_result(result, -ECANCELED);
    storm.waited[kind]++;
    return result;
}

static void *storm_thread(void *arg)
{
    unsigned seed = 12345;

    (void)arg;
    /* More, until on a busy machine enough runs had their chance. */
    for (int i = 0; i < STOPS || atomic_load(&storm.runs) < 20; i++) {
        coil_context_stop(storm.context);
        seed = seed * 1103515245 + 12345;
        switch (seed >> 16 & 15) {
        case 0:
            sched_yield();
            break;
        case 1:
            if ((seed >> 20 & 63) == 0)
                poll(NULL, 0, 1);
            break;
        default:
            for (volatile unsigned spin = seed >> 20 & 1023; spin > 0; spin--)
                ;
        }
    }
    atomic_store(&storm.done, true);
    coil_context_stop(storm.context);
    return NULL;
}

/* Every run has work for ever, so each one ends by a stop; those that come
 * while none runs are kept for the next. */
START_TEST(stop_from_another_thread_ends_every_run)
{
    coil_time begin = coil_now();
    unsigned runs = 0;
    pthread_t thread;
    bool last;

    storm.context = test_context();
    ck_assert_int_eq(pipe(storm.pipe), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, storm_thread, NULL), 0);
    do {
        last = atomic_load(&storm.done);
        if (last && pthread_join(thread, NULL) == 0)
            coil_context_stop(storm.context); /* as none comes any more */
        for (intptr_t i = 0; i < WAITERS; i++)
            assert_result(coil_spawn(storm.context, storm_task, (void *)i, 0),
                          0);
        assert_result(coil_context_run(storm.context), 0);
        runs++;
        atomic_store(&storm.runs, runs);
        check_nothing_left(storm.context);
    } while (!last);
    printf("%d stops, %u runs, %d sleeps, %d polls and %d limited polls ended "
           "in %.2f s\n",
           STOPS, runs, storm.waited[0], storm.waited[1], storm.waited[2],
           (double)(coil_now() - begin) / 1e9);
    ck_assert_int_eq(storm.waited[0] + storm.waited[1] + storm.waited[2],
                     (int)(WAITERS * runs));
    ck_assert_uint_ge(runs, 20);
    check_runs_again(storm.context);
    test_context_end(storm.context);
    close(storm.pipe[0]);
    close(storm.pipe[1]);
}
END_TEST

static void *stop_thread(void *arg)
{
    for (volatile int spin = *(int *)arg; spin > 0; spin--)
        ;
    coil_context_stop(storm.context);
    return NULL;
}

/* No timer and no completion would ever wake this loop. */
START_TEST(stop_from_another_thread_wakes_a_loop_at_any_moment)
{
    coil_time begin = coil_now();

    storm.context = test_context();
    for (int i = 0; i < 1000; i++) {
        int spin = i * 7919 % 1000 * (1 + i % 30);
        pthread_t thread;

        spawn_waiters(storm.context, WAITERS);
        ck_assert_int_eq(pthread_create(&thread, NULL, stop_thread, &spin), 0);
        assert_result(coil_context_run(storm.context), 0);
        pthread_join(thread, NULL);
        ck_assert_int_eq(waits_ended, WAITERS * (i + 1));
    }
    printf("1000 runs that sleep were stopped in %.2f s\n",
           (double)(coil_now() - begin) / 1e9);
    check_runs_again(storm.context);
    test_context_end(storm.context);
}
END_TEST

static unsigned late_stops;

/* The run has ended its work and takes back what it had in the kernel. */
static unsigned stop_late(struct io_uring_cqe *cqes, unsigned count,
                          unsigned capacity)
{
    (void)capacity;
    for (unsigned i = 0; i < count; i++)
        if (cqes[i].user_data == COIL__DATA_WAKE && cqes[i].res == -ECANCELED) {
            coil_context_stop(storm.context);
            late_stops++;
        }
    return count;
}

START_TEST(stop_that_comes_too_late_for_a_run_is_kept_for_the_next)
{
    storm.context = test_context();
    for (unsigned i = 1; i <= 20; i++) {
        coil__seam.completions = stop_late;
        check_runs_again(storm.context);
        ck_assert_uint_eq(late_stops, i);
        coil__seam.completions = NULL;
        spawn_waiters(storm.context, WAITERS);
        assert_result(coil_context_run(storm.context), 0);
        ck_assert_int_eq(waits_ended, WAITERS * (int)i);
        check_runs_again(storm.context);
    }
    test_context_end(storm.context);
}
END_TEST

/* ---------------------------------------------------- from signal handlers */

static coil_context *alarmed;
static atomic_int alarms;
static uint64_t bred;

static void handle_alarm(int number)
{
    (void)number;
    alarms++;
    coil_context_stop(alarmed); /* so that it is certain what is pending */
}

static void free_it(void *arg)
{
    free(arg);
}

/* TSan keeps a signal for the fiber it came to, and forgets it, or leaves all
 * signals blocked, if that one ends: there tasks live on and call a function
 * that may block, which is where it lets signals in. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SIGNALS_NEED_LIVING_FIBERS 1
#endif
#endif
#ifndef SIGNALS_NEED_LIVING_FIBERS
#define SIGNALS_NEED_LIVING_FIBERS 0
#endif

static int allocate_and_post(void)
{
    void *memory = malloc(64 + bred % 512);

    ck_assert_ptr_nonnull(memory);
    assert_result(coil_context_post(coil_context_current(), free_it, memory),
                  0);
    bred++;
    if (SIGNALS_NEED_LIVING_FIBERS)
        poll(NULL, 0, 0);
    return coil_check();
}

/* Allocates, posts and spawns its successor, for ever. */
static int breeding_task(void *arg)
{
    while (SIGNALS_NEED_LIVING_FIBERS && coil_yield() == 0)
        allocate_and_post();
    if (allocate_and_post() == -ECANCELED)
        return -ECANCELED;
    assert_result(coil_spawn(NULL, breeding_task, arg, 0), 0);
    return coil_yield();
}

static int sleeping_for_ever(void *arg)
{
    coil_duration nap = *(coil_duration *)arg;
    int result;

    do
        result = coil_sleep(nap);
    while (result == 0);
    waits_ended++;
    return result;
}

static void start_alarm(long microseconds)
{
    struct itimerval every = {{0, microseconds}, {0, microseconds}};

    ck_assert_int_eq(setitimer(ITIMER_REAL, &every, NULL), 0);
}

static void run_under_alarms(coil_task_fn *fn, coil_duration nap)
{
    struct sigaction action = {.sa_handler = handle_alarm};
    unsigned runs = 0;

    alarmed = test_context();
    ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
    start_alarm(300);
    while (runs < ALARM_RUNS) {
        for (int i = 0; i < WAITERS; i++)
            assert_result(coil_spawn(alarmed, fn, &nap, sizeof(nap)), 0);
        assert_result(coil_context_run(alarmed), 0);
        runs++;
        check_nothing_left(alarmed);
    }
    start_alarm(0);
    printf("%d alarms, %u runs, %llu tasks bred\n", atomic_load(&alarms), runs,
           (unsigned long long)bred);
    ck_assert_int_gt(alarms, 0);
    coil_context_stop(alarmed); /* so that it is certain what is pending */
    assert_result(coil_context_run(alarmed), 0);
    check_runs_again(alarmed);
    test_context_end(alarmed);
}

START_TEST(stop_from_a_signal_handler_ends_a_run_that_allocates)
{
    run_under_alarms(breeding_task, 0);
    ck_assert_uint_gt(bred, ALARM_RUNS);
}
END_TEST

START_TEST(stop_from_a_signal_handler_ends_a_run_that_sleeps)
{
    run_under_alarms(sleeping_for_ever, COIL_MS(20));
    ck_assert_int_ge(waits_ended, ALARM_RUNS * WAITERS);
}
END_TEST

static pthread_t victim;

static void *kill_thread(void *arg)
{
    (void)arg;
    for (int i = 0; !atomic_load(&storm.done); i++) {
        pthread_kill(victim, SIGUSR1);
        for (int j = 0; j < i % 50; j++)
            sched_yield();
        if (SIGNALS_NEED_LIVING_FIBERS)
            poll(NULL, 0, 1);
    }
    return NULL;
}

START_TEST(stop_from_a_signal_of_another_thread_ends_every_run)
{
    struct sigaction action = {.sa_handler = handle_alarm};
    coil_duration nap = COIL_MS(20);
    unsigned runs = 0;
    pthread_t thread;

    alarmed = test_context();
    victim = pthread_self();
    ck_assert_int_eq(sigaction(SIGUSR1, &action, NULL), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, kill_thread, NULL), 0);
    while (runs < ALARM_RUNS) {
        for (int i = 0; i < WAITERS; i++)
            assert_result(coil_spawn(alarmed,
                                     i % 2 ? breeding_task : sleeping_for_ever,
                                     &nap, sizeof(nap)),
                          0);
        assert_result(coil_context_run(alarmed), 0);
        runs++;
        check_nothing_left(alarmed);
    }
    atomic_store(&storm.done, true);
    pthread_join(thread, NULL);
    printf("%d signals, %u runs, %llu tasks bred\n", atomic_load(&alarms), runs,
           (unsigned long long)bred);
    ck_assert_int_gt(alarms, 0);
    ck_assert_uint_gt(bred, ALARM_RUNS);
    coil_context_stop(alarmed); /* so that it is certain what is pending */
    assert_result(coil_context_run(alarmed), 0);
    check_runs_again(alarmed);
    test_context_end(alarmed);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stop");
    TCase *inside = tcase_create("inside"), *outside = tcase_create("outside");

    suite_add_tcase(suite, inside);
    suite_add_tcase(suite, outside);
    tcase_set_timeout(inside, 30);
    tcase_set_timeout(outside, 60);
    tcase_add_test(inside,
                   stop_before_a_run_cancels_the_first_wait_of_every_task);
    tcase_add_test(inside, stop_before_a_run_without_tasks_ends_that_run_only);
    tcase_add_test(inside, stop_from_a_task_ends_the_run);
    tcase_add_test(inside, stop_from_a_post_ends_the_run);
    tcase_add_test(outside, stop_from_another_thread_ends_every_run);
    tcase_add_test(outside,
                   stop_from_another_thread_wakes_a_loop_at_any_moment);
    tcase_add_test(inside,
                   stop_that_comes_too_late_for_a_run_is_kept_for_the_next);
    tcase_add_test(outside,
                   stop_from_a_signal_handler_ends_a_run_that_allocates);
    tcase_add_test(outside, stop_from_a_signal_handler_ends_a_run_that_sleeps);
    tcase_add_test(outside,
                   stop_from_a_signal_of_another_thread_ends_every_run);
    return test_main(suite);
}
