#include "core/task.h"
#include "base/message.h"
#include "core/request.h"
#include <coil/group.h>
#include <string.h>

static const char *task_name(const coil_task *task)
{
    return task->name ? task->name : "task";
}

/* ------------------------------------------------------------- deadlines */

static bool task_wait_is_due(const coil_context *context, const coil_task *task)
{
    return task->waiting && task->deadline <= context->timers.now;
}

/* A sleep whose time came before that of a scope is complete. Of limits the
 * outer one counts. */
static bool task_sleep_is_over(const coil_context *context,
                               const coil_task *task)
{
    return task_wait_is_due(context, task) &&
           task->waiting->phase == COIL__REQUEST_TIMER &&
           !task->waiting->operation.extra[1] &&
           task->deadline < coil__scope_first_deadline(task);
}

static void task_timer_expired(coil_context *context, struct coil__timer *timer)
{
    coil_task *task = COIL__CONTAINER(timer, coil_task, timer);
    coil_time next;

    if (task_sleep_is_over(context, task))
        coil__request_expire(context, task->waiting);
    next = coil__scope_expire(context, task, context->timers.now);
    if (task_wait_is_due(context, task))
        coil__request_expire(context, task->waiting);
    else if (task->waiting && task->deadline < next)
        next = task->deadline;
    if (next != COIL_FOREVER)
        coil__task_arm(context, task, next);
}

/* ---------------------------------------------------------------- the end */

void coil__task_report_failure(coil_context *context, const coil_task *task,
                               int result)
{
    if (result >= 0 || !context->options.on_task_failed)
        return;
    if (result == -ECANCELED && context->root.cancelled)
        return;
    context->options.on_task_failed(context, task_name(task), task->fn, result);
}

static void task_forget(coil_context *context, coil_task *task)
{
    coil__timer_cancel(&context->timers, &task->timer);
    if (task->unstamped)
        coil__timers_forget(&context->timers, task);
    coil__list_remove(&task->siblings);
    context->tasks_live--;
}

void coil__task_free(coil_context *context, coil_task *task)
{
    coil__stack_release(&context->stacks[task->stack_class], &task->stack);
}

/* Tells whoever wants to know. Returns who runs next, if that is certain. */
static struct coil__coroutine *task_deliver(coil_context *context,
                                            coil_task *task, int result)
{
    switch (task->kind) {
    case COIL__TASK_SPAWNED:
        coil__task_report_failure(context, task, result);
        break;
    case COIL__TASK_CHILD:
        coil__scope_close(context, &task->own);
        coil__group_child_ended(context, task, result);
        break;
    default:
        coil__scope_close(context, &task->own);
        return coil__task_hand_over(context, task, result);
    }
    coil__task_free(context, task);
    return NULL;
}

/* From here on nothing of the task is touched but its stack, which this
 * function still stands on: the next spawn may take it as soon as we have
 * switched away. */
static _Noreturn void task_end(coil_context *context, coil_task *task,
                               int result)
{
    struct coil__coroutine *next;

    task_forget(context, task);
    next = task_deliver(context, task, result);
    if (!next) {
        context->running = NULL;
        next = &context->loop;
        if (context->ready_first && context->budget) {
            context->budget--;
            next = &coil__task_take_ready(context)->coroutine;
        }
    }
    coil__coroutine_finish(&task->coroutine, next);
}

/* Where a task's waits belong before it has begun any scope. */
static coil_scope *task_base(coil_task *task)
{
    return task->kind == COIL__TASK_SPAWNED ? &task->context->root : &task->own;
}

/* A task returned with something open, which must not outlive its frames. */
static __attribute__((noinline)) void task_close_what_is_open(coil_task *task)
{
    coil_context *context = task->context;
    coil_scope *base = task_base(task);

    coil__note_unpoison(task->stack.low, (size_t)(task->top - task->stack.low));
    coil__message(COIL_MESSAGE_MISUSE,
                  "task \"%s\" (%p) returned with %s left open: ended for it",
                  task_name(task), (void *)task,
                  task->scope == base     ? "requests"
                  : task->scope->is_group ? "a group"
                                          : "a scope");
    while (task->scope != base) {
        coil_scope *scope = task->scope;

        coil__scope_cancel(context, scope);
        if (scope->is_group)
            coil__group_clean(COIL__CONTAINER(scope, coil_group, scope));
        else
            (void)coil__scope_finish(context, task, scope);
    }
    coil__scope_reap(context, task, base);
}

enum { TASK_CLOSING_STACK = 8192 };

/*
 * What the function has left open lies in frames that it has returned from,
 * just below this one, where the next call would overwrite it. So before any
 * call the stack pointer goes near the low end of the stack. A sanitizer would
 * make calls of its own: none here.
 */
__attribute__((noinline, no_sanitize("address"),
               no_sanitize("thread"))) static int
task_run(coil_task *task)
{
    int result = task->fn(task->arg);

    if (__builtin_expect(task->scope != (task->kind == COIL__TASK_SPAWNED
                                             ? &task->context->root
                                             : &task->own) ||
                             task->started.next != &task->started,
                         0)) {
        char *here = __builtin_frame_address(0);
        size_t gap =
            (size_t)(here - task->stack.low) - (size_t)TASK_CLOSING_STACK;
        volatile char *frames = __builtin_alloca(gap);

        frames[0] = 0;
        task_close_what_is_open(task);
    }
    return result;
}

