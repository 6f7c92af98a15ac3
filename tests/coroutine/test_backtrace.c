/*
 * Backtraces from inside a task end at its entry: in a task, in a profiling
 * signal that hits anywhere in a switch, and in gdb.
 */
#include "support/test.h"
#include <execinfo.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { FRAMES = 128, FEW = 24 };

static __attribute__((noinline)) int frames_here(void)
{
    void *frames[FRAMES];
    int count = backtrace(frames, FRAMES);

    __asm__ volatile("" ::: "memory");
    return count;
}

static __attribute__((noinline)) int frames_deeper(int depth)
{
    int count = depth ? frames_deeper(depth - 1) : frames_here();

    __asm__ volatile("" ::: "memory");
    return count;
}

static int tracing_task(void *arg)
{
    int *counts = arg;

    counts[0] = frames_deeper(0);
    coil_yield();
    counts[1] = frames_deeper(0);
    coil_sleep(COIL_MS(1));
    counts[2] = frames_deeper(3);
    return 0;
}

START_TEST(backtrace_in_a_task_ends_at_its_entry)
{
    int counts[3] = {0};

    ck_assert_int_eq(test_run(tracing_task, counts), 0);
    printf("frames: %d, after a yield %d, three calls deeper %d\n", counts[0],
           counts[1], counts[2]);
    ck_assert_int_ge(counts[0], 3);
    ck_assert_int_lt(counts[0], FEW);
    ck_assert_int_eq(counts[1], counts[0]);
    if (!TEST_SLOW) /* their frames may be inlined or doubled */
        ck_assert_int_eq(counts[2], counts[0] + 3);
}
END_TEST

static volatile unsigned samples, most_frames;

static void sample(int number)
{
    void *frames[FRAMES];
    int count = backtrace(frames, FRAMES);

    (void)number;
    samples++;
    if ((unsigned)count > most_frames)
        most_frames = (unsigned)count;
}

static int yielding_task(void *arg)
{
    coil_time end = coil_now() + COIL_MS(1000);

    (void)arg;
    for (unsigned i = 0; i % 1024 || coil_now() < end; i++)
        coil_yield();
    return 0;
}

static int profiled_task(void *arg)
{
    struct itimerval often = {{0, 1000}, {0, 1000}}, never = {0};

    (void)arg;
    signal(SIGPROF, sample);
    setitimer(ITIMER_PROF, &often, NULL);
    coil_spawn(NULL, yielding_task, NULL, 0);
    yielding_task(NULL);
    setitimer(ITIMER_PROF, &never, NULL);
    return 0;
}

START_TEST(backtrace_in_a_profiling_signal_ends)
{
    frames_here(); /* loads the unwinder outside the signal */
    ck_assert_int_eq(test_run(profiled_task, NULL), 0);
    printf("%u samples during switches, %u frames at most\n", samples,
           most_frames);
    ck_assert_uint_ge(samples, TEST_SLOW ? 1 : 50);
    ck_assert_uint_lt(most_frames, 64);
}
END_TEST

START_TEST(gdb_sees_the_end)
{
    char command[512], output[16384];
    size_t length;
    FILE *gdb;
    int status;

    snprintf(command, sizeof(command),
             "DEBUGINFOD_URLS= gdb -nx -batch -ex 'set breakpoint pending on' "
             "-ex 'break main_task' -ex run -ex bt --args "
             "%s/own_operation 2>&1",
             TEST_EXAMPLES);
    gdb = popen(command, "r");
    ck_assert_ptr_nonnull(gdb);
    length = fread(output, 1, sizeof(output) - 1, gdb);
    output[length] = '\0';
    status = pclose(gdb);
    ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "gdb: %s", output);
    ck_assert_msg(strstr(output, "machine_entry") != NULL, "gdb: %s", output);
    ck_assert_msg(!strstr(output, "corrupt") && !strstr(output, "identical"),
                  "gdb: %s", output);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("backtrace");
    TCase *tests = tcase_create("backtrace");

    tcase_set_timeout(tests, 40);
    tcase_add_test(tests, backtrace_in_a_task_ends_at_its_entry);
    tcase_add_test(tests, backtrace_in_a_profiling_signal_ends);
    tcase_add_test(tests, gdb_sees_the_end);
    suite_add_tcase(suite, tests);
    return test_main(suite);
}
