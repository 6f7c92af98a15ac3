/*
 * The example programs as a user runs them: what they print, how they end,
 * and that wrong input is one line on stderr and exit code 2.
 */
#include "support/test.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

struct program {
    pid_t pid;
    int output;
    char text[65536];
    size_t length;
};

/* Starts one of the examples; both its outputs come to us. */
static void start(struct program *program, const char *name, char **arguments)
{
    char path[512];
    int ends[2];

    snprintf(path, sizeof(path), "%s/%s", TEST_EXAMPLES, name);
    arguments[0] = path;
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    memset(program, 0, sizeof(*program));
    program->output = ends[0];
    program->pid = fork();
    ck_assert_int_ge(program->pid, 0);
    if (program->pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        execv(path, arguments);
        _exit(127);
    }
    close(ends[1]);
}

/* Reads until `wanted` has been printed; false at end of output. */
static bool read_until(struct program *program, const char *wanted)
{
    while (!wanted || !strstr(program->text, wanted)) {
        ssize_t n = read(program->output, program->text + program->length,
                         sizeof(program->text) - 1 - program->length);

        if (n <= 0)
            return false;
        program->length += (size_t)n;
        program->text[program->length] = '\0';
    }
    return true;
}

/* Reads the rest and returns the exit code, or -1 for a signal. */
static int finish(struct program *program)
{
    int status;

    while (read_until(program, NULL))
        ;
    ck_assert_int_eq(waitpid(program->pid, &status, 0), program->pid);
    close(program->output);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static unsigned lines(const struct program *program)
{
    unsigned count = 0;

    for (const char *at = program->text; *at; at++)
        count += *at == '\n';
    return count;
}

static void start_server(struct program *server, char *ret_endpoint)
{
    char *arguments[] = {NULL, "--listen", "127.0.0.1:0", "--quiet", NULL};
    const char *at;

    start(server, "echo_server", arguments);
    ck_assert(read_until(server, "\n"));
    at = strstr(server->text, "listening on ");
    ck_assert_ptr_nonnull(at);
    ck_assert_int_eq(sscanf(at, "listening on %63s", ret_endpoint), 1);
}

START_TEST(server_and_client_agree_on_every_byte)
{
    char endpoint[64];
    char *arguments[] = {NULL,   "--connect",  endpoint, "--connections",
                         "50",   "--messages", "20",     "--size",
                         "1000", NULL};
    struct program server, client;

    start_server(&server, endpoint);
    start(&client, "echo_client", arguments);
    ck_assert_int_eq(finish(&client), 0);
    ck_assert_str_eq(client.text, "connections 50 messages 1000 bytes 1000000 "
                                  "mismatched 0 failed 0\n");
    kill(server.pid, SIGTERM);
    ck_assert_int_eq(finish(&server), 0);
    ck_assert_ptr_nonnull(
        strstr(server.text, "connections 50 ended 50 bytes 1000000 sqes"));
}
END_TEST

static void assert_refused(const char *name, char **arguments,
                           const char *reason)
{
    struct program program;
    int code;

    start(&program, name, arguments);
    code = finish(&program);
    ck_assert_msg(code == 2, "%s ended with %d: %s", name, code, program.text);
    ck_assert_msg(lines(&program) == 1, "%s printed: %s", name, program.text);
    ck_assert_msg(strstr(program.text, reason) != NULL, "%s printed: %s", name,
                  program.text);
}

START_TEST(wrong_input_is_one_line_and_exit_code_2)
{
    static const struct {
        const char *program, *option, *value, *reason;
    } cases[] = {
        {"echo_server", "--listen", "nonsense", "nonsense"},
        {"echo_server", "--listen", "127.0.0.1:70000", "127.0.0.1:70000"},
        {"echo_server", "--listen", "127.0.0.1:80x", "not an endpoint"},
        {"echo_server", "--listen", "8.8.8.8:0", "EADDRNOTAVAIL"},
        {"echo_server", "--unknown", NULL, "--unknown"},
        {"echo_server", "--listen", NULL, "needs a value"},
        {"echo_client", "--connect", "nonsense", "nonsense"},
        {"echo_client", "--connections", "-1", "not a number"},
        {"echo_client", "--connections", "12x", "not a number"},
        {"echo_minimal", "nonsense", NULL, "EINVAL"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *arguments[] = {NULL, (char *)(uintptr_t)cases[i].option,
                             (char *)(uintptr_t)cases[i].value, NULL};

        assert_refused(cases[i].program, arguments, cases[i].reason);
    }
}
END_TEST

START_TEST(port_in_use_is_told)
{
    char endpoint[64];
    char *arguments[] = {NULL, "--listen", endpoint, NULL};
    struct program server;

    start_server(&server, endpoint);
    assert_refused("echo_server", arguments, "EADDRINUSE");
    kill(server.pid, SIGTERM);
    ck_assert_int_eq(finish(&server), 0);
}
END_TEST

START_TEST(forbidden_port_is_told_to_a_plain_user)
{
    char *arguments[] = {NULL, "--listen", "127.0.0.1:1", NULL};
    FILE *file = fopen("/proc/sys/net/ipv4/ip_unprivileged_port_start", "r");
    int first = 0;

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%d", &first), 1);
    fclose(file);
    if (first <= 1) { /* here everybody may: then the port just works */
        printf("ports are free for all: nothing to refuse\n");
        return;
    }
    if (geteuid() == 0)
        ck_assert_int_eq(setuid(65534), 0);
    assert_refused("echo_server", arguments, "EACCES");
}
END_TEST

START_TEST(refused_connection_is_told)
{
    char *arguments[] = {NULL, "--connect", "127.0.0.1:1", NULL};
    struct program client;

    start(&client, "echo_client", arguments);
    ck_assert_int_eq(finish(&client), 2);
    ck_assert_ptr_nonnull(strstr(client.text, "ECONNREFUSED"));
}
END_TEST

static void end_by_signal(const char *name, char **arguments,
                          const char *started, int number, const char *last)
{
    struct program program;

    start(&program, name, arguments);
    ck_assert(read_until(&program, started));
    kill(program.pid, number);
    ck_assert_int_eq(finish(&program), 0);
    ck_assert_msg(strstr(program.text, last) != NULL, "%s printed: %s", name,
                  program.text);
}

START_TEST(sleep_demo_ends_by_signal)
{
    char *arguments[] = {NULL, NULL};

    end_by_signal("sleep_demo", arguments, "tick 1", SIGINT, "got signal 2");
    end_by_signal("sleep_demo", arguments, "tick 1", SIGTERM,
                  "the ticker was cancelled after");
}
END_TEST

START_TEST(sleep_demo_ends_by_its_limit)
{
    char *arguments[] = {NULL, NULL};
    struct program program;

    start(&program, "sleep_demo", arguments);
    ck_assert_int_eq(finish(&program), 0);
    ck_assert_ptr_nonnull(strstr(program.text, "no signal in 5 s"));
    ck_assert_ptr_nonnull(strstr(program.text, "tick 4"));
}
END_TEST

START_TEST(own_operation_counts_its_tasks)
{
    char *arguments[] = {NULL, NULL};
    struct program program;

    start(&program, "own_operation", arguments);
    ck_assert_int_eq(finish(&program), 0);
    ck_assert_ptr_nonnull(strstr(program.text, "before: 1 live tasks"));
    ck_assert_ptr_nonnull(strstr(program.text, "under way: 4 live tasks"));
    ck_assert_ptr_nonnull(strstr(program.text, "after: 1 live tasks"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("programs");
    TCase *tests = tcase_create("programs");

    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, server_and_client_agree_on_every_byte);
    tcase_add_test(tests, wrong_input_is_one_line_and_exit_code_2);
    tcase_add_test(tests, port_in_use_is_told);
    tcase_add_test(tests, forbidden_port_is_told_to_a_plain_user);
    tcase_add_test(tests, refused_connection_is_told);
    tcase_add_test(tests, sleep_demo_ends_by_signal);
    tcase_add_test(tests, sleep_demo_ends_by_its_limit);
    tcase_add_test(tests, own_operation_counts_its_tasks);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
