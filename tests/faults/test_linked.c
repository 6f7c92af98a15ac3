/*
 * Time limits that the kernel keeps: two linked entries and two completions
 * per wait, in every order and with every result, and queues of every fill.
 */
#include "base/seam.h"
#include "support/test.h"
#include <coil/extend.h>
#include <liburing.h>
#include <sys/eventfd.h>

/* ------------------------------------------------------------- operations */

static unsigned prepared;

static void read_prepare(coil_request *request, struct io_uring_sqe *sqe)
{
    prepared++;
    io_uring_prep_read(sqe, (int)request->operation.extra[0],
                       request->operation.data, 8, 0);
}

static const coil_operation_type read_type = {
    .size = sizeof(coil_operation_type),
    .name = "read",
    .flags = COIL_OPERATION_SINGLE_SHOT,
    .prepare = read_prepare,
};

static uint64_t value;

static coil_operation read_op(int descriptor)
{
    coil_operation operation = coil_operation_make(&read_type);

    operation.extra[0] = (uint64_t)(unsigned)descriptor;
    operation.data = &value;
    return operation;
}

static int open_event(void)
{
    int descriptor = eventfd(0, EFD_CLOEXEC);

    ck_assert_int_ge(descriptor, 0);
    return descriptor;
}

static void put(int descriptor, uint64_t number)
{
    ck_assert_int_eq(write(descriptor, &number, 8), 8);
}

/* ------------------------------------------------------------------ limits */

static int limits_task(void *arg)
{
    static const coil_duration limits[] = {1, COIL_US(50), COIL_MS(3)};
    int descriptor = open_event();

    (void)arg;
    for (int i = 0; i < 300; i++) {
        coil_duration limit = limits[i % 3];
        coil_time begin = coil_now();

        assert_result(coil_timeout_linked(read_op(descriptor), limit), -ETIME);
        ck_assert_int_ge(coil_now() - begin, limit);
        ck_assert_int_lt(coil_now() - begin, COIL_S(10));
        put(descriptor, 5);
        assert_result(coil_timeout_linked(read_op(descriptor), limit), 8);
    }
    assert_result(
        coil_timeout_linked(coil_limit(read_op(descriptor), 1), COIL_S(100)),
        -ETIME);
    assert_result(coil_timeout_linked(read_op(descriptor), 0), -ETIME);
    assert_result(coil_timeout_linked(read_op(descriptor), INT64_MIN), -ETIME);
    put(descriptor, 6);
    assert_result(coil_timeout_linked(read_op(descriptor), 0), 8);
    put(descriptor, 7);
    assert_result(coil_timeout_linked(read_op(descriptor), COIL_FOREVER), 8);
    close(descriptor);
    return 0;
}

START_TEST(limit_kept_by_the_kernel_passes_or_does_not)
{
    assert_result(test_run(limits_task, NULL), 0);
}
END_TEST

static int kinds_task(void *arg)
{
    coil_tcp_socket left, right;
    coil_event event = {0};
    char byte = 1;

    (void)arg;
    test_tcp_pair(&left, &right);
    assert_result(
        coil_timeout_linked(coil_tcp_write_all_op(&left, &byte, 1, NULL), 1),
        -EINVAL);
    assert_result(coil_timeout_linked(coil_sleep_op(1), 1), -EINVAL);
    assert_result(coil_timeout_linked(coil_event_wait_op(&event), 1), -EINVAL);
    assert_result(
        coil_timeout_linked(coil_tcp_read_some_op(&right, &byte, 1), 1000),
        -ETIME);
    assert_result(coil_timeout_linked(coil_tcp_write_some_op(&left, &byte, 1),
                                      COIL_S(10)),
                  1);
    assert_result(coil_timeout_linked(coil_tcp_read_some_op(&right, &byte, 1),
                                      COIL_S(10)),
                  1);
    assert_result(coil_tcp_close(&left), 0);
    assert_result(
        coil_timeout_linked(coil_tcp_read_some_op(&left, &byte, 1), COIL_S(10)),
        -EBADF);
    return coil_tcp_close(&right);
}

START_TEST(operation_of_several_steps_is_refused)
{
    assert_result(test_run(kinds_task, NULL), 0);
    assert_result(coil_timeout_linked(read_op(0), 1), -EPERM);
}
END_TEST

/* ------------------------------------------------------------ every result */

/* Keeps both completions of the pair until both are there; then hands them
 * out, changed, some turns apart. */
static struct {
    struct io_uring_cqe cqes[2]; /* the operation's and the timeout's */
    unsigned kept, handed, turns;
    bool timeout_first;
    int results[2];
    unsigned resumed, early;
    ssize_t result;
} pair;

