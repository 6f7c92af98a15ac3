/*
 * A task that overruns its stack meets the guard page, the message names it,
 * and the process dies of the signal. Other faults take their normal course.
 */
#include "support/test.h"
#include <alloca.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

struct outcome {
    int status;
    char text[4096];
};

static int to_parent;

static void send_message(coil_message_kind kind, const char *text)
{
    (void)kind;
    if (write(to_parent, text, strlen(text)) < 0)
        _exit(99);
}

static void own_handler(int number)
{
    (void)number;
    send_message(COIL_MESSAGE_OVERFLOW, "own handler called");
    _exit(42);
}

/* Runs the task in a child that is expected to die. */
static struct outcome die(coil_task_fn *fn, bool with_own_handler)
{
    struct outcome outcome = {0};
    size_t length = 0;
    int ends[2];
    pid_t child;
    ssize_t n;

    ck_assert_int_eq(pipe(ends), 0);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        coil_task_options options = {.size = sizeof(options),
                                     .name = "the culprit"};
        struct rlimit none = {0, 0};
        coil_context *context;

        setrlimit(RLIMIT_CORE, &none);
        to_parent = ends[1];
        if (with_own_handler)
            signal(SIGSEGV, own_handler);
        coil_set_message_handler(send_message);
        if (coil_context_create(&context, NULL, NULL) < 0 ||
            coil_spawn_with(context, &options, fn, NULL, 0) < 0)
            _exit(98);
        coil_context_run(context);
        _exit(97);
    }
    close(ends[1]);
    while ((n = read(ends[0], outcome.text + length,
                     sizeof(outcome.text) - 1 - length)) > 0)
        length += (size_t)n;
    close(ends[0]);
    ck_assert_int_eq(waitpid(child, &outcome.status, 0), child);
    return outcome;
}

/* The sanitizers turn the signal into an exit code of their own. */
static void assert_died_of_fault(const struct outcome *outcome)
{
    if (WIFSIGNALED(outcome->status))
        ck_assert_int_eq(WTERMSIG(outcome->status), SIGSEGV);
    else
        ck_assert_msg(TEST_SLOW && WEXITSTATUS(outcome->status) > 0 &&
                          WEXITSTATUS(outcome->status) < 97,
                      "status %#x: %s", (unsigned)outcome->status,
                      outcome->text);
}

static volatile int depth_reached;

static __attribute__((noinline)) int recurse(int depth)
{
    volatile char frame[512];

    frame[0] = (char)depth;
    depth_reached = depth;
    return depth < 1 << 30 ? recurse(depth + 1) + frame[0] : 0;
}

static int recursing_task(void *arg)
{
    (void)arg;
    return recurse(0);
}

static int alloca_task(void *arg)
{
    volatile char *memory = alloca(1 << 20);

    (void)arg;
    __asm__ volatile("" ::"r"(memory) : "memory"); /* all of it is used */
    memory[0] = 1;
    return memory[0];
}

static int null_task(void *arg)
{
    /* Not NULL itself, which UBSan would catch first. */
    volatile int *nothing = (int *)((uintptr_t)arg + 64);

    *nothing = 1;
    return 0;
}

START_TEST(deep_recursion_names_the_task)
{
    struct outcome outcome = die(recursing_task, false);

    ck_assert_msg(
        strstr(outcome.text, "stack overflow in task \"the culprit\"") != NULL,
        "it said: %s", outcome.text);
    assert_died_of_fault(&outcome);
}
END_TEST

START_TEST(large_alloca_names_the_task)
{
    struct outcome outcome = die(alloca_task, false);

    ck_assert_msg(
        strstr(outcome.text, "stack overflow in task \"the culprit\"") != NULL,
        "it said: %s", outcome.text);
    assert_died_of_fault(&outcome);
}
END_TEST

START_TEST(other_fault_takes_its_course)
{
    struct outcome outcome = die(null_task, false);

    ck_assert_str_eq(outcome.text, "");
    assert_died_of_fault(&outcome);
}
END_TEST

START_TEST(other_fault_goes_to_the_handler_before)
{
    struct outcome outcome = die(null_task, true);

    ck_assert_str_eq(outcome.text, "own handler called");
    ck_assert(WIFEXITED(outcome.status));
    ck_assert_int_eq(WEXITSTATUS(outcome.status), 42);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("overflow");
    TCase *tests = tcase_create("overflow");

    tcase_set_timeout(tests, 30);
    tcase_add_test(tests, deep_recursion_names_the_task);
    tcase_add_test(tests, large_alloca_names_the_task);
    tcase_add_test(tests, other_fault_takes_its_course);
    tcase_add_test(tests, other_fault_goes_to_the_handler_before);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
