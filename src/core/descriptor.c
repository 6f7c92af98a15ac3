#include "core/descriptor.h"
#include "base/message.h"
#include "core/request.h"
#include "core/task.h"
#include <pthread.h>

_Atomic(struct coil__descriptor *) coil__descriptors[COIL__DESCRIPTOR_CHUNKS];

/* ------------------------------------------------------------- the table */

/* A child keeps its descriptors, but the requests on them are the parent's. */
static void descriptor_forget_requests(void)
{
    for (int i = 0; i < COIL__DESCRIPTOR_CHUNKS; i++) {
        struct coil__descriptor *chunk = atomic_load(&coil__descriptors[i]);

        for (int j = 0; chunk && j < COIL__DESCRIPTOR_CHUNK; j++) {
            atomic_store(&chunk[j].owner, NULL);
            atomic_store(&chunk[j].in_flight, 0);
            chunk[j].places[0] = chunk[j].places[1] = NULL;
            chunk[j].closer = NULL;
            chunk[j].closing = false;
            coil__list_init(&chunk[j].sharers);
        }
    }
}

static void descriptor_watch_fork(void)
{
    pthread_atfork(NULL, NULL, descriptor_forget_requests);
}

/* Publishes the chunk that holds `descriptor`, unless it is there. */
static int descriptor_reserve(int descriptor)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    _Atomic(struct coil__descriptor *) *slot;
    struct coil__descriptor *chunk, *none = NULL;

    if (descriptor < 0)
        return -EBADF;
    if (descriptor >= COIL__DESCRIPTOR_CHUNK * COIL__DESCRIPTOR_CHUNKS)
        return -EMFILE;
    if (coil__descriptor_find(descriptor))
        return 0;
    pthread_once(&once, descriptor_watch_fork);
    chunk = coil__kernel_allocate(COIL__DESCRIPTOR_CHUNK * sizeof(*chunk));
    if (!chunk)
        return -ENOMEM;
    for (int i = 0; i < COIL__DESCRIPTOR_CHUNK; i++)
        coil__list_init(&chunk[i].sharers);
    slot = &coil__descriptors[descriptor >> COIL__DESCRIPTOR_CHUNK_BITS];
    if (!atomic_compare_exchange_strong(slot, &none, chunk))
        coil__kernel_free(chunk); /* another thread was first */
    return 0;
}

/* ---------------------------------------------------- requests on a handle */

bool coil__descriptor_claim(struct coil__descriptor *entry,
                            coil_context *context)
{
    if (coil__descriptor_in_flight(entry))
        return false;
    atomic_store_explicit(&entry->owner, context, memory_order_relaxed);
    return true;
}

/* After close(2) another thread may be given the number at once, so the entry
 * is done with before. The generation is zero already; storing it once more,
 * with release, pairs with the acquire in coil_handle_open. */
static int descriptor_close_now(struct coil__descriptor *entry, int descriptor)
{
    entry->closing = false;
    atomic_store_explicit(&entry->generation, 0, memory_order_release);
    return coil__kernel_close(descriptor);
}

void coil__descriptor_last_left(coil_context *context,
                                struct coil__descriptor *entry, int descriptor)
{
    coil_task *closer = entry->closer;

    entry->closer = NULL;
    if (closer)
        coil__task_make_ready(context, closer); /* it closes */
    else
        (void)descriptor_close_now(entry, descriptor);
}

static void descriptor_interrupt_all(coil_context *context,
                                     struct coil__descriptor *entry)
{
    struct coil__list *node = entry->sharers.next;

    for (int i = 0; i < 2; i++)
        if (entry->places[i])
            coil__request_interrupt(context, entry->places[i], -EBADF);
    while (node != &entry->sharers) {
        coil_request *request = COIL__CONTAINER(node, coil_request, sharers);

        node = node->next; /* the interrupted one may leave at once */
        coil__request_interrupt(context, request, -EBADF);
    }
}

/* ----------------------------------------------------------- open, release */

/* A request on an older handle of the number keeps the old file and ends by
 * itself; its place is free. */
static void descriptor_evict_one(struct coil__descriptor *entry,
                                 coil_request *request)
{
    unsigned flags = request->operation.type->flags;

    if (coil__descriptor_is(entry, request->operation.handle))
        return;
    if (flags & COIL_OPERATION_SHARES)
        coil__list_remove(&request->sharers);
    else
        *coil__descriptor_place(entry, flags) = NULL;
    request->entry = NULL;
    coil__descriptor_count(entry, -1u);
    coil__request_interrupt(coil__current, request, -EBADF);
}

