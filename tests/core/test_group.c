/*
 * Groups: what each policy makes of how its children end, who decided, and
 * that the group outlives all of them.
 */
#include "support/test.h"

#define TASK_TEST(name, fn)                                                    \
    START_TEST(name)                                                           \
    {                                                                          \
        assert_result(test_run(fn, NULL), 0);                                  \
    }                                                                          \
    END_TEST

/* A child: sleeps, then returns `result`; if cancelled, -ECANCELED, or
 * `result` all the same if it is stubborn. */
struct child {
    coil_duration time;
    int result;
    bool stubborn;
};

static unsigned alive, cancelled;

static int child_task(void *arg)
{
    const struct child *child = arg;
    int slept;

    alive++;
    slept = coil_sleep(child->time);
    if (slept < 0) {
        assert_result(slept, -ECANCELED);
        cancelled++;
    }
    if (child->stubborn) {
        COIL_SHIELD(shield, COIL_FOREVER);
        assert_result(coil_sleep(COIL_MS(3)), 0);
    }
    alive--;
    return slept < 0 && !child->stubborn ? slept : child->result;
}

static void spawn(coil_group *group, struct child child)
{
    assert_result(coil_group_spawn(group, child_task, &child, sizeof(child)),
                  0);
}

/* ---------------------------------------------------------------- policies */

enum { CHILDREN = 3, NOBODY = -1 };

struct policy_case {
    coil_group_policy policy;
    struct child children[CHILDREN];
    int result;
    int index; /* who decided */
    unsigned cancelled;
};

#define NEVER COIL_FOREVER
#define SOON  COIL_MS(1)
#define LATER COIL_MS(4)

static const struct policy_case policy_cases[] = {
    {COIL_GROUP_ALL,
     {{SOON, 0, false}, {LATER, 7, false}, {SOON, 3, false}},
     0,
     NOBODY,
     0},
    {COIL_GROUP_ALL,
     {{NEVER, 0, false}, {SOON, -EIO, false}, {NEVER, 0, false}},
     -EIO,
     1,
     2},
    {COIL_GROUP_ALL,
     {{LATER, -EIO, false}, {SOON, -ENOENT, false}, {NEVER, 0, false}},
     -ENOENT,
     1,
     2},
    /* A child's own -ECANCELED is a failure as long as nobody cancelled. */
    {COIL_GROUP_ALL,
     {{NEVER, 0, false}, {SOON, -ECANCELED, false}, {NEVER, 0, false}},
     -ECANCELED,
     1,
     2},
    /* What a stubborn child returns later does not matter. */
    {COIL_GROUP_ALL,
     {{NEVER, -EPIPE, true}, {SOON, -EIO, false}, {NEVER, 0, true}},
     -EIO,
     1,
     2},
    {COIL_GROUP_ANY,
     {{NEVER, 0, false}, {NEVER, 0, false}, {SOON, 5, false}},
     0,
     2,
     2},
    {COIL_GROUP_ANY,
     {{NEVER, 0, false}, {NEVER, 0, false}, {SOON, -EIO, false}},
     -EIO,
     2,
     2},
    {COIL_GROUP_ANY,
     {{NEVER, 0, true}, {NEVER, -EIO, true}, {SOON, 0, false}},
     0,
     2,
     2},
    {COIL_GROUP_SUCCESS,
     {{SOON, -EIO, false}, {LATER, 4, false}, {NEVER, 0, false}},
     0,
     1,
     1},
    {COIL_GROUP_SUCCESS,
     {{LATER, -EIO, false}, {SOON, -ENOENT, false}, {LATER, -EPIPE, false}},
     -ENOENT,
     1,
     0},
    {COIL_GROUP_EACH,
     {{SOON, 0, false}, {LATER, 1, false}, {SOON, 2, false}},
     0,
     NOBODY,
     0},
    {COIL_GROUP_EACH,
     {{LATER, -EIO, false}, {SOON, -ENOENT, false}, {LATER, 0, false}},
     -ENOENT,
     1,
     0},
};

