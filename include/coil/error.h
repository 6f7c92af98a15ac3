/**
 * @file
 * How the library tells what went wrong.
 *
 * Every call returns a result >= 0 or a negative errno; none reports through
 * errno. Codes of the underlying system call pass through. These have a
 * meaning of their own:
 *
 *   -ECANCELED     an enclosing scope was cancelled, or the context stopped
 *   -ETIME         this call's own limit passed (-ETIMEDOUT is TCP's verdict
 *                  that the peer is gone)
 *   -ECONNABORTED  an exact read met end of stream before its last byte
 *   -EBADF         the object was closed, perhaps while you waited, or this is
 *                  a stale copy of its handle
 *   -EBUSY         a second reader or writer on one stream; a socket with
 *                  requests in flight in another context; a second awaiter
 *   -EXDEV         an object of another context
 *   -EPERM         called from the wrong place: the wrong thread, or a waiting
 *                  call outside a task
 */
#ifndef COIL_ERROR_H
#define COIL_ERROR_H

#include <coil/export.h>

COIL_BEGIN_DECLS

/**
 * The name of a result, such as "ECONNREFUSED"; "0" for results >= 0.
 *
 * Returns borrowed, for ever. Any thread; safe in a signal handler.
 */
COIL_API const char *coil_error_name(int result);

/**
 * A result in words, such as "Connection refused", with the library's own
 * meaning where it has one.
 *
 * Returns borrowed, for ever. Any thread.
 */
COIL_API const char *coil_error_text(int result);

/** An error with a sentence a person can act on. */
typedef struct coil_error {
    int code;       /**< a negative errno, 0 if nothing went wrong */
    char text[252]; /**< one line without a newline, terminated */
} coil_error;

/** What a message of the library is about. */
typedef enum coil_message_kind {
    COIL_MESSAGE_MISUSE,   /**< a call that should not have been made */
    COIL_MESSAGE_STALL,    /**< a task that keeps others or the end waiting */
    COIL_MESSAGE_OVERFLOW, /**< a stack or a completion queue ran over */
    COIL_MESSAGE_LEAK,     /**< something was left behind */
    COIL_MESSAGE_FAILURE   /**< the kernel refused what must not fail */
} coil_message_kind;

/**
 * Receives each message: one line of text without a newline, borrowed until
 * this returns. It runs on the thread that found the trouble, on a stack
 * overflow inside a signal handler; it must not call the library.
 */
typedef void coil_message_handler(coil_message_kind kind, const char *text);

/**
 * Choose who receives what the library has to say.
 *
 *   handler  kept until replaced; NULL: nobody
 *
 * Until the first call debug builds write to stderr and release builds are
 * silent, except just before an abort.
 *
 * Returns the handler so far, NULL if nobody. Any thread.
 */
COIL_API coil_message_handler *
coil_set_message_handler(coil_message_handler *handler);

COIL_END_DECLS

#endif
