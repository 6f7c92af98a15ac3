/*
 * Threads that carry out jobs for the director of the model test.
 */
#ifndef TESTS_MODEL_CREW_H
#define TESTS_MODEL_CREW_H

#include <check.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { CREW_MOST = 8, CREW_JOBS = 4096 };

struct job {
    void (*run)(void *);
    void *arg;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct job jobs[CREW_JOBS];
    unsigned first, count;
    bool over;
    pthread_t threads[CREW_MOST];
    unsigned size;
    _Atomic unsigned long given, done;
} crew = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .filled = PTHREAD_COND_INITIALIZER};

static void crew_run(struct job job)
{
    job.run(job.arg);
    atomic_fetch_add(&crew.done, 1);
}

static void *crew_main(void *arg)
{
    pthread_mutex_lock(&crew.lock);
    while (!crew.over) {
        struct job job;

        if (!crew.count) {
            pthread_cond_wait(&crew.filled, &crew.lock);
            continue;
        }
        job = crew.jobs[crew.first++ % CREW_JOBS];
        crew.count--;
        pthread_mutex_unlock(&crew.lock);
        crew_run(job);
        pthread_mutex_lock(&crew.lock);
    }
    pthread_mutex_unlock(&crew.lock);
    return arg;
}

static void crew_start(unsigned size)
{
    crew.size = size < CREW_MOST ? size : CREW_MOST;
    for (unsigned i = 0; i < crew.size; i++)
        ck_assert_int_eq(
            pthread_create(&crew.threads[i], NULL, crew_main, NULL), 0);
}

/* By one of the threads; without any, or room for the job, at once. */
static void crew_do(void (*run)(void *), void *arg)
{
    struct job job = {run, arg};
    bool room;

    atomic_fetch_add(&crew.given, 1);
    pthread_mutex_lock(&crew.lock);
    room = crew.size && crew.count < CREW_JOBS;
    if (room) {
        crew.jobs[(crew.first + crew.count++) % CREW_JOBS] = job;
        pthread_cond_signal(&crew.filled);
    }
    pthread_mutex_unlock(&crew.lock);
    if (!room)
        crew_run(job);
}

static bool crew_is_idle(void)
{
    return atomic_load(&crew.done) == atomic_load(&crew.given);
}

static void crew_end(void)
{
    pthread_mutex_lock(&crew.lock);
    crew.over = true;
    pthread_cond_broadcast(&crew.filled);
    pthread_mutex_unlock(&crew.lock);
    for (unsigned i = 0; i < crew.size; i++)
        pthread_join(crew.threads[i], NULL);
}

#endif