static void task_main(void *argument)
{
    coil_task *task = argument;
    int result;

    coil__coroutine_arrive(&task->coroutine);
    result = task_run(task);
    task_end(task->context, task, result);
}

/* ----------------------------------------------------------------- making */

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

/* Moves the argument below the task object; the stack begins below that. */
static void task_take_argument(coil_task *task, const void *arg, size_t size)
{
    char *top = (char *)task - (size + 15) / 16 * 16;

    top -= (uintptr_t)top % 16;
    task->arg = (void *)(uintptr_t)arg;
    if (size)
        task->arg = memcpy(top, arg, size);
    task->top = top;
}

static void task_init(coil_context *context, coil_task *task)
{
    task->context = context;
    task->waiting = NULL;
    task->wait = NULL;
    task->refusals = 0;
    task->ready = false;
    task->deadline = COIL_FOREVER;
    task->timer.armed = false;
    task->timer.expire = task_timer_expired;
    task->unstamped = 0;
    task->unstamped_limit = -1;
    task->reaping = NULL;
    task->awaiting = NULL;
    task->kind = COIL__TASK_SPAWNED;
    coil__list_init(&task->started);
}

int coil__task_make(coil_context *context, const struct coil__task_plan *plan,
                    coil_task **ret_task)
{
    int class = task_stack_class(
        plan->stack_size ? plan->stack_size : context->options.stack_size);
    struct coil__stack_pool *pool;
    coil_task *task;

    if (class < 0)
        return -EINVAL;
    pool = task_stack_pool(context, class);
    if (plan->size > pool->size / 4)
        return -E2BIG;
    task = (coil_task *)(void *)coil__stack_acquire(pool);
    if (__builtin_expect(!task, 0))
        return -ENOMEM;
    coil__note_unpoison(task->stack.low,
                        (size_t)((char *)task - task->stack.low));
    task_init(context, task);
    task->stack_class = (unsigned char)class;
    task->fn = plan->fn;
    task->name = plan->name;
    task_take_argument(task, plan->arg, plan->size);
    *ret_task = task;
    return 0;
}

void coil__task_begin(coil_context *context, coil_task *task, coil_scope *scope)
{
    task->scope = scope;
    coil__coroutine_init(&task->coroutine, task->stack.low, task->top,
                         task_main, task);
    coil__list_append(&context->tasks, &task->siblings);
    context->tasks_live++;
    context->spawned++;
    task->since = context->turn_began;
}

int coil__task_read_options(struct coil__task_plan *plan,
                            const coil_task_options *options)
{
    coil_task_options known = {0};

    if (!options)
        return 0;
    if (options->size < sizeof(options->size))
        return -EINVAL;
    memcpy(&known, options,
           options->size < sizeof(known) ? options->size : sizeof(known));
    plan->name = known.name;
    plan->stack_size = known.stack_size;
    return 0;
}

static int task_spawn(coil_context *context, const struct coil__task_plan *plan)
{
    coil_task *task;
    int result;

    if (!context)
        context = coil__current;
    if (!context || !plan->fn)
        return -EINVAL;
    if (!coil__context_is_mine(context))
        return -EPERM;
    result = coil__task_make(context, plan, &task);
    if (result < 0)
        return result;
    coil__task_begin(context, task, &context->root);
    coil__task_make_ready(context, task);
    return 0;
}

int coil_spawn(coil_context *context, coil_task_fn *fn, const void *arg,
               size_t size)
{
    struct coil__task_plan plan = {.fn = fn, .arg = arg, .size = size};

    return task_spawn(context, &plan);
}

int coil_spawn_with(coil_context *context, const coil_task_options *options,
                    coil_task_fn *fn, const void *arg, size_t size)
{
    struct coil__task_plan plan = {.fn = fn, .arg = arg, .size = size};
    int result = coil__task_read_options(&plan, options);

    return result < 0 ? result : task_spawn(context, &plan);
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
    task->scope->refused = true;
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

/* A task that computes keeps the loop from seeing a deadline or a stop. */
static void task_look(coil_context *context, const coil_task *task)
{
    bool limited = false;

    coil__loop_honour_stop(context);
    for (const coil_scope *scope = task->scope; scope; scope = scope->parent)
        limited |= scope->deadline != COIL_FOREVER;
    if (!limited)
        return;
    coil__timers_stamp(context);
    coil__timers_expire(context);
}

int coil_check(void)
{
    coil_task *task = coil_task_current();

    if (!task)
        return -EPERM;
    if (!task->scope->cancelled)
        task_look(task->context, task);
    if (!task->scope->cancelled)
        return 0;
    task->scope->refused = true;
    return -ECANCELED;
}

coil_task *coil_task_current(void)
{
    return coil__current ? coil__current->running : NULL;
}

const char *coil_task_name(const coil_task *task)
{
    return task_name(task);
}

void coil__task_interrupt(coil_context *context, coil_task *task)
{
    if (task->wait)
        coil__wait_cancel(context, task->wait);
    else if (task->waiting)
        coil__request_interrupt(context, task->waiting, -ECANCELED);
}
