/*
 * Workers that take their jobs from one channel. Closing it ends them.
 *
 *   worker_pool [--workers N] [--jobs N]
 */
#include "arguments.h"
#include <coil.h>

struct pool {
    coil_channel jobs;
    unsigned long sum, done;
};

static int worker_task(void *arg)
{
    struct pool *pool = arg;
    unsigned long job;
    int result;

    while ((result = coil_channel_receive(&pool->jobs, &job)) > 0) {
        result = coil_sleep(COIL_US(100)); /* stands for some I/O */
        if (result < 0)
            return result;
        pool->sum += job;
        pool->done++;
    }
    return result;
}

static int send_jobs(struct pool *pool, unsigned long count)
{
    int result = 0;

    for (unsigned long job = 1; result >= 0 && job <= count; job++)
        result = coil_channel_send(&pool->jobs, &job);
    coil_channel_close(&pool->jobs);
    return result;
}

static struct {
    unsigned long workers, jobs;
} settings = {4, 1000};

static int pool_task(void *arg)
{
    struct pool pool = {0};
    coil_group workers;
    int result = coil_channel_create(&pool.jobs, 16, sizeof(unsigned long));

    (void)arg;
    if (result < 0)
        return result;
    coil_group_begin(&workers, COIL_GROUP_ALL);
    for (unsigned long i = 0; result >= 0 && i < settings.workers; i++)
        result = coil_group_spawn(&workers, worker_task, &pool, 0);
    if (result >= 0)
        result = send_jobs(&pool, settings.jobs);
    else
        coil_group_cancel(&workers);
    coil_group_end(&workers, NULL);
    coil_channel_destroy(&pool.jobs);
    printf("%lu jobs done, sum %lu\n", pool.done, pool.sum);
    return result;
}

int main(int argc, char **argv)
{
    const struct argument arguments[] = {
        {.name = "--workers",
         .number = &settings.workers,
         .least = 1,
         .most = 10000},
        {.name = "--jobs", .number = &settings.jobs, .most = 1000000},
        {.name = NULL},
    };
    int result;

    (void)argc;
    if (!arguments_parse(arguments, argv))
        return 2;
    result = coil_run(pool_task, NULL, 0);
    if (result < 0)
        fprintf(stderr, "%s\n", coil_error_text(result));
    return result < 0 ? 2 : 0;
}
