#include "core/waiters.h"
#include <coil/event.h>

void coil_event_set(coil_event *event)
{
    coil_request *request;

    event->set = true;
    while ((request = coil__waiters_first(&event->waiters)))
        coil__waiters_finish(request, 0);
}

void coil_event_clear(coil_event *event)
{
    event->set = false;
}

bool coil_event_is_set(const coil_event *event)
{
    return event->set;
}

static int event_wait_start(coil_request *request)
{
    coil_event *event = request->operation.data;

    if (coil__waiters_are_foreign(&event->waiters))
        return coil__waiters_ended(request, -EXDEV);
    if (event->set)
        return coil__waiters_ended(request, 0);
    return coil__waiters_park(&event->waiters, request);
}

const coil_operation_type coil_event_wait_type = {
    .size = sizeof(coil_operation_type),
    .name = "an event",
    .flags = COIL_OPERATION_PARKS,
    .start = event_wait_start,
};

int coil_event_wait(coil_event *event)
{
    return (int)coil_await(coil_event_wait_op(event));
}