static bool is_of_pair(const struct io_uring_cqe *cqe, int i)
{
    return cqe->user_data > 15 && (cqe->user_data & 7) == (unsigned)i + 1;
}

static unsigned hand_out(struct io_uring_cqe *cqes, unsigned left, int i)
{
    cqes[left] = pair.cqes[i];
    cqes[left].res = pair.results[i];
    pair.handed++;
    return left + 1;
}

static unsigned keep_pair(struct io_uring_cqe *cqes, unsigned count,
                          unsigned capacity)
{
    unsigned left = 0;

    (void)capacity;
    for (unsigned i = 0; i < count; i++) {
        int which = is_of_pair(&cqes[i], 0)   ? 0
                    : is_of_pair(&cqes[i], 1) ? 1
                                              : -1;

        if (which >= 0 && pair.kept < 2) {
            pair.cqes[which] = cqes[i];
            pair.kept++;
        } else {
            cqes[left++] = cqes[i];
        }
    }
    pair.turns += pair.kept == 2;
    if (pair.turns == 3)
        left = hand_out(cqes, left, pair.timeout_first);
    if (pair.turns == 6) {
        pair.early = pair.resumed;
        left = hand_out(cqes, left, !pair.timeout_first);
    }
    coil__seam.withheld = pair.handed < 2;
    return left;
}

static int pair_task(void *arg)
{
    int descriptor = *(int *)arg;

    pair.result = coil_timeout_linked(read_op(descriptor), COIL_MS(2));
    pair.resumed++;
    return 0;
}

/* Answers the second try of an interrupted read. */
static int pair_helper(void *arg)
{
    unsigned before = prepared;

    while (!pair.resumed && prepared < before + 2)
        (void)coil_sleep(COIL_US(50));
    if (!pair.resumed)
        put(*(int *)arg, 9);
    return 0;
}

static ssize_t expected_of(int operation, int timeout, bool stop)
{
    bool fired = timeout == -ETIME || timeout == -EALREADY;

    if (operation == -ECANCELED)
        return stop ? -ECANCELED : -ETIME;
    if (operation == -EINTR)
        return stop ? -ECANCELED : fired ? -ETIME : -ETIMEDOUT;
    return operation;
}

static void check_pair(bool stop)
{
    ssize_t expected = expected_of(pair.results[0], pair.results[1], stop);

    /* An interrupted read tries again: it gets its data, or its limit. */
    if (expected == -ETIMEDOUT)
        ck_assert(pair.result == 8 || pair.result == -ETIME);
    else
        assert_result(pair.result, expected);
    ck_assert_uint_eq(pair.resumed, 1);
    ck_assert_uint_eq(pair.early, 0);
}

static int stopper_task(void *arg)
{
    (void)arg;
    while (pair.kept < 2)
        (void)coil_yield();
    coil_context_stop(coil_context_current());
    return 0;
}

static void run_pair(int operation, int timeout, bool timeout_first, bool stop)
{
    coil_context *context = test_context();
    int descriptor = open_event();

    memset(&pair, 0, sizeof(pair));
    pair.results[0] = operation;
    pair.results[1] = timeout;
    pair.timeout_first = timeout_first;
    assert_result(coil_spawn(context, pair_task, &descriptor, 0), 0);
    assert_result(coil_spawn(context, pair_helper, &descriptor, 0), 0);
    if (stop)
        assert_result(coil_spawn(context, stopper_task, NULL, 0), 0);
    coil__seam.completions = keep_pair;
    assert_result(coil_context_run(context), 0);
    coil__seam.completions = NULL;
    check_pair(stop);
    test_context_end(context);
    close(descriptor);
}

START_TEST(pair_resumes_once_after_both_with_the_truth_of_the_operation)
{
    static const int operations[] = {-ECANCELED, -EINTR, -ENOBUFS, 0, 5};
    static const int timeouts[] = {-ETIME,  0,         -ECANCELED,
                                   -ENOENT, -EALREADY, -EINVAL};
    unsigned runs = 0;

    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 6; j++)
            for (int order = 0; order < 2; order++, runs++)
                run_pair(operations[i], timeouts[j], order, _i);
    printf("%u combinations%s\n", runs, _i ? ", stopped meanwhile" : "");
}
END_TEST

/* ------------------------------------------------------- every fill level */

enum { CROWD = 12 };

static struct {
    int descriptors[CROWD];
    ssize_t results[CROWD];
    unsigned ended;
} crowd;