/* The number came back although its old handle is live: somebody closed it by
 * close(2). Runs on the thread of the context that has requests there. */
static void descriptor_evict(void *argument)
{
    struct coil__descriptor *entry = argument;
    struct coil__list *node;

    /* Those that were there may have ended since, and another context may have
     * requests now. The count first: while it is ours and not zero, no other
     * becomes the owner. */
    if (!coil__descriptor_in_flight(entry) ||
        atomic_load(&entry->owner) != coil__current)
        return;
    node = entry->sharers.next;
    for (int i = 0; i < 2; i++)
        if (entry->places[i])
            descriptor_evict_one(entry, entry->places[i]);
    while (node != &entry->sharers) {
        coil_request *request = COIL__CONTAINER(node, coil_request, sharers);

        node = node->next; /* the evicted one leaves the list */
        descriptor_evict_one(entry, request);
    }
}

static void descriptor_report_theft(struct coil__descriptor *entry,
                                    int descriptor)
{
    coil_context *owner =
        atomic_load_explicit(&entry->owner, memory_order_relaxed);

    coil__message(COIL_MESSAGE_MISUSE,
                  "descriptor %d was closed behind the library's back",
                  descriptor);
    if (!coil__descriptor_in_flight(entry))
        return;
    if (owner == coil__current)
        descriptor_evict(entry);
    else
        (void)coil_context_post(owner, descriptor_evict, entry);
}

int coil_handle_open(coil_handle *ret_handle, int descriptor)
{
    struct coil__descriptor *entry;
    int result = descriptor_reserve(descriptor);
    bool stolen;

    if (result < 0)
        return result;
    entry = coil__descriptor_find(descriptor);
    stolen = atomic_load_explicit(&entry->generation, memory_order_acquire) ||
             coil__descriptor_in_flight(entry);
    if (!++entry->last)
        entry->last = 1;
    atomic_store_explicit(&entry->generation, entry->last,
                          memory_order_release);
    if (stolen)
        descriptor_report_theft(entry, descriptor);
    *ret_handle = (coil_handle){descriptor, entry->last};
    return 0;
}

int coil_handle_descriptor(coil_handle handle)
{
    struct coil__descriptor *entry = coil__descriptor_find(handle.descriptor);

    return coil__descriptor_is(entry, handle) ? handle.descriptor : -EBADF;
}

int coil_handle_release(coil_handle handle)
{
    struct coil__descriptor *entry = coil__descriptor_find(handle.descriptor);
    uint32_t generation = handle.generation;

    if (!coil__descriptor_is(entry, handle))
        return -EBADF;
    if (coil__descriptor_in_flight(entry))
        return -EBUSY;
    if (!atomic_compare_exchange_strong(&entry->generation, &generation, 0))
        return -EBADF;
    return handle.descriptor;
}

/* ------------------------------------------------------------------ close */

/* Cancels what is under way and waits for it, whoever waits for those. */
static int descriptor_close_busy(coil_context *context,
                                 struct coil__descriptor *entry, int descriptor)
{
    coil_task *task = context->running;

    entry->closing = true;
    entry->closer = task;
    descriptor_interrupt_all(context, entry);
    if (!task) /* in a post: the last request to leave closes */
        return 0;
    /* Also when all have left by now: then this task is on the ready queue. */
    coil__task_suspend(context, task);
    return descriptor_close_now(entry, descriptor);
}

int coil_handle_close(coil_handle handle)
{
    struct coil__descriptor *entry = coil__descriptor_find(handle.descriptor);
    coil_context *context = coil__current;
    uint32_t generation = handle.generation;
    bool busy;

    if (!coil__descriptor_is(entry, handle))
        return 0;
    busy = coil__descriptor_in_flight(entry) != 0;
    if (busy && (!context || atomic_load(&entry->owner) != context))
        return -EBUSY;
    if (!atomic_compare_exchange_strong(&entry->generation, &generation, 0))
        return 0;
    if (busy)
        return descriptor_close_busy(context, entry, handle.descriptor);
    return descriptor_close_now(entry, handle.descriptor);
}

void coil__descriptor_disown(const coil_context *context)
{
    for (int i = 0; i < COIL__DESCRIPTOR_CHUNKS; i++) {
        struct coil__descriptor *chunk = atomic_load(&coil__descriptors[i]);

        for (int j = 0; chunk && j < COIL__DESCRIPTOR_CHUNK; j++) {
            coil_context *owner = atomic_load(&chunk[j].owner);

            if (owner == context)
                atomic_compare_exchange_strong(&chunk[j].owner, &owner, NULL);
        }
    }
}
