/*
 * Waits that only time ends.
 */
#ifndef COIL_CORE_SLEEP_H
#define COIL_CORE_SLEEP_H

#include <coil/time.h>

/* 0 after `duration`, -ETIME if `limit` passes first, or -ECANCELED. */
int coil__sleep_for(coil_duration duration, coil_duration limit);

#endif
