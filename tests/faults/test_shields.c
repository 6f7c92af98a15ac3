/*
 * A group whose children work behind shields is cancelled: they finish what
 * the shield covers and are told afterwards; the group waits for them, tells
 * who failed, and a shield's limit ends the patience.
 */
#include "support/test.h"

enum { CHILDREN = 8 };

/* What a child does behind its shield. */
struct plan {
    coil_duration work;  /* behind the shield */
    coil_duration limit; /* of the shield */
    unsigned depth;      /* shields and scopes in turn */
    int worked, after, ended;
};

static struct plan plans[CHILDREN];
static unsigned alive;

static int work(struct plan *plan)
{
    coil_time end = coil_now() + plan->work;
    int result = 0;

    while (result == 0 && coil_now() < end)
        result = coil_sleep(COIL_MS(1));
    return result;
}

/* A scope inside a shield inherits what the shield hides. */
static int work_inside(struct plan *plan, unsigned depth)
{
    coil_scope scope;
    int result;

    if (!depth)
        return work(plan);
    if (depth % 2)
        coil_shield_begin(&scope, plan->limit);
    else
        coil_scope_begin(&scope, COIL_FOREVER);
    result = work_inside(plan, depth - 1);
    plan->ended = coil_scope_end(&scope);
    return result;
}

static int shielded(void *arg)
{
    struct plan *plan = arg;

    alive++;
    plan->worked = work_inside(plan, plan->depth);
    plan->after = coil_sleep(COIL_FOREVER);
    alive--;
    return plan->after;
}

static int failing(void *arg)
{
    (void)arg;
    assert_result(coil_sleep(COIL_MS(5)), 0);
    return -EIO;
}

/* The last of the children fails; the others are behind shields. */
static void run_group(coil_group_policy policy, int expected)
{
    coil_time begin = coil_now();
    coil_group group;
    size_t index;

    coil_group_begin(&group, policy);
    for (int i = 0; i < CHILDREN; i++)
        assert_result(coil_group_spawn(&group, shielded, &plans[i], 0), 0);
    assert_result(coil_group_spawn(&group, failing, NULL, 0), 0);
    /* The one who began it is in the group and has no shield. */
    assert_result(coil_sleep(COIL_FOREVER), -ECANCELED);
    ck_assert_int_lt(coil_now() - begin, COIL_MS(25));
    ck_assert_uint_eq(alive, CHILDREN);
    assert_result(coil_group_end(&group, &index), expected);
    ck_assert_uint_eq(index, CHILDREN);
    ck_assert_uint_eq(alive, 0);
    ck_assert_int_ge(coil_now() - begin, COIL_MS(30));
}

static void check_children(int worked)
{
    for (int i = 0; i < CHILDREN; i++) {
        assert_result(plans[i].worked, worked);
        assert_result(plans[i].after, -ECANCELED);
    }
}

static void plan_all(coil_duration work_time, coil_duration limit)
{
    for (int i = 0; i < CHILDREN; i++)
        plans[i] =
            (struct plan){work_time, limit, 1 + (unsigned)i % 5, 0, 0, 0};
}

static int finish_task(void *arg)
{
    (void)arg;
    plan_all(COIL_MS(30), COIL_S(60));
    run_group(COIL_GROUP_ALL, -EIO);
    check_children(0);
    plan_all(COIL_MS(30), COIL_FOREVER);
    run_group(COIL_GROUP_ANY, -EIO);
    check_children(0);
    assert_result(coil_check(), 0);
    return 0;
}

/* The work would take forever; the shield's limit passes. */
static int limit_task(void *arg)
{
    (void)arg;
    plan_all(COIL_S(1000), COIL_MS(30));
    run_group(COIL_GROUP_ALL, -EIO);
    check_children(-ECANCELED);
    for (int i = 0; i < CHILDREN; i++)
        assert_result(plans[i].ended, -ECANCELED);
    return 0;
}

START_TEST(shielded_child_of_a_failed_group_finishes_its_work)
{
    assert_result(test_run(finish_task, NULL), 0);
}
END_TEST

START_TEST(shield_of_a_child_hides_the_failure_for_its_limit)
{
    assert_result(test_run(limit_task, NULL), 0);
}
END_TEST

/* ------------------------------------------------ and the context is stopped */

static int group_results[2];

static int nested(void *arg)
{
    coil_group group;

    (void)arg;
    COIL_SHIELD(shield, COIL_S(60));
    /* A group inside shares the shield. */
    coil_group_begin(&group, COIL_GROUP_ALL);
    assert_result(coil_group_spawn(&group, failing, NULL, 0), 0);
    assert_result(coil_group_spawn(&group, shielded, &plans[0], 0), 0);
    group_results[1] = coil_group_end(&group, NULL);
    return group_results[1];
}

static int stop_task(void *arg)
{
    coil_group group;

    (void)arg;
    plan_all(COIL_MS(30), COIL_FOREVER);
    coil_group_begin(&group, COIL_GROUP_ALL);
    assert_result(coil_group_spawn(&group, nested, NULL, 0), 0);
    assert_result(coil_yield(), 0);
    coil_context_stop(coil_context_current());
    assert_result(coil_yield(),
                  0); /* the loop sees it at the end of the turn */
    assert_result(coil_sleep(COIL_FOREVER), -ECANCELED);
    group_results[0] = coil_group_end(&group, NULL);
    return 0;
}

START_TEST(failure_behind_a_shield_is_seen_though_all_is_stopped)
{
    coil_context *context = test_context();

    assert_result(coil_spawn(context, stop_task, NULL, 0), 0);
    assert_result(coil_context_run(context), 0);
    assert_result(plans[0].worked, 0);
    assert_result(plans[0].after, -ECANCELED);
    assert_result(group_results[1], -EIO);
    assert_result(group_results[0], -EIO);
    test_context_end(context);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shields");
    TCase *tests = tcase_create("shields");

    tcase_add_test(tests, shielded_child_of_a_failed_group_finishes_its_work);
    tcase_add_test(tests, shield_of_a_child_hides_the_failure_for_its_limit);
    tcase_add_test(tests,
                   failure_behind_a_shield_is_seen_though_all_is_stopped);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
