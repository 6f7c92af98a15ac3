#include "base/seam.h"

#ifdef COIL_SEAM

_Thread_local struct coil__seam coil__seam = {.fail_call = COIL__CALL_COUNT};
_Atomic long coil__seam_allocations;

int coil__seam_error(enum coil__call call)
{
    struct coil__seam *plan = &coil__seam;

    plan->calls_of[call]++;
    if (plan->fail_call != COIL__CALL_COUNT && plan->fail_call != call)
        return 0;
    plan->calls++;
    if (!plan->fail_at || plan->calls < plan->fail_at ||
        plan->calls > plan->fail_at + plan->fail_repeat)
        return 0;
    return plan->fail_error;
}

#else

/* A translation unit must hold something. */
typedef int coil__seam_is_absent;

#endif
