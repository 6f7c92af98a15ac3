/**
 * @file
 * Durations and points in time: 64-bit nanoseconds of the monotonic clock.
 *
 * A duration <= 0 means "now", one that reaches past the end of time means
 * "never"; no arithmetic on them overflows inside the library.
 */
#ifndef COIL_TIME_H
#define COIL_TIME_H

#include <coil/export.h>

COIL_BEGIN_DECLS

/** A length of time in nanoseconds. */
typedef int64_t coil_duration;

/** A point in time: nanoseconds of CLOCK_MONOTONIC. */
typedef int64_t coil_time;

/** No limit at all. */
#define COIL_FOREVER INT64_MAX

/** `count` times `unit`, held inside the range of a duration. A constant
 * expression if its arguments are; evaluates `count` more than once. (Compared
 * as floating point: with integers, compilers complain about comparisons that
 * are always false for the narrower types.) */
#define COIL_DURATION(count, unit)                                             \
    ((double)(count) >= (double)(COIL_FOREVER / (unit)) ? COIL_FOREVER         \
     : (double)(count) <= -(double)(COIL_FOREVER / (unit))                     \
         ? -COIL_FOREVER                                                       \
         : (coil_duration)((uint64_t)(count) * (uint64_t)(unit)))

/** Microseconds as a duration. Evaluates its argument more than once. */
#define COIL_US(count) COIL_DURATION(count, 1000)
/** Milliseconds as a duration. Evaluates its argument more than once. */
#define COIL_MS(count) COIL_DURATION(count, 1000000)
/** Seconds as a duration. Evaluates its argument more than once. */
#define COIL_S(count) COIL_DURATION(count, 1000000000)

/**
 * The present time, read from the clock at each call.
 *
 * Waits: no. Any thread; safe in a signal handler.
 */
COIL_API coil_time coil_now(void);

COIL_END_DECLS

#endif
