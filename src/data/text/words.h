/* The words of a text. All Local. */
#pragma once

#include "emass/status.h"

#include <stddef.h>

enum { EM_LONGEST_WORD = 128 }; /* bytes */

/* Receives a word, which is not terminated by a zero and is valid during the call. */
typedef em_status em_words_take(void *to, const char *word, size_t length);

/*
 * Calls `take` with each word of a text in UTF-8, in their order, until a status is not EM_OK. A
 * word is a run of letters, marks and digits (Unicode categories L, M and N) with at least one
 * letter and two characters; an apostrophe between two letters belongs to it. Words are converted
 * to lower case and composed form (NFC), and apostrophes to '. A run of more than EM_LONGEST_WORD
 * bytes is no word. Invalid UTF-8 separates words. Errors: those of `take`; EM_EMEMORY.
 */
em_status em_words_each(const char *text, size_t length, em_words_take *take, void *to);
