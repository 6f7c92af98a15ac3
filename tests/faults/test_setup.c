/*
 * Making a context where it is forbidden, unknown or too expensive: a distinct
 * error with advice each time, nothing left behind; and spawning without
 * memory.
 */
#include "base/seam.h"
#include "core/context.h"
#include "support/test.h"
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void plan(enum coil__call call, int error, uint64_t at, uint64_t times)
{
    coil__seam = (struct coil__seam){.fail_call = call,
                                     .fail_error = error,
                                     .fail_at = at,
                                     .fail_repeat = times - 1};
}

static void plan_nothing(void)
{
    coil__seam = (struct coil__seam){.fail_call = COIL__CALL_COUNT};
}

/* Bytes of the heap in use. Sanitizers have allocators of their own, and a
 * leak checker. */
static size_t heap_bytes(void)
{
    return TEST_SLOW ? 0 : mallinfo2().uordblks;
}

static int count_task(void *arg)
{
    assert_result(coil_sleep(COIL_US(10)), 0);
    ++*(int *)arg;
    return 0;
}

/* Runs a task on it and destroys it: 0 or a negative errno. */
static int try_out(coil_context *context)
{
    int count = 0;
    int result = coil_spawn(context, count_task, &count, 0);

    if (result >= 0)
        result = coil_context_run(context);
    if (result >= 0)
        result = coil_context_destroy(context);
    return result < 0 ? result : count == 1 ? 0 : -ENODATA;
}

/* ------------------------------------------------- errors through the seam */

static const struct {
    int error;
    const char *words[2];
} refusals[] = {
    {-EPERM, {"sysctl", "seccomp"}},
    {-ENOSYS, {"no io_uring", "6.1"}},
    {-EINVAL, {"too old", "6.1"}},
    {-ENOMEM, {"locked memory", "ulimit -l"}},
    {-EMFILE, {"open files", "ulimit -n"}},
    {-EIO, {"could not be set up", "EIO"}},
};
enum { REFUSALS = sizeof(refusals) / sizeof(refusals[0]) };

START_TEST(refused_ring_is_explained_and_leaves_nothing_behind)
{
    size_t descriptors = test_descriptors(), heap = 0;
    char texts[REFUSALS][sizeof(((coil_error *)0)->text)];

    for (int attempt = 0; attempt <= 64; attempt++) {
        for (int i = 0; i < REFUSALS; i++) {
            coil_context *context = NULL;
            coil_error error = {0};

            plan(COIL__CALL_RING_OPEN, refusals[i].error, 1, 1000);
            assert_result(coil_context_create(&context, NULL, &error),
                          refusals[i].error);
            assert_result(coil_context_create(&context, NULL, NULL),
                          refusals[i].error);
            ck_assert_ptr_null(context);
            assert_result(error.code, refusals[i].error);
            for (int j = 0; j < 2; j++)
                ck_assert_msg(strstr(error.text, refusals[i].words[j]) != NULL,
                              "not in \"%s\": %s", error.text,
                              refusals[i].words[j]);
            snprintf(texts[i], sizeof(texts[i]), "%s", error.text);
        }
        if (!attempt)
            heap = heap_bytes();
    }
    ck_assert_uint_eq(test_descriptors(), descriptors);
    ck_assert_uint_eq(heap_bytes(), heap);
    for (int i = 0; i < REFUSALS; i++)
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(texts[i], texts[j]);
    plan_nothing();
}
END_TEST

START_TEST(ring_without_memory_settles_for_a_smaller_queue)
{
    coil_context_options options = {
        .size = sizeof(options), .sq_entries = 1024, .cq_entries = 4096};
    coil_context *context;

    for (unsigned times = 1; times <= 9; times++) {
        const struct io_uring *ring;

        plan(COIL__CALL_RING_OPEN, -ENOMEM, 1, times);
        assert_result(coil_context_create(&context, &options, NULL), 0);
        ck_assert_uint_eq(coil__seam.calls_of[COIL__CALL_RING_OPEN], times + 1);
        ring = &context->scheduler.ring;
        ck_assert_uint_eq(ring->cq.ring_entries, 4096U >> times);
        ck_assert_uint_le(ring->sq.ring_entries, 2048U >> times);
        ck_assert_uint_ge(ring->sq.ring_entries, 4);
        assert_result(try_out(context), 0);
    }
    plan(COIL__CALL_RING_OPEN, -ENOMEM, 1, 10);
    assert_result(coil_context_create(&context, &options, NULL), -ENOMEM);
    plan_nothing();
}
END_TEST