static int policies_task(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < sizeof(policy_cases) / sizeof(*policy_cases); i++) {
        const struct policy_case *item = &policy_cases[i];
        coil_group group;
        size_t index = 99;

        cancelled = 0;
        coil_group_begin(&group, item->policy);
        for (int child = 0; child < CHILDREN; child++)
            spawn(&group, item->children[child]);
        ck_assert_uint_eq(alive, 0); /* none runs inside spawn */
        assert_result(coil_group_end(&group, &index), item->result);
        ck_assert_uint_eq(alive, 0);
        ck_assert_msg(index == (size_t)item->index, "case %zu: %zu decided", i,
                      index);
        ck_assert_msg(cancelled == item->cancelled, "case %zu: %u cancelled", i,
                      cancelled);
        assert_result(coil_check(), 0);
    }
    return 0;
}

static int empty_task(void *arg)
{
    (void)arg;
    for (int policy = COIL_GROUP_ALL; policy <= COIL_GROUP_EACH; policy++) {
        coil_group group;
        size_t index = 0;

        coil_group_begin(&group, (coil_group_policy)policy);
        assert_result(coil_group_end(&group, &index), 0);
        ck_assert_uint_eq(index, SIZE_MAX);
    }
    return 0;
}

static unsigned failures;
static int last_failure;

static void on_failed(coil_context *context, const char *name, coil_task_fn *fn,
                      int result)
{
    (void)context;
    (void)name;
    ck_assert(fn == child_task);
    failures++;
    last_failure = result;
}

static int each_task(void *arg)
{
    coil_group group;

    (void)arg;
    coil_group_begin(&group, COIL_GROUP_EACH);
    spawn(&group, (struct child){SOON, -EIO, false});
    spawn(&group, (struct child){LATER, -EPIPE, false});
    spawn(&group, (struct child){LATER, 1, false});
    assert_result(coil_group_end(&group, NULL), -EIO);
    ck_assert_uint_eq(failures, 2);
    assert_result(last_failure, -EPIPE);
    coil_group_begin(&group, COIL_GROUP_ALL);
    spawn(&group, (struct child){SOON, -EIO, false});
    assert_result(coil_group_end(&group, NULL), -EIO);
    ck_assert_uint_eq(failures, 2);
    return 0;
}

TASK_TEST(policies_decide_as_documented, policies_task)
TASK_TEST(group_without_children_ends_at_once, empty_task)

START_TEST(failures_of_each_go_to_the_handler)
{
    coil_context_options options = test_options();
    coil_context *context;

    options.on_task_failed = on_failed;
    assert_result(coil_context_create(&context, &options, NULL), 0);
    assert_result(coil_spawn(context, each_task, NULL, 0), 0);
    assert_result(coil_context_run(context), 0);
    test_context_end(context);
}
END_TEST

/* ---------------------------------------------------------- cancellation */

/* The waits of the task that began it are in the group. */
static int own_waits_task(void *arg)
{
    coil_group group;
    size_t index;

    (void)arg;
    coil_group_begin(&group, COIL_GROUP_ALL);
    spawn(&group, (struct child){SOON, -EIO, false});
    assert_result(coil_sleep(COIL_FOREVER), -ECANCELED);
    assert_result(coil_group_end(&group, &index), -EIO);
    ck_assert_uint_eq(index, 0);
    assert_result(coil_sleep(COIL_US(1)), 0);
    return 0;
}

static int cancel_task(void *arg)
{
    coil_group group;
    size_t index;

    (void)arg;
    cancelled = 0;
    coil_group_begin(&group, COIL_GROUP_ALL);
    spawn(&group, (struct child){NEVER, 0, false});
    assert_result(coil_yield(), 0);
    coil_group_cancel(&group);
    coil_group_cancel(&group);
    /* One that comes too late runs, and its wait is refused. */
    spawn(&group, (struct child){NEVER, 0, false});
    assert_result(coil_check(), -ECANCELED);
    assert_result(coil_group_end(&group, &index), 0);
    ck_assert_uint_eq(index, SIZE_MAX);
    ck_assert_uint_eq(cancelled, 2);
    coil_group_cancel(&group);
    return 0;
}

