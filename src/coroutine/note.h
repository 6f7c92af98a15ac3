/*
 * Tells AddressSanitizer, ThreadSanitizer, LeakSanitizer and Valgrind about
 * stacks and switches. In other builds everything here is empty.
 */
#ifndef COIL_COROUTINE_NOTE_H
#define COIL_COROUTINE_NOTE_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define COIL__ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define COIL__ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define COIL__TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define COIL__TSAN 1
#endif
#endif

#ifdef COIL__ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>
#endif
#ifdef COIL__TSAN
#include <sanitizer/tsan_interface.h>
#endif
#if defined(__has_include)
#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#define COIL__VALGRIND 1
#endif
#endif

/* Frames are several times larger when they are instrumented. */
#if defined(COIL__ASAN) || defined(COIL__TSAN)
enum { COIL__INSTRUMENTED = 1 };
#else
enum { COIL__INSTRUMENTED = 0 };
#endif

/* What the sanitizers keep for one coroutine, or for a thread's own stack. */
struct coil__note {
#ifdef COIL__ASAN
    const void *low;
    size_t size;
    void *fake_stack;
#endif
#ifdef COIL__TSAN
    void *fiber;
#endif
    char unused[0];
};

/* A stack is about to be used again: what its last user's frames poisoned is
 * forgotten. */
static inline void coil__note_unpoison(void *low, size_t size)
{
    (void)low;
    (void)size;
#ifdef COIL__ASAN
    __asan_unpoison_memory_region(low, size);
#endif
}

/* A coroutine on `size` bytes from `low` is about to be run. */
static inline void coil__note_create(struct coil__note *note, void *low,
                                     size_t size)
{
    (void)note;
    (void)low;
    (void)size;
#ifdef COIL__ASAN
    note->low = low;
    note->size = size;
    note->fake_stack = NULL;
#endif
#ifdef COIL__TSAN
    note->fiber = __tsan_create_fiber(0);
#endif
}

/* The coroutine of a thread's own stack. */
void coil__note_thread(struct coil__note *note);

/* A fiber may only be destroyed from another one: TSan's waits here. */
#ifdef COIL__TSAN
extern _Thread_local void *coil__note_ended_fiber;
#endif

/* Inlined always: a call would enter on one of TSan's shadow stacks and leave
 * on the other. */

/* Just before the switch; `last` if `from` will never run again. */
static inline __attribute__((always_inline)) void
coil__note_leave(struct coil__note *from, const struct coil__note *to,
                 bool last)
{
    (void)from;
    (void)to;
    (void)last;
#ifdef COIL__ASAN
    __sanitizer_start_switch_fiber(last ? NULL : &from->fake_stack, to->low,
                                   to->size);
#endif
#ifdef COIL__TSAN
    if (last)
        coil__note_ended_fiber = from->fiber;
    __tsan_switch_to_fiber(to->fiber, 0);
#endif
}

/* Just after the switch, on the stack of `self`. */
static inline __attribute__((always_inline)) void
coil__note_arrive(struct coil__note *self)
{
    (void)self;
#ifdef COIL__ASAN
    __sanitizer_finish_switch_fiber(self->fake_stack, NULL, NULL);
#endif
#ifdef COIL__TSAN
    if (coil__note_ended_fiber) {
        __tsan_destroy_fiber(coil__note_ended_fiber);
        coil__note_ended_fiber = NULL;
    }
#endif
}

/* Memory that will hold stacks, and thus pointers to the heap. */
static inline void coil__note_slab(void *low, size_t size)
{
    (void)low;
    (void)size;
#ifdef COIL__ASAN
    __lsan_register_root_region(low, size);
#endif
}

static inline void coil__note_slab_gone(void *low, size_t size)
{
    (void)low;
    (void)size;
#ifdef COIL__ASAN
    __asan_unpoison_memory_region(low, size);
    __lsan_unregister_root_region(low, size);
#endif
}

/* Valgrind takes a jump between two registered stacks for a switch. */
static inline unsigned coil__note_stack(void *low, void *top)
{
#ifdef COIL__VALGRIND
    return (unsigned)VALGRIND_STACK_REGISTER(low, top);
#else
    (void)low;
    (void)top;
    return 0;
#endif
}

static inline void coil__note_stack_gone(unsigned id)
{
    (void)id;
#ifdef COIL__VALGRIND
    VALGRIND_STACK_DEREGISTER(id);
#endif
}

#endif
