/*
 * What a suspended coroutine keeps on aarch64, and the switch between two.
 */
#ifndef COIL_COROUTINE_MACHINE_H
#define COIL_COROUTINE_MACHINE_H

#include <stddef.h>
#include <stdint.h>

struct coil__machine {
    void *pc;
    void *sp;
    void *x29; /* frame pointer and, in clang, base pointer: the compiler may */
    void *x19; /* hold either back from a clobber list, so kept by hand */
};

/*
 * Everything else is declared clobbered, so the compiler saves what it needs
 * and only that (x18 is the platform's and never changes). The landing pad is
 * a BTI one. FPCR belongs to the thread and is not kept.
 */
static inline __attribute__((always_inline)) void
coil__machine_switch(struct coil__machine *from, const struct coil__machine *to)
{
    register struct coil__machine *x0 __asm__("x0") = from;
    register const struct coil__machine *x1 __asm__("x1") = to;

    __asm__ volatile(
        "adr x9, 1f\n\t"
        "mov x10, sp\n\t"
        "stp x9, x10, [x0]\n\t"
        "stp x29, x19, [x0, #16]\n\t"
        "ldp x16, x10, [x1]\n\t"
        "ldp x29, x19, [x1, #16]\n\t"
        "mov sp, x10\n\t"
        "br x16\n"
        "1:\thint #36\n\t"
        : "+r"(x0), "+r"(x1)
        :
        : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12",
          "x13", "x14", "x15", "x16", "x17", "x20", "x21", "x22", "x23", "x24",
          "x25", "x26", "x27", "x28", "x30", "v0", "v1", "v2", "v3", "v4", "v5",
          "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15",
          "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25",
          "v26", "v27", "v28", "v29", "v30", "v31", "cc", "memory");
}

void coil__machine_entry(void);

/*
 * Lays out the first frame below `top` (16-aligned). The entry pops its
 * argument and function; the zeros above them end any backtrace that a
 * profiling signal takes between the change of stack and the jump.
 */
static inline void coil__machine_init(struct coil__machine *machine, void *top,
                                      void (*function)(void *), void *argument)
{
    void **frame = (void **)top - 32;

    for (int i = 0; i < 32; i++)
        frame[i] = NULL;
    frame[0] = argument;
    frame[1] = (void *)(uintptr_t)function;
    machine->pc = (void *)(uintptr_t)coil__machine_entry;
    machine->sp = frame;
    machine->x29 = NULL;
    machine->x19 = NULL;
}

#endif
