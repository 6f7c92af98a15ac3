/*
 * The table of descriptors: stale handles, places of readers and writers,
 * numbers that are used again, and contexts that share a handle.
 */
#include "base/seam.h"
#include "support/test.h"
#include <coil/extend.h>
#include <fcntl.h>
#include <liburing.h>
#include <poll.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* ------------------------------------------------------------- operations */

static void read_prepare(coil_request *request, struct io_uring_sqe *sqe)
{
    const coil_operation *operation = &request->operation;

    io_uring_prep_recv(sqe, operation->handle.descriptor, operation->data,
                       (unsigned)operation->size, 0);
}

static void write_prepare(coil_request *request, struct io_uring_sqe *sqe)
{
    const coil_operation *operation = &request->operation;

    io_uring_prep_send(sqe, operation->handle.descriptor, operation->data,
                       (unsigned)operation->size, MSG_NOSIGNAL | MSG_WAITALL);
}

static void share_prepare(coil_request *request, struct io_uring_sqe *sqe)
{
    io_uring_prep_poll_add(sqe, request->operation.handle.descriptor, POLLIN);
}

/* Reads, writes and shares; by the flags. */
static const coil_operation_type types[] = {
    {.size = sizeof(coil_operation_type),
     .name = "read",
     .flags = COIL_OPERATION_READS,
     .prepare = read_prepare},
    {.size = sizeof(coil_operation_type),
     .name = "write",
     .flags = COIL_OPERATION_WRITES,
     .prepare = write_prepare},
    {.size = sizeof(coil_operation_type),
     .name = "share",
     .flags = COIL_OPERATION_SHARES,
     .prepare = share_prepare},
};

enum { READ, WRITE, SHARE, KINDS };

static char bytes[1 << 20];

static coil_operation operation_on(int kind, coil_handle handle)
{
    coil_operation operation = coil_operation_make(&types[kind]);

    operation.handle = handle;
    operation.data = bytes;
    operation.size = kind == WRITE ? sizeof(bytes) : 1;
    return operation;
}

/* A handle on one end of a pair of sockets; returns the other end. */
static int open_handle(coil_handle *ret_handle)
{
    int ends[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends),
                     0);
    assert_result(coil_handle_open(ret_handle, ends[0]), 0);
    return ends[1];
}

/* A task that waits once; the handle is closed, or there is something for it
 * to do. */
struct waiter {
    coil_handle handle;
    int kind;
    ssize_t result;
    bool done;
};

static int waiter_task(void *arg)
{
    struct waiter *waiter = arg;

    waiter->result = coil_await(operation_on(waiter->kind, waiter->handle));
    waiter->done = true;
    return 0;
}

static void start_waiter(struct waiter *waiter, coil_handle handle, int kind)
{
    *waiter = (struct waiter){handle, kind, 1, false};
    assert_result(coil_spawn(NULL, waiter_task, waiter, 0), 0);
}

/* Lets what was spawned get into the kernel. */
static void settle(void)
{
    assert_result(coil_sleep(COIL_US(200)), 0);
}

static void finish(const bool *done)
{
    coil_time end = coil_now() + COIL_S(20);

    while (!*done && coil_now() < end)
        (void)coil_sleep(COIL_US(50));
    ck_assert(*done);
}

/* The handle died under it: the writer had written a part before that. */
static void check_died(const struct waiter *waiter)
{
    finish(&waiter->done);
    if (waiter->kind == WRITE)
        ck_assert(waiter->result > 0 && waiter->result < 1 << 20);
    else
        assert_result(waiter->result, -EBADF);
}

/* ------------------------------------------------------------ stale copies */

