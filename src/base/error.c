#include <coil/error.h>
#include <errno.h>
#include <string.h>

/* The library's own meaning where errno's text would mislead. */
static const char *error_own_text(int code)
{
    switch (code) {
    case ECANCELED:
        return "The wait was cancelled";
    case ETIME:
        return "The time limit passed";
    case ECONNABORTED:
        return "The stream ended too early";
    case EBADF:
        return "The object is closed";
    default:
        return NULL;
    }
}

const char *coil_error_name(int result)
{
    const char *name;

    if (result >= 0)
        return "0";
    name = strerrorname_np(-result);
    return name ? name : "unknown error";
}

const char *coil_error_text(int result)
{
    const char *text;

    if (result >= 0)
        return "Success";
    text = error_own_text(-result);
    if (!text)
        text = strerrordesc_np(-result);
    return text ? text : "Unknown error";
}
