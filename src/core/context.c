#include "core/context.h"
#include "base/message.h"
#include "core/descriptor.h"
#include "core/task.h"
#include "coroutine/overflow.h"
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum {
    CONTEXT_SQ_DEFAULT = 1024,
    CONTEXT_CQ_DEFAULT = 4096,
    CONTEXT_SQ_LEAST = 4,
    CONTEXT_CQ_LEAST = 8,
    CONTEXT_STACK_DEFAULT = 64 * 1024
};

_Thread_local coil_context *coil__current
    __attribute__((tls_model("initial-exec")));

uint64_t coil__forks;

/* --------------------------------------------------------- once a process */

static void context_count_fork(void)
{
    coil__forks++;
    coil__current = NULL;
}

/* Names the running task if the fault is in the page below its stack. */
static bool context_describe_overflow(const void *address, char *ret_text,
                                      size_t capacity)
{
    const coil_task *task = coil_task_current();
    const char *guard;

    if (!task)
        return false;
    guard = task->stack.low - coil__page_size();
    if ((const char *)address < guard ||
        (const char *)address >= task->stack.low)
        return false;
    snprintf(ret_text, capacity,
             "stack overflow in task \"%s\" (%zu bytes of stack)",
             coil_task_name(task),
             task->context->stacks[task->stack_class].size);
    return true;
}

static void context_start_process(void)
{
    pthread_atfork(NULL, NULL, context_count_fork);
    coil__overflow_watch(context_describe_overflow);
}

/* ----------------------------------------------------------------- create */

static int context_refuse(coil_error *ret_error, int code, const char *text)
{
    if (ret_error) {
        ret_error->code = code;
        snprintf(ret_error->text, sizeof(ret_error->text), "%s", text);
    }
    return code;
}

static void context_fill_defaults(coil_context_options *options)
{
    if (!options->sq_entries)
        options->sq_entries = CONTEXT_SQ_DEFAULT;
    if (!options->cq_entries)
        options->cq_entries = options->sq_entries <= CONTEXT_CQ_DEFAULT / 4
                                  ? CONTEXT_CQ_DEFAULT
                                  : 4 * options->sq_entries;
    if (!options->stack_size)
        options->stack_size = CONTEXT_STACK_DEFAULT;
    if (!options->drain_limit)
        options->drain_limit = COIL_S(10);
}

static int context_take_options(coil_context *context,
                                const coil_context_options *options,
                                coil_error *ret_error)
{
    coil_context_options *own = &context->options;

    if (options) {
        if (options->size < sizeof(options->size))
            return context_refuse(ret_error, -EINVAL,
                                  "options.size is not set (EINVAL)");
        memcpy(own, options,
               options->size < sizeof(*own) ? options->size : sizeof(*own));
    }
    context_fill_defaults(own);
    if (own->sq_entries < CONTEXT_SQ_LEAST ||
        own->cq_entries < CONTEXT_CQ_LEAST || own->cq_entries < own->sq_entries)
        return context_refuse(ret_error, -EINVAL,
                              "a ring needs at least 4 submission and 8 "
                              "completion queue entries, and not fewer "
                              "completion than submission entries (EINVAL)");
    if (own->stack_size > (size_t)COIL__STACK_LEAST
                              << (COIL__STACK_CLASSES - 1))
        return context_refuse(ret_error, -EINVAL,
                              "the stack size is out of range (EINVAL)");
    return 0;
}

static void context_init(coil_context *context)
{
    context->fork = coil__forks;
    context->turn_began = coil__kernel_coarse_now();
    coil__timers_init(&context->timers);
    coil__scope_init_root(&context->root);
    coil__list_init(&context->backlog);
    coil__list_init(&context->cancels);
    coil__list_init(&context->tasks);
}

int coil_context_create(coil_context **ret_context,
                        const coil_context_options *options,
                        coil_error *ret_error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    coil_context *context = coil__kernel_allocate(sizeof(*context));
    int result;

    if (!context)
        return context_refuse(ret_error, -ENOMEM,
                              "no memory for a context (ENOMEM)");
    result = context_take_options(context, options, ret_error);
    if (result >= 0)
        result = coil__scheduler_open(&context->scheduler,
                                      context->options.sq_entries,
                                      context->options.cq_entries, ret_error);
    if (result < 0) {
        coil__kernel_free(context);
        return result;
    }
    pthread_once(&once, context_start_process);
    context_init(context);
    *ret_context = context;
    return 0;
}

/* -------------------------------------------------------------------- run */

/* The calling thread. Not pthread_self, which a later thread may share. */
static uint64_t context_thread(void)
{
    static _Atomic uint64_t last;
    static _Thread_local uint64_t own;

    if (!own)
        own = atomic_fetch_add(&last, 1) + 1;
    return own;
}