static int stale_task(void *arg)
{
    coil_tcp_socket socket = {*(coil_handle *)arg}, accepted;
    coil_tcp_acceptor acceptor = {socket.handle};
    coil_tcp_endpoint endpoint;
    size_t count = 1;
    int value;

    for (int kind = 0; kind < KINDS; kind++)
        assert_result(coil_await(operation_on(kind, socket.handle)), -EBADF);
    assert_result(coil_tcp_endpoint_parse(&endpoint, "127.0.0.1:9", 11), 0);
    assert_result(coil_tcp_read_some(&socket, bytes, 1), -EBADF);
    assert_result(coil_tcp_read_some(&socket, bytes, 0), -EBADF);
    assert_result(coil_tcp_write_some(&socket, bytes, 1), -EBADF);
    assert_result(coil_tcp_write_all(&socket, bytes, 1, &count), -EBADF);
    ck_assert_uint_eq(count, 0);
    assert_result(coil_tcp_connect(&socket, &endpoint), -EBADF);
    assert_result(coil_tcp_bind(&socket, &endpoint), -EBADF);
    assert_result(coil_tcp_shutdown(&socket, SHUT_RDWR), -EBADF);
    assert_result(coil_tcp_local_endpoint(&socket, &endpoint), -EBADF);
    assert_result(coil_tcp_remote_endpoint(&socket, &endpoint), -EBADF);
    assert_result(coil_tcp_descriptor(&socket), -EBADF);
    assert_result(coil_tcp_set(&socket, coil_tcp_no_delay, 1), -EBADF);
    assert_result(coil_tcp_get(&socket, coil_tcp_no_delay, &value), -EBADF);
    assert_result(coil_tcp_accept(&acceptor, &accepted, NULL), -EBADF);
    assert_result(coil_tcp_acceptor_start(&acceptor, 1), -EBADF);
    assert_result(coil_tcp_acceptor_local_endpoint(&acceptor, &endpoint),
                  -EBADF);
    assert_result(coil_tcp_acceptor_descriptor(&acceptor), -EBADF);
    assert_result(coil_handle_release(socket.handle), -EBADF);
    assert_result(coil_handle_descriptor(socket.handle), -EBADF);
    assert_result(coil_tcp_close_gracefully(&socket, COIL_S(1)), 0);
    assert_result(coil_tcp_acceptor_close(&acceptor), 0);
    assert_result(coil_tcp_close(&socket), 0);
    return 0;
}

START_TEST(stale_copy_is_refused_by_every_call_and_closed_once_more)
{
    coil_handle first = {0}, second;
    int peers[2];

    assert_result(test_run(stale_task, &first), 0); /* zeroed: closed */
    peers[0] = open_handle(&first);
    ck_assert_uint_ne(first.generation, 0);
    second = (coil_handle){first.descriptor, 0};
    assert_result(test_run(stale_task, &second), 0);
    assert_result(coil_handle_close(first), 0);
    assert_result(test_run(stale_task, &first), 0);
    peers[1] = open_handle(&second); /* the same number again */
    ck_assert_int_eq(second.descriptor, first.descriptor);
    ck_assert_uint_ne(second.generation, first.generation);
    assert_result(test_run(stale_task, &first), 0);
    assert_result(coil_handle_descriptor(second), second.descriptor);
    ck_assert_int_ge(fcntl(second.descriptor, F_GETFD), 0);
    assert_result(coil_handle_close(second), 0);
    close(peers[0]);
    close(peers[1]);
}
END_TEST

START_TEST(number_out_of_range_or_without_memory_is_refused)
{
    coil_handle handle = {77, 88};
    int descriptor, far;

    assert_result(coil_handle_open(&handle, -1), -EBADF);
    assert_result(coil_handle_open(&handle, INT32_MIN), -EBADF);
    assert_result(coil_handle_open(&handle, 1 << 24), -EMFILE);
    assert_result(coil_handle_open(&handle, INT32_MAX), -EMFILE);
    ck_assert_int_eq(handle.descriptor, 77);
    ck_assert_uint_eq(handle.generation, 88);
    for (int number = -1; number > -3; number--)
        assert_result(coil_handle_close((coil_handle){number, 1}), 0);
    assert_result(coil_handle_close((coil_handle){INT32_MAX, 1}), 0);
    descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
    far = fcntl(descriptor, F_DUPFD_CLOEXEC, 3000);
    ck_assert_int_ge(far, 3000);
    coil__seam.fail_call = COIL__CALL_ALLOCATE;
    coil__seam.fail_error = -ENOMEM;
    coil__seam.calls = 0;
    coil__seam.fail_at = 1;
    assert_result(coil_handle_open(&handle, far), -ENOMEM);
    assert_result(coil_handle_open(&handle, far), 0); /* then there is some */
    assert_result(coil_handle_close(handle), 0);
    ck_assert_int_eq(fcntl(far, F_GETFD), -1);
    close(descriptor);
}
END_TEST

/* ------------------------------------------------------------------ places */

