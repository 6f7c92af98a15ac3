/*
 * What a switch must keep, checked without libcheck and without io_uring so
 * that the same cases run on a foreign CPU under an emulator. Each case returns
 * NULL, or what is wrong.
 */
#ifndef TESTS_COROUTINE_SWITCH_CASES_H
#define TESTS_COROUTINE_SWITCH_CASES_H

#include "coroutine/coroutine.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { CASE_STACK = 256 * 1024, CASE_SWITCHES = 1000000 };

struct pair {
    struct coil__coroutine outer, inner;
    char *stack;
    void (*body)(struct pair *pair);
    uint64_t inner_runs;
};

static void pair_main(void *argument)
{
    struct pair *pair = argument;

    coil__coroutine_arrive(&pair->inner);
    pair->body(pair);
    coil__coroutine_finish(&pair->inner, &pair->outer);
}

static void pair_begin(struct pair *pair, void (*body)(struct pair *))
{
    pair->stack = aligned_alloc(64, CASE_STACK);
    if (!pair->stack)
        abort();
    pair->body = body;
    pair->inner_runs = 0;
    coil__note_thread(&pair->outer.note);
    coil__coroutine_init(&pair->inner, pair->stack, pair->stack + CASE_STACK,
                         pair_main, pair);
}

static void pair_enter(struct pair *pair)
{
    coil__coroutine_switch(&pair->outer, &pair->inner);
}

static void pair_leave(struct pair *pair)
{
    coil__coroutine_switch(&pair->inner, &pair->outer);
}

/* ------------------------------------------------------------ the million */

static void count_body(struct pair *pair)
{
    for (int i = 0; i < CASE_SWITCHES / 2; i++) {
        pair->inner_runs++;
        pair_leave(pair);
    }
}

static const char *case_million_switches(void)
{
    struct pair pair;

    pair_begin(&pair, count_body);
    for (int i = 0; i < CASE_SWITCHES / 2; i++) {
        pair_enter(&pair);
        if (pair.inner_runs != (uint64_t)i + 1)
            return "a switch was lost or doubled";
    }
    pair_enter(&pair); /* to its end */
    free(pair.stack);
    return NULL;
}

/* -------------------------------------------------------------- registers */

/* More live values, of both kinds, than there are registers; `salt` makes the
 * two sides differ. */
static __attribute__((noinline)) int
keep_values(struct pair *pair, void (*turn)(struct pair *), uint64_t salt)
{
    volatile uint64_t source = salt;
    uint64_t a = source + 1, b = source + 2, c = source + 3, d = source + 4;
    uint64_t e = source + 5, f = source + 6, g = source + 7, h = source + 8;
    uint64_t i = source + 9, j = source + 10, k = source + 11, l = source + 12;
    double p = (double)source + 0.5, q = (double)source + 1.5;
    double r = (double)source + 2.5, s = (double)source + 3.5;
    double t = (double)source + 4.5, u = (double)source + 5.5;
    double v = (double)source + 6.5, w = (double)source + 7.5;

    for (int round = 0; round < 100; round++)
        turn(pair);
    return a == salt + 1 && b == salt + 2 && c == salt + 3 && d == salt + 4 &&
           e == salt + 5 && f == salt + 6 && g == salt + 7 && h == salt + 8 &&
           i == salt + 9 && j == salt + 10 && k == salt + 11 &&
           l == salt + 12 &&
           p + q + r + s + t + u + v + w == 8.0 * (double)salt + 32.0;
}

static int inner_kept;

static void values_body(struct pair *pair)
{
    inner_kept = keep_values(pair, pair_leave, 1000000);
}

static const char *case_values_survive(void)
{
    struct pair pair;
    int outer_kept;

    pair_begin(&pair, values_body);
    pair_enter(&pair);
    outer_kept = keep_values(&pair, pair_enter, 7);
    free(pair.stack);
    if (!outer_kept)
        return "the outer side lost a value";
    return inner_kept ? NULL : "the inner side lost a value";
}

/* The registers that a called function must preserve, by name, around a call
 * of the switch: each keeps what was put there. */
