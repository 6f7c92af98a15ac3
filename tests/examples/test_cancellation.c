/*
 * The examples of scopes, groups, races and channels, run as a user would.
 */
#include "support/test.h"
#include <signal.h>
#include <sys/wait.h>

/* A program whose output is read line by line; its first line is its pid. */
struct program {
    FILE *output;
    pid_t pid;
};

static struct program start(const char *arguments)
{
    struct program program;
    char command[512], line[64];

    snprintf(command, sizeof(command), "echo $$; exec " TEST_EXAMPLES "/%s",
             arguments);
    program.output = popen(command, "r");
    ck_assert_ptr_nonnull(program.output);
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), program.output));
    program.pid = (pid_t)strtol(line, NULL, 10);
    ck_assert_int_gt(program.pid, 0);
    return program;
}

static void expect_line(struct program program, const char *expected)
{
    char line[256] = "";

    ck_assert_ptr_nonnull(fgets(line, sizeof(line), program.output));
    line[strcspn(line, "\n")] = 0;
    ck_assert_str_eq(line, expected);
}

static void expect_exit(struct program program, int expected)
{
    int status = pclose(program.output);

    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), expected);
}

START_TEST(fan_out_names_who_failed_and_counts_the_cancelled)
{
    struct program program = start("fan_out --tasks 10 --failing 3");

    expect_line(program, "task 3 failed: Input/output error");
    expect_line(program, "4 went to their end, 6 were cancelled");
    expect_exit(program, 0);
}
END_TEST

START_TEST(worker_pool_does_every_job_once)
{
    struct program program = start("worker_pool --workers 7 --jobs 1000");

    expect_line(program, "1000 jobs done, sum 500500");
    expect_exit(program, 0);
}
END_TEST

/* Its endpoint, from the line that says where it listens. */
static void read_endpoint(struct program program, char ret_text[64])
{
    char line[128] = "";

    ck_assert_ptr_nonnull(fgets(line, sizeof(line), program.output));
    line[strcspn(line, "\n")] = 0;
    ck_assert_int_eq(strncmp(line, "listening on ", 13), 0);
    snprintf(ret_text, 64, "%.63s", line + 13);
}

static void check_client(const char *name, const char *endpoint,
                         const char *expected)
{
    char arguments[256];
    struct program program;

    snprintf(arguments, sizeof(arguments), name, endpoint);
    program = start(arguments);
    expect_line(program, expected);
    expect_exit(program, 0);
}

/* Two clients stay, having been echoed to; one of them goes after the
 * signal. */
static int client_task(void *arg)
{
    coil_tcp_endpoint endpoint;
    coil_tcp_socket sockets[2];
    const char *text = arg;
    char byte = 'x';

    assert_result(coil_tcp_endpoint_parse(&endpoint, text, strlen(text)), 0);
    for (int i = 0; i < 2; i++) {
        assert_result(coil_tcp_open(&sockets[i], AF_INET), 0);
        assert_result(coil_tcp_connect(&sockets[i], &endpoint), 0);
        assert_result(coil_tcp_write_all(&sockets[i], &byte, 1, NULL), 0);
        assert_result(coil_tcp_read_some(&sockets[i], &byte, 1), 1);
    }
    ck_assert_int_eq(kill(*(pid_t *)(text + 64), SIGTERM), 0);
    assert_result(coil_tcp_close(&sockets[0]), 0);
    assert_result(coil_tcp_read_some(&sockets[1], &byte, 1), 0); /* cancelled */
    return coil_tcp_close(&sockets[1]);
}

START_TEST(graceful_server_gives_its_sessions_time_and_then_ends_them)
{
    struct program server = start("echo_graceful --listen 127.0.0.1:0 "
                                  "--grace 500");
    char text[64 + sizeof(pid_t)], expected[128];

    read_endpoint(server, text);
    snprintf(expected, sizeof(expected), "%s was first", text);
    check_client("race_hosts 127.0.0.1:1 %s", text, expected);
    check_client("request_limit --connect %s", text, "what time is it?");
    memcpy(text + 64, &server.pid, sizeof(pid_t));
    assert_result(test_run(client_task, text), 0);
    expect_line(server, "3 sessions ended, 1 were cancelled");
    expect_exit(server, 0);
}
END_TEST

/* A listener that accepts and says nothing. */
START_TEST(request_without_an_answer_ends_at_its_limit)
{
    coil_tcp_endpoint endpoint;
    coil_tcp_acceptor acceptor = test_listen(&endpoint);
    char text[COIL_ENDPOINT_TEXT_MAX], arguments[128];
    struct program program;

    assert_result(coil_tcp_endpoint_print(&endpoint, text, sizeof(text)) > 0,
                  1);
    snprintf(arguments, sizeof(arguments),
             "request_limit --limit 100 --connect %s", text);
    program = start(arguments);
    expect_line(program, "no answer within 100 ms");
    expect_exit(program, 2);
    coil_tcp_acceptor_close(&acceptor);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cancellation");
    TCase *cases = tcase_create("cancellation");

    tcase_add_test(cases, fan_out_names_who_failed_and_counts_the_cancelled);
    tcase_add_test(cases, worker_pool_does_every_job_once);
    tcase_add_test(cases,
                   graceful_server_gives_its_sessions_time_and_then_ends_them);
    tcase_add_test(cases, request_without_an_answer_ends_at_its_limit);
    suite_add_tcase(suite, cases);
    return test_main(suite);
}