static int places_task(void *arg)
{
    struct waiter reader, writer, sharers[20];
    coil_handle handle;
    int peer = open_handle(&handle);

    (void)arg;
    start_waiter(&reader, handle, READ);
    start_waiter(&writer, handle, WRITE);
    for (int i = 0; i < 20; i++)
        start_waiter(&sharers[i], handle, SHARE);
    settle();
    assert_result(coil_await(operation_on(READ, handle)), -EBUSY);
    assert_result(coil_await(operation_on(WRITE, handle)), -EBUSY);
    assert_result(coil_handle_release(handle), -EBUSY);
    ck_assert_int_eq(write(peer, "ab", 2), 2);
    finish(&reader.done);
    assert_result(reader.result, 1);
    for (int i = 0; i < 20; i++) {
        finish(&sharers[i].done);
        ck_assert_int_eq((int)sharers[i].result & POLLIN, POLLIN);
    }
    assert_result(coil_await(operation_on(READ, handle)), 1);
    assert_result(coil_timeout(operation_on(READ, handle), 0), -ETIME);
    close(peer);
    finish(&writer.done);
    assert_result(coil_handle_release(handle), handle.descriptor);
    assert_result(coil_handle_descriptor(handle), -EBADF);
    assert_result(coil_handle_close(handle), 0);
    return close(handle.descriptor); /* ours again */
}

START_TEST(one_reads_one_writes_and_any_number_share)
{
    assert_result(test_run(places_task, NULL), 0);
}
END_TEST

/* ---------------------------------------------- behind the library's back */

static int theft_task(void *arg)
{
    struct waiter waiters[KINDS];
    coil_handle old, new;
    int peers[2], with_requests = (int)(intptr_t)arg;
    char text[40];

    peers[0] = open_handle(&old);
    for (int kind = 0; kind < KINDS && with_requests; kind++)
        start_waiter(&waiters[kind], old, kind);
    settle();
    close(old.descriptor);
    test_catch_messages();
    peers[1] = open_handle(&new);
    ck_assert_int_eq(new.descriptor, old.descriptor);
    ck_assert_uint_eq(test_messages.count, 1);
    ck_assert_uint_eq(test_messages.of_kind[COIL_MESSAGE_MISUSE], 1);
    snprintf(text, sizeof(text), "descriptor %d ", old.descriptor);
    ck_assert_ptr_nonnull(strstr(test_messages.last, text));
    for (int kind = 0; kind < KINDS && with_requests; kind++)
        check_died(&waiters[kind]);
    assert_result(coil_await(operation_on(READ, old)), -EBADF);
    assert_result(coil_handle_close(old), 0);
    ck_assert_int_eq(write(peers[1], "a", 1), 1);
    assert_result(coil_await(operation_on(READ, new)), 1);
    ck_assert_uint_eq(test_messages.count, 1);
    close(peers[0]);
    close(peers[1]);
    return coil_handle_close(new);
}

START_TEST(number_that_comes_back_kills_the_old_handle_and_is_told_once)
{
    assert_result(test_run(theft_task, (void *)(intptr_t)_i), 0);
}
END_TEST

static int theft_reader_task(void *arg)
{
    struct waiter old_reader;
    coil_handle old, new;
    int peers[2];

    (void)arg;
    peers[0] = open_handle(&old);
    start_waiter(&old_reader, old, READ);
    settle();
    close(old.descriptor);
    test_catch_messages();
    peers[1] = open_handle(&new);
    /* The place of the old reader is not this one's. */
    ck_assert_int_eq(write(peers[1], "a", 1), 1);
    assert_result(coil_await(operation_on(READ, new)), 1);
    check_died(&old_reader);
    close(peers[0]);
    close(peers[1]);
    return coil_handle_close(new);
}

START_TEST(reader_of_a_number_that_came_back_does_not_find_it_busy)
{
    assert_result(test_run(theft_reader_task, NULL), 0);
}
END_TEST

/* Opens, from another thread, the end of a pair; leaves the peer. */
struct opening {
    coil_handle handle;
    int peer, result;
};

