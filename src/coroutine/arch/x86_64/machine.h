/*
 * What a suspended coroutine keeps on x86-64, and the switch between two.
 */
#ifndef COIL_COROUTINE_MACHINE_H
#define COIL_COROUTINE_MACHINE_H

#include <stddef.h>
#include <stdint.h>

struct coil__machine {
    void *pc;
    void *sp;
    void *rbp; /* the compiler may hold either of these two back from a */
    void *rbx; /* clobber list, so they are kept by hand */
};

/*
 * Everything else is declared clobbered, so the compiler saves what it needs
 * and only that. Nothing is pushed: the caller may be using the red zone. The
 * x87 and SSE control words belong to the thread and are not kept.
 */
static inline __attribute__((always_inline)) void
coil__machine_switch(struct coil__machine *from, const struct coil__machine *to)
{
    __asm__ volatile("leaq 1f(%%rip), %%rax\n\t"
                     "movq %%rax, 0(%%rdi)\n\t"
                     "movq %%rsp, 8(%%rdi)\n\t"
                     "movq %%rbp, 16(%%rdi)\n\t"
                     "movq %%rbx, 24(%%rdi)\n\t"
                     "movq 8(%%rsi), %%rsp\n\t"
                     "movq 16(%%rsi), %%rbp\n\t"
                     "movq 24(%%rsi), %%rbx\n\t"
                     "jmpq *0(%%rsi)\n"
                     "1:\tendbr64\n\t"
                     : "+D"(from), "+S"(to)
                     :
                     : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12",
                       "r13", "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3",
                       "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",
                       "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "cc",
                       "memory");
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
    void **frame = (void **)top - 16;

    for (int i = 0; i < 16; i++)
        frame[i] = NULL;
    frame[0] = argument;
    frame[1] = (void *)(uintptr_t)function;
    machine->pc = (void *)(uintptr_t)coil__machine_entry;
    machine->sp = frame;
    machine->rbp = NULL;
    machine->rbx = NULL;
}

#endif
