#include "emass/status.h"

#include <stdarg.h>
#include <stdio.h>

/* Like errno: one per thread, read right after a failure. The alternative, an error argument in
 * every signature, would bury the equations. */
static _Thread_local char error_text[2048];

em_status em_fail(em_status status, const char *format, ...)
{
    char text[sizeof error_text];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format,
              arguments); /* by way of `text`: an argument may be the old message */
    va_end(arguments);
    snprintf(error_text, sizeof error_text, "%s", text);
    for (char *c = error_text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = ' '; /* one line, and nothing a hostile file could send to a terminal */
    return status;
}

const char *em_error_text(void)
{
    return error_text;
}

int em_exit_status(em_status status)
{
    switch (status) {
    case EM_EUSAGE:
    case EM_ECONFIG:
    case EM_EDATA:
        return 2;
    case EM_ESTOPPED:
        return 75;
    default:
        return status < 0 ? 1 : 0;
    }
}