/* A scope around it. */
static int around_task(void *arg)
{
    coil_scope scope;
    coil_group group;
    size_t index = 0;

    (void)arg;
    cancelled = 0;
    coil_scope_begin(&scope, COIL_MS(3));
    coil_group_begin(&group, COIL_GROUP_ALL);
    spawn(&group, (struct child){NEVER, 0, false});
    spawn(&group, (struct child){NEVER, -EIO, true});
    assert_result(coil_group_end(&group, &index), -EIO); /* a real failure */
    ck_assert_uint_eq(index, 1);
    coil_group_begin(&group, COIL_GROUP_ALL);
    spawn(&group, (struct child){NEVER, 0, false});
    assert_result(coil_group_end(&group, &index), -ECANCELED);
    ck_assert_uint_eq(index, SIZE_MAX);
    assert_result(coil_scope_end(&scope), -ETIME);
    ck_assert_uint_eq(cancelled, 3);
    return 0;
}

TASK_TEST(failure_cancels_the_waits_of_the_one_who_began_it, own_waits_task)
TASK_TEST(cancelled_group_cancels_children_old_and_new, cancel_task)
TASK_TEST(group_in_a_cancelled_scope_tells_so, around_task)

/* ------------------------------------------------------------------- spawn */

static coil_group shared_group, *const shared = &shared_group;
static unsigned late;

static int late_child(void *arg)
{
    (void)arg;
    assert_result(coil_yield(), 0);
    late++;
    return 0;
}

/* Spawns into the group after its last child has ended and before the task
 * that waits for it has run. */
static int in_between(void *arg)
{
    unsigned children = *(unsigned *)arg;

    assert_result(coil_yield(), 0);
    ck_assert_uint_eq(late, children);
    assert_result(coil_group_spawn(shared, late_child, NULL, 0), 0);
    return 0;
}

static int spawn_late_task(void *arg)
{
    (void)arg;
    for (unsigned children = 1; children < 4; children++) {
        late = 0;
        coil_group_begin(shared, COIL_GROUP_ALL);
        for (unsigned i = 0; i < children; i++)
            assert_result(coil_group_spawn(shared, late_child, NULL, 0), 0);
        assert_result(coil_spawn(NULL, in_between, &children, sizeof(children)),
                      0);
        assert_result(coil_group_end(shared, NULL), 0);
        ck_assert_uint_eq(late, children + 1);
    }
    return 0;
}

static int grandchild_spawner(void *arg)
{
    int depth = *(int *)arg - 1;

    late++;
    if (depth > 0)
        for (int i = 0; i < 2; i++)
            assert_result(coil_group_spawn(shared, grandchild_spawner, &depth,
                                           sizeof(depth)),
                          0);
    return coil_yield();
}

static int spawn_from_children_task(void *arg)
{
    int depth = 10;

    (void)arg;
    late = 0;
    coil_group_begin(shared, COIL_GROUP_ALL);
    assert_result(
        coil_group_spawn(shared, grandchild_spawner, &depth, sizeof(depth)), 0);
    assert_result(coil_group_end(shared, NULL), 0);
    ck_assert_uint_eq(late, 1023);
    assert_result(coil_group_spawn(shared, late_child, NULL, 0), -EINVAL);
    return 0;
}

static int refused_task(void *arg)
{
    static char large[1024 * 1024];
    coil_group group;

    (void)arg;
    coil_group_begin(&group, COIL_GROUP_ALL);
    assert_result(coil_group_spawn(&group, NULL, NULL, 0), -EINVAL);
    assert_result(coil_group_spawn(&group, late_child, large, sizeof(large)),
                  -E2BIG);
    assert_result(coil_group_end(&group, NULL), 0);
    test_catch_messages();
    assert_result(coil_group_end(&group, NULL), -EINVAL);
    return 0;
}

TASK_TEST(child_spawned_after_the_last_one_is_waited_for, spawn_late_task)
TASK_TEST(children_may_spawn_into_their_own_group, spawn_from_children_task)
TASK_TEST(spawn_that_is_refused_leaves_the_group_as_it_was, refused_task)

/* ---------------------------------------------------------- as an operation */

