/* Binary files by their first bytes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* What a file is and how its content becomes a table that can be read. */
typedef struct em_binary_kind {
    const char *bytes;
    size_t n;
    bool certain; /* no text begins so */
    const char *name, *advice;
    const char *expected; /* instead; NULL: text */
} em_binary_kind;

/* The kind of the file whose first line, of `length` bytes, this is; NULL: unknown. Local. */
const em_binary_kind *em_binary_kind_of(const char *line, size_t length);
