#include "core/post.h"
#include "base/kernel.h"
#include "core/context.h"

struct coil__post {
    struct coil__post *next;
    void (*fn)(void *);
    void *arg;
};

int coil_context_post(coil_context *context, void (*fn)(void *), void *arg)
{
    struct coil__post *post;

    if (!fn)
        return -EINVAL;
    if (coil__context_is_foreign(context))
        return -EPERM;
    post = coil__kernel_allocate(sizeof(*post));
    if (!post)
        return -ENOMEM;
    post->fn = fn;
    post->arg = arg;
    post->next =
        atomic_load_explicit(&context->posts.newest, memory_order_relaxed);
    /* Release pairs with the acquire in coil__posts_run. */
    while (!atomic_compare_exchange_weak_explicit(
        &context->posts.newest, &post->next, post, memory_order_release,
        memory_order_relaxed))
        ;
    coil__context_nudge(context);
    return 0;
}

static struct coil__post *post_reverse(struct coil__post *newest)
{
    struct coil__post *oldest = NULL;

    while (newest) {
        struct coil__post *next = newest->next;

        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

/* What these post in turn waits for the next turn: no post can starve the
 * loop by posting itself. */
void coil__posts_run(coil_context *context)
{
    struct coil__post *post;

    if (coil__posts_are_empty(&context->posts))
        return;
    post = post_reverse(atomic_exchange_explicit(&context->posts.newest, NULL,
                                                 memory_order_acquire));
    while (post) {
        struct coil__post *next = post->next;
        void (*fn)(void *) = post->fn;
        void *arg = post->arg;

        coil__kernel_free(post);
        context->posts_run++;
        fn(arg);
        post = next;
    }
}