static int timeout_task(void *arg)
{
    coil_group group;
    size_t index = 0;

    (void)arg;
    cancelled = 0;
    coil_group_begin(&group, COIL_GROUP_ALL);
    spawn(&group, (struct child){NEVER, 0, false});
    spawn(&group, (struct child){NEVER, 0, true});
    assert_result(coil_timeout(coil_group_end_op(&group, &index), COIL_MS(3)),
                  -ETIME);
    ck_assert_uint_eq(alive, 0);
    ck_assert_uint_eq(cancelled, 2);
    coil_group_begin(&group, COIL_GROUP_ALL);
    spawn(&group, (struct child){SOON, 1, false});
    assert_result(coil_timeout(coil_group_end_op(&group, &index), COIL_S(9)),
                  0);
    return 0;
}

/* any(group, sleep): either may win, and no child is left. */
static int race_task(void *arg)
{
    coil_request requests[2];
    coil_group group;

    (void)arg;
    for (int slow = 0; slow < 2; slow++) {
        cancelled = 0;
        coil_group_begin(&group, COIL_GROUP_ALL);
        spawn(&group, (struct child){slow ? NEVER : SOON, 0, false});
        spawn(&group, (struct child){SOON, 0, false});
        coil_request_start(&requests[0], coil_group_end_op(&group, NULL));
        coil_request_start(&requests[1], coil_sleep_op(COIL_MS(20)));
        assert_result(coil_await_any(requests, 2), slow);
        ck_assert_uint_eq(alive, 0);
        ck_assert_uint_eq(cancelled, (unsigned)slow);
        assert_result(coil_request_await(&requests[0]), slow ? -ECANCELED : 0);
    }
    return 0;
}

TASK_TEST(limit_on_a_group_cancels_and_waits, timeout_task)
TASK_TEST(group_may_lose_a_race, race_task)

/* ------------------------------------------------------------ block's end */

static int block_task(void *arg)
{
    (void)arg;
    {
        COIL_GROUP(group, COIL_GROUP_ALL);
        spawn(&group, (struct child){SOON, 0, false});
        assert_result(coil_sleep(COIL_US(1)), 0);
        ck_assert_uint_eq(alive, 1);
    }
    ck_assert_uint_eq(alive, 0);
    for (int i = 0; i < 3; i++) {
        COIL_GROUP(group, COIL_GROUP_ANY);
        spawn(&group, (struct child){SOON, 0, false});
        if (i == 1)
            continue;
        assert_result(coil_group_end(&group, NULL), 0);
        ck_assert_uint_eq(alive, 0);
    }
    ck_assert_uint_eq(alive, 0);
    return 0;
}

TASK_TEST(declared_group_ends_with_its_block, block_task)

START_TEST(group_outside_a_task_is_refused)
{
    coil_group group;

    test_catch_messages();
    coil_group_begin(&group, COIL_GROUP_ALL);
    ck_assert_uint_eq(test_messages.of_kind[COIL_MESSAGE_MISUSE], 1);
    assert_result(coil_group_spawn(&group, late_child, NULL, 0), -EINVAL);
    assert_result(coil_group_end(&group, NULL), -EPERM);
    coil_group_cancel(&group);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("group");
    TCase *tests = tcase_create("group");

    tcase_add_test(tests, policies_decide_as_documented);
    tcase_add_test(tests, group_without_children_ends_at_once);
    tcase_add_test(tests, failures_of_each_go_to_the_handler);
    tcase_add_test(tests, failure_cancels_the_waits_of_the_one_who_began_it);
    tcase_add_test(tests, cancelled_group_cancels_children_old_and_new);
    tcase_add_test(tests, group_in_a_cancelled_scope_tells_so);
    tcase_add_test(tests, child_spawned_after_the_last_one_is_waited_for);
    tcase_add_test(tests, children_may_spawn_into_their_own_group);
    tcase_add_test(tests, spawn_that_is_refused_leaves_the_group_as_it_was);
    tcase_add_test(tests, limit_on_a_group_cancels_and_waits);
    tcase_add_test(tests, group_may_lose_a_race);
    tcase_add_test(tests, declared_group_ends_with_its_block);
    tcase_add_test(tests, group_outside_a_task_is_refused);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
