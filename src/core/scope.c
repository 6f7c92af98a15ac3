#include "core/scope.h"
#include "base/kernel.h"
#include "base/message.h"
#include "core/request.h"
#include "core/task.h"

/* --------------------------------------------------------------- the tree */

void coil__scope_init_root(coil_scope *root)
{
    *root = (coil_scope){.deadline = COIL_FOREVER};
    coil__list_init(&root->siblings);
    coil__list_init(&root->children);
}

void coil__scope_open(coil_scope *scope, coil_scope *parent, coil_task *task)
{
    scope->parent = parent;
    scope->task = task;
    coil__list_init(&scope->children);
    coil__list_append(&parent->children, &scope->siblings);
    scope->deadline = COIL_FOREVER;
    scope->cancelled = parent->cancelled;
    scope->timed_out = false;
    scope->refused = false;
    scope->shield = false;
    scope->unstamped = true;
    scope->is_group = false;
    scope->fresh = false;
    scope->binding.source = NULL;
}

void coil__scope_close(coil_context *context, coil_scope *scope)
{
    if (__builtin_expect(scope->binding.source != NULL, 0))
        coil__stop_source_unbind(context, scope);
    if (scope->refused && scope->parent->cancelled)
        scope->parent->refused = true;
    coil__list_remove(&scope->siblings);
    scope->task = NULL;
}

void coil__scope_move(coil_context *context, coil_scope *scope,
                      coil_scope *parent)
{
    coil__list_remove(&scope->siblings);
    coil__list_append(&parent->children, &scope->siblings);
    scope->parent = parent;
    if (parent->cancelled)
        coil__scope_cancel(context, scope);
}

static coil_scope *scope_of(struct coil__list *node)
{
    return COIL__CONTAINER(node, coil_scope, siblings);
}

/* The scope after `scope` when the tree below `top` is visited from the
 * outside in, a scope before its children; those are left out unless `into`.
 * No recursion: tasks that await each other make deep trees. */
static coil_scope *scope_next(const coil_scope *top, coil_scope *scope,
                              bool into)
{
    if (into && !coil__list_is_empty(&scope->children))
        return scope_of(scope->children.next);
    while (scope != top) {
        struct coil__list *next = scope->siblings.next;

        if (next != &scope->parent->children)
            return scope_of(next);
        scope = scope->parent;
    }
    return NULL;
}

/* ----------------------------------------------------------------- cancel */

/* Marks what was not cancelled yet; `fresh` marks what this cancel marked. */
static void scope_mark(coil_scope *top)
{
    coil_scope *scope = top;

    while (scope) {
        bool reached = !scope->cancelled && (scope == top || !scope->shield);

        if (reached)
            scope->cancelled = scope->fresh = true;
        scope = scope_next(top, scope, reached);
    }
}

static void scope_interrupt(coil_context *context, const coil_scope *scope)
{
    coil_task *task = scope->task;

    if (!task)
        return;
    if (task->scope == scope)
        coil__task_interrupt(context, task);
    coil__task_interrupt_started(context, task, scope);
}

static void scope_interrupt_root(coil_context *context)
{
    struct coil__list *node;

    for (node = context->tasks.next; node != &context->tasks;
         node = node->next) {
        coil_task *task = COIL__CONTAINER(node, coil_task, siblings);

        if (task->scope == &context->root)
            coil__task_interrupt(context, task);
        if (task->kind == COIL__TASK_SPAWNED)
            coil__task_interrupt_started(context, task, &context->root);
    }
}

/*
 * All marks come before the first interruption: an interrupted wait for a task
 * or a group cancels that, and finds it marked already. No user's code runs
 * before all is done, so the tree stays as it is.
 */
void coil__scope_cancel(coil_context *context, coil_scope *top)
{
    coil_scope *scope = top;

    if (top->cancelled)
        return;
    scope_mark(top);
    while (scope) {
        bool fresh = scope->fresh;

        scope->fresh = false;
        if (fresh)
            scope_interrupt(context, scope);
        scope = scope_next(top, scope, fresh);
    }
    if (top == &context->root)
        scope_interrupt_root(context);
}

void coil__scope_drop_shields(coil_context *context)
{
    coil_scope *top = &context->root, *scope = top;

    context->unshielded = true;
    while (scope) {
        scope->shield = false;
        if (scope != top && scope->parent->cancelled)
            coil__scope_cancel(context, scope);
        scope = scope_next(top, scope, true);
    }
}

/* -------------------------------------------------------------- deadlines */

void coil__scope_stamp(coil_context *context, coil_task *task, coil_time now)
{
    coil_scope *scope = task->scope;

    /* Those begun later lie further in. */
    for (; scope->task == task && scope->unstamped; scope = scope->parent) {
        scope->unstamped = false;
        if (scope->deadline == COIL_FOREVER)
            continue;
        scope->deadline = coil__time_after(now, scope->deadline);
        coil__task_arm(context, task, scope->deadline);
    }
}

