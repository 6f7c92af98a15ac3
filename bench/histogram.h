/*
 * A log-linear histogram: 128 steps per power of two, so a value read back is
 * within 1 % of the one recorded, whatever its size, in constant memory.
 */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

enum {
    HISTOGRAM_STEP_BITS = 7,
    HISTOGRAM_STEPS = 1 << HISTOGRAM_STEP_BITS,
    /* Values below 2 * STEPS are kept exactly; one row for each higher bit. */
    HISTOGRAM_SIZE = (64 - HISTOGRAM_STEP_BITS + 1) * HISTOGRAM_STEPS,
};

struct histogram {
    uint64_t total;
    uint32_t counts[HISTOGRAM_SIZE];
};

void histogram_record(struct histogram *histogram, uint64_t value);

/* The value that `fraction` (0..1) of the records do not exceed; 0 if none. */
uint64_t histogram_quantile(const struct histogram *histogram, double fraction);

#endif
