/*
 * The one sink for everything the library has to tell a person.
 */
#ifndef COIL_BASE_MESSAGE_H
#define COIL_BASE_MESSAGE_H

#include <coil/error.h>

/* Formats one line and hands it to the handler, if there is one. */
void coil__message(coil_message_kind kind, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The last words: to the handler, or else to stderr in every build. */
void coil__message_abort(coil_message_kind kind, const char *format, ...)
    __attribute__((format(printf, 2, 3), noreturn));

/* Like coil__message but never silent: what precedes the process's end. */
void coil__message_last(coil_message_kind kind, const char *text);

#endif