static __attribute__((noinline)) int
keep_registers(struct pair *pair, void (*turn)(struct pair *), uint64_t salt)
{
    uint64_t wrong = 0;

#if defined(__x86_64__)
    /* Below the red zone, which the compiler may be using, and aligned. */
    __asm__ volatile("mov %%rsp, %%rax\n\t"
                     "sub $256, %%rsp\n\t"
                     "and $-16, %%rsp\n\t"
                     "push %%rax\n\t"
                     "push %%rbp\n\t"
                     "mov %[salt], %%rbx\n\t"
                     "lea 1(%%rbx), %%rbp\n\t"
                     "lea 2(%%rbx), %%r12\n\t"
                     "lea 3(%%rbx), %%r13\n\t"
                     "lea 4(%%rbx), %%r14\n\t"
                     "lea 5(%%rbx), %%r15\n\t"
                     "push %[salt]\n\t"
                     "push %[salt]\n\t"
                     "mov %[pair], %%rdi\n\t"
                     "call *%[turn]\n\t"
                     "pop %%rax\n\t"
                     "pop %%rax\n\t"
                     "xor %%rax, %%rbx\n\t"
                     "xor %%rcx, %%rcx\n\t"
                     "or %%rbx, %%rcx\n\t"
                     "sub $1, %%rbp\n\t"
                     "xor %%rax, %%rbp\n\t"
                     "or %%rbp, %%rcx\n\t"
                     "sub $2, %%r12\n\t"
                     "xor %%rax, %%r12\n\t"
                     "or %%r12, %%rcx\n\t"
                     "sub $3, %%r13\n\t"
                     "xor %%rax, %%r13\n\t"
                     "or %%r13, %%rcx\n\t"
                     "sub $4, %%r14\n\t"
                     "xor %%rax, %%r14\n\t"
                     "or %%r14, %%rcx\n\t"
                     "sub $5, %%r15\n\t"
                     "xor %%rax, %%r15\n\t"
                     "or %%r15, %%rcx\n\t"
                     "pop %%rbp\n\t"
                     "pop %%rsp\n\t"
                     : "=&c"(wrong)
                     : [salt] "D"(salt), [pair] "S"(pair), [turn] "d"(turn)
                     : "rax", "rbx", "r8", "r9", "r10", "r11", "r12", "r13",
                       "r14", "r15", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4",
                       "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
                       "xmm12", "xmm13", "xmm14", "xmm15", "cc", "memory");
#else
    register uint64_t x20 __asm__("x20") = salt;
    register uint64_t x21 __asm__("x21") = salt + 1;
    register uint64_t x27 __asm__("x27") = salt + 2;
    register uint64_t x28 __asm__("x28") = salt + 3;
    register double d8 __asm__("d8") = (double)salt;
    register double d15 __asm__("d15") = (double)salt + 1;

    __asm__ volatile(""
                     : "+r"(x20), "+r"(x21), "+r"(x27), "+r"(x28), "+w"(d8),
                       "+w"(d15));
    turn(pair);
    __asm__ volatile(""
                     : "+r"(x20), "+r"(x21), "+r"(x27), "+r"(x28), "+w"(d8),
                       "+w"(d15));
    wrong = (x20 ^ salt) | (x21 ^ (salt + 1)) | (x27 ^ (salt + 2)) |
            (x28 ^ (salt + 3));
    wrong |= d8 != (double)salt || d15 != (double)salt + 1;
#endif
    return wrong == 0;
}

static void registers_body(struct pair *pair)
{
    inner_kept = keep_registers(pair, pair_leave, 0x5555555555555500u);
}

static const char *case_registers_survive(void)
{
    struct pair pair;
    int outer_kept;

    inner_kept = 0;
    pair_begin(&pair, registers_body);
    pair_enter(&pair); /* the inner side now holds its patterns */
    outer_kept = keep_registers(&pair, pair_enter, 0x1234567812345600u);
    free(pair.stack);
    if (!outer_kept)
        return "the outer side lost a register";
    return inner_kept ? NULL : "the inner side lost a register";
}

/* ----------------------------------------------------------- file locals */

/* Its address escapes nowhere, so a compiler that saw through the switch could
 * keep it in a register over it. */
static uint64_t hidden_count;

static void hidden_body(struct pair *pair)
{
    for (int i = 0; i < 1000; i++) {
        hidden_count++;
        pair_leave(pair);
    }
}

static const char *case_file_local_variable_is_seen(void)
{
    struct pair pair;

    hidden_count = 0;
    pair_begin(&pair, hidden_body);
    for (uint64_t i = 0; i < 1000; i++) {
        uint64_t before = hidden_count;

        pair_enter(&pair);
        if (hidden_count != before + 1)
            return "a change made by the other side was not seen";
    }
    pair_enter(&pair);
    free(pair.stack);
    return NULL;
}

static const struct {
    const char *name;
    const char *(*run)(void);
} switch_cases[] = {
    {"million_switches_lose_nothing", case_million_switches},
    {"values_survive_a_switch", case_values_survive},
    {"registers_survive_a_switch", case_registers_survive},
    {"file_local_variable_is_seen", case_file_local_variable_is_seen},
};

enum { SWITCH_CASES = sizeof(switch_cases) / sizeof(switch_cases[0]) };

#endif