/* `level` entries are in the queue when the pair is asked for. */
static int level_task(void *arg)
{
    int level = (int)(intptr_t)arg, own = crowd.descriptors[CROWD - 1];
    coil_request requests[CROWD];

    for (int i = 0; i < level; i++)
        coil_request_start(&requests[i], read_op(crowd.descriptors[i]));
    assert_result(coil_timeout_linked(read_op(own), COIL_MS(1)), -ETIME);
    for (int i = 0; i < level; i++) {
        ck_assert(!coil_request_done(&requests[i]));
        put(crowd.descriptors[i], 1);
        assert_result(coil_request_await(&requests[i]), 8);
    }
    put(own, 1);
    assert_result(coil_timeout_linked(read_op(own), COIL_S(10)), 8);
    return 0;
}

static void open_crowd(void)
{
    for (int i = 0; i < CROWD; i++)
        crowd.descriptors[i] = open_event();
}

static void close_crowd(void)
{
    for (int i = 0; i < CROWD; i++)
        close(crowd.descriptors[i]);
}

static coil_context *small_context(void)
{
    coil_context_options options = {
        .size = sizeof(options), .sq_entries = 4, .cq_entries = 8};
    coil_context *context;

    assert_result(coil_context_create(&context, &options, NULL), 0);
    return context;
}

START_TEST(pair_behind_any_number_of_entries_limits_itself)
{
    for (intptr_t level = 0; level <= 9; level++) {
        coil_context *context = small_context();

        open_crowd();
        assert_result(coil_spawn(context, level_task, (void *)level, 0), 0);
        assert_result(coil_context_run(context), 0);
        test_context_end(context);
        close_crowd();
    }
}
END_TEST

/* ---------------------------------------------------- refused submissions */

static void refuse_submissions(uint64_t count)
{
    coil__seam.fail_call = COIL__CALL_ENTER;
    coil__seam.fail_error = -EAGAIN;
    coil__seam.fail_repeat = count - 1;
    coil__seam.calls = 0;
    coil__seam.fail_at = 1;
}

static int many_task(void *arg)
{
    int i = (int)(intptr_t)arg;
    coil_time begin = coil_now();

    crowd.results[i] =
        coil_timeout_linked(read_op(crowd.descriptors[i]), COIL_MS(20));
    ck_assert_int_ge(coil_now() - begin, COIL_MS(20));
    crowd.ended++;
    return 0;
}

/* Pairs wait in the backlog while the kernel takes nothing; they keep their
 * deadline and their order, and are never split. */
START_TEST(pair_that_is_submitted_late_keeps_its_deadline)
{
    coil_context *context = small_context();
    coil_time begin;

    open_crowd();
    for (intptr_t i = 0; i < CROWD; i++)
        assert_result(coil_spawn(context, many_task, (void *)i, 0), 0);
    refuse_submissions(200);
    begin = coil_now();
    assert_result(coil_context_run(context), 0);
    printf("%d limits of 20 ms over after %.1f ms\n", CROWD,
           (double)(coil_now() - begin) / 1e6);
    ck_assert_int_lt(coil_now() - begin, COIL_S(10));
    for (int i = 0; i < CROWD; i++)
        assert_result(crowd.results[i], -ETIME);
    test_context_end(context);
    close_crowd();
}
END_TEST

/* A scope, a stop: what reaches a pair from outside. */
static int outside_task(void *arg)
{
    int descriptor = open_event();
    coil_scope scope;

    (void)arg;
    coil_scope_begin(&scope, COIL_MS(2));
    assert_result(coil_timeout_linked(read_op(descriptor), COIL_S(100)),
                  -ECANCELED);
    assert_result(coil_timeout_linked(read_op(descriptor), COIL_S(100)),
                  -ECANCELED);
    assert_result(coil_scope_end(&scope), -ETIME);
    put(descriptor, 3);
    assert_result(coil_timeout_linked(read_op(descriptor), COIL_S(100)), 8);
    close(descriptor);
    return 0;
}

START_TEST(pair_is_cancelled_by_its_scope)
{
    assert_result(test_run(outside_task, NULL), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("linked");
    TCase *cases = tcase_create("linked");

    tcase_add_test(cases, limit_kept_by_the_kernel_passes_or_does_not);
    tcase_add_test(cases, operation_of_several_steps_is_refused);
    tcase_add_loop_test(
        cases, pair_resumes_once_after_both_with_the_truth_of_the_operation, 0,
        2);
    tcase_add_test(cases, pair_behind_any_number_of_entries_limits_itself);
    tcase_add_test(cases, pair_that_is_submitted_late_keeps_its_deadline);
    tcase_add_test(cases, pair_is_cancelled_by_its_scope);
    suite_add_tcase(suite, cases);
    return test_main(suite);
}