bool coil__context_is_mine(const coil_context *context)
{
    if (context == coil__current)
        return true;
    if (coil__context_is_foreign(context))
        return false;
    return !context->owned || context->thread == context_thread();
}

static int context_own(coil_context *context)
{
    int result;

    if (coil__current || !coil__context_is_mine(context))
        return -EPERM;
    result = coil__scheduler_enable(&context->scheduler);
    if (result < 0)
        return result;
    context->thread = context_thread();
    context->owned = true;
    return 0;
}

int coil_context_run(coil_context *context)
{
    void *stack;
    int result;

    if (coil__context_is_foreign(context))
        return -EPERM;
    /* Acquire and release hand what belongs to the thread from one caller
     * before the first run to the next. */
    if (atomic_exchange(&context->in_run, true))
        return -EBUSY;
    result = context_own(context);
    if (result >= 0) {
        stack = coil__overflow_enter_thread();
        coil__current = context;
        result = coil__loop_run(context);
        coil__current = NULL;
        coil__overflow_leave_thread(stack);
    }
    atomic_store(&context->in_run, false);
    return result;
}

void coil_context_stop(coil_context *context)
{
    if (coil__context_is_foreign(context))
        return;
    /* Release pairs with the acquire in the loop. The descriptor is written
     * without asking whether the loop sleeps: under a debugger or Valgrind a
     * signal need not interrupt its wait. */
    atomic_store_explicit(&context->stop, true, memory_order_release);
    coil__scheduler_wake(&context->scheduler);
}

void coil_context_add_work(coil_context *context)
{
    atomic_fetch_add_explicit(&context->held, 1, memory_order_relaxed);
}

void coil_context_drop_work(coil_context *context)
{
    if (atomic_fetch_sub_explicit(&context->held, 1, memory_order_release) == 1)
        coil__context_nudge(context);
}

/* ---------------------------------------------------------------- destroy */

static int context_drain(coil_context *context)
{
    if (!context->tasks_live && coil__posts_are_empty(&context->posts))
        return 0;
    /* A refusal changes nothing, so it must come before the stop. */
    if (coil__current || !coil__context_is_mine(context))
        return -EPERM;
    coil_context_stop(context);
    return coil_context_run(context);
}

static void context_free(coil_context *context)
{
    if (context->kept && !coil__context_is_foreign(context))
        coil__message(COIL_MESSAGE_LEAK,
                      "%zu tasks were created but neither awaited nor "
                      "destroyed",
                      context->kept);
    /* A child that a task has forked stands on one of the stacks. */
    for (int i = 0; i < COIL__STACK_CLASSES; i++)
        if (!coil__context_is_foreign(context))
            coil__stack_pool_destroy(&context->stacks[i]);
    coil__kernel_free(context);
}

int coil_context_destroy(coil_context *context)
{
    int result;

    if (!context)
        return 0;
    if (coil__context_is_foreign(context)) {
        coil__scheduler_close(&context->scheduler);
        context_free(context);
        return 0;
    }
    if (atomic_load(&context->in_run))
        return context == coil__current ? -EPERM : -EBUSY;
    result = context_drain(context);
    if (result == -EPERM || result == -EBUSY)
        return result;
    coil__scheduler_close(&context->scheduler);
    coil__descriptor_disown(context);
    if (context->tasks_live) {
        /* The kernel may still write to their stacks. */
        coil__message(COIL_MESSAGE_LEAK,
                      "the ring failed (%s) with %zu tasks alive: their "
                      "memory is given up",
                      coil_error_name(result), context->tasks_live);
        return result;
    }
    context_free(context);
    return result;
}

/* ------------------------------------------------------------------- look */

coil_context *coil_context_current(void)
{
    return coil__current;
}

void coil_context_stats(const coil_context *context, coil_stats *ret_stats,
                        size_t size)
{
    coil_stats stats = {
        .sqes = context->scheduler.sqes,
        .cqes = context->scheduler.cqes,
        .enters = context->scheduler.enters,
        .in_flight = coil__scheduler_in_flight(&context->scheduler),
        .tasks_spawned = context->spawned,
        .tasks_live = context->tasks_live,
        .turns = context->turns,
        .posts = context->posts_run,
        .timers_armed = context->timers.armed,
        .refused_waits = context->refused,
    };

    for (int i = 0; i < COIL__STACK_CLASSES; i++)
        stats.stacks += context->stacks[i].carved;
    memcpy(ret_stats, &stats, size < sizeof(stats) ? size : sizeof(stats));
}

int coil_context_ring_fd(const coil_context *context)
{
    return context->scheduler.ring.ring_fd;
}
