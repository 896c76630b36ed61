#include "base/text/append.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void em_append(size_t bytes, char *out, const char *format, ...)
{
    const size_t used = strlen(out);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(out + used, bytes - used, format, arguments);
    va_end(arguments);
}
