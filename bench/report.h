/*
 * What the echo benchmark measured, and how it compares with the budgets.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdbool.h>

enum subject { FLOOR_A, FLOOR_B, SERVER, SUBJECTS };

enum metric {
    CPU,       /* us of the server per echo, connections established */
    WHOLE_CPU, /* the same with connecting and closing */
    RATE,      /* echoes per second */
    P50,       /* us */
    P99,       /* us */
    BUSY,      /* share of its core that the server used */
    LOAD_CPU,  /* us of the load per echo */
    METRICS
};

enum { PAIRS_MAX = 1000 };

/* What a server said when it ended, and how many echoes it had made. */
struct counts {
    double echoes;
    double sqes;
    double cqes;
    double enters;
};

struct results {
    unsigned connections;
    unsigned pairs;
    double samples[SUBJECTS][METRICS][PAIRS_MAX];
    struct counts counts[SUBJECTS];
    double seconds; /* that the rounds took */
    double others;  /* s of CPU time that other processes used meanwhile */
};

/* The figures. */
void report_results(const struct results *results);

/*
 * Compares with the budgets. `cpu_budget` is how far the median of server over
 * floor may be above that of floor over floor. False if it is further.
 */
bool report_verdict(const struct results *results, double cpu_budget,
                    bool open_loop);

#endif
