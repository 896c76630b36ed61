/* Text that is put together in a buffer of fixed size. */
#ifndef EM_BASE_TEXT_APPEND_H
#define EM_BASE_TEXT_APPEND_H

#include "emass/status.h"

#include <stddef.h>

/* Appends formatted text to the string in out[bytes]; what does not fit is cut off. Local. */
void em_append(size_t bytes, char *out, const char *format, ...) EM_PRINTF(3, 4);

#endif
