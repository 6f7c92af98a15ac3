#include "base/kernel.h"
#include <coil/context.h>
#include <coil/task.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

/*
 * coil_run: one context, one first task, and SIGINT and SIGTERM stop it.
 * Signal handlers rather than a signal set: they are not work that would keep
 * the run from ending, and stop may be called from them.
 */

enum { RUN_MOST = 64, RUN_SIGNALS = 2, RUN_ARGUMENT_MOST = 16 * 1024 };

static const int run_signals[RUN_SIGNALS] = {SIGINT, SIGTERM};

/* What the handlers stop. Contexts of several threads may run at once; a
 * handler that is reading a slot holds `run_readers`, and a slot's context is
 * only destroyed when no handler does. */
static _Atomic(coil_context *) run_contexts[RUN_MOST];
static atomic_int run_readers;

/* The dispositions before the first of the runs, given back by the last. */
static struct sigaction run_before[RUN_SIGNALS];
static unsigned run_users;
static pthread_mutex_t run_mutex = PTHREAD_MUTEX_INITIALIZER;

struct run_first {
    coil_task_fn *fn;
    const void *arg;
    size_t size;
    int *ret_result;
};

static void run_handle(int number)
{
    int error = errno;

    (void)number;
    atomic_fetch_add(&run_readers, 1);
    for (int i = 0; i < RUN_MOST; i++) {
        coil_context *context = atomic_load(&run_contexts[i]);

        if (context)
            coil_context_stop(context);
    }
    atomic_fetch_sub(&run_readers, 1);
    errno = error;
}

/* The task that fn runs in. It gives fn its own copy of the argument. */
static int run_first_task(void *arg)
{
    const struct run_first *first = arg;
    void *copy = (void *)(uintptr_t)first->arg;
    int result;

    if (first->size)
        copy = memcpy(__builtin_alloca_with_align(first->size, 128), first->arg,
                      first->size);
    result = first->fn(copy);
    if (result == -ECANCELED && coil_check() == -ECANCELED)
        result = 0;
    else if (result < 0)
        coil_context_stop(coil_context_current());
    *first->ret_result = result;
    return 0;
}

static int run_register(coil_context *context)
{
    for (int i = 0; i < RUN_MOST; i++) {
        coil_context *none = NULL;

        if (atomic_compare_exchange_strong(&run_contexts[i], &none, context))
            return i;
    }
    return -EBUSY;
}

static void run_unregister(int slot)
{
    atomic_store(&run_contexts[slot], NULL);
    while (atomic_load(&run_readers))
        sched_yield(); /* a handler on another thread: microseconds */
}

/* An ignored signal stays ignored: that is how a shell starts a background
 * job. */
static void run_take_signals(void)
{
    struct sigaction action;

    memset(&action, 0, sizeof(action));
    action.sa_handler = run_handle;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    pthread_mutex_lock(&run_mutex);
    for (int i = 0; i < RUN_SIGNALS && !run_users; i++) {
        sigaction(run_signals[i], NULL, &run_before[i]);
        if (run_before[i].sa_handler != SIG_IGN)
            sigaction(run_signals[i], &action, NULL);
    }
    run_users++;
    pthread_mutex_unlock(&run_mutex);
}

static void run_give_back_signals(void)
{
    pthread_mutex_lock(&run_mutex);
    run_users--;
    for (int i = 0; i < RUN_SIGNALS && !run_users; i++)
        sigaction(run_signals[i], &run_before[i], NULL);
    pthread_mutex_unlock(&run_mutex);
}

static int run_with_signals(coil_context *context)
{
    int slot = run_register(context);
    int result;

    if (slot < 0)
        return slot;
    run_take_signals();
    result = coil_context_run(context);
    run_give_back_signals();
    run_unregister(slot);
    return result;
}

int coil_run(coil_task_fn *fn, const void *arg, size_t size)
{
    int first_result = 0;
    struct run_first first = {fn, arg, size, &first_result};
    coil_context *context;
    int result;

    if (!fn)
        return -EINVAL;
    if (size > RUN_ARGUMENT_MOST)
        return -E2BIG;
    if (coil_context_current())
        return -EPERM;
    result = coil_context_create(&context, NULL, NULL);
    if (result < 0)
        return result;
    result = coil_spawn(context, run_first_task, &first, sizeof(first));
    if (result >= 0)
        result = run_with_signals(context);
    (void)coil_context_destroy(context);
    return result < 0 ? result : first_result;
}
