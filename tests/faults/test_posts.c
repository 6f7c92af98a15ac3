/*
 * Posts: from many threads at any moment, each run once and soon although no
 * timer would find a forgotten one; what may be called inside a post; and that
 * none is lost at the end.
 */
#include "support/test.h"
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/eventfd.h>

enum {
    THREADS = 8,
    POSTS = TEST_SLOW ? 40000 : 200000,
    POSTS_EACH = POSTS / THREADS,
    CLOSE_POSTS = TEST_SLOW ? 10000 : 100000,
    EARLY = 1000, /* of each thread's, before the run has begun */
    BATCH = TEST_SLOW ? 1000 : 10000
};

/* Acted on within this time of the post and of the beginning of the run. A
 * machine that is busy with other things gets more than one try. */
static const coil_duration latency_limit = COIL_MS(TEST_SLOW ? 500 : 50);
enum { TRIES = 5 };

struct post {
    coil_time posted;
    _Atomic coil_time ran;
    atomic_uint times;
};

static struct post posts[POSTS];
static unsigned wait_one_in = 256; /* posts whose thread waits for them */
static coil_context *context;
static coil_time run_begun;
static atomic_bool run_started;
static atomic_uint threads_left, early_done, refused, never_ran;

static uint64_t timers_armed(void)
{
    coil_stats stats;

    coil_context_stats(context, &stats, sizeof(stats));
    return stats.timers_armed;
}

static void run_post(void *arg)
{
    struct post *post = arg;

    atomic_fetch_add(&post->times, 1);
    atomic_store(&post->ran, coil_now());
    if ((post - posts) % 1000 == 0)
        ck_assert_uint_eq(timers_armed(), 0);
}

/* Waits until the post has run: all threads come to be silent, so that the
 * loop sleeps. It is not left to those that follow to wake it. */
static void wait_for(const struct post *post)
{
    coil_time give_up = coil_now() + COIL_S(10);

    for (unsigned i = 0; !atomic_load(&post->ran); i++) {
        if (coil_now() > give_up) {
            atomic_fetch_add(&never_ran, 1);
            return;
        }
        if (i < 20)
            sched_yield();
        else
            poll(NULL, 0, 1);
    }
}

/* A gap of any length between nothing and some milliseconds. */
static void pause_a_while(unsigned *seed, const struct post *post)
{
    unsigned draw;

    *seed = *seed * 1103515245 + 12345;
    draw = *seed >> 8;
    if (draw % wait_one_in == 0 && atomic_load(&run_started))
        wait_for(post);
    else if (draw % 32 == 1)
        poll(NULL, 0, (int)(draw >> 10 & 1));
    else if (draw % 16 == 1)
        sched_yield();
    else
        for (volatile unsigned spin = draw >> 4 & 255; spin > 0; spin--)
            ;
}

static void *posting_thread(void *arg)
{
    unsigned first = (unsigned)(uintptr_t)arg * POSTS_EACH;
    unsigned seed = first + 1;

    for (unsigned i = first; i < first + POSTS_EACH; i++) {
        posts[i].posted = coil_now();
        if (coil_context_post(context, run_post, &posts[i]) < 0)
            atomic_fetch_add(&refused, 1);
        if (i - first == EARLY)
            atomic_fetch_add(&early_done, 1);
        pause_a_while(&seed, &posts[i]);
    }
    if (atomic_fetch_sub(&threads_left, 1) == 1)
        coil_context_drop_work(context);
    return NULL;
}

/* Looks at the results; returns the longest delay. */
static coil_duration check_posts(void)
{
    coil_duration longest = 0;
    unsigned wrong = 0;

    for (unsigned i = 0; i < POSTS; i++) {
        coil_time from =
            posts[i].posted > run_begun ? posts[i].posted : run_begun;
        coil_duration delay = atomic_load(&posts[i].ran) - from;

        wrong += atomic_load(&posts[i].times) != 1;
        longest = delay > longest ? delay : longest;
    }
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_eq(refused, 0);
    ck_assert_uint_eq(never_ran, 0);
    return longest;
}

