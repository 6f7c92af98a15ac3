/*
 * Requests, on operations made with coil/extend.h: limits, tries, cancels and
 * full queues. A request ends only with its own completion, which always wins.
 */
#include "base/seam.h"
#include "support/test.h"
#include <coil/extend.h>
#include <fcntl.h>
#include <liburing.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum {
    CROWD = 3000,
    PAIRS = 10,
    RECORDS = (TEST_SLOW ? 2000 : 20000) / PAIRS /* of each pair */
};

/* ------------------------------------------------------------- operations */

static unsigned prepared; /* entries filled */

static void read_prepare(coil_request *request, struct io_uring_sqe *sqe)
{
    const coil_operation *operation = &request->operation;
    size_t done = request->transferred;

    prepared++;
    io_uring_prep_read(sqe, (int)operation->extra[0],
                       (char *)operation->data + done,
                       (unsigned)(operation->size - done), 0);
}

/* Asks again until it has every byte. */
static int exact_complete(coil_request *request, int res, unsigned flags)
{
    (void)flags;
    request->result = res ? res : -ECONNABORTED;
    if (res <= 0)
        return COIL_REQUEST_ENDED;
    request->transferred += (unsigned)res;
    request->result = 0;
    return request->transferred == request->operation.size ? COIL_REQUEST_ENDED
                                                           : COIL_REQUEST_AGAIN;
}

static const coil_operation_type read_type = {
    .size = sizeof(coil_operation_type),
    .name = "read",
    .flags = COIL_OPERATION_SINGLE_SHOT,
    .prepare = read_prepare,
};

static const coil_operation_type exact_type = {
    .size = sizeof(coil_operation_type),
    .name = "exact read",
    .prepare = read_prepare,
    .complete = exact_complete,
};

static coil_operation read_op(int descriptor, void *data, size_t size)
{
    coil_operation operation = coil_operation_make(&read_type);

    operation.extra[0] = (uint64_t)(unsigned)descriptor;
    operation.data = data;
    operation.size = size;
    return operation;
}

static coil_operation exact_op(int descriptor, void *data, size_t size,
                               size_t *ret_done)
{
    coil_operation operation = read_op(descriptor, data, size);

    operation.type = &exact_type;
    operation.ret_done = ret_done;
    return operation;
}

enum { SOCKETS, PIPE, EVENT, KINDS };

/* ends[0] is read, ends[1] written. */
static void open_ends(int kind, int ends[2])
{
    int result;

    if (kind == SOCKETS) {
        result = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
    } else if (kind == PIPE) {
        result = pipe2(ends, O_CLOEXEC);
    } else {
        ends[0] = eventfd(0, EFD_CLOEXEC);
        result = ends[1] = fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
    }
    ck_assert_int_ge(result, 0);
}

