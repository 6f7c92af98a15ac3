#include "base/kernel.h"
#include <coil/signal_set.h>
#include <poll.h>
#include <stdatomic.h>

/*
 * A wait polls the signal descriptor and reads only when the poll completed:
 * a wait that is cancelled has taken no signal with it.
 */

enum { SIGNAL_MOST = 64 };

/* The signals of every open set of the process; bit n-1 is signal n. */
static _Atomic uint64_t signals_taken;

static uint64_t signal_bit(int number)
{
    return UINT64_C(1) << (number - 1);
}

static void signals_to_set(uint64_t signals, sigset_t *ret_set)
{
    sigemptyset(ret_set);
    for (int number = 1; number <= SIGNAL_MOST; number++)
        if (signals & signal_bit(number))
            sigaddset(ret_set, number);
}

static uint64_t signals_from_set(const sigset_t *set)
{
    uint64_t signals = 0;

    for (int number = 1; number <= SIGNAL_MOST; number++)
        if (sigismember(set, number) == 1)
            signals |= signal_bit(number);
    return signals;
}

/* The signals as bits; 0 if one cannot be caught. */
static uint64_t signals_from_list(const int *list, size_t count)
{
    uint64_t signals = 0;
    sigset_t known;

    sigemptyset(&known);
    for (size_t i = 0; i < count; i++) {
        /* The C library keeps some for itself: sigaddset refuses them. */
        if (list[i] < 1 || list[i] > SIGNAL_MOST || list[i] == SIGKILL ||
            list[i] == SIGSTOP || sigaddset(&known, list[i]) < 0)
            return 0;
        signals |= signal_bit(list[i]);
    }
    return signals;
}

static int signals_claim(uint64_t signals)
{
    uint64_t taken = atomic_load(&signals_taken);

    do {
        if (taken & signals)
            return -EBUSY;
    } while (
        !atomic_compare_exchange_weak(&signals_taken, &taken, taken | signals));
    return 0;
}

static int signals_open_descriptor(const sigset_t *set, coil_handle *ret_handle)
{
    int descriptor = coil__kernel_signalfd(set);
    int result;

    if (descriptor < 0)
        return descriptor;
    result = coil_handle_open(ret_handle, descriptor);
    if (result < 0)
        (void)coil__kernel_close(descriptor);
    return result;
}

int coil_signal_set_open(coil_signal_set *ret_set, const int *signals,
                         size_t count)
{
    coil_signal_set set = {.signals = signals_from_list(signals, count)};
    sigset_t wanted, before;
    int result;

    if (!set.signals)
        return -EINVAL;
    result = signals_claim(set.signals);
    if (result < 0)
        return result;
    signals_to_set(set.signals, &wanted);
    result = coil__kernel_signal_mask(SIG_BLOCK, &wanted, &before);
    if (result >= 0) {
        set.blocked = set.signals & ~signals_from_set(&before);
        result = signals_open_descriptor(&wanted, &set.handle);
        if (result >= 0) {
            *ret_set = set;
            return 0;
        }
        (void)coil__kernel_signal_mask(SIG_SETMASK, &before, NULL);
    }
    atomic_fetch_and(&signals_taken, ~set.signals);
    return result;
}

/* ------------------------------------------------------------------- wait */

static void signal_set_wait_prepare(coil_request *request,
                                    struct io_uring_sqe *sqe)
{
    io_uring_prep_poll_add(sqe, request->operation.handle.descriptor, POLLIN);
}

static int signal_set_wait_complete(coil_request *request, int res,
                                    unsigned flags)
{
    struct signalfd_siginfo info;
    ssize_t count;

    (void)flags;
    request->result = res;
    if (res < 0)
        return COIL_REQUEST_ENDED;
    count = coil__kernel_read(request->operation.handle.descriptor, &info,
                              sizeof(info));
    if (count == -EAGAIN) /* another waiter was first */
        return COIL_REQUEST_AGAIN;
    request->result = count < 0 ? count : (ssize_t)info.ssi_signo;
    return COIL_REQUEST_ENDED;
}

const coil_operation_type coil_signal_set_wait_type = {
    .size = sizeof(coil_operation_type),
    .name = "signal",
    .flags = COIL_OPERATION_SHARES,
    .prepare = signal_set_wait_prepare,
    .complete = signal_set_wait_complete,
};

int coil_signal_set_wait(const coil_signal_set *set)
{
    return (int)coil_await(coil_signal_set_wait_op(set));
}

/* ------------------------------------------------------------------ close */

int coil_signal_set_close(const coil_signal_set *set)
{
    sigset_t signals, blocked;
    int result;

    if (coil_handle_descriptor(set->handle) < 0)
        return 0;
    result = coil_handle_close(set->handle);
    if (result == -EBUSY)
        return result;
    signals_to_set(set->signals, &signals);
    while (coil__kernel_take_signal(&signals) > 0)
        ;
    signals_to_set(set->blocked, &blocked);
    (void)coil__kernel_signal_mask(SIG_UNBLOCK, &blocked, NULL);
    atomic_fetch_and(&signals_taken, ~set->signals);
    return result;
}

int coil_signal_mask_default(void)
{
    sigset_t none;

    sigemptyset(&none);
    return coil__kernel_signal_mask(SIG_SETMASK, &none, NULL);
}