static void *open_thread(void *arg)
{
    struct opening *opening = arg;
    int ends[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return NULL;
    opening->result = coil_handle_open(&opening->handle, ends[0]);
    opening->peer = ends[1];
    return NULL;
}

static void run_thread(void *(*fn)(void *), void *arg)
{
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, fn, arg), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

static int foreign_theft_task(void *arg)
{
    struct opening opening = {.result = 1};
    struct waiter old_reader, sharer;
    coil_handle old;
    int peer = open_handle(&old);

    (void)arg;
    start_waiter(&old_reader, old, READ);
    settle();
    close(old.descriptor);
    test_catch_messages();
    run_thread(open_thread, &opening);
    assert_result(opening.result, 0);
    ck_assert_int_eq(opening.handle.descriptor, old.descriptor);
    ck_assert_uint_eq(test_messages.count, 1);
    /* Already waiting when this context learns that the old one is to go. */
    start_waiter(&sharer, opening.handle, SHARE);
    check_died(&old_reader);
    settle();
    ck_assert_int_eq(write(opening.peer, "a", 1), 1);
    finish(&sharer.done);
    assert_result(sharer.result, POLLIN);
    close(peer);
    close(opening.peer);
    return coil_handle_close(opening.handle);
}

START_TEST(number_that_came_back_on_another_thread_keeps_its_requests)
{
    assert_result(test_run(foreign_theft_task, NULL), 0);
}
END_TEST

/* ---------------------------------------------------------- other contexts */

struct other {
    coil_handle handle;
    ssize_t read, closed;
};

static int other_task(void *arg)
{
    struct other *other = arg;

    other->read = coil_timeout(operation_on(READ, other->handle), COIL_S(20));
    return 0;
}

static void *other_thread(void *arg)
{
    struct other *other = arg;
    coil_context_options options = test_options();
    coil_context *context;

    if (coil_context_create(&context, &options, NULL) < 0)
        return NULL;
    if (coil_spawn(context, other_task, other, 0) >= 0)
        (void)coil_context_run(context);
    (void)coil_context_destroy(context);
    other->closed = coil_handle_close(other->handle);
    return NULL;
}

static int contexts_task(void *arg)
{
    struct other other = {.read = 1000, .closed = 1000};
    struct waiter reader;
    int peer = open_handle(&other.handle);

    (void)arg;
    start_waiter(&reader, other.handle, READ);
    settle();
    run_thread(other_thread, &other);
    assert_result(other.read, -EBUSY);
    assert_result(other.closed, -EBUSY);
    ck_assert_int_eq(write(peer, "ab", 2), 2);
    finish(&reader.done);
    assert_result(reader.result, 1);
    run_thread(other_thread, &other); /* nothing is in flight here */
    assert_result(other.read, 1);
    assert_result(other.closed, 0);
    assert_result(coil_await(operation_on(READ, other.handle)), -EBADF);
    ck_assert_int_eq(read(peer, bytes, 1), 0);
    return close(peer);
}

START_TEST(handle_in_use_is_busy_for_other_threads_and_free_afterwards)
{
    assert_result(test_run(contexts_task, NULL), 0);
}
END_TEST

static void *open_and_close_thread(void *arg)
{
    uint64_t *last = arg;

    for (int i = 0; i < (TEST_SLOW ? 2000 : 20000); i++) {
        struct opening opening = {.result = 1};

        open_thread(&opening);
        if (opening.result < 0 || coil_handle_close(opening.handle) < 0)
            return NULL;
        close(opening.peer);
        *last += opening.handle.generation;
    }
    return arg;
}

START_TEST(numbers_wander_between_threads_and_every_handle_is_new)
{
    uint64_t sums[2] = {0};
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, open_and_close_thread, &sums[i]);
    for (int i = 0; i < 2; i++) {
        void *result;

        pthread_join(threads[i], &result);
        ck_assert_ptr_eq(result, &sums[i]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("descriptor");
    TCase *tests = tcase_create("descriptor");
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    tcase_set_timeout(tests, 30);
    suite_add_tcase(suite, tests);
    tcase_add_test(tests,
                   stale_copy_is_refused_by_every_call_and_closed_once_more);
    tcase_add_test(tests, number_out_of_range_or_without_memory_is_refused);
    tcase_add_test(tests, one_reads_one_writes_and_any_number_share);
    tcase_add_loop_test(
        tests, number_that_comes_back_kills_the_old_handle_and_is_told_once, 0,
        2);
    tcase_add_test(tests,
                   reader_of_a_number_that_came_back_does_not_find_it_busy);
    tcase_add_test(tests,
                   number_that_came_back_on_another_thread_keeps_its_requests);
    tcase_add_test(tests,
                   handle_in_use_is_busy_for_other_threads_and_free_afterwards);
    tcase_add_test(tests,
                   numbers_wander_between_threads_and_every_handle_is_new);
    return test_main(suite);
}
