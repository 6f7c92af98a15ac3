#include "base/message.h"
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MESSAGE_MAX = 512 };

/* write(2), not stdio: this may run in a signal handler. */
static void message_to_stderr(coil_message_kind kind, const char *text)
{
    char line[MESSAGE_MAX + 16];
    int length = snprintf(line, sizeof(line), "coil: %s\n", text);

    (void)kind;
    if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0)
        return; /* nowhere left to say so */
}

#ifdef COIL_DEBUG
static _Atomic(coil_message_handler *) message_handler = message_to_stderr;
#else
static _Atomic(coil_message_handler *) message_handler;
#endif

coil_message_handler *coil_set_message_handler(coil_message_handler *handler)
{
    return atomic_exchange(&message_handler, handler);
}

void coil__message(coil_message_kind kind, const char *format, ...)
{
    coil_message_handler *handler = atomic_load(&message_handler);
    char text[MESSAGE_MAX];
    va_list arguments;

    if (!handler)
        return;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    handler(kind, text);
}

void coil__message_last(coil_message_kind kind, const char *text)
{
    coil_message_handler *handler = atomic_load(&message_handler);

    (handler ? handler : message_to_stderr)(kind, text);
}

void coil__message_abort(coil_message_kind kind, const char *format, ...)
{
    char text[MESSAGE_MAX];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    coil__message_last(kind, text);
    abort();
}
