/*
 * A stackful coroutine: a machine state and what the sanitizers know of it.
 * Who runs next is decided in src/core; here is only the switch.
 */
#ifndef COIL_COROUTINE_COROUTINE_H
#define COIL_COROUTINE_COROUTINE_H

#include "coroutine/note.h"
#if defined(__x86_64__)
#include "coroutine/arch/x86_64/machine.h"
#elif defined(__aarch64__)
#include "coroutine/arch/aarch64/machine.h"
#else
#error "coil knows x86-64 and aarch64"
#endif

/*
 * gcc keeps file-local variables in registers over a switch when it can see
 * through the function that suspends; noipa forbids that. clang has no such
 * attribute and needs none beyond noinline: it takes inline assembly that
 * clobbers memory to change every variable.
 */
#ifdef __clang__
#define COIL__SUSPENDS __attribute__((noinline))
#else
#define COIL__SUSPENDS __attribute__((noipa))
#endif

struct coil__coroutine {
    struct coil__machine machine;
    struct coil__note note;
};

/* Prepares a coroutine that will call function(argument) on its first switch.
 * `function` begins with coil__coroutine_arrive and never returns. */
static inline void coil__coroutine_init(struct coil__coroutine *coroutine,
                                        void *low, void *top,
                                        void (*function)(void *),
                                        void *argument)
{
    coil__machine_init(&coroutine->machine, top, function, argument);
    coil__note_create(&coroutine->note, low,
                      (size_t)((char *)top - (char *)low));
}

/* The first thing a coroutine does on its own stack. */
static inline void coil__coroutine_arrive(struct coil__coroutine *self)
{
    coil__note_arrive(&self->note);
}

/* Suspends `from` until someone switches to it again. */
void coil__coroutine_switch(struct coil__coroutine *from,
                            struct coil__coroutine *to);

/* Leaves the stack of `from` for good. */
_Noreturn void coil__coroutine_finish(struct coil__coroutine *from,
                                      struct coil__coroutine *to);

#endif
