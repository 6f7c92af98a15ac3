/*
 * Child processes that print lines. They die with the process that started
 * them, and only children started here are ever signalled.
 */
#ifndef BENCH_PROCESS_H
#define BENCH_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

struct process {
    pid_t pid;    /* 0: none */
    FILE *output; /* its standard output */
};

/* `core` is where it may run, or -1 for anywhere. False: nothing started. */
bool process_start(struct process *process, char *const arguments[], int core);

/* The next line, without its end. False at the end of the output. */
bool process_read_line(struct process *process, char *line, size_t size);

/* Waits for the end; true if it exited with 0. */
bool process_wait(struct process *process);

/* ns of CPU time of all its threads, ended ones too; negative if unknown. */
double process_cpu(const struct process *process);

/* Waits until it has stopped using its CPU, a second at most. */
void process_settle(const struct process *process);

/* Of the monotonic clock. */
double clock_seconds(void);

/* ns of CPU time that all processes together have used; negative if unknown. */
double machine_cpu(void);

/* The same for the children that have been waited for. */
double ended_children_cpu(void);

/* Finds "name value" among the words of a line, whatever else is there. */
bool find_value(const char *line, const char *name, double *ret_value);

/* The first and second core this process may use; -1 if there is only one. */
void find_cores(int *ret_first, int *ret_second);

#endif
