/*
 * Cancellation as a level: a task looks at its innermost scope before each
 * wait, and a cancel reaches the waits that are under way.
 */
#ifndef COIL_CORE_SCOPE_H
#define COIL_CORE_SCOPE_H

#include <stdbool.h>

struct coil__scope {
    bool cancelled;
};

#endif
