/*
 * A group of tasks, one of which fails: that cancels the others, and the group
 * ends when every one of them has.
 *
 *   fan_out [--tasks N] [--failing INDEX]
 */
#include "arguments.h"
#include <coil.h>

struct part {
    unsigned long index, failing;
    unsigned *done, *cancelled;
};

static int part_task(void *arg)
{
    const struct part *part = arg;
    int result = coil_sleep(COIL_MS(10 * (part->index + 1)));

    if (result < 0)
        ++*part->cancelled;
    else
        ++*part->done;
    return result < 0 ? result : part->index == part->failing ? -EIO : 0;
}

struct work {
    unsigned long tasks, failing;
};

static int fan_out_task(void *arg)
{
    const struct work *work = arg;
    unsigned done = 0, cancelled = 0;
    coil_group group;
    size_t index;
    int result;

    coil_group_begin(&group, COIL_GROUP_ALL);
    for (unsigned long i = 0; i < work->tasks; i++) {
        struct part part = {i, work->failing, &done, &cancelled};

        result = coil_group_spawn(&group, part_task, &part, sizeof(part));
        if (result < 0)
            coil_group_cancel(&group);
    }
    result = coil_group_end(&group, &index);
    if (result < 0 && index != SIZE_MAX)
        printf("task %zu failed: %s\n", index, coil_error_text(result));
    printf("%u went to their end, %u were cancelled\n", done, cancelled);
    return 0;
}

int main(int argc, char **argv)
{
    struct work work = {.tasks = 10, .failing = 3};
    const struct argument arguments[] = {
        {.name = "--tasks", .number = &work.tasks, .least = 1, .most = 100000},
        {.name = "--failing", .number = &work.failing, .most = 1000000},
        {.name = NULL},
    };

    (void)argc;
    if (!arguments_parse(arguments, argv))
        return 2;
    return coil_run(fan_out_task, &work, sizeof(work)) < 0 ? 2 : 0;
}
