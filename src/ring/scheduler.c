#include "ring/scheduler.h"
#include "base/message.h"
#include <coil/time.h>
#include <stdio.h>
#include <string.h>

/*
 * One thread submits and collects (SINGLE_ISSUER), completions are produced
 * only while that thread is inside enter (DEFER_TASKRUN), and the flags of the
 * submission queue say when entering is worth while (TASKRUN_FLAG). The ring
 * is born disabled, so that the thread that runs it may be another than the
 * one that made it.
 */
enum {
    SCHEDULER_FLAGS = IORING_SETUP_R_DISABLED | IORING_SETUP_SINGLE_ISSUER |
                      IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_SUBMIT_ALL |
                      IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_CLAMP |
                      IORING_SETUP_CQSIZE,
    SCHEDULER_CQ_LEAST = 8
};

static int scheduler_explain(coil_error *ret_error, int code)
{
    const char *text;

    switch (-code) {
    case ENOSYS:
        text = "this kernel has no io_uring: coil needs Linux 6.1 or later";
        break;
    case EINVAL:
        text = "this kernel's io_uring is too old (no single issuer with "
               "deferred task running): coil needs Linux 6.1 or later";
        break;
    case EPERM:
    case EACCES:
        text = "io_uring is forbidden here: look at sysctl "
               "kernel.io_uring_disabled and at the seccomp profile of the "
               "container";
        break;
    case ENOMEM:
        text = "no memory for the ring, even a small one: raise the limit on "
               "locked memory (ulimit -l) or ask for fewer entries";
        break;
    case EMFILE:
    case ENFILE:
        text = "no descriptor left for the ring: raise the limit on open "
               "files (ulimit -n)";
        break;
    default:
        text = "the ring could not be set up";
        break;
    }
    if (ret_error) {
        ret_error->code = code;
        snprintf(ret_error->text, sizeof(ret_error->text), "%s (%s)", text,
                 coil_error_name(code));
    }
    return code;
}

/* Rings count against the limit on locked memory: settle for fewer. */
static int scheduler_open_ring(struct io_uring *ring, unsigned sq_entries,
                               unsigned cq_entries)
{
    int result;

    for (;;) {
        struct io_uring_params params;

        memset(&params, 0, sizeof(params));
        params.flags = SCHEDULER_FLAGS;
        params.cq_entries = cq_entries;
        result = coil__kernel_ring_open(ring, sq_entries, &params);
        if (result != -ENOMEM || cq_entries <= SCHEDULER_CQ_LEAST)
            return result;
        cq_entries /= 2;
        if (sq_entries > cq_entries / 2)
            sq_entries = cq_entries / 2;
    }
}

int coil__scheduler_open(struct coil__scheduler *scheduler, unsigned sq_entries,
                         unsigned cq_entries, coil_error *ret_error)
{
    int result;

    memset(scheduler, 0, sizeof(*scheduler));
    result = scheduler_open_ring(&scheduler->ring, sq_entries, cq_entries);
    if (result < 0)
        return scheduler_explain(ret_error, result);
    scheduler->wake_fd = coil__kernel_eventfd();
    if (scheduler->wake_fd < 0) {
        coil__kernel_ring_close(&scheduler->ring);
        return scheduler_explain(ret_error, scheduler->wake_fd);
    }
    return 0;
}

void coil__scheduler_close(struct coil__scheduler *scheduler)
{
    coil__kernel_ring_close(&scheduler->ring);
    (void)coil__kernel_close(scheduler->wake_fd);
}

int coil__scheduler_enable(struct coil__scheduler *scheduler)
{
    int result;

    if (scheduler->enabled)
        return 0;
    result = coil__kernel_ring_enable(&scheduler->ring);
    if (result < 0)
        return result;
    scheduler->enabled = true;
    return 0;
}

/* A table lookup less per enter; without it everything works the same. */
void coil__scheduler_register(struct coil__scheduler *scheduler)
{
    if (coil__kernel_ring_register_self(&scheduler->ring) >= 0)
        scheduler->enter_flags = IORING_ENTER_REGISTERED_RING;
}

void coil__scheduler_unregister(struct coil__scheduler *scheduler)
{
    if (!scheduler->enter_flags)
        return;
    scheduler->enter_flags = 0;
    coil__kernel_ring_unregister_self(&scheduler->ring);
}

