#include "histogram.h"

static unsigned shift_of(uint64_t value)
{
    unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);

    return bits > HISTOGRAM_STEP_BITS + 1 ? bits - HISTOGRAM_STEP_BITS - 1 : 0;
}

void histogram_record(struct histogram *histogram, uint64_t value)
{
    unsigned shift = shift_of(value);

    histogram->counts[shift * HISTOGRAM_STEPS + (value >> shift)]++;
    histogram->total++;
}

/* The middle of the range of values that share this counter. */
static uint64_t value_at(unsigned index)
{
    unsigned shift = 0;

    if (index >= 2 * HISTOGRAM_STEPS)
        shift = index / HISTOGRAM_STEPS - 1;
    return ((uint64_t)(index - shift * HISTOGRAM_STEPS) << shift) +
           ((uint64_t)1 << shift) / 2;
}

uint64_t histogram_quantile(const struct histogram *histogram, double fraction)
{
    uint64_t wanted = (uint64_t)(fraction * (double)histogram->total);
    uint64_t seen = 0;

    for (unsigned i = 0; i < HISTOGRAM_SIZE; i++) {
        seen += histogram->counts[i];
        if (seen > wanted || (seen && seen == histogram->total))
            return value_at(i);
    }
    return 0;
}
