/*
 * Names the task whose stack ran into its guard page, then lets the process
 * die of the signal as it would have.
 */
#ifndef COIL_COROUTINE_OVERFLOW_H
#define COIL_COROUTINE_OVERFLOW_H

#include <stdbool.h>
#include <stddef.h>

/* Writes one line about the stack whose guard holds `address` and returns
 * true, or false if it is nobody's. Called inside the signal handler. */
typedef bool coil__overflow_describe(const void *address, char *ret_text,
                                     size_t capacity);

/* Installs the handler, once per process; the handler before it is called for
 * every other fault. */
void coil__overflow_watch(coil__overflow_describe *describe);

/* Gives the thread a stack for the handler unless it has one already. Returns
 * what coil__overflow_leave_thread wants back. */
void *coil__overflow_enter_thread(void);
void coil__overflow_leave_thread(void *stack);

#endif