START_TEST(context_without_wake_up_descriptor_closes_the_ring)
{
    size_t descriptors = test_descriptors(), heap = 0;

    for (int attempt = 0; attempt <= 64; attempt++) {
        coil_context *context = NULL;
        coil_error error = {0};

        plan(COIL__CALL_EVENTFD, -EMFILE, 1, 1);
        assert_result(coil_context_create(&context, NULL, &error), -EMFILE);
        ck_assert_uint_eq(coil__seam.calls, 1);
        ck_assert_ptr_null(context);
        ck_assert_ptr_nonnull(strstr(error.text, "ulimit -n"));
        if (!attempt)
            heap = heap_bytes();
    }
    ck_assert_uint_eq(test_descriptors(), descriptors);
    ck_assert_uint_eq(heap_bytes(), heap);
    plan_nothing();
}
END_TEST

START_TEST(context_without_memory_for_itself_is_refused)
{
    coil_context *context = NULL;
    coil_error error = {0};

    plan(COIL__CALL_ALLOCATE, -ENOMEM, 1, 1);
    assert_result(coil_context_create(&context, NULL, &error), -ENOMEM);
    ck_assert_ptr_null(context);
    assert_result(error.code, -ENOMEM);
    ck_assert_ptr_nonnull(strstr(error.text, "memory"));
    plan_nothing();
    assert_result(coil_context_create(&context, NULL, &error), 0);
    assert_result(try_out(context), 0);
}
END_TEST

/* The ring is there and the kernel will not have it run. */
START_TEST(ring_that_cannot_be_enabled_fails_the_run_and_heals)
{
    coil_context *context = test_context();
    int count = 0;

    assert_result(coil_spawn(context, count_task, &count, 0), 0);
    plan(COIL__CALL_RING_ENABLE, -EIO, 1, 1);
    assert_result(coil_context_run(context), -EIO);
    ck_assert_int_eq(count, 0);
    plan(COIL__CALL_RING_REGISTER, -EINVAL, 1, 1); /* works without */
    assert_result(coil_context_run(context), 0);
    ck_assert_int_eq(count, 1);
    plan_nothing();
    test_context_end(context);
}
END_TEST

/* -------------------------------------------------- refusals of the kernel */

struct answer {
    int result;       /* of coil_context_create, then of trying it out */
    unsigned entries; /* of the completion queue */
    coil_error error;
};

static void make_and_try(struct answer *ret_answer)
{
    coil_context *context = NULL;

    ret_answer->result =
        coil_context_create(&context, NULL, &ret_answer->error);
    if (ret_answer->result < 0)
        return;
    ret_answer->entries = context->scheduler.ring.cq.ring_entries;
    ret_answer->result = try_out(context);
}

/* Answers from a child that `prepare` has restricted; the test process itself
 * stays as it is. */
static struct answer ask_child(int (*prepare)(long), long argument)
{
    struct answer *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct answer answer;
    int status = -1;
    pid_t child;

    ck_assert(shared != MAP_FAILED);
    shared->result = -ENODATA;
    fflush(stdout);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (!child) {
        int result = prepare(argument);

        if (result < 0)
            shared->result = -ENOTRECOVERABLE;
        else
            make_and_try(shared);
        syscall(__NR_exit_group, 0); /* the sanitizers would want descriptors */
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status),
                  "the child ended with status %x", (unsigned)status);
    answer = *shared;
    munmap(shared, sizeof(*shared));
    return answer;
}

/* io_uring_setup fails with this errno from now on, for good. */
static int forbid_setup(long error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1),
        BPF_STMT(BPF_RET | BPF_K,
                 SECCOMP_RET_ERRNO | ((unsigned)error & SECCOMP_RET_DATA)),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
        return -errno;
    return 0;
}

START_TEST(seccomp_profile_is_named_as_the_reason)
{
    struct answer answer = ask_child(forbid_setup, EPERM);

    printf("seccomp: %s\n", answer.error.text);
    assert_result(answer.result, -EPERM);
    assert_result(answer.error.code, -EPERM);
    ck_assert_ptr_nonnull(strstr(answer.error.text, "seccomp"));
    ck_assert_ptr_nonnull(strstr(answer.error.text, "sysctl"));
    answer = ask_child(forbid_setup, ENOSYS);
    printf("seccomp: %s\n", answer.error.text);
    assert_result(answer.result, -ENOSYS);
    assert_result(answer.error.code, -ENOSYS);
    ck_assert_ptr_nonnull(strstr(answer.error.text, "6.1"));
}
END_TEST

/* A user of this child's own, so that no one else's rings count. */
static int lock_little(long bytes)
{
    struct rlimit limit = {(rlim_t)bytes, (rlim_t)bytes};
    uid_t user = 1000000 + (uid_t)getpid();

    if (setrlimit(RLIMIT_MEMLOCK, &limit) < 0)
        return -errno;
    if (setresuid(user, user, user) < 0 && setresuid(65534, 65534, 65534) < 0)
        return -errno;
    return 0;
}