static int idle_task(void *arg)
{
    (void)arg;
    return 0;
}

static int busy_task(void *arg)
{
    (void)arg;
    return coil_yield();
}

/* A batch of ten thousand tasks, again and again. */
static int batch_task(void *arg)
{
    while (atomic_load(&threads_left)) {
        for (int i = 0; i < BATCH; i++)
            assert_result(coil_spawn(NULL, busy_task, arg, 0), 0);
        ck_assert_uint_eq(timers_armed(), 0);

        for (int i = 0; i < 50; i++)
            assert_result(coil_yield(), 0);
    }
    return 0;
}

/* Ten thousand stacks made at once would hold up any post. */
static void make_stacks(void)
{
    for (int i = 0; i < BATCH + 1; i++)
        assert_result(coil_spawn(context, idle_task, NULL, 0), 0);
    assert_result(coil_context_run(context), 0);
}

static coil_duration post_from_threads(const coil_context_options *options,
                                       coil_task_fn *fn)
{
    pthread_t threads[THREADS];
    coil_stats stats;

    memset(posts, 0, sizeof(posts));
    atomic_store(&run_started, false);
    atomic_store(&threads_left, THREADS);
    atomic_store(&early_done, 0);
    assert_result(coil_context_create(&context, options, NULL), 0);
    if (fn == batch_task)
        make_stacks();
    coil_context_add_work(context);
    for (unsigned i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, posting_thread,
                                        (void *)(uintptr_t)i),
                         0);
    while (atomic_load(&early_done) < THREADS / 2)
        sched_yield(); /* half of them are in the middle of it */
    assert_result(coil_spawn(context, fn, NULL, 0), 0);
    run_begun = coil_now();
    atomic_store(&run_started, true);
    assert_result(coil_context_run(context), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    coil_context_stats(context, &stats, sizeof(stats));
    printf("%u posts: %llu run in %llu turns and %llu enters", POSTS,
           (unsigned long long)stats.posts, (unsigned long long)stats.turns,
           (unsigned long long)stats.enters);
    ck_assert_uint_eq(stats.timers_armed, 0);
    assert_result(coil_context_run(context), 0); /* what came too late for it */
    coil_context_stats(context, &stats, sizeof(stats));
    ck_assert_uint_eq(stats.posts, POSTS);
    test_context_end(context);
    return check_posts();
}

static void post_until_in_time(const coil_context_options *options,
                               coil_task_fn *fn)
{
    for (int i = 0; i < TRIES; i++) {
        coil_duration longest = post_from_threads(options, fn);

        printf(", the slowest after %.3f ms\n", (double)longest / 1e6);
        if (longest <= latency_limit)
            return;
    }
    ck_abort_msg("posts were too slow %d times", TRIES);
}

START_TEST(posts_run_once_and_soon_in_an_idle_loop)
{
    coil_context_options options = test_options();

    wait_one_in = 16;
    post_until_in_time(&options, idle_task);
}
END_TEST

START_TEST(posts_run_once_and_soon_between_batches_of_tasks)
{
    coil_context_options options = test_options();

    post_until_in_time(&options, batch_task);
}
END_TEST

static int ready_descriptor;

/* A completion at once, without end. */
static int completing_task(void *arg)
{
    (void)arg;
    while (atomic_load(&threads_left))
        assert_result(coil_poll(ready_descriptor, POLLIN), POLLIN);
    return 0;
}

/* A completion queue of 8, and 64 completions a turn. */
static int overflow_task(void *arg)
{
    for (int i = 0; i < 63; i++)
        assert_result(coil_spawn(NULL, completing_task, arg, 0), 0);
    return completing_task(arg);
}

START_TEST(posts_run_once_and_soon_while_completions_overflow)
{
    coil_context_options options = test_options();

    options.sq_entries = 4;
    options.cq_entries = 8;
    ready_descriptor = eventfd(1, EFD_CLOEXEC);
    post_until_in_time(&options, overflow_task);
    close(ready_descriptor);
}
END_TEST