static void scope_deadline_passed(coil_context *context, coil_scope *scope)
{
    scope->deadline = COIL_FOREVER;
    if (scope->shield) {
        scope->shield = false;
        if (scope->parent->cancelled)
            coil__scope_cancel(context, scope);
        return;
    }
    /* The first cause counts. */
    scope->timed_out = !scope->cancelled;
    coil__scope_cancel(context, scope);
}

coil_time coil__scope_expire(coil_context *context, const coil_task *task,
                             coil_time now)
{
    coil_time nearest = COIL_FOREVER;

    for (coil_scope *scope = task->scope; scope->task == task;
         scope = scope->parent) {
        if (scope->unstamped)
            continue;
        if (scope->deadline <= now)
            scope_deadline_passed(context, scope);
        else if (scope->deadline < nearest)
            nearest = scope->deadline;
    }
    return nearest;
}

coil_time coil__scope_first_deadline(const coil_task *task)
{
    coil_time first = COIL_FOREVER;

    for (const coil_scope *scope = task->scope; scope->task == task;
         scope = scope->parent)
        if (!scope->unstamped && !scope->shield && scope->deadline < first)
            first = scope->deadline;
    return first;
}

/* The deadlines around the caller as one: a scope lowers what comes from
 * outside to its own deadline, a shield raises it to its own. Any number of
 * such steps is one clamp. */
coil_duration coil_scope_remaining(void)
{
    const coil_task *task = coil_task_current();
    coil_time least = INT64_MIN, most = COIL_FOREVER, now;
    const coil_scope *scope;

    if (!task)
        return COIL_FOREVER;
    if (task->scope->cancelled)
        return 0;
    coil__timers_stamp(task->context);
    for (scope = task->scope; scope; scope = scope->parent) {
        coil_time deadline = scope->deadline > least ? scope->deadline : least;

        if (scope->shield)
            least = deadline;
        else if (deadline < most)
            most = deadline;
        if (least >= most)
            break;
    }
    if (most == COIL_FOREVER)
        return COIL_FOREVER;
    now = coil__kernel_now();
    return most > now ? most - now : 0;
}

/* ---------------------------------------------------------- begin and end */

static void scope_begin(coil_scope *scope, coil_duration limit, bool shield)
{
    coil_task *task = coil_task_current();

    if (!task) {
        scope->task = NULL;
        scope->binding.source = NULL;
        coil__message(COIL_MESSAGE_MISUSE,
                      "a scope was begun outside a task: it covers nothing");
        return;
    }
    coil__scope_open(scope, task->scope, task);
    task->scope = scope;
    scope->deadline = limit;
    if (shield && limit > 0 && !task->context->unshielded) {
        scope->shield = true;
        scope->cancelled = false;
    } else if (limit <= 0) {
        scope->deadline = COIL_FOREVER;
        scope->timed_out = !shield && !scope->cancelled;
        scope->cancelled |= !shield;
    }
    if (scope->deadline != COIL_FOREVER)
        coil__task_want_stamp(task->context, task, COIL__UNSTAMPED_INSIDE);
}

void coil_scope_begin(coil_scope *scope, coil_duration limit)
{
    scope_begin(scope, limit, false);
}

void coil_shield_begin(coil_scope *shield, coil_duration limit)
{
    scope_begin(shield, limit, true);
}

void coil_scope_cancel(coil_scope *scope)
{
    if (!scope->task)
        return;
    if (scope->task->context != coil__current)
        coil__message(COIL_MESSAGE_MISUSE,
                      "a scope was cancelled on another thread than its own: "
                      "ignored, use a stop source");
    else
        coil__scope_cancel(coil__current, scope);
}

void coil__scope_reap(coil_context *context, coil_task *task, coil_scope *scope)
{
    coil__task_cancel_started(context, task, scope);
    if (!task->reap_left)
        return;
    coil__task_suspend(context, task);
    task->reaping = NULL;
}

int coil__scope_finish(coil_context *context, coil_task *task,
                       coil_scope *scope)
{
    int result = 0;

    if (!coil__list_is_empty(&task->started))
        coil__scope_reap(context, task, scope);
    if (scope->refused && scope->parent->cancelled)
        result = -ECANCELED;
    else if (scope->refused)
        result = scope->timed_out ? -ETIME : -ECANCELED;
    coil__scope_close(context, scope);
    task->scope = scope->parent;
    return result;
}

int coil_scope_end(coil_scope *scope)
{
    coil_task *task = coil_task_current();

    if (!task)
        return -EPERM;
    if (task->scope != scope || scope->task != task || scope->is_group) {
        coil__message(COIL_MESSAGE_MISUSE,
                      "task \"%s\" (%p) ends a scope that is not its "
                      "innermost one: nothing was done",
                      coil_task_name(task), (void *)task);
        return -EINVAL;
    }
    return coil__scope_finish(task->context, task, scope);
}

void coil__scope_clean(coil_scope *scope)
{
    if (scope->task)
        (void)coil_scope_end(scope);
}
