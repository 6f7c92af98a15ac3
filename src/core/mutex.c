#include "core/waiters.h"
#include <coil/mutex.h>

int coil_mutex_unlock(coil_mutex *mutex)
{
    coil_request *next = coil__waiters_first(&mutex->waiters);

    if (!mutex->locked)
        return -EINVAL;
    if (next) /* it stays locked, by the next one */
        coil__waiters_finish(next, 0);
    else
        mutex->locked = false;
    return 0;
}

static int mutex_lock_start(coil_request *request)
{
    coil_mutex *mutex = request->operation.data;

    if (coil__waiters_are_foreign(&mutex->waiters))
        return coil__waiters_ended(request, -EXDEV);
    if (mutex->locked)
        return coil__waiters_park(&mutex->waiters, request);
    mutex->locked = true;
    return coil__waiters_ended(request, 0);
}

const coil_operation_type coil_mutex_lock_type = {
    .size = sizeof(coil_operation_type),
    .name = "a mutex",
    .flags = COIL_OPERATION_PARKS,
    .start = mutex_lock_start,
};

int coil_mutex_lock(coil_mutex *mutex)
{
    return (int)coil_await(coil_mutex_lock_op(mutex));
}
