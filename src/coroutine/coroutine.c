#include "coroutine/coroutine.h"

COIL__SUSPENDS void coil__coroutine_switch(struct coil__coroutine *from,
                                           struct coil__coroutine *to)
{
    coil__note_leave(&from->note, &to->note, false);
    coil__machine_switch(&from->machine, &to->machine);
    coil__note_arrive(&from->note);
}

_Noreturn COIL__SUSPENDS void
coil__coroutine_finish(struct coil__coroutine *from, struct coil__coroutine *to)
{
    coil__note_leave(&from->note, &to->note, true);
    coil__machine_switch(&from->machine, &to->machine);
    __builtin_unreachable();
}
