/*
 * Cancellation at every moment of a wait: before its task was spawned, before
 * that first ran, while the request is queued, in flight, and between its
 * completion and the task's resumption. The outcome is the same for every
 * operation there is, and what was not taken is still there.
 */
#include "base/seam.h"
#include "support/test.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

/* ---------------------------------------------------------- the operations */

static struct {
    coil_tcp_socket left, right;
    coil_tcp_acceptor acceptor;
    coil_tcp_endpoint endpoint;
    coil_tcp_socket accepted;
    int client; /* connects to the acceptor; -1: none */
    int pipe[2];
    coil_signal_set signals;
    coil_event event;
    coil_semaphore semaphore;
    coil_mutex mutex;
    coil_channel channel;
    coil_task *child;
    int item;
    size_t done;
    char data[64];
} it;

/* Blocks the stream from left to right. */
static void fill_stream(void)
{
    static const char zeros[65536];
    int descriptor = coil_tcp_descriptor(&it.left);

    while (send(descriptor, zeros, sizeof(zeros), MSG_DONTWAIT) > 0)
        ;
}

static void drain_stream(void)
{
    static char data[1 << 20];
    int descriptor = coil_tcp_descriptor(&it.right);

    while (recv(descriptor, data, sizeof(data), MSG_DONTWAIT) > 0)
        ;
}

static coil_operation sleep_make(void)
{
    return coil_sleep_op(COIL_S(1000));
}

static void sleep_complete(void)
{
    coil__seam.time_offset += COIL_S(2000);
}

static coil_operation read_make(void)
{
    return coil_tcp_read_some_op(&it.right, it.data, sizeof(it.data));
}

static void read_complete(void)
{
    ck_assert_int_eq(
        send(coil_tcp_descriptor(&it.left), "abc", 3, MSG_NOSIGNAL), 3);
}

static coil_operation write_some_make(void)
{
    return coil_tcp_write_some_op(&it.left, it.data, sizeof(it.data));
}

static coil_operation write_all_make(void)
{
    return coil_tcp_write_all_op(&it.left, it.data, sizeof(it.data), &it.done);
}

static coil_operation accept_make(void)
{
    return coil_tcp_accept_op(&it.acceptor, &it.accepted, NULL);
}

static void accept_complete(void)
{
    it.client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(it.client, coil_tcp_endpoint_data(&it.endpoint),
                             coil_tcp_endpoint_size(&it.endpoint)),
                     0);
}

static coil_operation poll_make(void)
{
    return coil_poll_op(it.pipe[0], POLLIN);
}

static void poll_complete(void)
{
    ck_assert_int_eq(write(it.pipe[1], "x", 1), 1);
}

static coil_operation signal_make(void)
{
    return coil_signal_set_wait_op(&it.signals);
}

static void signal_complete(void)
{
    ck_assert_int_eq(raise(SIGUSR1), 0);
}

static coil_operation event_make(void)
{
    return coil_event_wait_op(&it.event);
}

static void event_complete(void)
{
    coil_event_set(&it.event);
}

static coil_operation semaphore_make(void)
{
    return coil_semaphore_acquire_op(&it.semaphore, 3);
}

static void semaphore_complete(void)
{
    coil_semaphore_release(&it.semaphore, 3);
}

static coil_operation mutex_make(void)
{
    return coil_mutex_lock_op(&it.mutex);
}

static void mutex_complete(void)
{
    assert_result(coil_mutex_unlock(&it.mutex), 0);
}

static coil_operation receive_make(void)
{
    return coil_channel_receive_op(&it.channel, &it.item);
}

static void receive_complete(void)
{
    int item = 77;

    assert_result(coil_timeout(coil_channel_send_op(&it.channel, &item), 0), 0);
}

static coil_operation send_make(void)
{
    return coil_channel_send_op(&it.channel, &it.item);
}

static void send_complete(void)
{
    int item;

    assert_result(coil_timeout(coil_channel_receive_op(&it.channel, &item), 0),
                  1);
}

static void send_fill(void)
{
    receive_complete();
}

static void mutex_lock(void)
{
    assert_result(coil_mutex_lock(&it.mutex), 0);
}

static void nothing(void)
{
}

static const struct operation {
    const char *name;
    coil_operation (*make)(void);
    void (*block)(void);    /* so that it waits */
    void (*complete)(void); /* so that it ends */
    ssize_t done;           /* its result then */
} operations[] = {
    {"sleep", sleep_make, nothing, sleep_complete, 0},
    {"read_some", read_make, nothing, read_complete, 3},
    {"write_some", write_some_make, fill_stream, drain_stream, 64},
    {"write_all", write_all_make, fill_stream, drain_stream, 0},
    {"accept", accept_make, nothing, accept_complete, 0},
    {"poll", poll_make, nothing, poll_complete, POLLIN},
    {"signal", signal_make, nothing, signal_complete, SIGUSR1},
    {"event", event_make, nothing, event_complete, 0},
    {"semaphore", semaphore_make, nothing, semaphore_complete, 0},
    {"mutex", mutex_make, mutex_lock, mutex_complete, 0},
    {"receive", receive_make, nothing, receive_complete, 1},
    {"send", send_make, send_fill, send_complete, 0},
};

