/**
 * @file
 * Scopes: cancellation and time limits for everything that is waited for
 * inside them.
 *
 * A task's waits belong to its innermost scope; scopes nest, and the context
 * is the root of all. Cancelling a scope cancels what lies inside it: the wait
 * its task is in, requests it has started, tasks it awaits, groups it has
 * begun. No call takes a token.
 *
 *     coil_scope scope;
 *
 *     coil_scope_begin(&scope, COIL_S(5));
 *     ask(server);                          // any number of waits
 *     if (coil_scope_end(&scope) == -ETIME)
 *         ...                               // the five seconds have passed
 *
 * Cancellation is a level, not an event: from then on each wait in the scope
 * is refused. The task passes once through the ready queue and the wait
 * returns -ECANCELED. Calls that end something (close, coil_scope_end,
 * coil_group_end, coil_task_await, coil_task_destroy) do all their work also
 * in a cancelled scope.
 *
 * COIL_SCOPE and COIL_SHIELD declare one that ends with the enclosing block,
 * however that is left:
 *
 *     COIL_SCOPE(scope, COIL_S(5));
 *
 * Scopes are pinned from begin to end, and end in reverse order.
 */
#ifndef COIL_SCOPE_H
#define COIL_SCOPE_H

#include <coil/export.h>
#include <coil/internal.h>
#include <coil/time.h>

COIL_BEGIN_DECLS

struct coil_scope;
struct coil_stop_source;
struct coil_task;

/** @cond internal */
/* How a scope hangs on a stop source. */
struct coil__binding {
    struct coil_stop_source *source; /* NULL: none */
    struct coil__list siblings;      /* the source's other bindings */
    struct coil__binding *next;      /* on the context's list of requests */
    bool requested;                  /* was put there */
};
/** @endcond */

/** A scope; all members belong to the library. */
typedef struct coil_scope {
    /** @cond internal */
    struct coil_scope *parent;
    struct coil_task *task; /* the owner; NULL: the root, or ended */
    struct coil__list siblings, children;
    coil_time deadline; /* while unstamped, the limit */
    bool cancelled;     /* waits inside are refused */
    bool timed_out;     /* because the deadline passed */
    bool refused;       /* a wait was refused or interrupted since then */
    bool shield;        /* hides what is outside */
    bool unstamped;     /* its limit has no deadline yet */
    bool is_group;
    bool fresh; /* while a cancel walks the tree */
    struct coil__binding binding;
    /** @endcond */
} coil_scope;

/**
 * Begin a scope inside the task's innermost one.
 *
 *   scope  need not be initialized; pinned until its end
 *   limit  from now on; then the scope is cancelled. COIL_FOREVER: never;
 *          <= 0: at once
 *
 * Waits: no. In a task; elsewhere the scope is ended from the start.
 */
COIL_API void coil_scope_begin(coil_scope *scope, coil_duration limit);

/**
 * Begin a scope that hides the cancellation of everything outside it, stop
 * included, for at most `limit`; afterwards it hides nothing. It can be
 * cancelled itself. When the context's drain limit has passed no shield hides
 * anything.
 *
 * Tasks awaited and groups begun inside share it; spawned tasks do not. Ends
 * with coil_scope_end. Waits: no. In a task.
 */
COIL_API void coil_shield_begin(coil_scope *shield, coil_duration limit);

/** Cancel everything inside, from now on until the scope's end. Harmless if it
 * has ended. Waits: no. The context's thread, any task. */
COIL_API void coil_scope_cancel(coil_scope *scope);

/**
 * End the innermost scope. Requests started in it are cancelled and have ended
 * when this returns.
 *
 * Returns 0 if no wait inside was refused or interrupted by cancellation, else
 *   -ECANCELED  a scope around it is cancelled, or it was cancelled itself
 *   -ETIME      its limit has passed
 * and, having done nothing,
 *   -EINVAL     it is not the task's innermost scope, or has ended
 *   -EPERM      outside a task
 *
 * Waits: only for those requests; no cancellation point.
 */
COIL_API int coil_scope_end(coil_scope *scope);

/**
 * The time until the nearest deadline of the scopes around the caller, as far
 * as shields let it through: 0 if cancelled already, COIL_FOREVER if there is
 * none or outside a task. Waits: no.
 */
COIL_API coil_duration coil_scope_remaining(void);

/** @cond internal */
COIL_API void coil__scope_clean(coil_scope *scope);
/** @endcond */

/** Declare a scope and begin it; it ends with the enclosing block. Ending it
 * earlier with coil_scope_end gives the result. */
#define COIL_SCOPE(name, limit)                                                \
    coil_scope name __attribute__((cleanup(coil__scope_clean)));               \
    coil_scope_begin(&name, limit)

/** Declare a shield and begin it; it ends with the enclosing block. */
#define COIL_SHIELD(name, limit)                                               \
    coil_scope name __attribute__((cleanup(coil__scope_clean)));               \
    coil_shield_begin(&name, limit)

COIL_END_DECLS

#endif
