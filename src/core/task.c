#include "core/task.h"
#include "base/message.h"
#include "core/request.h"
#include <string.h>

static const char *task_name(const coil_task *task)
{
    return task->name ? task->name : "task";
}

/* ------------------------------------------------------------- deadlines */

static void task_timer_expired(coil_context *context, struct coil__timer *timer)
{
    coil_task *task = COIL__CONTAINER(timer, coil_task, timer);

    if (!task->waiting || task->deadline == COIL_FOREVER)
        return;
    if (task->deadline > context->timers.now)
        coil__timer_arm(&context->timers, timer, task->deadline);
    else
        coil__request_expire(context, task->waiting);
}

/* --------------------------------------------------------- first and last */

static void task_report_failure(coil_context *context, const coil_task *task,
                                int result)
{
    if (result >= 0 || !context->options.on_task_failed)
        return;
    if (result == -ECANCELED && context->root.cancelled)
        return;
    context->options.on_task_failed(context, task_name(task), task->fn, result);
}

/* From here on nothing of the task is touched but its stack, which this
 * function still stands on: the next spawn may take it as soon as we have
 * switched away. */
static _Noreturn void task_end(coil_context *context, coil_task *task)
{
    struct coil__coroutine *next = &context->loop;

    coil__timer_cancel(&context->timers, &task->timer);
    if (task->unstamped)
        coil__timers_forget(&context->timers, task);
    coil__list_remove(&task->siblings);
    context->tasks_live--;
    coil__stack_release(&context->stacks[task->stack_class], &task->stack);
    context->running = NULL;
    if (context->ready_first && context->budget) {
        context->budget--;
        next = &coil__task_take_ready(context)->coroutine;
    }
    coil__coroutine_finish(&task->coroutine, next);
}

static void task_main(void *argument)
{
    coil_task *task = argument;
    int result;

    coil__coroutine_arrive(&task->coroutine);
    result = task->fn(task->arg);
    task_report_failure(task->context, task, result);
    task_end(task->context, task);
}

/* ------------------------------------------------------------------ spawn */

/* The class of the smallest stack that has `size` bytes, or -1. */
static int task_stack_class(size_t size)
{
    size_t least =
        COIL__INSTRUMENTED ? 16 * COIL__STACK_LEAST : COIL__STACK_LEAST;

    if (size < least)
        size = least;
    for (int class = 0; class < COIL__STACK_CLASSES; class ++)
        if ((size_t)COIL__STACK_LEAST << class >= size)
            return class;
    return -1;
}

static struct coil__stack_pool *task_stack_pool(coil_context *context,
                                                int class)
{
    struct coil__stack_pool *pool = &context->stacks[class];

    if (__builtin_expect(!pool->size, 0))
        coil__stack_pool_init(pool, (size_t)COIL__STACK_LEAST << class,
                              sizeof(coil_task));
    return pool;
}

/* Moves the argument below the task object; returns where the stack begins. */
static char *task_take_argument(coil_task *task, const void *arg, size_t size)
{
    char *top = (char *)task - (size + 15) / 16 * 16;

    top -= (uintptr_t)top % 16;
    task->arg = (void *)(uintptr_t)arg;
    if (size)
        task->arg = memcpy(top, arg, size);
    return top;
}

static void task_init(coil_context *context, coil_task *task)
{
    task->context = context;
    task->scope = &context->root;
    task->waiting = NULL;
    task->refusals = 0;
    task->ready = false;
    task->deadline = COIL_FOREVER;
    task->timer.armed = false;
    task->timer.expire = task_timer_expired;
    task->unstamped = false;
    coil__list_append(&context->tasks, &task->siblings);
}

static int task_spawn(coil_context *context, const char *name,
                      size_t stack_size, coil_task_fn *fn, const void *arg,
                      size_t size)
{
    int class = task_stack_class(stack_size);
    struct coil__stack_pool *pool;
    coil_task *task;
    char *top;

    if (class < 0)
        return -EINVAL;
    pool = task_stack_pool(context, class);
    if (size > pool->size / 4)
        return -E2BIG;
    task = (coil_task *)(void *)coil__stack_acquire(pool);
    if (__builtin_expect(!task, 0))
        return -ENOMEM;
    coil__note_unpoison(task->stack.low,
                        (size_t)((char *)task - task->stack.low));
    task_init(context, task);
    task->stack_class = (unsigned char)class;
    task->fn = fn;
    task->name = name;
    top = task_take_argument(task, arg, size);
    coil__coroutine_init(&task->coroutine, task->stack.low, top, task_main,
                         task);
    context->tasks_live++;
    context->spawned++;
    coil__task_make_ready(context, task);
    return 0;
}