/* Each post is made a moment after the last one has told that it runs, which
 * is when the loop goes on to look whether there is more and falls asleep.
 * Nothing else wakes it. Which of them is late by how much, varies. */
static void run_close_post(void *arg)
{
    run_post(arg);
    for (volatile long spin = ((struct post *)arg - posts) * 31 % 257; spin > 0;
         spin--)
        ;
}

static void *closely_posting_thread(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < CLOSE_POSTS && !atomic_load(&never_ran); i++) {
        coil_time give_up = coil_now() + COIL_S(10);

        for (volatile unsigned spin = i * 7919 % 127; spin > 0; spin--)
            ;
        if (coil_context_post(context, run_close_post, &posts[i]) < 0)
            atomic_fetch_add(&refused, 1);
        for (unsigned j = 1; !atomic_load(&posts[i].ran); j++)
            if (j % 1024 == 0) {
                atomic_fetch_add(&never_ran, coil_now() > give_up);
                if (atomic_load(&never_ran))
                    break;
                sched_yield();
            }
    }
    coil_context_drop_work(context);
    return NULL;
}

START_TEST(post_to_a_loop_that_falls_asleep_is_seen)
{
    pthread_t thread;
    coil_stats stats;

    context = test_context();
    coil_context_add_work(context);
    ck_assert_int_eq(
        pthread_create(&thread, NULL, closely_posting_thread, NULL), 0);
    assert_result(coil_context_run(context), 0);
    pthread_join(thread, NULL);
    coil_context_stats(context, &stats, sizeof(stats));
    printf("%u posts one by one: %llu turns\n", CLOSE_POSTS,
           (unsigned long long)stats.turns);
    ck_assert_uint_eq(never_ran, 0);
    ck_assert_uint_eq(refused, 0);
    ck_assert_uint_eq(stats.posts, CLOSE_POSTS);
    test_context_end(context);
}
END_TEST

/* -------------------------------------------------------- without a thread */

static unsigned counted;

static void count_post(void *arg)
{
    counted += (unsigned)(uintptr_t)arg;
}

START_TEST(post_that_never_ran_runs_in_destroy)
{
    size_t before = test_descriptors();

    for (unsigned round = 1; round <= 20; round++) {
        context = test_context();
        if (round % 2)
            assert_result(coil_context_run(context), 0);
        counted = 0;
        for (unsigned i = 0; i < round; i++)
            assert_result(coil_context_post(context, count_post, (void *)1), 0);
        ck_assert_uint_eq(counted, 0);
        assert_result(coil_context_destroy(context), 0);
        ck_assert_uint_eq(counted, round);
    }
    ck_assert_uint_eq(test_descriptors(), before);
}
END_TEST

static int spawned_by_post(void *arg)
{
    assert_result(coil_sleep(0), 0);
    counted += (unsigned)(uintptr_t)arg;
    return 0;
}

static void call_everything(void *arg)
{
    char byte;
    coil_tcp_socket socket;

    ck_assert_ptr_eq(coil_context_current(), arg);
    ck_assert_ptr_null(coil_task_current());
    assert_result(coil_yield(), -EPERM);
    assert_result(coil_check(), -EPERM);
    assert_result(coil_sleep(0), -EPERM);
    assert_result(coil_sleep_until(0), -EPERM);
    assert_result(coil_poll(0, POLLIN), -EPERM);
    assert_result(coil_timeout(coil_sleep_op(1), 0), -EPERM);
    assert_result(coil_tcp_open(&socket, AF_INET), 0);
    assert_result(coil_tcp_read_some(&socket, &byte, 1), -EPERM);
    assert_result(coil_tcp_write_all(&socket, "x", 1, NULL), -EPERM);
    assert_result(coil_tcp_close(&socket), 0);
    assert_result(coil_run(idle_task, NULL, 0), -EPERM);
    assert_result(coil_context_destroy(arg), -EPERM);
    assert_result(coil_spawn(NULL, spawned_by_post, (void *)10, 0), 0);
    assert_result(coil_spawn(arg, spawned_by_post, (void *)100, 0), 0);
    counted++;
}

