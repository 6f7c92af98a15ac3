/*
 * An operation the library does not have, made with coil/extend.h: writing a
 * file through to the disk, under a time limit.
 *
 *   own_operation [FILE]
 */
#include <coil.h>
#include <coil/extend.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void file_sync_prepare(coil_request *request, struct io_uring_sqe *sqe)
{
    io_uring_prep_fsync(sqe, (int)request->operation.extra[0], 0);
}

static const coil_operation_type file_sync_type = {
    .size = sizeof(coil_operation_type),
    .name = "fsync",
    .flags = COIL_OPERATION_SINGLE_SHOT,
    .prepare = file_sync_prepare,
};

/* fsync(2) as a value; limits work on it as on any other operation. */
static coil_operation file_sync_op(int descriptor)
{
    coil_operation operation = coil_operation_make(&file_sync_type);

    operation.extra[0] = (uint64_t)(unsigned)descriptor;
    return operation;
}

static void print_live(const char *when)
{
    coil_stats stats;

    coil_context_stats(coil_context_current(), &stats, sizeof(stats));
    printf("%s: %llu live tasks\n", when, (unsigned long long)stats.tasks_live);
}

static int sync_task(void *arg)
{
    int descriptor = *(int *)arg;
    ssize_t result = coil_timeout(file_sync_op(descriptor), COIL_S(5));

    printf("fsync: %s\n", coil_error_text((int)result));
    return (int)result;
}

static int main_task(void *arg)
{
    char text[] = "written through\n";
    int descriptor = *(int *)arg;
    int result;

    if (write(descriptor, text, sizeof(text) - 1) < 0)
        return -errno;
    print_live("before");
    for (int i = 0; i < 3; i++) {
        result = coil_spawn(NULL, sync_task, &descriptor, sizeof(descriptor));
        if (result < 0)
            return result;
    }
    print_live("under way");
    result = (int)coil_timeout(file_sync_op(-1), COIL_S(5));
    printf("fsync of no file: %s\n", coil_error_text(result));
    result = coil_sleep(COIL_MS(200));
    print_live("after");
    return result;
}

int main(int argc, char **argv)
{
    char name[] = "/tmp/own_operation.XXXXXX";
    int descriptor =
        argc > 1 ? open(argv[1], O_RDWR | O_CREAT, 0600) : mkstemp(name);
    int result;

    if (descriptor < 0) {
        perror(argc > 1 ? argv[1] : name);
        return 2;
    }
    if (argc == 1)
        unlink(name);
    result = coil_run(main_task, &descriptor, sizeof(descriptor));
    close(descriptor);
    if (result < 0)
        fprintf(stderr, "%s\n", coil_error_text(result));
    return result < 0 ? 2 : 0;
}
