#include "base/message.h"
#include "core/request.h"
#include "core/task.h"

/*
 * Tasks that somebody owns: made first, started later or by the await itself.
 *
 * Awaiting one that has not started switches straight into it, and its end
 * switches straight back. While it is awaited or destroyed its own scope hangs
 * below the waiting task's, so whatever cancels that reaches it too, and the
 * wait itself need not be interrupted.
 */

/* ----------------------------------------------------------------- create */

static int owned_make(coil_task **ret_task, coil_context *context,
                      const struct coil__task_plan *plan)
{
    int result;

    if (!context)
        context = coil__current;
    if (!context || !plan->fn)
        return -EINVAL;
    if (!coil__context_is_mine(context))
        return -EPERM;
    result = coil__task_make(context, plan, ret_task);
    if (result < 0)
        return result;
    (*ret_task)->kind = COIL__TASK_OWNED;
    (*ret_task)->state = COIL__TASK_CREATED;
    (*ret_task)->direct = false;
    (*ret_task)->abandoned = false;
    (*ret_task)->awaiter = NULL;
    (*ret_task)->request = NULL;
    context->kept++;
    return 0;
}

int coil_task_create(coil_task **ret_task, coil_task_fn *fn, const void *arg,
                     size_t size)
{
    struct coil__task_plan plan = {.fn = fn, .arg = arg, .size = size};

    return owned_make(ret_task, NULL, &plan);
}

int coil_task_create_with(coil_task **ret_task, coil_context *context,
                          const coil_task_options *options, coil_task_fn *fn,
                          const void *arg, size_t size)
{
    struct coil__task_plan plan = {.fn = fn, .arg = arg, .size = size};
    int result = coil__task_read_options(&plan, options);

    return result < 0 ? result : owned_make(ret_task, context, &plan);
}

/* Counts it as running, below `parent`; somebody then switches to it. */
static void owned_begin(coil_context *context, coil_task *task,
                        coil_scope *parent)
{
    coil__scope_open(&task->own, parent, task);
    coil__task_begin(context, task, &task->own);
    task->state = COIL__TASK_STARTED;
}

int coil_task_start(coil_task *task)
{
    if (!coil__context_is_mine(task->context))
        return -EPERM;
    if (task->kind != COIL__TASK_OWNED || task->state != COIL__TASK_CREATED)
        return -EBUSY;
    owned_begin(task->context, task, &task->context->root);
    coil__task_make_ready(task->context, task);
    return 0;
}

bool coil_task_done(const coil_task *task)
{
    return task->kind == COIL__TASK_OWNED && task->state == COIL__TASK_ENDED;
}

static void owned_free(coil_context *context, coil_task *task)
{
    context->kept--;
    coil__task_free(context, task);
}

/* ---------------------------------------------------------------- the end */

struct coil__coroutine *coil__task_hand_over(coil_context *context,
                                             coil_task *task, int result)
{
    coil_task *awaiter = task->awaiter;

    task->state = COIL__TASK_ENDED;
    task->result = result;
    if (awaiter) {
        context->running = awaiter;
        return &awaiter->coroutine;
    }
    if (task->request)
        coil_request_finish(task->request, result);
    else if (task->abandoned)
        owned_free(context, task);
    return NULL;
}

/* ------------------------------------------------------------------ await */

/* It waits for `self`, directly or not: neither would ever end. */
static bool owned_waits_for(const coil_task *task, const coil_task *self)
{
    const coil_scope *scope = self->scope;

    if (task->state != COIL__TASK_STARTED)
        return false;
    while (scope && scope != &task->own)
        scope = scope->parent;
    return scope != NULL;
}

static int owned_check(const coil_task *task, const coil_task *self)
{
    if (!self)
        return -EPERM;
    if (!task || task->kind != COIL__TASK_OWNED)
        return -EINVAL;
    if (task->context != self->context)
        return -EXDEV;
    if (task->awaiter || task->request)
        return -EBUSY;
    return owned_waits_for(task, self) ? -EDEADLK : 0;
}

/* Has it run to its end, and the running task with it. */
static void owned_join(coil_context *context, coil_task *task, coil_task *self)
{
    task->awaiter = self;
    self->awaiting = task;
    self->since = context->turn_began;
    if (task->state == COIL__TASK_CREATED) {
        owned_begin(context, task, self->scope);
        context->running = task;
        coil__coroutine_switch(&self->coroutine, &task->coroutine);
    } else {
        coil__scope_move(context, &task->own, self->scope);
        coil__task_suspend(context, self);
    }
    self->awaiting = NULL;
}

int coil_task_await(coil_task **task_pointer)
{
    coil_task *self = coil_task_current(), *task = *task_pointer;
    int result = owned_check(task, self);

    if (result < 0)
        return result;
    *task_pointer = NULL;
    if (task->state != COIL__TASK_ENDED)
        owned_join(self->context, task, self);
    result = task->result;
    owned_free(self->context, task);
    return result;
}

/* ---------------------------------------------------------- as a request */

static coil_task *await_subject(const coil_request *request)
{
    return (coil_task *)(uintptr_t)request->operation.extra[0];
}

static int await_start(coil_request *request)
{
    coil_task **task_pointer = request->operation.data, *task = *task_pointer;
    coil_task *self = request->task ? request->task : request->owner;
    int result = owned_check(task, self);

    request->operation.extra[0] = 0;
    request->result = result;
    if (result < 0)
        return COIL_REQUEST_ENDED;
    *task_pointer = NULL;
    request->operation.extra[0] = (uintptr_t)task;
    if (task->state == COIL__TASK_ENDED) {
        request->result = task->result;
        return COIL_REQUEST_ENDED;
    }
    task->request = request;
    if (task->state == COIL__TASK_CREATED) {
        owned_begin(self->context, task, self->scope);
        coil__task_make_ready(self->context, task);
    } else {
        coil__scope_move(self->context, &task->own, self->scope);
    }
    return COIL_REQUEST_PARKED;
}

static int await_cancel(coil_request *request)
{
    coil_task *task = await_subject(request);

    coil__scope_cancel(task->context, &task->own);
    return COIL_REQUEST_PARKED;
}

static void await_end(coil_request *request)
{
    coil_task *task = await_subject(request);

    if (task)
        owned_free(task->context, task);
}

const coil_operation_type coil_task_await_type = {
    .size = sizeof(coil_operation_type),
    .name = "a task",
    .flags = COIL_OPERATION_PARKS | COIL_OPERATION_ENDS,
    .end = await_end,
    .start = await_start,
    .cancel = await_cancel,
};

/* ---------------------------------------------------------------- destroy */

/* It runs: cancelled, it is waited for where that is possible. */
static void owned_destroy_running(coil_task *task)
{
    coil_task *self = coil_task_current();

    coil__scope_cancel(task->context, &task->own);
    if (owned_check(task, self) < 0) {
        task->abandoned = true;
        return;
    }
    owned_join(self->context, task, self);
    owned_free(self->context, task);
}

void coil_task_destroy(coil_task **task_pointer)
{
    coil_task *task = *task_pointer;

    if (!task || task->kind != COIL__TASK_OWNED)
        return;
    if (!coil__context_is_mine(task->context) || task->awaiter ||
        task->request) {
        coil__message(COIL_MESSAGE_MISUSE,
                      "a task is destroyed while another awaits it, or on "
                      "another thread than its own: nothing was done");
        return;
    }
    *task_pointer = NULL;
    if (task->state == COIL__TASK_STARTED)
        owned_destroy_running(task);
    else
        owned_free(task->context, task);
}
