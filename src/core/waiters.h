/*
 * A queue of parked requests, oldest first, as events, semaphores, mutexes and
 * channels have it. A zeroed one is empty.
 */
#ifndef COIL_CORE_WAITERS_H
#define COIL_CORE_WAITERS_H

#include "base/list.h"
#include "core/request.h"

static inline coil_request *
coil__waiters_first(const struct coil__list *waiters)
{
    if (!waiters->next || coil__list_is_empty(waiters))
        return NULL;
    return COIL__CONTAINER(waiters->next, coil_request, queue);
}

/* Are there waiters of another context? Then neither the calling task nor its
 * thread has anything to do with the object. */
static inline bool coil__waiters_are_foreign(const struct coil__list *waiters)
{
    const coil_request *first = coil__waiters_first(waiters);

    return first && coil__request_context(first) != coil__current;
}

/* Parks the request at the end of the queue. */
static inline int coil__waiters_park(struct coil__list *waiters,
                                     coil_request *request)
{
    if (!waiters->next)
        coil__list_init(waiters);
    coil__list_append(waiters, &request->queue);
    return COIL_REQUEST_PARKED;
}

/* Ends a request on a queue. */
static inline void coil__waiters_finish(coil_request *request, ssize_t result)
{
    coil__list_remove(&request->queue);
    coil_request_finish(request, result);
}

/* `start` has ended the request. */
static inline int coil__waiters_ended(coil_request *request, ssize_t result)
{
    request->result = result;
    return COIL_REQUEST_ENDED;
}

#endif
