/**
 * @file
 * Which version of the library this is.
 */
#ifndef COIL_VERSION_H
#define COIL_VERSION_H

#include <coil/export.h>

COIL_BEGIN_DECLS

#define COIL_VERSION_MAJOR 0 /**< incompatible changes */
#define COIL_VERSION_MINOR 1 /**< additions */
#define COIL_VERSION_PATCH 0 /**< repairs */

/** The version of the headers as one number: 0xMMmmpp. */
#define COIL_VERSION                                                           \
    (COIL_VERSION_MAJOR << 16 | COIL_VERSION_MINOR << 8 | COIL_VERSION_PATCH)

/** COIL_VERSION of the library that is linked. Any thread. */
COIL_API int coil_version(void);

COIL_END_DECLS

#endif
