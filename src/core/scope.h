/*
 * The tree of scopes.
 *
 * The root belongs to the context; each scope below has one owner, the task
 * whose waits it covers. A spawned task waits in the root. Every other task
 * has a scope of its own, which hangs below the group it is a child of, below
 * the scope of whoever awaits it, or else below the root. Scopes that a task
 * begins nest inside that.
 *
 * Cancellation as a level costs a wait one load, because `cancelled` already
 * speaks for everything around a scope: a cancel marks the whole tree below,
 * but for what a shield hides, and then interrupts the waits in there.
 */
#ifndef COIL_CORE_SCOPE_H
#define COIL_CORE_SCOPE_H

#include <coil/scope.h>

struct coil_context;
struct coil_task;

/* Makes the root of a context. */
void coil__scope_init_root(coil_scope *root);

/* Hangs a scope without a limit below `parent`; it inherits cancellation. */
void coil__scope_open(coil_scope *scope, coil_scope *parent,
                      struct coil_task *task);

/* Takes it out of the tree. What was refused in it was refused in the one
 * around it as well, if that is cancelled. */
void coil__scope_close(struct coil_context *context, coil_scope *scope);

/* Hangs an open scope below another parent, whose cancellation it inherits. */
void coil__scope_move(struct coil_context *context, coil_scope *scope,
                      coil_scope *parent);

/* Cancels everything in the scope, unless that has been done. */
void coil__scope_cancel(struct coil_context *context, coil_scope *scope);

/* Shields hide nothing any more. */
void coil__scope_drop_shields(struct coil_context *context);

/* Cancels those of the task's scopes whose deadline has passed; returns the
 * nearest deadline of the others. */
coil_time coil__scope_expire(struct coil_context *context,
                             const struct coil_task *task, coil_time now);

/* The first of the task's own scopes' deadlines, passed or not. */
coil_time coil__scope_first_deadline(const struct coil_task *task);

/* Gives the task's new scopes their deadlines. */
void coil__scope_stamp(struct coil_context *context, struct coil_task *task,
                       coil_time now);

/* Cancels the requests that the running task has started in the scope and
 * waits for them. */
void coil__scope_reap(struct coil_context *context, struct coil_task *task,
                      coil_scope *scope);

/* Ends the innermost scope of the running task: the result of
 * coil_scope_end. */
int coil__scope_finish(struct coil_context *context, struct coil_task *task,
                       coil_scope *scope);

/* In src/core/stop_source.c: the scope ends. */
void coil__stop_source_unbind(struct coil_context *context, coil_scope *scope);

#endif