static int task_check_spawn(const coil_context *context, coil_task_fn *fn)
{
    if (!context || !fn)
        return -EINVAL;
    return coil__context_is_mine(context) ? 0 : -EPERM;
}

int coil_spawn(coil_context *context, coil_task_fn *fn, const void *arg,
               size_t size)
{
    int result;

    if (!context)
        context = coil__current;
    result = task_check_spawn(context, fn);
    if (result < 0)
        return result;
    return task_spawn(context, NULL, context->options.stack_size, fn, arg,
                      size);
}

int coil_spawn_with(coil_context *context, const coil_task_options *options,
                    coil_task_fn *fn, const void *arg, size_t size)
{
    coil_task_options known = {0};
    int result;

    if (!context)
        context = coil__current;
    result = task_check_spawn(context, fn);
    if (result < 0)
        return result;
    if (options) {
        if (options->size < sizeof(options->size))
            return -EINVAL;
        memcpy(&known, options,
               options->size < sizeof(known) ? options->size : sizeof(known));
    }
    if (!known.stack_size)
        known.stack_size = context->options.stack_size;
    return task_spawn(context, known.name, known.stack_size, fn, arg, size);
}

/* ------------------------------------------------------------------ waits */

void coil__task_pass(coil_context *context, coil_task *task)
{
    coil__task_make_ready(context, task);
    coil__task_suspend(context, task);
}

int coil__task_refuse(coil_context *context, coil_task *task)
{
    context->refused++;
    if (++task->refusals == COIL__REFUSALS_REPORTED)
        coil__message(COIL_MESSAGE_STALL,
                      "task \"%s\" (%p) goes on waiting although it is "
                      "cancelled: %u waits in a row were refused",
                      task_name(task), (void *)task, task->refusals);
    coil__task_pass(context, task);
    return -ECANCELED;
}

int coil_yield(void)
{
    coil_task *task = coil_task_current();

    if (!task)
        return -EPERM;
    if (task->scope->cancelled)
        return coil__task_refuse(task->context, task);
    coil__task_pass(task->context, task);
    return 0;
}

int coil_check(void)
{
    coil_task *task = coil_task_current();

    if (!task)
        return -EPERM;
    return task->scope->cancelled ? -ECANCELED : 0;
}

coil_task *coil_task_current(void)
{
    return coil__current ? coil__current->running : NULL;
}

const char *coil_task_name(const coil_task *task)
{
    return task_name(task);
}

/* ------------------------------------------------------------ all of them */

void coil__task_cancel_all(coil_context *context)
{
    struct coil__list *node;

    for (node = context->tasks.next; node != &context->tasks;
         node = node->next) {
        coil_task *task = COIL__CONTAINER(node, coil_task, siblings);

        if (task->waiting && task->scope->cancelled)
            coil__request_interrupt(context, task->waiting, -ECANCELED);
    }
}

static const char *task_awaited(const coil_task *task)
{
    if (task->waiting)
        return task->waiting->operation.type->name;
    return task->ready ? "in a loop" : "a close";
}

void coil__task_list_alive(const coil_context *context)
{
    const struct coil__list *node;
    unsigned listed = 0;

    for (node = context->tasks.next; node != &context->tasks;
         node = node->next) {
        const coil_task *task = COIL__CONTAINER(node, coil_task, siblings);

        if (++listed > 100) {
            coil__message(COIL_MESSAGE_STALL, "and %zu more tasks",
                          context->tasks_live - listed + 1);
            return;
        }
        coil__message(
            COIL_MESSAGE_STALL, "task \"%s\" (%p) is still alive: %s %s",
            task_name(task), (const void *)task,
            task->ready ? "ready," : "waiting for", task_awaited(task));
    }
}
