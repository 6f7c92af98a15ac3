/*
 * Stop sources: from any thread, to any number of scopes, racing with their
 * ends.
 */
#include "support/test.h"
#include <pthread.h>
#include <stdatomic.h>

enum { SCOPES = 50, REQUESTERS = 4, RACES = TEST_SLOW ? 300 : 3000 };

static coil_stop_source *source;

static coil_stop_source *create(void)
{
    coil_stop_source *created;

    assert_result(coil_stop_source_create(&created), 0);
    return created;
}

#define TASK_TEST(name, fn)                                                    \
    START_TEST(name)                                                           \
    {                                                                          \
        source = create();                                                     \
        assert_result(test_run(fn, NULL), 0);                                  \
        coil_stop_source_unref(source);                                        \
    }                                                                          \
    END_TEST

/* ------------------------------------------------------------ in one task */

static int bind_task(void *arg)
{
    coil_scope scope, other;
    coil_stop_source *second = create();

    (void)arg;
    coil_scope_begin(&scope, COIL_FOREVER);
    coil_scope_begin(&other, COIL_FOREVER);
    assert_result(coil_stop_source_bind(source, &scope), 0);
    assert_result(coil_stop_source_bind(source, &scope), -EBUSY);
    assert_result(coil_stop_source_bind(second, &scope), -EBUSY);
    assert_result(coil_stop_source_bind(second, &other), 0);
    assert_result(coil_sleep(COIL_US(1)), 0);
    coil_stop_source_request(second);
    coil_stop_source_request(second);
    assert_result(coil_sleep(COIL_FOREVER), -ECANCELED);
    assert_result(coil_scope_end(&other), -ECANCELED);
    /* The one around it was not meant. */
    assert_result(coil_sleep(COIL_US(1)), 0);
    assert_result(coil_scope_end(&scope), 0);
    assert_result(coil_stop_source_bind(source, &scope), -EINVAL);
    coil_stop_source_unref(second);
    ck_assert(!coil_stop_source_requested(source));
    return 0;
}

static int requested_already_task(void *arg)
{
    coil_scope scope;

    (void)arg;
    coil_stop_source_request(source);
    ck_assert(coil_stop_source_requested(source));
    for (int i = 0; i < 3; i++) {
        coil_scope_begin(&scope, COIL_FOREVER);
        assert_result(coil_check(), 0);
        assert_result(coil_stop_source_bind(source, &scope), 0);
        assert_result(coil_check(), -ECANCELED);
        assert_result(coil_scope_end(&scope), -ECANCELED);
        assert_result(coil_check(), 0);
    }
    return 0;
}

/* Requested, but its scope ends before the loop has come to it; the memory is
 * used anew at once. */
static int ended_first_task(void *arg)
{
    coil_scope scope;

    (void)arg;
    coil_scope_begin(&scope, COIL_FOREVER);
    assert_result(coil_stop_source_bind(source, &scope), 0);
    coil_stop_source_request(source);
    assert_result(coil_scope_end(&scope), 0); /* no wait was refused */
    memset(&scope, 0xa5, sizeof(scope));
    assert_result(coil_sleep(COIL_MS(1)), 0);
    return 0;
}

/* The scope holds a reference of its own. */
static int references_task(void *arg)
{
    coil_stop_source *temporary = create();
    coil_scope scope;

    (void)arg;
    coil_scope_begin(&scope, COIL_FOREVER);
    assert_result(coil_stop_source_bind(temporary, &scope), 0);
    ck_assert_ptr_eq(coil_stop_source_ref(temporary), temporary);
    coil_stop_source_unref(temporary);
    coil_stop_source_unref(temporary);
    assert_result(coil_sleep(COIL_US(1)), 0);
    assert_result(coil_scope_end(&scope), 0);
    coil_stop_source_unref(NULL);
    return 0;
}

/* A shield hides it, and a group can be bound by its scope. */
static int shield_task(void *arg)
{
    coil_scope scope, shield;

    (void)arg;
    coil_scope_begin(&scope, COIL_FOREVER);
    assert_result(coil_stop_source_bind(source, &scope), 0);
    coil_shield_begin(&shield, COIL_S(5));
    coil_stop_source_request(source);
    assert_result(coil_sleep(COIL_MS(1)), 0);
    assert_result(coil_scope_end(&shield), 0);
    assert_result(coil_sleep(COIL_MS(1)), -ECANCELED);
    assert_result(coil_scope_end(&scope), -ECANCELED);
    return 0;
}

TASK_TEST(source_cancels_the_scope_bound_to_it, bind_task)
TASK_TEST(requested_source_cancels_at_once, requested_already_task)
TASK_TEST(request_for_a_scope_that_ended_hits_nothing, ended_first_task)
TASK_TEST(bound_scope_keeps_its_source, references_task)
TASK_TEST(shield_hides_a_source, shield_task)

