/**
 * @file
 * Groups: child tasks that end before the group does.
 *
 *     coil_group group;
 *
 *     coil_group_begin(&group, COIL_GROUP_ALL);
 *     for (i = 0; i < count; i++)
 *         coil_group_spawn(&group, fetch, &pages[i], sizeof(pages[i]));
 *     result = coil_group_end(&group, NULL);   // every child has ended
 *
 * A group is a scope too: the task that began it and its children are in it,
 * and whatever cancels it, or a scope around it, reaches all of them. A child
 * that ignores cancellation is waited for all the same.
 */
#ifndef COIL_GROUP_H
#define COIL_GROUP_H

#include <coil/context.h>
#include <coil/operation.h>
#include <coil/scope.h>

COIL_BEGIN_DECLS

/** Which child decides a group; then the others, and the waits of the task
 * that began it, are cancelled at once. A failure is a negative result, except
 * -ECANCELED after the group was cancelled. */
typedef enum coil_group_policy {
    COIL_GROUP_ALL,     /**< the first that fails */
    COIL_GROUP_ANY,     /**< the first that ends */
    COIL_GROUP_SUCCESS, /**< the first with a result >= 0 */
    COIL_GROUP_EACH     /**< none; failures go to on_task_failed */
} coil_group_policy;

/** A group; all members belong to the library. Pinned from begin to end. */
typedef struct coil_group {
    /** @cond internal */
    coil_scope scope;
    coil_group_policy policy;
    int result;                   /* of who decided, or the first failure */
    bool decided;                 /* somebody cancelled the others */
    bool interrupted;             /* a child gave up because of a cancel */
    size_t decider;               /* whose result that is */
    size_t spawned;               /* so far; the next child's index */
    size_t live;                  /* children that have not ended */
    struct coil_task *ender;      /* waits for the last of them */
    struct coil_request *request; /* or this does */
    /** @endcond */
} coil_group;

/** Begin a group inside the task's innermost scope. Waits: no. In a task;
 * elsewhere it is ended from the start. */
COIL_API void coil_group_begin(coil_group *group, coil_group_policy policy);

/**
 * Start a child: it first runs in the next turn, in order of spawning. Any
 * task of the context may do so until coil_group_end returns, also in a
 * cancelled group: the child runs and its waits are refused.
 *
 *   fn, arg, size  as for coil_spawn
 *
 * Returns 0, or as coil_spawn; -EINVAL also if the group has ended, -EXDEV in
 * another context. Waits: no.
 */
COIL_API int coil_group_spawn(coil_group *group, coil_task_fn *fn,
                              const void *arg, size_t size);

/** Cancel the children and the waits of the task that began the group.
 * Harmless after its end. Waits: no. The context's thread, any task. */
COIL_API void coil_group_cancel(coil_group *group);

/**
 * Wait for all children and end the group, which must be the task's innermost
 * scope.
 *
 *   ret_index  who decided the result, counted from 0 in order of spawning;
 *              SIZE_MAX: nobody. May be NULL
 *
 * Returns
 *   the result of the child that decided, if negative, else 0: ANY, and
 *              SUCCESS if one succeeded
 *   the first failure in time, if there was one
 *   -ECANCELED if a scope around the group is cancelled
 *   0          otherwise
 * and, having done nothing, -EINVAL if it has ended or is not the innermost
 * scope, -EPERM outside a task.
 *
 * Waits: for the children; no cancellation point.
 */
COIL_API int coil_group_end(coil_group *group, size_t *ret_index);

/** The operation of coil_group_end. */
COIL_API extern const coil_operation_type coil_group_end_type;

/** coil_group_end as a value. When it starts the task leaves the group's scope,
 * having waited for requests it started in there. If it is cancelled or limited, the group is
 * cancelled, and it finishes when the last child has ended; -ETIME then means
 * that the limit cut a child short. */
static inline coil_operation coil_group_end_op(coil_group *group,
                                               size_t *ret_index)
{
    coil_operation operation = coil_operation_make(&coil_group_end_type);

    operation.data = group;
    operation.extra[0] = (uintptr_t)ret_index;
    return operation;
}

/** @cond internal */
COIL_API void coil__group_clean(coil_group *group);
/** @endcond */

/** Declare a group and begin it; the enclosing block ends when the children
 * have. Ending it earlier with coil_group_end gives the result. */
#define COIL_GROUP(name, policy)                                               \
    coil_group name __attribute__((cleanup(coil__group_clean)));               \
    coil_group_begin(&name, policy)

COIL_END_DECLS

#endif
