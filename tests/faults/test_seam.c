/*
 * What the kernel may do to a request: completions changed, withheld and put
 * in another order through the seam, full queues and refused submissions. Each
 * wait is resumed once, by its own completion, with what that one says.
 */
#include "base/seam.h"
#include "ring/scheduler.h"
#include "support/test.h"
#include <coil/extend.h>
#include <sys/eventfd.h>

enum { WAITERS = 12 };

/* A task that waits for a descriptor of its own. */
struct waiter {
    coil_request request;
    int descriptor;
    coil_duration limit;
    uint64_t value;
    ssize_t result;
    unsigned resumed;
};

static struct waiter waiters[WAITERS];
static struct waiter *resumed[WAITERS]; /* in that order */
static unsigned resumed_count;
static const struct waiter *prepared[64]; /* whose entries were filled */
static unsigned prepared_count;

static void read_prepare(coil_request *request, struct io_uring_sqe *sqe)
{
    struct waiter *waiter = request->operation.data;

    prepared[prepared_count++ % 64] = waiter;
    io_uring_prep_read(sqe, waiter->descriptor, &waiter->value, 8, 0);
}

static const coil_operation_type read_type = {
    .size = sizeof(coil_operation_type),
    .name = "read",
    .flags = COIL_OPERATION_SINGLE_SHOT,
    .prepare = read_prepare,
};

static ssize_t waiter_wait(struct waiter *waiter, coil_duration limit)
{
    coil_request_init(&waiter->request, &read_type);
    waiter->request.operation.data = waiter;
    waiter->request.operation.limit = limit;
    return coil_request_run(&waiter->request);
}

static int waiter_task(void *arg)
{
    struct waiter *waiter = arg;

    waiter->result = waiter_wait(waiter, waiter->limit);
    waiter->resumed++;
    resumed[resumed_count++ % WAITERS] = waiter;
    return 0;
}

/* Every `put` can be taken by a read of 1. */
static void put(const struct waiter *waiter, uint64_t value)
{
    ck_assert_int_eq(write(waiter->descriptor, &value, 8), 8);
}

static void waiters_open(void)
{
    memset(waiters, 0, sizeof(waiters));
    resumed_count = prepared_count = 0;
    for (int i = 0; i < WAITERS; i++) {
        waiters[i].descriptor = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
        waiters[i].limit = COIL_FOREVER;
        ck_assert_int_ge(waiters[i].descriptor, 0);
    }
}

static void waiters_close(void)
{
    for (int i = 0; i < WAITERS; i++)
        close(waiters[i].descriptor);
}

static void waiters_spawn(coil_context *context, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        assert_result(coil_spawn(context, waiter_task, &waiters[i], 0), 0);
}

static struct waiter *waiter_of(const struct io_uring_cqe *cqe)
{
    for (int i = 0; i < WAITERS; i++)
        if (cqe->user_data == (uintptr_t)&waiters[i].request)
            return &waiters[i];
    return NULL;
}

/* ----------------------------------------------------------------- changed */

static unsigned seen[WAITERS]; /* completions of each */

/* Waiter i is interrupted i times; then the odd ones fail. */
static unsigned change_results(struct io_uring_cqe *cqes, unsigned count,
                               unsigned capacity)
{
    (void)capacity;
    for (unsigned i = 0; i < count; i++) {
        const struct waiter *waiter = waiter_of(&cqes[i]);
        int number = (int)(waiter - waiters);

        if (waiter && seen[number]++ < (unsigned)number)
            cqes[i].res = -EINTR;
        else if (waiter && number % 2)
            cqes[i].res = -100 - number;
    }
    return count;
}

static int spawn_and_put(void *arg)
{
    (void)arg;
    waiters_spawn(NULL, WAITERS);
    for (int i = 0; i < WAITERS; i++)
        put(&waiters[i], 1000);
    return 0;
}

