/*
 * The first frame of every coroutine: pops the argument and the function that
 * coil__machine_init left, and calls it. Unwinders stop here: the return
 * address is undefined and the frame pointer is zero. The function never
 * returns.
 */
        .text
        .globl  coil__machine_entry
        .hidden coil__machine_entry
        .type   coil__machine_entry, @function
        .p2align 4
coil__machine_entry:
        .cfi_startproc
        .cfi_undefined rip
        .cfi_undefined rbp
        endbr64
        xorl    %ebp, %ebp
        popq    %rdi
        popq    %rax
        call    *%rax
        ud2
        .cfi_endproc
        .size   coil__machine_entry, . - coil__machine_entry
        .section .note.GNU-stack, "", @progbits
