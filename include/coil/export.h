/**
 * @file
 * Marks that every public header needs: which symbols the library exports and
 * how a C++ compiler sees them.
 */
#ifndef COIL_EXPORT_H
#define COIL_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/** A symbol the library exports; all others stay hidden. */
#define COIL_API __attribute__((visibility("default")))

/** The compiler warns when the result of a call so marked is dropped. */
#define COIL_MUST_USE __attribute__((warn_unused_result))

#ifdef __cplusplus
/** Opens a block of declarations with C linkage. */
#define COIL_BEGIN_DECLS extern "C" {
/** Closes what COIL_BEGIN_DECLS opened. */
#define COIL_END_DECLS }
#else
/** Opens a block of declarations with C linkage. */
#define COIL_BEGIN_DECLS
/** Closes what COIL_BEGIN_DECLS opened. */
#define COIL_END_DECLS
#endif

#endif