/* Whether rings count against the limit depends on the kernel. */
START_TEST(little_locked_memory_gives_a_smaller_ring_or_advice)
{
    static const long bytes[] = {8 << 20, 64 << 10, 16 << 10, 0};

    if (geteuid())
        ck_abort_msg("the test must start as root to become nobody");
    for (int i = 0; i < 4; i++) {
        struct answer answer = ask_child(lock_little, bytes[i]);

        printf("%ld bytes: %s, %u entries %s\n", bytes[i],
               coil_error_name(answer.result), answer.entries,
               answer.error.text);
        if (answer.result < 0) {
            assert_result(answer.result, -ENOMEM);
            assert_result(answer.error.code, -ENOMEM);
            ck_assert_ptr_nonnull(strstr(answer.error.text, "locked memory"));
        } else {
            ck_assert_uint_ge(answer.entries, 8);
        }
    }
}
END_TEST

/* `spare` descriptors more than are open now. */
static int limit_descriptors(long spare)
{
    int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct rlimit limit = {(rlim_t)(next + spare), (rlim_t)(next + spare)};

    close(next);
    return setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -errno : 0;
}

START_TEST(missing_descriptors_are_named_as_the_reason)
{
    for (long spare = 0; spare <= 2; spare++) {
        struct answer answer = ask_child(limit_descriptors, spare);

        assert_result(answer.result, spare < 2 ? -EMFILE : 0);
        if (spare < 2)
            ck_assert_ptr_nonnull(strstr(answer.error.text, "ulimit -n"));
    }
}
END_TEST

/* ---------------------------------------------------- spawn without memory */

static int ended[200], ended_count;

static int sleeping_task(void *arg)
{
    assert_result(coil_sleep(COIL_MS(1)), 0);
    ck_assert_int_lt(ended_count, 200);
    ended[ended_count++] = (int)(intptr_t)arg;
    return 0;
}

/* Spawns while no memory can be had, until it is refused; then the others and
 * those spawned afterwards end as usual. */
static int spawn_until_refused(void *arg)
{
    static const enum coil__call calls[] = {COIL__CALL_MAP, COIL__CALL_ALLOCATE,
                                            COIL__CALL_ADVISE};
    int spawned = 0, result;

    plan(calls[*(int *)arg], -ENOMEM, 1, 1000000);
    do
        result = coil_spawn(NULL, sleeping_task, (void *)(intptr_t)spawned, 0);
    while (result >= 0 && ++spawned < 100);
    assert_result(result, -ENOMEM);
    ck_assert_uint_gt(coil__seam.calls, 0);
    assert_result(coil_sleep(COIL_MS(5)), 0);
    plan_nothing();
    for (int i = 0; i < 20; i++, spawned++)
        assert_result(
            coil_spawn(NULL, sleeping_task, (void *)(intptr_t)spawned, 0), 0);
    while (ended_count < spawned)
        assert_result(coil_yield(), 0);
    for (int i = 0; i < spawned; i++)
        ck_assert_int_eq(ended[i], i);
    printf("memory refused to call %d: %d tasks, all ended\n",
           (int)calls[*(int *)arg], spawned);
    return 0;
}

START_TEST(spawn_without_memory_fails_and_the_others_go_on)
{
    assert_result(test_run(spawn_until_refused, &_i), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("setup");
    TCase *seam = tcase_create("seam"), *kernel = tcase_create("kernel");

    suite_add_tcase(suite, seam);
    suite_add_tcase(suite, kernel);
    tcase_set_timeout(seam, 30);
    tcase_set_timeout(kernel, 30);
    tcase_add_test(seam, refused_ring_is_explained_and_leaves_nothing_behind);
    tcase_add_test(seam, ring_without_memory_settles_for_a_smaller_queue);
    tcase_add_test(seam, context_without_wake_up_descriptor_closes_the_ring);
    tcase_add_test(seam, context_without_memory_for_itself_is_refused);
    tcase_add_test(seam, ring_that_cannot_be_enabled_fails_the_run_and_heals);
    /* Instrumented builds make guards by mprotect and need no advice. */
    tcase_add_loop_test(seam, spawn_without_memory_fails_and_the_others_go_on,
                        0, TEST_SLOW ? 2 : 3);
    tcase_add_test(kernel, seccomp_profile_is_named_as_the_reason);
    tcase_add_test(kernel, little_locked_memory_gives_a_smaller_ring_or_advice);
    tcase_add_test(kernel, missing_descriptors_are_named_as_the_reason);
    return test_main(suite);
}
