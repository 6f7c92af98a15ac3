#include "base/message.h"
#include "core/request.h"
#include "core/task.h"
#include <coil/group.h>
#include <limits.h>

/*
 * A group is a scope with a count. The scope of each child hangs below it, so
 * whatever cancels the group reaches the children; the last child to end wakes
 * whoever waits in group_end.
 */

void coil_group_begin(coil_group *group, coil_group_policy policy)
{
    coil_scope_begin(&group->scope, COIL_FOREVER);
    group->scope.is_group = true;
    group->policy = policy;
    group->result = 0;
    group->decided = false;
    group->interrupted = false;
    group->decider = SIZE_MAX;
    group->spawned = 0;
    group->live = 0;
    group->ender = NULL;
    group->request = NULL;
}

static int group_check_spawn(const coil_group *group, coil_task_fn *fn)
{
    if (!group->scope.task || !fn)
        return -EINVAL;
    if (!coil__current)
        return -EPERM;
    return group->scope.task->context == coil__current ? 0 : -EXDEV;
}

int coil_group_spawn(coil_group *group, coil_task_fn *fn, const void *arg,
                     size_t size)
{
    struct coil__task_plan plan = {.fn = fn, .arg = arg, .size = size};
    coil_context *context = coil__current;
    int result = group_check_spawn(group, fn);
    coil_task *task;

    if (result >= 0)
        result = coil__task_make(context, &plan, &task);
    if (result < 0)
        return result;
    task->kind = COIL__TASK_CHILD;
    task->group = group;
    task->index = group->spawned++;
    group->live++;
    coil__scope_open(&task->own, &group->scope, task);
    coil__task_begin(context, task, &task->own);
    coil__task_make_ready(context, task);
    return 0;
}

void coil_group_cancel(coil_group *group)
{
    coil_scope_cancel(&group->scope);
}

/* ------------------------------------------------------- a child has ended */

/* A child that gave up because the group was cancelled has not failed. */
static bool group_is_failure(const coil_group *group, int result)
{
    return result < 0 && !(result == -ECANCELED && group->scope.cancelled);
}

/* Does this end decide the group? */
static bool group_is_decided_by(const coil_group *group, int result)
{
    switch (group->policy) {
    case COIL_GROUP_ALL:
        return group_is_failure(group, result);
    case COIL_GROUP_ANY:
        return result >= 0 || group_is_failure(group, result);
    case COIL_GROUP_SUCCESS:
        return result >= 0;
    default:
        return false;
    }
}

static void group_note(coil_group *group, int result, size_t index)
{
    group->result = result;
    group->decider = index;
}

static void group_last_has_ended(coil_context *context, coil_group *group)
{
    coil_task *ender = group->ender;

    group->ender = NULL; /* once; it looks again for itself */
    if (ender)
        coil__task_make_ready(context, ender);
    else if (group->request)
        coil_request_finish(group->request, 0); /* its end hook knows more */
}

void coil__group_child_ended(coil_context *context, const coil_task *child,
                             int result)
{
    coil_group *group = child->group;
    bool failure = group_is_failure(group, result);

    if (failure && group->policy == COIL_GROUP_EACH)
        coil__task_report_failure(context, child, result);
    if (result == -ECANCELED && !failure)
        group->interrupted = true;
    if (!group->decided && group_is_decided_by(group, result)) {
        group->decided = true;
        group_note(group, result, child->index);
        coil__scope_cancel(context, &group->scope);
    } else if (!group->decided && failure && group->decider == SIZE_MAX) {
        group_note(group, result, child->index);
    }
    if (--group->live == 0)
        group_last_has_ended(context, group);
}

/* -------------------------------------------------------------------- end */

/* All children have ended, and the scope is no task's innermost one. */
static int group_close(coil_context *context, coil_group *group,
                       size_t *ret_index)
{
    int result = group->result < 0 ? group->result : 0;

    if (group->decider == SIZE_MAX && group->scope.parent->cancelled)
        result = -ECANCELED;
    if (ret_index)
        *ret_index = group->decider;
    coil__scope_close(context, &group->scope);
    return result;
}

/* Also for a group that will end as a request: its scope is left. */
static int group_leave(coil_group *group, coil_task *task)
{
    if (!task)
        return -EPERM;
    if (group->scope.task != task || task->scope != &group->scope) {
        coil__message(COIL_MESSAGE_MISUSE,
                      "task \"%s\" (%p) ends a group that is not its "
                      "innermost scope: nothing was done",
                      coil_task_name(task), (void *)task);
        return -EINVAL;
    }
    coil__scope_reap(task->context, task, &group->scope);
    return 0;
}

int coil_group_end(coil_group *group, size_t *ret_index)
{
    coil_task *task = coil_task_current();
    int result = group_leave(group, task);

    if (result < 0)
        return result;
    /* Before it runs again, somebody may have spawned into the group. */
    while (group->live) {
        group->ender = task;
        coil__task_suspend(task->context, task);
    }
    task->scope = group->scope.parent;
    return group_close(task->context, group, ret_index);
}

/* ---------------------------------------------------------- as a request */

static int group_end_start(coil_request *request)
{
    coil_group *group = request->operation.data;
    coil_task *task = request->task ? request->task : request->owner;
    int result;

    /* Not one of the requests that end with the group. */
    request->scope = group->scope.parent;
    result = group_leave(group, task);
    if (result < 0) {
        request->operation.data = NULL;
        request->result = result;
        return COIL_REQUEST_ENDED;
    }
    task->scope = group->scope.parent;
    if (!group->live) {
        request->result = 0;
        return COIL_REQUEST_ENDED;
    }
    group->request = request;
    return COIL_REQUEST_PARKED;
}

static int group_end_cancel(coil_request *request)
{
    coil_group *group = request->operation.data;

    coil__scope_cancel(coil__current, &group->scope);
    return COIL_REQUEST_PARKED;
}

static void group_end_end(coil_request *request)
{
    coil_group *group = request->operation.data;
    size_t *ret_index = (size_t *)(uintptr_t)request->operation.extra[0];

    if (!group) /* it was never ended */
        return;
    request->result = group_close(coil__current, group, ret_index);
    if (request->result == 0 && request->reason && group->interrupted &&
        group->decider == SIZE_MAX)
        request->result = request->reason;
}

const coil_operation_type coil_group_end_type = {
    .size = sizeof(coil_operation_type),
    .name = "a group",
    .flags = COIL_OPERATION_PARKS | COIL_OPERATION_ENDS,
    .end = group_end_end,
    .start = group_end_start,
    .cancel = group_end_cancel,
};

void coil__group_clean(coil_group *group)
{
    if (group->scope.task)
        (void)coil_group_end(group, NULL);
}