START_TEST(post_may_spawn_but_not_wait)
{
    context = test_context();
    assert_result(coil_context_post(context, NULL, NULL), -EINVAL);
    assert_result(coil_context_post(context, call_everything, context), 0);
    assert_result(coil_context_run(context), 0);
    ck_assert_uint_eq(counted, 111);
    test_context_end(context);
}
END_TEST

static unsigned order_wrong;

static void expect_number(void *arg)
{
    order_wrong += counted++ != (unsigned)(uintptr_t)arg;
}

START_TEST(posts_of_one_thread_run_in_order)
{
    context = test_context();
    for (unsigned i = 0; i < 10000; i++)
        assert_result(
            coil_context_post(context, expect_number, (void *)(uintptr_t)i), 0);
    assert_result(coil_context_run(context), 0);
    ck_assert_uint_eq(counted, 10000);
    ck_assert_uint_eq(order_wrong, 0);
    test_context_end(context);
}
END_TEST

enum { CHAIN = 10000, YIELDS = 1000 };
static struct {
    unsigned posts, yields, posts_at_last_yield, same_turn;
    uint64_t turn;
} chain;

static void chain_post(void *arg)
{
    coil_stats stats;

    coil_context_stats(context, &stats, sizeof(stats));
    chain.same_turn += stats.turns == chain.turn;
    chain.turn = stats.turns;
    if (++chain.posts < CHAIN)
        assert_result(coil_context_post(context, chain_post, arg), 0);
}

/* Sleeps of nothing, with a pass through the kernel in between. */
static int chain_yielder(void *arg)
{
    (void)arg;
    for (; chain.yields < YIELDS; chain.yields++) {
        assert_result(coil_yield(), 0);
        assert_result(coil_poll(ready_descriptor, POLLIN), POLLIN);
    }
    chain.posts_at_last_yield = chain.posts;
    return 0;
}

START_TEST(post_that_posts_itself_starves_nobody)
{
    ready_descriptor = eventfd(1, EFD_CLOEXEC);
    context = test_context();
    assert_result(coil_context_post(context, chain_post, NULL), 0);
    assert_result(coil_spawn(context, chain_yielder, NULL, 0), 0);
    assert_result(coil_context_run(context), 0);
    printf("%u posts, %u yields, the last one after post %u\n", chain.posts,
           chain.yields, chain.posts_at_last_yield);
    ck_assert_uint_eq(chain.posts, CHAIN);
    ck_assert_uint_eq(chain.yields, YIELDS);
    ck_assert_uint_eq(chain.same_turn, 0);
    ck_assert_uint_ge(chain.posts_at_last_yield, YIELDS / 2);
    ck_assert_uint_lt(chain.posts_at_last_yield, CHAIN);
    test_context_end(context);
    close(ready_descriptor);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("posts");
    TCase *threads = tcase_create("threads"), *alone = tcase_create("alone");

    suite_add_tcase(suite, threads);
    suite_add_tcase(suite, alone);
    tcase_set_timeout(threads, 60);
    tcase_set_timeout(alone, 30);
    tcase_add_test(threads, posts_run_once_and_soon_in_an_idle_loop);
    tcase_add_test(threads, posts_run_once_and_soon_between_batches_of_tasks);
    tcase_add_test(threads, posts_run_once_and_soon_while_completions_overflow);
    tcase_add_test(threads, post_to_a_loop_that_falls_asleep_is_seen);
    tcase_add_test(alone, post_that_never_ran_runs_in_destroy);
    tcase_add_test(alone, post_may_spawn_but_not_wait);
    tcase_add_test(alone, posts_of_one_thread_run_in_order);
    tcase_add_test(alone, post_that_posts_itself_starves_nobody);
    return test_main(suite);
}