START_TEST(changed_completion_is_the_result_and_eintr_is_retried)
{
    waiters_open();
    coil__seam.completions = change_results;
    assert_result(test_run(spawn_and_put, NULL), 0);
    for (int i = 0; i < WAITERS; i++) {
        assert_result(waiters[i].result, i % 2 ? -100 - i : 8);
        ck_assert_uint_eq(waiters[i].resumed, 1);
        ck_assert_uint_eq(seen[i], (unsigned)i + 1);
    }
    ck_assert_uint_eq(prepared_count, WAITERS * (WAITERS + 1) / 2);
    waiters_close();
}
END_TEST

/* ---------------------------------------------------------------- withheld */

/* The completions of the waiters, to be handed out in `order`. */
static struct {
    struct io_uring_cqe cqes[WAITERS];
    unsigned count, handed;
    const int *order;
    bool release;
} kept;

static unsigned keep_completions(struct io_uring_cqe *cqes, unsigned count,
                                 unsigned capacity)
{
    unsigned left = 0;

    for (unsigned i = 0; i < count; i++) {
        const struct waiter *waiter = waiter_of(&cqes[i]);

        if (waiter) {
            kept.cqes[waiter - waiters] = cqes[i];
            kept.count++;
        } else {
            cqes[left++] = cqes[i];
        }
    }
    while (kept.release && kept.handed < kept.count && left < capacity)
        cqes[left++] = kept.cqes[kept.order[kept.handed++]];
    coil__seam.withheld = kept.handed < kept.count;
    return left;
}

static int withhold_task(void *arg)
{
    spawn_and_put(arg);
    while (kept.count < WAITERS)
        assert_result(coil_sleep(COIL_US(100)), 0);
    for (int i = 0; i < 100; i++) {
        assert_result(coil_sleep(COIL_US(10)), 0);
        ck_assert_uint_eq(resumed_count, 0);
    }
    kept.release = true;
    return 0;
}

