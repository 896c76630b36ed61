/* The creation time of an output and the program that wrote it, as stored in the file. */
#pragma once

#include "emass/status.h"

#include "io/draws/writer.h"

#include <stdbool.h>

typedef struct em_created {
    bool reproducible; /* SOURCE_DATE_EPOCH is set: the file omits what differs between runs */
    char text[32];     /* UTC, such as 2024-05-01T12:00:00Z */
} em_created;

/* The attributes of a file and of each of its groups that name the program and the time, as ArviZ
 * has them. */
typedef struct em_signature {
    em_text_attribute text[6];
} em_signature;

/* `created` is borrowed for as long as the signature is used. Local. */
em_signature em_created_signature(const em_created *created);

/* Returns the current time, or that of SOURCE_DATE_EPOCH in seconds since 1970. Rank 0 alone reads
 * the clock and the environment, which may differ between ranks. Collective. Errors, agreed:
 * EM_EUSAGE, if the variable is not digits, or the year is too large. */
em_status em_created_read(em_created *out);
