#include "emass/status.h"

#include "base/default_message.h"
#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

/* The text of the last failure, one per thread as errno. Callers read it right after the failure.
 * So no function needs an argument for errors. */
static _Thread_local char error_text[2048];
static _Thread_local uint64_t n_message;

em_status em_fail(em_status status, const char *format, ...)
{
    char text[sizeof error_text];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof text, format,
              arguments); /* by way of `text`: an argument may be the old message */
    va_end(arguments);
    /* One line, and nothing a hostile file could send to a terminal. */
    em_text_escape(text, error_text, sizeof error_text);
    n_message++;
    return status;
}

uint64_t em_messages_set(void)
{
    return n_message;
}

em_status em_default_message(em_status status, uint64_t before, const char *who)
{
    return status && n_message == before
               ? em_fail(status, "%s returned %d without a message (em_fail)", who, (int)status)
               : status;
}

const char *em_error_text(void)
{
    return error_text;
}

int em_exit_status(em_status status)
{
    const bool of_request = status == EM_EUSAGE || status == EM_ECONFIG || status == EM_EDATA;

    return of_request ? 2 : status == EM_ESTOPPED ? 75 : status < 0;
}
