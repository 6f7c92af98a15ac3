#include "core/waiters.h"
#include <coil/semaphore.h>

void coil_semaphore_init(coil_semaphore *semaphore, size_t units)
{
    *semaphore = (coil_semaphore){.units = units};
}

size_t coil_semaphore_units(const coil_semaphore *semaphore)
{
    return semaphore->units;
}

/* In turn: a demand that cannot be met yet holds up those behind it. */
static void semaphore_serve(coil_semaphore *semaphore)
{
    coil_request *request;

    while ((request = coil__waiters_first(&semaphore->waiters)) &&
           request->operation.size <= semaphore->units) {
        semaphore->units -= request->operation.size;
        coil__waiters_finish(request, 0);
    }
}

void coil_semaphore_release(coil_semaphore *semaphore, size_t units)
{
    semaphore->units += units;
    semaphore_serve(semaphore);
}

static int semaphore_acquire_start(coil_request *request)
{
    coil_semaphore *semaphore = request->operation.data;

    if (coil__waiters_are_foreign(&semaphore->waiters))
        return coil__waiters_ended(request, -EXDEV);
    if (coil__waiters_first(&semaphore->waiters) ||
        request->operation.size > semaphore->units)
        return coil__waiters_park(&semaphore->waiters, request);
    semaphore->units -= request->operation.size;
    return coil__waiters_ended(request, 0);
}

/* The one that gives up may have held up others. */
static int semaphore_acquire_cancel(coil_request *request)
{
    coil__list_remove(&request->queue);
    semaphore_serve(request->operation.data);
    return COIL_REQUEST_ENDED;
}

const coil_operation_type coil_semaphore_acquire_type = {
    .size = sizeof(coil_operation_type),
    .name = "a semaphore",
    .flags = COIL_OPERATION_PARKS,
    .start = semaphore_acquire_start,
    .cancel = semaphore_acquire_cancel,
};

int coil_semaphore_acquire(coil_semaphore *semaphore, size_t units)
{
    return (int)coil_await(coil_semaphore_acquire_op(semaphore, units));
}
