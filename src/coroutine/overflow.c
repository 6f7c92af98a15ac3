#include "coroutine/overflow.h"
#include "base/kernel.h"
#include "base/message.h"
#include <pthread.h>
#include <string.h>

enum { OVERFLOW_STACK = 64 * 1024 };

static struct sigaction overflow_before;
static coil__overflow_describe *overflow_describe;
static pthread_once_t overflow_once = PTHREAD_ONCE_INIT;

/* Faults that are not ours go to whoever was there first; without one the
 * default is put back, and the instruction faults again. */
static void overflow_pass_on(int number, siginfo_t *info, void *machine)
{
    if (overflow_before.sa_flags & SA_SIGINFO)
        overflow_before.sa_sigaction(number, info, machine);
    else if (overflow_before.sa_handler != SIG_DFL &&
             overflow_before.sa_handler != SIG_IGN)
        overflow_before.sa_handler(number);
    else
        sigaction(number, &overflow_before, NULL);
}

static void overflow_handle(int number, siginfo_t *info, void *machine)
{
    char text[256];

    if (info->si_code > 0 &&
        overflow_describe(info->si_addr, text, sizeof(text)))
        coil__message_last(COIL_MESSAGE_OVERFLOW, text);
    overflow_pass_on(number, info, machine);
}

static void overflow_install(void)
{
    struct sigaction action;

    memset(&action, 0, sizeof(action));
    action.sa_sigaction = overflow_handle;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGSEGV, &action, &overflow_before);
}

void coil__overflow_watch(coil__overflow_describe *describe)
{
    overflow_describe = describe;
    pthread_once(&overflow_once, overflow_install);
}

void *coil__overflow_enter_thread(void)
{
    stack_t present, own = {.ss_size = OVERFLOW_STACK};

    if (sigaltstack(NULL, &present) < 0 || !(present.ss_flags & SS_DISABLE))
        return NULL;
    own.ss_sp = coil__kernel_map(OVERFLOW_STACK);
    if (!own.ss_sp)
        return NULL; /* the fault still kills, only without its name */
    if (sigaltstack(&own, NULL) < 0) {
        coil__kernel_unmap(own.ss_sp, OVERFLOW_STACK);
        return NULL;
    }
    return own.ss_sp;
}

void coil__overflow_leave_thread(void *stack)
{
    stack_t none = {.ss_flags = SS_DISABLE};

    if (!stack)
        return;
    sigaltstack(&none, NULL);
    coil__kernel_unmap(stack, OVERFLOW_STACK);
}
