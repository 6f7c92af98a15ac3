#include "base/kernel.h"
#include "core/scope.h"
#include "core/task.h"
#include <coil/stop_source.h>
#include <pthread.h>

/*
 * A request puts each bound scope on the list of its context, which that
 * context's loop cancels; nothing is allocated, so no request can be lost. All
 * of it happens under the source's lock, and a scope that ends unbinds itself
 * under the same lock: after that it is on its context's list or never will
 * be. The list has one consumer, the context's thread, which is also the one
 * that ends the scope.
 */
struct coil_stop_source {
    pthread_mutex_t lock;
    _Atomic size_t references;
    _Atomic bool requested;
    struct coil__list bindings; /* under the lock */
};

int coil_stop_source_create(coil_stop_source **ret_source)
{
    coil_stop_source *source = coil__kernel_allocate(sizeof(*source));

    if (!source)
        return -ENOMEM;
    pthread_mutex_init(&source->lock, NULL);
    coil__list_init(&source->bindings);
    atomic_store(&source->references, 1);
    *ret_source = source;
    return 0;
}

coil_stop_source *coil_stop_source_ref(coil_stop_source *source)
{
    atomic_fetch_add_explicit(&source->references, 1, memory_order_relaxed);
    return source;
}

void coil_stop_source_unref(coil_stop_source *source)
{
    /* Release and acquire: what every holder did comes before the end. */
    if (!source || atomic_fetch_sub_explicit(&source->references, 1,
                                             memory_order_acq_rel) > 1)
        return;
    pthread_mutex_destroy(&source->lock);
    coil__kernel_free(source);
}

bool coil_stop_source_requested(const coil_stop_source *source)
{
    return atomic_load_explicit(&source->requested, memory_order_acquire);
}

static coil_scope *binding_scope(struct coil__binding *binding)
{
    return COIL__CONTAINER(binding, coil_scope, binding);
}

static void binding_request(struct coil__binding *binding)
{
    coil_context *context = binding_scope(binding)->task->context;

    binding->requested = true;
    binding->next =
        atomic_load_explicit(&context->requested, memory_order_relaxed);
    /* Release pairs with the acquire in coil__stop_sources_run. */
    while (!atomic_compare_exchange_weak_explicit(
        &context->requested, &binding->next, binding, memory_order_release,
        memory_order_relaxed))
        ;
    coil__context_nudge(context);
}

void coil_stop_source_request(coil_stop_source *source)
{
    struct coil__list *node;

    pthread_mutex_lock(&source->lock);
    if (!coil_stop_source_requested(source)) {
        atomic_store_explicit(&source->requested, true, memory_order_release);
        for (node = source->bindings.next; node != &source->bindings;
             node = node->next)
            binding_request(
                COIL__CONTAINER(node, struct coil__binding, siblings));
    }
    pthread_mutex_unlock(&source->lock);
}

int coil_stop_source_bind(coil_stop_source *source, coil_scope *scope)
{
    struct coil__binding *binding = &scope->binding;
    bool requested;

    if (!scope->task)
        return -EINVAL;
    if (scope->task->context != coil__current)
        return -EPERM;
    if (binding->source)
        return -EBUSY;
    binding->source = coil_stop_source_ref(source);
    binding->requested = false;
    pthread_mutex_lock(&source->lock);
    requested = coil_stop_source_requested(source);
    coil__list_append(&source->bindings, &binding->siblings);
    pthread_mutex_unlock(&source->lock);
    if (requested)
        coil__scope_cancel(coil__current, scope);
    return 0;
}

void coil__stop_sources_run(coil_context *context)
{
    struct coil__binding *binding;

    if (!atomic_load_explicit(&context->requested, memory_order_relaxed))
        return;
    binding = atomic_exchange_explicit(&context->requested, NULL,
                                       memory_order_acquire);
    while (binding) {
        struct coil__binding *next = binding->next;

        coil__scope_cancel(context, binding_scope(binding));
        binding = next;
    }
}

void coil__stop_source_unbind(coil_context *context, coil_scope *scope)
{
    struct coil__binding *binding = &scope->binding;
    coil_stop_source *source = binding->source;
    bool requested;

    pthread_mutex_lock(&source->lock);
    coil__list_remove(&binding->siblings);
    requested = binding->requested;
    pthread_mutex_unlock(&source->lock);
    if (requested) /* it may be on the context's list still */
        coil__stop_sources_run(context);
    binding->source = NULL;
    coil_stop_source_unref(source);
}
