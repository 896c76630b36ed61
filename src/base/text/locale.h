/* Reads and prints numbers with a decimal point whatever locale the host program has set. */
#pragma once

#include <locale.h>

typedef struct em_locale {
    locale_t host, own;
} em_locale;

/* From here to em_locale_leave the calling thread reads and prints numbers as in C. Pairs may be
 * nested. Local. */
em_locale em_locale_enter(void);
void em_locale_leave(em_locale *locale);
