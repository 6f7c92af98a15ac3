/**
 * @file
 * Stop sources: cancelling from any thread.
 *
 * A stop source cancels the scopes bound to it, in whatever contexts they are.
 * It is reference-counted, and a request that comes while a bound scope ends
 * is harmless.
 *
 *     coil_scope_begin(&scope, COIL_FOREVER);
 *     coil_stop_source_bind(source, &scope);
 *     ...                         // another thread: coil_stop_source_request
 *     coil_scope_end(&scope);     // -ECANCELED
 *
 * All calls but bind: any thread, but not in a signal handler.
 */
#ifndef COIL_STOP_SOURCE_H
#define COIL_STOP_SOURCE_H

#include <coil/scope.h>

COIL_BEGIN_DECLS

/** A source of cancellation; see the top of this file. */
typedef struct coil_stop_source coil_stop_source;

/** Make a source with one reference: release with coil_stop_source_unref.
 * Returns 0 or -ENOMEM. Waits: no. */
COIL_API int coil_stop_source_create(coil_stop_source **ret_source);

/** Add a reference; returns `source`. Waits: no. */
COIL_API coil_stop_source *coil_stop_source_ref(coil_stop_source *source);

/** Drop a reference, the last one frees it; NULL is fine. Bound scopes hold
 * references of their own. Waits: no. */
COIL_API void coil_stop_source_unref(coil_stop_source *source);

/** Cancel every scope bound to it, and each one bound later. More than once is
 * harmless. Waits: no. */
COIL_API void coil_stop_source_request(coil_stop_source *source);

/** True after the first coil_stop_source_request. Waits: no. */
COIL_API bool coil_stop_source_requested(const coil_stop_source *source);

/**
 * Bind a scope that has begun, until its end. If the source was requested
 * already the scope is cancelled at once.
 *
 * Returns 0, -EBUSY if it is bound to a source, -EINVAL if it has ended, -EPERM
 * outside the context's thread. Waits: no.
 */
COIL_API int coil_stop_source_bind(coil_stop_source *source, coil_scope *scope);

COIL_END_DECLS

#endif