/* Shows the kernel what was filled; returns how many it has not taken. */
static unsigned scheduler_publish(struct coil__scheduler *scheduler)
{
    struct io_uring_sq *sq = &scheduler->ring.sq;

    sq->sqe_head = sq->sqe_tail;
    IO_URING_WRITE_ONCE(*sq->ktail, sq->sqe_tail);
    return sq->sqe_tail - IO_URING_READ_ONCE(*sq->khead);
}

static int scheduler_call(struct coil__scheduler *scheduler, unsigned submit,
                          unsigned wait, unsigned flags, void *argument,
                          size_t size)
{
    scheduler->enters++;
    return coil__kernel_enter(scheduler->ring.enter_ring_fd, submit, wait,
                              flags | scheduler->enter_flags, argument, size);
}

struct io_uring_sqe *
coil__scheduler_make_room(struct coil__scheduler *scheduler)
{
    (void)scheduler_call(scheduler, scheduler_publish(scheduler), 0, 0, NULL,
                         0);
    return coil__scheduler_next(scheduler);
}

bool coil__scheduler_has_room(struct coil__scheduler *scheduler, unsigned count)
{
    const struct io_uring_sq *sq = &scheduler->ring.sq;

    if (sq->ring_entries - (sq->sqe_tail - IO_URING_READ_ONCE(*sq->khead)) >=
        count)
        return true;
    (void)scheduler_call(scheduler, scheduler_publish(scheduler), 0, 0, NULL,
                         0);
    return sq->ring_entries - (sq->sqe_tail - IO_URING_READ_ONCE(*sq->khead)) >=
           count;
}

bool coil__scheduler_wants_enter(const struct coil__scheduler *scheduler)
{
    const struct io_uring_sq *sq = &scheduler->ring.sq;

    return sq->sqe_tail != IO_URING_READ_ONCE(*sq->khead) ||
           (IO_URING_READ_ONCE(*sq->kflags) &
            (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
}

/* Errors that pass by themselves: the next turn enters again. */
static int scheduler_judge(int result)
{
    switch (-result) {
    case EBADF:
    case EBADFD:
    case EEXIST:
    case EFAULT:
    case EINVAL:
    case ENXIO:
    case EOPNOTSUPP:
        return result;
    case EBADR:
        coil__message(COIL_MESSAGE_OVERFLOW,
                      "the kernel lost a completion: give the context more "
                      "completion queue entries");
        return 0;
    default:
        return 0;
    }
}

int coil__scheduler_enter(struct coil__scheduler *scheduler, int64_t limit)
{
    unsigned submit = scheduler_publish(scheduler);
    unsigned flags = IORING_ENTER_GETEVENTS;
    struct __kernel_timespec time;
    struct io_uring_getevents_arg argument = {.ts = (uintptr_t)&time};

    if (limit <= 0 || limit == COIL_FOREVER)
        return scheduler_judge(scheduler_call(scheduler, submit, limit > 0,
                                              flags, NULL, _NSIG / 8));
    time.tv_sec = limit / 1000000000;
    time.tv_nsec = limit % 1000000000;
    return scheduler_judge(scheduler_call(scheduler, submit, 1,
                                          flags | IORING_ENTER_EXT_ARG,
                                          &argument, sizeof(argument)));
}

unsigned coil__scheduler_take(struct coil__scheduler *scheduler)
{
    unsigned count = coil__kernel_completions(&scheduler->ring,
                                              scheduler->batch, COIL__BATCH);

    scheduler->cqes += count;
    return count;
}

void coil__scheduler_arm_wake(struct coil__scheduler *scheduler)
{
    struct io_uring_sqe *sqe;

    if (scheduler->wake_armed)
        return;
    sqe = coil__scheduler_sqe(scheduler);
    if (!sqe)
        return;
    io_uring_prep_read(sqe, scheduler->wake_fd, &scheduler->wake_value,
                       sizeof(scheduler->wake_value), 0);
    sqe->user_data = COIL__DATA_WAKE;
    scheduler->wake_armed = true;
}

bool coil__scheduler_cancel_wake(struct coil__scheduler *scheduler)
{
    struct io_uring_sqe *sqe;

    if (!scheduler->wake_armed)
        return true;
    sqe = coil__scheduler_sqe(scheduler);
    if (!sqe)
        return false;
    io_uring_prep_cancel64(sqe, COIL__DATA_WAKE, 0);
    sqe->user_data = COIL__DATA_CANCEL;
    return true;
}

void coil__scheduler_wake(struct coil__scheduler *scheduler)
{
    uint64_t one = 1;

    /* Can only fail when the count is full, and then it wakes already. */
    (void)coil__kernel_write(scheduler->wake_fd, &one, sizeof(one));
}