START_TEST(binding_in_the_wrong_place_is_refused)
{
    coil_scope scope = {0};

    source = create();
    assert_result(coil_stop_source_bind(source, &scope), -EINVAL);
    coil_stop_source_request(source);
    coil_stop_source_unref(source);
}
END_TEST

/* --------------------------------------------------------- many and threads */

static _Atomic unsigned bound, cancelled;

static int bound_task(void *arg)
{
    coil_scope scope;

    (void)arg;
    coil_scope_begin(&scope, COIL_FOREVER);
    assert_result(coil_stop_source_bind(source, &scope), 0);
    bound++;
    assert_result(coil_sleep(COIL_S(60)), -ECANCELED);
    cancelled++;
    return coil_scope_end(&scope) == -ECANCELED ? 0 : -EINVAL;
}

static void *requester(void *arg)
{
    (void)arg;
    while (bound < 2 * SCOPES)
        ;
    coil_stop_source_request(source);
    coil_stop_source_unref(source);
    return NULL;
}

static void *context_thread(void *arg)
{
    coil_context *context = test_context();

    (void)arg;
    for (int i = 0; i < SCOPES; i++)
        assert_result(coil_spawn(context, bound_task, NULL, 0), 0);
    assert_result(coil_context_run(context), 0);
    test_context_end(context);
    return NULL;
}

/* Scopes in two contexts; both sleep in the kernel when it is requested. */
START_TEST(source_reaches_scopes_of_several_contexts)
{
    pthread_t threads[3];
    coil_time begin = coil_now();

    source = create();
    coil_stop_source_ref(source);
    pthread_create(&threads[0], NULL, requester, NULL);
    for (int i = 1; i < 3; i++)
        pthread_create(&threads[i], NULL, context_thread, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(cancelled, 2 * SCOPES);
    ck_assert_int_lt(coil_now() - begin, COIL_S(20));
    coil_stop_source_unref(source);
}
END_TEST

static _Atomic(coil_stop_source *) offered;
static _Atomic bool finished;

/* Requests whatever is on offer, a little later each time. */
static void *racer(void *arg)
{
    unsigned number = *(unsigned *)arg;
    unsigned spins = number;

    while (!finished) {
        coil_stop_source *mine = atomic_exchange(&offered, NULL);

        if (!mine)
            continue;
        for (volatile unsigned i = 0; i < spins; i++)
            ;
        spins = (spins + 37) % 3000;
        coil_stop_source_request(mine);
        coil_stop_source_unref(mine);
    }
    return NULL;
}

/* The scope ends by itself at about the time of the request. */
static int race_task(void *arg)
{
    unsigned *seen = arg;

    for (int i = 0; i < RACES; i++) {
        coil_scope scope;
        int waited, ended;

        source = create();
        coil_scope_begin(&scope, COIL_FOREVER);
        assert_result(coil_stop_source_bind(source, &scope), 0);
        coil_stop_source_unref(
            atomic_exchange(&offered, coil_stop_source_ref(source)));
        waited = i % 3 ? coil_yield() : coil_sleep(COIL_US(i % 40));
        ended = coil_scope_end(&scope);
        assert_result(ended, waited);
        seen[waited < 0]++;
        memset(&scope, 0xa5, sizeof(scope));
        assert_result(coil_check(), 0);
        coil_stop_source_unref(source);
    }
    return 0;
}

START_TEST(request_racing_with_the_end_of_the_scope_is_harmless)
{
    pthread_t threads[REQUESTERS];
    unsigned numbers[REQUESTERS], seen[2] = {0};
    coil_stop_source *left;

    for (unsigned i = 0; i < REQUESTERS; i++) {
        numbers[i] = i * 500;
        pthread_create(&threads[i], NULL, racer, &numbers[i]);
    }
    assert_result(test_run(race_task, seen), 0);
    finished = true;
    for (int i = 0; i < REQUESTERS; i++)
        pthread_join(threads[i], NULL);
    left = atomic_exchange(&offered, NULL);
    coil_stop_source_unref(left);
    printf("races: %u ended first, %u were cancelled\n", seen[0], seen[1]);
    ck_assert_uint_gt(seen[0], 0);
    ck_assert_uint_gt(seen[1], 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("stop source");
    TCase *tests = tcase_create("stop source");

    tcase_add_test(tests, source_cancels_the_scope_bound_to_it);
    tcase_add_test(tests, requested_source_cancels_at_once);
    tcase_add_test(tests, request_for_a_scope_that_ended_hits_nothing);
    tcase_add_test(tests, bound_scope_keeps_its_source);
    tcase_add_test(tests, shield_hides_a_source);
    tcase_add_test(tests, binding_in_the_wrong_place_is_refused);
    tcase_add_test(tests, source_reaches_scopes_of_several_contexts);
    tcase_add_test(tests, request_racing_with_the_end_of_the_scope_is_harmless);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
