#include "support/test.h"
#include <dirent.h>
#include <stdio.h>

coil_context_options test_options(void)
{
    coil_context_options options = {.size = sizeof(options)};
    const char *ring = getenv("COIL_TEST_RING");

    if (ring &&
        sscanf(ring, "%u,%u", &options.sq_entries, &options.cq_entries) != 2)
        ck_abort_msg("COIL_TEST_RING is not SQ,CQ");
    return options;
}

coil_context *test_context(void)
{
    coil_context_options options = test_options();
    coil_context *context = NULL;
    coil_error error = {0};
    int result = coil_context_create(&context, &options, &error);

    ck_assert_msg(result >= 0, "no context: %s", error.text);
    return context;
}

void test_context_end(coil_context *context)
{
    coil_stats stats;

    coil_context_stats(context, &stats, sizeof(stats));
    ck_assert_uint_eq(stats.in_flight, 0);
    ck_assert_uint_eq(stats.tasks_live, 0);
    assert_result(coil_context_destroy(context), 0);
}

struct first {
    coil_task_fn *fn;
    void *arg;
    int *ret_result;
};

static int first_task(void *arg)
{
    struct first *first = arg;

    *first->ret_result = first->fn(first->arg);
    return 0;
}

int test_run(coil_task_fn *fn, void *arg)
{
    int result = -ENODATA;
    struct first first = {fn, arg, &result};
    size_t before = test_descriptors();
    coil_context *context = test_context();

    assert_result(coil_spawn(context, first_task, &first, sizeof(first)), 0);
    assert_result(coil_context_run(context), 0);
    test_context_end(context);
    ck_assert_uint_eq(test_descriptors(), before);
    return result;
}

size_t test_descriptors(void)
{
    DIR *directory = opendir("/proc/self/fd");
    size_t count = 0;

    ck_assert_ptr_nonnull(directory);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count - 3; /* ".", ".." and the directory itself */
}

coil_tcp_acceptor test_listen(coil_tcp_endpoint *ret_endpoint)
{
    coil_tcp_acceptor acceptor;

    assert_result(coil_tcp_listen_text(&acceptor, "127.0.0.1:0", NULL), 0);
    assert_result(coil_tcp_acceptor_local_endpoint(&acceptor, ret_endpoint), 0);
    return acceptor;
}

struct connecting {
    coil_tcp_socket *socket;
    coil_tcp_endpoint endpoint;
};

static int connect_task(void *arg)
{
    struct connecting *connecting = arg;

    assert_result(coil_tcp_connect(connecting->socket, &connecting->endpoint),
                  0);
    return 0;
}

void test_tcp_pair(coil_tcp_socket *ret_left, coil_tcp_socket *ret_right)
{
    struct connecting connecting = {.socket = ret_left};
    coil_tcp_acceptor acceptor = test_listen(&connecting.endpoint);

    assert_result(coil_tcp_open(ret_left, AF_INET), 0);
    assert_result(
        coil_spawn(NULL, connect_task, &connecting, sizeof(connecting)), 0);
    assert_result(coil_tcp_accept(&acceptor, ret_right, NULL), 0);
    assert_result(coil_tcp_acceptor_close(&acceptor), 0);
    /* The other task has its result when this one has. */
    assert_result(coil_yield(), 0);
}

struct test_messages test_messages;

static void keep_message(coil_message_kind kind, const char *text)
{
    size_t used = strlen(test_messages.all);

    test_messages.count++;
    test_messages.of_kind[kind]++;
    snprintf(test_messages.last, sizeof(test_messages.last), "%s", text);
    snprintf(test_messages.all + used, sizeof(test_messages.all) - used, "%s\n",
             text);
}

void test_catch_messages(void)
{
    memset(&test_messages, 0, sizeof(test_messages));
    coil_set_message_handler(keep_message);
}

int test_main(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    int failed;

    srunner_set_fork_status(runner, CK_FORK);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
