#include "core/request.h"
#include "core/sleep.h"
#include <limits.h>

/*
 * Requests that were started: they run beside their task. Whoever waits for
 * some of them cancels the rest as soon as the outcome is decided, while
 * completions are being dispatched, and is resumed once, when all have ended.
 */

/* ------------------------------------------------------------------ start */

static void started_timer_expired(coil_context *context,
                                  struct coil__timer *timer)
{
    coil__request_expire(context, COIL__CONTAINER(timer, coil_request, timer));
}

static void started_init(coil_request *request, const coil_operation *operation)
{
    request->operation = *operation;
    request->transferred = 0;
    request->result = 0;
    request->reason = 0;
    request->task = NULL;
    request->owner = NULL;
    request->wait = NULL;
    request->timer.armed = false;
    request->timer.expire = started_timer_expired;
    request->unstamped = false;
    request->phase = COIL__REQUEST_ENDED;
    coil__list_init(&request->started);
}

static void started_limit(coil_context *context, coil_task *task,
                          coil_request *request)
{
    if (request->operation.limit == COIL_FOREVER)
        return;
    if (request->operation.limit <= 0)
        coil__request_interrupt(context, request, -ETIME);
    else
        coil__task_want_stamp(context, task, COIL__UNSTAMPED_INSIDE);
}

static void started_report(coil_request *request)
{
    if (request->operation.ret_done)
        *request->operation.ret_done = request->transferred;
}

/* What could not be started: its result and its count. */
static void started_refuse(coil_request *request, int result)
{
    request->result = result;
    started_report(request);
}

void coil_request_start_operation(coil_request *request,
                                  const coil_operation *operation)
{
    coil_task *task = coil_task_current();
    coil_context *context;

    started_init(request, operation);
    if (!task) {
        started_refuse(request, -EPERM);
        return;
    }
    context = task->context;
    if (task->scope->cancelled &&
        !(operation->type->flags & COIL_OPERATION_ENDS)) {
        context->refused++;
        task->scope->refused = true;
        started_refuse(request, -ECANCELED);
        return;
    }
    request->owner = task;
    request->scope = task->scope;
    request->unstamped = true;
    coil__list_append(&task->started, &request->started);
    if (!coil__request_launch(context, request, false)) {
        coil__list_remove(&request->started);
        started_report(request);
        return;
    }
    if (request->scope->cancelled)
        coil__request_interrupt(context, request, -ECANCELED);
    started_limit(context, task, request);
}

void coil__task_stamp_started(coil_context *context, coil_task *task,
                              coil_time now)
{
    struct coil__list *node = task->started.previous;

    /* The new ones are the last ones. */
    for (; node != &task->started; node = node->previous) {
        coil_request *request = COIL__CONTAINER(node, coil_request, started);
        coil_duration limit = request->operation.limit;

        if (!request->unstamped)
            return;
        request->unstamped = false;
        if (limit > 0 && limit != COIL_FOREVER)
            coil__timer_arm(&context->timers, &request->timer,
                            coil__time_after(now, limit));
    }
}

/* -------------------------------------------------------------- interrupt */

/*
 * An interruption may end the request, and others with it (a semaphore's next
 * waiters, say). So that none of that spoils the walk, all requests are moved
 * to a list of our own, and each goes back before it is interrupted.
 */
static size_t started_interrupt(coil_context *context, coil_task *task,
                                const coil_scope *scope)
{
    struct coil__list pending;
    size_t count = 0;

    coil__list_take_all(&pending, &task->started);
    while (!coil__list_is_empty(&pending)) {
        coil_request *request =
            COIL__CONTAINER(pending.next, coil_request, started);

        coil__list_remove(&request->started);
        coil__list_append(&task->started, &request->started);
        if (request->scope == scope)
            coil__request_interrupt(context, request, -ECANCELED);
    }
    for (struct coil__list *node = task->started.next; node != &task->started;
         node = node->next)
        count += COIL__CONTAINER(node, coil_request, started)->scope == scope;
    return count;
}

void coil__task_interrupt_started(coil_context *context, coil_task *task,
                                  const coil_scope *scope)
{
    if (!coil__list_is_empty(&task->started))
        (void)started_interrupt(context, task, scope);
}

void coil__task_cancel_started(coil_context *context, coil_task *task,
                               coil_scope *scope)
{
    task->reap_left = started_interrupt(context, task, scope);
    task->reaping = task->reap_left ? scope : NULL;
}

void coil_request_cancel(coil_request *request)
{
    if (request->phase != COIL__REQUEST_ENDED &&
        request->phase != COIL__REQUEST_NEW &&
        coil__request_context(request) == coil__current)
        coil__request_interrupt(coil__current, request, -ECANCELED);
}

bool coil_request_done(const coil_request *request)
{
    return request->phase == COIL__REQUEST_ENDED;
}

size_t coil_request_transferred(const coil_request *request)
{
    return request->transferred;
}

/* -------------------------------------------------------------------- end */

static void wait_cancel_rest(coil_context *context, struct coil__wait *wait)
{
    for (size_t i = 0; i < wait->count; i++)
        if (&wait->requests[i] != wait->decider)
            coil__request_interrupt(context, &wait->requests[i], -ECANCELED);
}