enum { OPERATIONS = sizeof(operations) / sizeof(operations[0]) };

static const struct operation *subject;

/* In a task: everything the operations need. */
static void open_it(void)
{
    const int number = SIGUSR1;

    memset(&it, 0, sizeof(it));
    it.client = -1;
    test_tcp_pair(&it.left, &it.right);
    it.acceptor = test_listen(&it.endpoint);
    ck_assert_int_eq(pipe2(it.pipe, O_CLOEXEC | O_NONBLOCK), 0);
    assert_result(coil_signal_set_open(&it.signals, &number, 1), 0);
    assert_result(coil_channel_create(&it.channel, 1, sizeof(int)), 0);
    subject->block();
}

static void close_it(void)
{
    coil_tcp_close(&it.left);
    coil_tcp_close(&it.right);
    coil_tcp_close(&it.accepted);
    coil_tcp_acceptor_close(&it.acceptor);
    close(it.pipe[0]);
    close(it.pipe[1]);
    if (it.client >= 0)
        close(it.client);
    coil_signal_set_close(&it.signals);
    coil_channel_destroy(&it.channel);
}

/* ------------------------------------------------------------ the moments */

static struct {
    coil_scope scope;
    ssize_t result;
    bool begun, ended, limited;
} wait;

/* Nothing was taken: the operation can still be done. */
static void check_nothing_is_lost(void)
{
    COIL_SHIELD(shield, COIL_FOREVER);
    subject->complete();
    if (subject->make == sleep_make)
        return;
    assert_result(coil_timeout(subject->make(), COIL_S(20)), subject->done);
}

static int wait_task(void *arg)
{
    (void)arg;
    coil_scope_begin(&wait.scope, COIL_FOREVER);
    wait.begun = true;
    wait.result = wait.limited ? coil_timeout(subject->make(), COIL_S(100000))
                               : coil_await(subject->make());
    wait.ended = true;
    assert_result(coil_scope_end(&wait.scope),
                  wait.result == -ECANCELED ? -ECANCELED : 0);
    return 0;
}

static void cancel_posted(void *arg)
{
    (void)arg;
    ck_assert(!wait.ended);
    coil_scope_cancel(&wait.scope);
}

enum moment { BEFORE_SPAWN, BEFORE_RUN, QUEUED, IN_FLIGHT, COMPLETED, MOMENTS };

/* The task is ready and has not run yet: at once where the kernel has no part
 * in it, else after the completion was taken in this turn. */
static void cancel_completed(coil_context *context)
{
    coil_operation operation = subject->make();

    subject->complete();
    if ((operation.type->flags & COIL_OPERATION_PARKS) &&
        operation.type != &coil_sleep_type)
        cancel_posted(NULL);
    else
        assert_result(coil_context_post(context, cancel_posted, NULL), 0);
}

/* Spawns the waiting task and cancels it at the moment asked for. */
static void cancel_at(enum moment moment)
{
    coil_context *context = coil_context_current();

    if (moment == BEFORE_SPAWN)
        coil_context_stop(context);
    while (moment == BEFORE_SPAWN && coil_check() == 0)
        ;
    assert_result(coil_spawn(NULL, wait_task, NULL, 0), 0);
    if (moment == BEFORE_RUN)
        coil_context_stop(context);
    while (!wait.begun)
        (void)coil_yield();
    if (moment == QUEUED)
        coil_scope_cancel(&wait.scope);
    if (moment <= QUEUED)
        return;
    assert_result(coil_sleep(COIL_US(100)), 0);
    if (moment == COMPLETED)
        cancel_completed(context);
    else
        coil_scope_cancel(&wait.scope);
}

static int moment_task(void *arg)
{
    enum moment moment = (enum moment)(intptr_t)arg;

    open_it();
    cancel_at(moment);
    while (!wait.ended)
        (void)coil_yield();
    if (moment == COMPLETED) {
        assert_result(wait.result, subject->done);
    } else {
        assert_result(wait.result, -ECANCELED);
        check_nothing_is_lost();
    }
    close_it();
    return 0;
}

START_TEST(cancel_at_any_moment_has_the_documented_outcome)
{
    subject = &operations[_i];
    coil_set_message_handler(NULL); /* yields on although it is cancelled */
    for (int limited = 0; limited < 2; limited++)
        for (enum moment moment = 0; moment < MOMENTS; moment++) {
            memset(&wait, 0, sizeof(wait));
            wait.limited = limited;
            assert_result(test_run(moment_task, (void *)(intptr_t)moment), 0);
        }
    printf("%s: %d moments, with and without a limit\n", subject->name,
           MOMENTS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("moments");
    TCase *cases = tcase_create("moments");

    tcase_add_loop_test(cases, cancel_at_any_moment_has_the_documented_outcome,
                        0, OPERATIONS);
    suite_add_tcase(suite, cases);
    return test_main(suite);
}