static void close_ends(const int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

static void put(int descriptor, uint64_t value)
{
    ck_assert_int_eq(write(descriptor, &value, sizeof(value)), sizeof(value));
}

/* Who keeps the time. */
static ssize_t timeout_by(bool kernel, coil_operation operation,
                          coil_duration limit)
{
    return kernel ? coil_timeout_linked(operation, limit)
                  : coil_timeout(operation, limit);
}

/* ----------------------------------------------------------------- limits */

static int limits_task(void *arg)
{
    static const coil_duration limits[] = {1, COIL_US(50), COIL_MS(1),
                                           COIL_MS(5)};
    coil_duration latest = 0;
    uint64_t value;
    int ends[2];

    open_ends((int)(intptr_t)arg, ends);
    for (size_t i = 0; i < 4; i++) {
        coil_time begin = coil_now();
        coil_duration late;

        assert_result(coil_timeout(read_op(ends[0], &value, 8), limits[i]),
                      -ETIME);
        late = coil_now() - begin - limits[i];
        ck_assert_int_ge(late, 0);
        latest = late > latest ? late : latest;
        put(ends[1], i + 7);
        assert_result(coil_timeout(read_op(ends[0], &value, 8), COIL_S(20)), 8);
        ck_assert_uint_eq(value, i + 7);
    }
    printf("kind %d: at most %.3f ms late\n", (int)(intptr_t)arg,
           (double)latest / 1e6);
    close_ends(ends);
    return 0;
}

START_TEST(limit_that_passes_is_a_time_out_never_early)
{
    assert_result(test_run(limits_task, (void *)(intptr_t)_i), 0);
}
END_TEST

static int tries_task(void *arg)
{
    static const coil_duration limits[] = {0, -1, INT64_MIN};
    uint64_t value;
    int ends[2];

    open_ends((int)(intptr_t)arg, ends);
    for (unsigned i = 1; i <= 1000; i++) {
        coil_operation operation = read_op(ends[0], &value, 8);

        assert_result(coil_timeout(operation, limits[i % 3]), -ETIME);
        put(ends[1], i);
        assert_result(coil_timeout(operation, limits[i % 3]), 8);
        ck_assert_uint_eq(value, i);
    }
    close_ends(ends);
    return 0;
}

START_TEST(try_takes_what_is_there_and_loses_nothing)
{
    assert_result(test_run(tries_task, (void *)(intptr_t)_i), 0);
}
END_TEST

/* Its data, its limit and a stop come in the same turn, as asked. */
struct race {
    int ends[2];
    bool limit, stop;
    ssize_t result;
    uint64_t value;
};

static int race_reader(void *arg)
{
    struct race *race = arg;

    race->result =
        coil_timeout(read_op(race->ends[0], &race->value, 8), COIL_S(3600));
    return 0;
}

static int race_writer(void *arg)
{
    struct race *race = arg;

    assert_result(coil_spawn(NULL, race_reader, race, 0), 0);
    assert_result(coil_sleep(COIL_US(100)), 0); /* now it is in flight */
    put(race->ends[1], 11);
    if (race->limit)
        coil__seam.time_offset += COIL_S(7200);
    if (race->stop)
        coil_context_stop(coil_context_current());
    return 0;
}

START_TEST(own_completion_wins_over_a_limit_and_a_stop)
{
    struct race race = {.limit = _i & 1, .stop = _i & 2};

    open_ends(SOCKETS, race.ends);
    for (int i = 0; i < 50; i++) {
        race.result = -1;
        race.value = 0;
        assert_result(test_run(race_writer, &race), 0);
        assert_result(race.result, 8);
        ck_assert_uint_eq(race.value, 11);
    }
    close_ends(race.ends);
}
END_TEST

/* ------------------------------------------------------------------ crowds */

static struct {
    unsigned begun, ended;
    bool kernel;
    coil_duration limit;
    ssize_t expected;
    coil_duration latest;
    coil_time stopped;
} crowd;

static int silent_task(void *arg)
{
    coil_time begin = coil_now();
    coil_duration late;
    char byte;
    int ends[2];

    (void)arg;
    open_ends(SOCKETS, ends);
    crowd.begun++;
    assert_result(
        timeout_by(crowd.kernel, read_op(ends[0], &byte, 1), crowd.limit),
        crowd.expected);
    crowd.ended++;
    if (crowd.limit != COIL_FOREVER) {
        late = coil_now() - begin - crowd.limit;
        ck_assert_int_ge(late, 0);
        crowd.latest = late > crowd.latest ? late : crowd.latest;
    }
    close_ends(ends);
    return 0;
}

static int crowd_task(void *arg)
{
    unsigned count = (unsigned)(uintptr_t)arg;

    for (unsigned i = 0; i < count; i++)
        assert_result(coil_spawn(NULL, silent_task, NULL, 0), 0);
    while (crowd.begun < count)
        assert_result(coil_sleep(COIL_MS(1)), 0);
    if (crowd.limit != COIL_FOREVER)
        return 0;
    assert_result(coil_sleep(COIL_MS(1)), 0);
    ck_assert_uint_eq(crowd.ended, 0);
    crowd.stopped = coil_now();
    coil_context_stop(coil_context_current());
    return 0;
}

START_TEST(silent_reads_with_one_limit_all_end_at_it)
{
    uintptr_t count = _i & 1 ? CROWD : 64;

    crowd.kernel = _i & 2;
    crowd.limit = COIL_MS(200);
    crowd.expected = -ETIME;
    assert_result(test_run(crowd_task, (void *)count), 0);
    printf("%u reads timed out%s, the last %.1f ms late\n", crowd.ended,
           crowd.kernel ? " in the kernel" : "", (double)crowd.latest / 1e6);
    ck_assert_uint_eq(crowd.ended, count);
    ck_assert_int_lt(crowd.latest, COIL_S(TEST_SLOW ? 10 : 2));
}
END_TEST

START_TEST(stop_ends_three_thousand_reads_at_once)
{
    coil_duration took;

    crowd.kernel = false;
    crowd.limit = COIL_FOREVER;
    crowd.expected = -ECANCELED;
    assert_result(test_run(crowd_task, (void *)(uintptr_t)CROWD), 0);
    took = coil_now() - crowd.stopped;
    printf("%u reads cancelled in %.1f ms\n", crowd.ended, (double)took / 1e6);
    ck_assert_uint_eq(crowd.ended, CROWD);
    ck_assert_int_lt(took, COIL_S(TEST_SLOW ? 10 : 1));
}
END_TEST

/* ----------------------------------------------------------------- records */

struct pair {
    int ends[2];
    coil_time deadline; /* of the reader's present wait */
    bool kernel;
    uint64_t received;
    unsigned time_outs;
};

static int record_reader(void *arg)
{
    struct pair *pair = arg;

    while (pair->received < RECORDS) {
        coil_duration limit = COIL_US(250);
        uint64_t value = UINT64_MAX;
        ssize_t n;

        pair->deadline = coil_now() + limit;
        n = timeout_by(pair->kernel, read_op(pair->ends[0], &value, 8), limit);
        if (n == -ETIME) {
            pair->time_outs++;
            continue;
        }
        assert_result(n, 8);
        ck_assert_uint_eq(value, pair->received);
        pair->received++;
    }
    return 0;
}

static int record_writer(void *arg)
{
    struct pair *pair = arg;

    for (uint64_t record = 0; record < RECORDS; record++) {
        coil_duration offset = COIL_US(rand() % 400 - 200);

        assert_result(coil_sleep_until(pair->deadline + offset), 0);
        put(pair->ends[1], record);
        while (pair->received <= record)
            (void)coil_sleep(1); /* an assertion would take too long */
    }
    return 0;
}

static int records_task(void *arg)
{
    struct pair *pairs = arg;

    for (int i = 0; i < PAIRS; i++) {
        assert_result(coil_spawn(NULL, record_reader, &pairs[i], 0), 0);
        assert_result(coil_spawn(NULL, record_writer, &pairs[i], 0), 0);
    }
    return 0;
}

START_TEST(records_sent_at_the_limit_come_without_a_gap)
{
    struct pair pairs[PAIRS] = {0};
    unsigned time_outs = 0;

    for (int i = 0; i < PAIRS; i++) {
        open_ends(SOCKETS, pairs[i].ends);
        pairs[i].kernel = _i;
    }
    assert_result(test_run(records_task, pairs), 0);
    for (int i = 0; i < PAIRS; i++) {
        ck_assert_uint_eq(pairs[i].received, RECORDS);
        time_outs += pairs[i].time_outs;
        close_ends(pairs[i].ends);
    }
    printf("%d records, %u time-outs%s\n", RECORDS * PAIRS, time_outs,
           _i ? " in the kernel" : "");
    ck_assert_uint_gt(time_outs, RECORDS * PAIRS / 100);
}
END_TEST

/* ------------------------------------------------------- several steps */

struct steps {
    int ends[2];
    unsigned sent;
    bool done;
};

/* One byte a step, for ever; more often than the limit of the reader. */
static int steps_writer(void *arg)
{
    struct steps *steps = arg;

    while (!steps->done) {
        unsigned char byte = (unsigned char)steps->sent;

        ck_assert_int_eq(write(steps->ends[1], &byte, 1), 1);
        steps->sent++;
        assert_result(coil_sleep(COIL_MS(1)), 0);
    }
    return 0;
}

static int steps_reader(void *arg)
{
    struct steps *steps = arg;
    unsigned char data[4096], rest[4096];
    coil_time begin = coil_now();
    size_t count = 7777;
    ssize_t n;

    assert_result(coil_spawn(NULL, steps_writer, steps, 0), 0);
    assert_result(
        coil_timeout(exact_op(steps->ends[0], data, sizeof(data), &count),
                     COIL_MS(50)),
        -ETIME);
    ck_assert_int_ge(coil_now() - begin, COIL_MS(50));
    steps->done = true;
    n = coil_timeout(read_op(steps->ends[0], rest, sizeof(rest)), 0);
    printf("%u steps under one limit: %zu read, %zd left\n", prepared, count,
           n);
    ck_assert_uint_gt(prepared, 2);
    ck_assert_uint_gt(count, 0);
    ck_assert_uint_eq(count + (n > 0 ? (size_t)n : 0), steps->sent);
    for (size_t i = 0; i < count; i++)
        ck_assert_uint_eq(data[i], (unsigned char)i);
    if (n > 0)
        ck_assert_uint_eq(rest[0], (unsigned char)count);
    return 0;
}

START_TEST(limit_counts_over_all_steps_of_a_request)
{
    struct steps steps = {0};

    open_ends(SOCKETS, steps.ends);
    assert_result(test_run(steps_reader, &steps), 0);
    close_ends(steps.ends);
}
END_TEST

static int counts_task(void *arg)
{
    const int *ends = arg;
    size_t count = 7777;
    char data[16];
    coil_operation operation = exact_op(ends[0], data, 8, &count);

    put(ends[1], 1);
    assert_result(coil_await(operation), 0);
    ck_assert_uint_eq(count, 8);
    assert_result(coil_timeout(operation, 0), -ETIME);
    ck_assert_uint_eq(count, 0);
    ck_assert_int_eq(write(ends[1], "abc", 3), 3);
    assert_result(coil_timeout(operation, COIL_MS(1)), -ETIME);
    ck_assert_uint_eq(count, 3);
    ck_assert_int_eq(write(ends[1], "abcde", 5), 5);
    shutdown(ends[1], SHUT_WR);
    assert_result(coil_await(operation), -ECONNABORTED);
    ck_assert_uint_eq(count, 5);
    coil_context_stop(coil_context_current());
    assert_result(coil_sleep(COIL_FOREVER), -ECANCELED);
    assert_result(coil_await(operation), -ECANCELED);
    ck_assert_uint_eq(count, 0);
    return 0;
}

START_TEST(count_of_bytes_moved_is_exact_whatever_the_result)
{
    size_t count = 7777;
    int ends[2];
    char byte;

    open_ends(SOCKETS, ends);
    assert_result(test_run(counts_task, ends), 0);
    assert_result(coil_await(exact_op(ends[0], &byte, 1, &count)), -EPERM);
    ck_assert_uint_eq(count, 0);
    close_ends(ends);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("request");
    TCase *tests = tcase_create("request");
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    tcase_set_timeout(tests, 30);
    suite_add_tcase(suite, tests);
    tcase_add_loop_test(tests, limit_that_passes_is_a_time_out_never_early, 0,
                        KINDS);
    tcase_add_loop_test(tests, try_takes_what_is_there_and_loses_nothing, 0,
                        KINDS);
    tcase_add_loop_test(tests, own_completion_wins_over_a_limit_and_a_stop, 0,
                        4);
    tcase_add_loop_test(tests, silent_reads_with_one_limit_all_end_at_it, 0, 4);
    tcase_add_test(tests, stop_ends_three_thousand_reads_at_once);
    tcase_add_loop_test(tests, records_sent_at_the_limit_come_without_a_gap, 0,
                        2);
    tcase_add_test(tests, limit_counts_over_all_steps_of_a_request);
    tcase_add_test(tests, count_of_bytes_moved_is_exact_whatever_the_result);
    return test_main(suite);
}