static bool wait_is_decided_by(const struct coil__wait *wait,
                               const coil_request *request)
{
    return !wait->decider && !wait->cancelled &&
           (wait->any || request->result < 0);
}

static void wait_ended(coil_context *context, struct coil__wait *wait,
                       coil_request *request)
{
    /* The interruptions below may end the others within. */
    bool last = --wait->running == 0;

    if (wait_is_decided_by(wait, request)) {
        wait->decider = request;
        wait_cancel_rest(context, wait);
    }
    if (last)
        coil__task_make_ready(context, wait->task);
}

void coil__request_end_started(coil_context *context, coil_request *request)
{
    coil_task *owner = request->owner;

    coil__timer_cancel(&context->timers, &request->timer);
    coil__list_remove(&request->started);
    started_report(request);
    if (request->wait)
        wait_ended(context, request->wait, request);
    if (owner->reaping && owner->reaping == request->scope &&
        --owner->reap_left == 0)
        coil__task_make_ready(context, owner);
}

void coil__wait_cancel(coil_context *context, struct coil__wait *wait)
{
    if (wait->decider || wait->cancelled)
        return;
    wait->cancelled = true;
    wait_cancel_rest(context, wait);
}

/* ------------------------------------------------------------------- wait */

static int wait_check_one(const coil_task *task, const coil_request *request)
{
    if (request->phase == COIL__REQUEST_NEW)
        return -EINVAL;
    if (request->phase == COIL__REQUEST_ENDED)
        return 0;
    if (coil__request_context(request) != task->context)
        return -EXDEV;
    return request->wait ? -EBUSY : 0;
}

static int wait_check(const coil_task *task, const struct coil__wait *wait)
{
    if (!task)
        return -EPERM;
    if (wait->count > INT_MAX)
        return -EINVAL;
    for (size_t i = 0; i < wait->count; i++) {
        int result = wait_check_one(task, &wait->requests[i]);

        if (result < 0)
            return result;
    }
    return 0;
}

/* Not because its scope was cancelled before or while it ran, or the rest of
 * its set was. */
static bool request_ended_by_itself(const coil_request *request)
{
    bool refused = !request->owner && request->result == -ECANCELED;

    return !refused && (request->reason != -ECANCELED ||
                        request->result != request->reason);
}

/* Notes itself on those that run; one that has ended may decide already. */
static void wait_enter(struct coil__wait *wait)
{
    for (size_t i = 0; i < wait->count; i++) {
        coil_request *request = &wait->requests[i];

        if (request->phase != COIL__REQUEST_ENDED) {
            request->wait = wait;
            wait->running++;
        } else if (wait_is_decided_by(wait, request) &&
                   (!wait->any || request_ended_by_itself(request))) {
            wait->decider = request;
        }
    }
}

/* All have ended when this returns 0. */
static int wait_for(struct coil__wait *wait)
{
    coil_task *task = coil_task_current();
    int result = wait_check(task, wait);

    if (result < 0)
        return result;
    wait->task = task;
    wait_enter(wait);
    if (!wait->running)
        return 0;
    wait->suspended = true;
    task->wait = wait;
    if (wait->decider)
        wait_cancel_rest(task->context, wait);
    else if (task->scope->cancelled)
        coil__wait_cancel(task->context, wait);
    coil__task_suspend(task->context, task);
    task->wait = NULL;
    if (!task->scope->cancelled)
        task->refusals = 0;
    return 0;
}

/* The scope takes note of a cancel. What was refused at its start, so that
 * nothing was left to wait for, passes through the ready queue here. */
static ssize_t wait_result(const struct coil__wait *wait, ssize_t result)
{
    coil_task *task = coil_task_current();

    if (result != -ECANCELED || !task->scope->cancelled)
        return result;
    if (!wait->suspended)
        return coil__task_refuse(task->context, task);
    task->scope->refused = true;
    return result;
}

ssize_t coil_request_await(coil_request *request)
{
    struct coil__wait wait = {.requests = request, .count = 1};
    int result = wait_for(&wait);

    return result < 0 ? result : wait_result(&wait, request->result);
}

int coil_await_any(coil_request requests[], size_t count)
{
    struct coil__wait wait = {
        .requests = requests, .count = count, .any = true};
    int result = count ? wait_for(&wait) : -EINVAL;

    if (result < 0)
        return result;
    for (size_t i = 0; i < count; i++)
        if (&requests[i] == wait.decider ||
            request_ended_by_itself(&requests[i]))
            return (int)i;
    /* All were cancelled by hand, or with the task. */
    if (!coil_task_current()->scope->cancelled)
        return 0;
    return (int)wait_result(&wait, -ECANCELED);
}

int coil_await_all(coil_request requests[], size_t count)
{
    struct coil__wait wait = {.requests = requests, .count = count};
    int result = wait_for(&wait);

    if (result < 0)
        return result;
    if (wait.decider)
        return (int)wait_result(&wait, wait.decider->result);
    for (size_t i = 0; i < count; i++)
        if (requests[i].result < 0)
            return (int)wait_result(&wait, -ECANCELED);
    return 0;
}
