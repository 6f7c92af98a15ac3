#include "base/message.h"
#include "core/context.h"
#include "core/request.h"
#include "core/task.h"

/*
 * One turn of the loop: run the ready tasks, enter the kernel once, take the
 * completions, expire timers, run posts, look for a stop. Nothing is resumed
 * while completions are dispatched; a dispatched request only makes its task
 * ready.
 */

static void loop_run_ready(coil_context *context)
{
    context->turn_began = coil__kernel_coarse_now();
    context->budget = COIL__TURN_BUDGET;
    while (context->ready_first && context->budget) {
        coil_task *task = coil__task_take_ready(context);

        context->budget--;
        coil__coroutine_switch(&context->loop, &task->coroutine);
    }
}

/* ------------------------------------------------------------ the kernel */

static bool loop_has_work(const coil_context *context)
{
    if (context->tasks_live || !coil__posts_are_empty(&context->posts))
        return true;
    return !context->draining &&
           atomic_load_explicit(&context->held, memory_order_relaxed) != 0;
}

static bool loop_was_stopped(const coil_context *context)
{
    return !context->draining &&
           atomic_load_explicit(&context->stop, memory_order_acquire);
}

/*
 * Another thread changes something and then looks whether the loop is asleep;
 * the loop says so and then looks whether something has changed. With a full
 * fence between the two steps on both sides, one of them sees the other.
 */
static bool loop_may_sleep(coil_context *context)
{
    if (context->ready_first)
        return false;
    atomic_store_explicit(&context->asleep, true, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    return coil__posts_are_empty(&context->posts) &&
           !atomic_load_explicit(&context->requested, memory_order_relaxed) &&
           !loop_was_stopped(context) && loop_has_work(context);
}

static int loop_enter(coil_context *context)
{
    bool submitted = coil__request_submit_backlog(context);
    coil_duration limit = 0;
    int result = 0;

    coil__timers_stamp(context);
    coil__scheduler_arm_wake(&context->scheduler);
    if (loop_may_sleep(context) && submitted && context->scheduler.wake_armed)
        limit = coil__timers_until_next(&context->timers);
    if (limit > 0 || coil__scheduler_wants_enter(&context->scheduler))
        result = coil__scheduler_enter(&context->scheduler, limit);
    atomic_store_explicit(&context->asleep, false, memory_order_relaxed);
    return result;
}

/* A completion that is not the only one of a request. */
static void loop_take_other(coil_context *context,
                            const struct io_uring_cqe *cqe)
{
    uint64_t tag = cqe->user_data & COIL__TAG_MASK;

    if (cqe->user_data > COIL__DATA_LAST)
        coil__linked_complete(context,
                              (coil_request *)(uintptr_t)(cqe->user_data - tag),
                              (unsigned)tag, cqe->res, cqe->flags);
    else if (cqe->user_data == COIL__DATA_WAKE)
        coil__scheduler_woken(&context->scheduler);
}

static void loop_take(coil_context *context, const struct io_uring_cqe *cqe)
{
    if (!(cqe->flags & IORING_CQE_F_MORE))
        context->scheduler.ended++;
    if (__builtin_expect(!(cqe->user_data & COIL__TAG_MASK), 1))
        coil__request_complete(context,
                               (coil_request *)(uintptr_t)cqe->user_data,
                               cqe->res, cqe->flags);
    else
        loop_take_other(context, cqe);
}

static void loop_dispatch(coil_context *context)
{
    struct coil__scheduler *scheduler = &context->scheduler;
    unsigned count;

    do {
        count = coil__scheduler_take(scheduler);
        for (unsigned i = 0; i < count; i++)
            loop_take(context, &scheduler->batch[i]);
    } while (count == COIL__BATCH);
}

/* ------------------------------------------------------------------ stop */

static void loop_drain_expired(coil_context *context, struct coil__timer *timer)
{
    (void)timer;
    coil__message(COIL_MESSAGE_STALL,
                  "the drain limit passed with %zu tasks alive",
                  context->tasks_live);
    coil__task_list_alive(context);
    coil__scope_drop_shields(context);
    if (context->options.on_drain_limit)
        context->options.on_drain_limit(context);
}

void coil__loop_honour_stop(coil_context *context)
{
    if (!loop_was_stopped(context))
        return;
    context->draining = true;
    context->drain.expire = loop_drain_expired;
    coil__timer_arm(
        &context->timers, &context->drain,
        coil__time_after(coil__kernel_now(), context->options.drain_limit));
    coil__scope_cancel(context, &context->root);
}

/* What a stop left behind is cleared; the next run starts afresh. */
static void loop_renew(coil_context *context)
{
    if (!context->draining)
        return;
    coil__timer_cancel(&context->timers, &context->drain);
    context->root.cancelled = false;
    context->root.refused = false;
    context->unshielded = false;
    context->draining = false;
    atomic_store_explicit(&context->stop, false, memory_order_relaxed);
}

/* ------------------------------------------------------------------- run */

static int loop_turns(coil_context *context)
{
    for (;;) {
        int result;

        coil__loop_honour_stop(context);
        if (!loop_has_work(context))
            return 0;
        context->turns++;
        loop_run_ready(context);
        result = loop_enter(context);
        if (result < 0)
            return result;
        loop_dispatch(context);
        coil__timers_expire(context);
        coil__stop_sources_run(context);
        coil__posts_run(context);
    }
}

/* Ends the library's own requests: nothing is in flight afterwards. */
static int loop_settle(coil_context *context)
{
    struct coil__scheduler *scheduler = &context->scheduler;
    bool cancelled = false;
    int result = 0;

    while (result >= 0 && coil__scheduler_in_flight(scheduler)) {
        if (!cancelled)
            cancelled = coil__scheduler_cancel_wake(scheduler);
        result = coil__scheduler_enter(scheduler, COIL_FOREVER);
        loop_dispatch(context);
    }
    return result;
}

int coil__loop_run(coil_context *context)
{
    int result;

    coil__note_thread(&context->loop.note);
    coil__scheduler_register(&context->scheduler);
    result = loop_turns(context);
    if (result >= 0)
        result = loop_settle(context);
    if (result >= 0)
        loop_renew(context);
    coil__scheduler_unregister(&context->scheduler);
    return result;
}