START_TEST(withheld_completions_resume_in_order_of_release)
{
    static const int orders[][WAITERS] = {
        {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
        {11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0},
        {3, 0, 7, 11, 1, 6, 10, 2, 5, 8, 9, 4}};

    waiters_open();
    kept.order = orders[_i];
    coil__seam.completions = keep_completions;
    assert_result(test_run(withhold_task, NULL), 0);
    ck_assert_uint_eq(resumed_count, WAITERS);
    for (int i = 0; i < WAITERS; i++) {
        ck_assert_ptr_eq(resumed[i], &waiters[orders[_i][i]]);
        assert_result(waiters[i].result, 8);
        ck_assert_uint_eq(waiters[i].value, 1);
    }
    waiters_close();
}
END_TEST

/* ---------------------------------------------------- operation and cancel */

/* Keeps the two completions of a cancelled wait until both are there; then
 * hands them out, changed, in the fourth turn and in the eighth. */
static struct {
    struct io_uring_cqe cqes[2]; /* the operation's and the cancel's */
    bool cancel_first;
    int turns;
    unsigned handed;
    unsigned early; /* resumes before the operation's completion */
} both;

static unsigned keep_both(struct io_uring_cqe *cqes, unsigned count,
                          unsigned capacity)
{
    unsigned left = 0;

    (void)capacity;
    for (unsigned i = 0; i < count; i++)
        if (waiter_of(&cqes[i]) && !both.cqes[0].user_data)
            both.cqes[0].user_data = cqes[i].user_data;
        else if (cqes[i].user_data == COIL__DATA_CANCEL &&
                 !both.cqes[1].user_data)
            both.cqes[1].user_data = cqes[i].user_data;
        else
            cqes[left++] = cqes[i];
    both.turns += both.cqes[0].user_data && both.cqes[1].user_data;
    if (both.turns == (both.cancel_first ? 4 : 8) && both.handed < 2) {
        cqes[left++] = both.cqes[1];
        both.handed++;
    }
    if (both.turns == (both.cancel_first ? 8 : 4) && both.handed < 2) {
        both.early = waiters[0].resumed;
        cqes[left++] = both.cqes[0];
        both.handed++;
    }
    coil__seam.withheld = both.handed < 2;
    return left;
}

/* The next wait stands at the same address, and no late cancel ends it. */
static int combination_task(void *arg)
{
    waiter_task(arg);
    if (waiters[0].limit == COIL_FOREVER)
        return 0; /* stopped: it cannot wait any more */
    put(&waiters[0], 1);
    assert_result(waiter_wait(&waiters[0], COIL_FOREVER), 8);
    while (both.handed < 2)
        assert_result(coil_sleep(1), 0);
    return 0;
}

static int combination_stopper(void *arg)
{
    (void)arg;
    assert_result(coil_sleep(COIL_US(50)), 0);
    coil_context_stop(coil_context_current());
    return 0;
}

static void run_combination(int operation, int cancel, bool cancel_first,
                            bool stop)
{
    coil_context *context = test_context();

    memset(&both, 0, sizeof(both));
    both.cqes[0].res = operation;
    both.cqes[1].res = cancel;
    both.cancel_first = cancel_first;
    waiters[0].resumed = 0;
    waiters[0].limit = stop ? COIL_FOREVER : COIL_US(100);
    assert_result(coil_spawn(context, combination_task, &waiters[0], 0), 0);
    if (stop)
        assert_result(coil_spawn(context, combination_stopper, NULL, 0), 0);
    coil__seam.completions = keep_both;
    assert_result(coil_context_run(context), 0);
    ck_assert_uint_eq(waiters[0].resumed, 1);
    ck_assert_uint_eq(both.early, 0);
    ck_assert_uint_eq(both.handed, 2);
    test_context_end(context);
}

START_TEST(operation_and_cancel_resume_once_with_the_own_result)
{
    static const int cancels[] = {0, -ENOENT, -EALREADY, -EINVAL};
    static const int operations[] = {-ECANCELED, -EINTR,   8,   1,
                                     0,          -ENOBUFS, -EIO};
    unsigned count = 0;

    waiters_open();
    for (int i = 0; i < 7 * 4 * 4; i++) {
        int operation = operations[i / 16];
        bool ours = operation == -ECANCELED || operation == -EINTR;

        run_combination(operation, cancels[i / 4 % 4], i & 1, i & 2);
        assert_result(waiters[0].result, !ours   ? operation
                                         : i & 2 ? -ECANCELED
                                                 : -ETIME);
        count++;
    }
    printf("%u combinations\n", count);
    waiters_close();
}
END_TEST

/* ------------------------------------------------------------- full queues */

static unsigned level; /* entries before the limited one */

static int limited_task(void *arg)
{
    struct waiter *last = &waiters[WAITERS - 1];
    coil_time begin = coil_now();

    assert_result(waiter_wait(last, last->limit), -ETIME);
    ck_assert_int_ge(coil_now() - begin, last->limit);
    assert_result(coil_sleep(COIL_US(100)), 0);
    ck_assert_uint_eq(resumed_count, 0);
    for (unsigned i = 0; i < level; i++)
        put(&waiters[i], 1);
    return arg ? -EINVAL : 0;
}

START_TEST(limited_read_behind_any_number_of_entries_limits_itself)
{
    coil_context_options options = test_options();
    coil_context *context;

    options.sq_entries = _i & 2 ? 4 : 8;
    options.cq_entries = 2 * options.sq_entries;
    for (level = 0; level <= 8; level++) {
        waiters_open();
        waiters[WAITERS - 1].limit = _i & 1 ? 0 : COIL_MS(1);
        assert_result(coil_context_create(&context, &options, NULL), 0);
        waiters_spawn(context, level);
        assert_result(coil_spawn(context, limited_task, NULL, 0), 0);
        assert_result(coil_context_run(context), 0);
        ck_assert_uint_eq(resumed_count, level);
        for (unsigned i = 0; i < level; i++)
            assert_result(waiters[i].result, 8);
        test_context_end(context);
        waiters_close();
    }
}
END_TEST

/* The kernel takes nothing for `count` calls. */
static void refuse_submissions(uint64_t count)
{
    coil__seam.fail_call = COIL__CALL_ENTER;
    coil__seam.fail_error = -EBUSY;
    coil__seam.fail_repeat = count - 1;
    coil__seam.calls = 0;
    coil__seam.fail_at = 1;
}

/* Lets submissions through when the last waiter, who is on the backlog, has
 * ended without one. */
static int refusal_ender(void *arg)
{
    const bool *stop = arg;

    if (*stop)
        coil_context_stop(coil_context_current());
    while (!waiters[WAITERS - 1].resumed)
        (void)coil_yield();
    ck_assert_uint_eq(resumed_count, *stop ? WAITERS - 4 : 1);
    ck_assert_uint_eq(prepared_count, 4);
    coil__seam.fail_at = 0;
    for (int i = 0; i < WAITERS && !*stop; i++)
        put(&waiters[i], 1);
    return 0;
}

static coil_context *small_context(void)
{
    coil_context_options options = {
        .size = sizeof(options), .sq_entries = 4, .cq_entries = 8};
    coil_context *context;

    assert_result(coil_context_create(&context, &options, NULL), 0);
    return context;
}

START_TEST(refused_requests_are_submitted_later_in_order)
{
    coil_context *context = small_context();

    waiters_open();
    waiters_spawn(context, WAITERS);
    for (int i = 0; i < WAITERS; i++)
        put(&waiters[i], 1);
    refuse_submissions(100);
    assert_result(coil_context_run(context), 0);
    printf("%llu submissions, 100 of them refused\n",
           (unsigned long long)coil__seam.calls);
    ck_assert_uint_gt(coil__seam.calls, 100);
    ck_assert_uint_eq(prepared_count, WAITERS);
    for (int i = 0; i < WAITERS; i++) {
        assert_result(waiters[i].result, 8);
        ck_assert_ptr_eq(prepared[i], &waiters[i]);
    }
    test_context_end(context);
    waiters_close();
}
END_TEST

START_TEST(request_in_the_backlog_ends_without_reaching_the_kernel)
{
    coil_context *context = small_context();
    bool stop = _i;

    coil_set_message_handler(NULL); /* yields on although it is cancelled */
    waiters_open();
    waiters[WAITERS - 1].limit = stop ? COIL_FOREVER : COIL_MS(1);
    waiters_spawn(context, WAITERS);
    assert_result(coil_spawn(context, refusal_ender, &stop, 0), 0);
    refuse_submissions(UINT64_MAX);
    assert_result(coil_context_run(context), 0);
    for (int i = 0; i < WAITERS; i++)
        assert_result(waiters[i].result, stop               ? -ECANCELED
                                         : i == WAITERS - 1 ? -ETIME
                                                            : 8);
    ck_assert_uint_eq(prepared_count, stop ? 4 : WAITERS - 1);
    test_context_end(context);
    waiters_close();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("seam");
    TCase *tests = tcase_create("seam");

    tcase_set_timeout(tests, 30);
    suite_add_tcase(suite, tests);
    tcase_add_test(tests,
                   changed_completion_is_the_result_and_eintr_is_retried);
    tcase_add_loop_test(tests, withheld_completions_resume_in_order_of_release,
                        0, 3);
    tcase_add_test(tests, operation_and_cancel_resume_once_with_the_own_result);
    tcase_add_loop_test(
        tests, limited_read_behind_any_number_of_entries_limits_itself, 0, 4);
    tcase_add_test(tests, refused_requests_are_submitted_later_in_order);
    tcase_add_loop_test(
        tests, request_in_the_backlog_ends_without_reaching_the_kernel, 0, 2);
    return test_main(suite);
}
