/* Counts words, and numbers them in the order of their first appearance. All Local. */
#pragma once

#include "emass/status.h"

#include <stddef.h>

#include <stdint.h>

typedef struct em_vocabulary em_vocabulary;

/* How often a word was seen, and in how many documents. */
typedef struct em_word_count {
    int64_t tokens, documents;
} em_word_count;

/* Errors: EM_EMEMORY. */
em_status em_vocabulary_create(em_vocabulary **out);
void em_vocabulary_destroy(em_vocabulary **vocabulary); /* NULL-safe. */

int64_t em_vocabulary_size(const em_vocabulary *vocabulary);

/* The number of a word; -1: it is not there. */
int64_t em_vocabulary_find(const em_vocabulary *vocabulary, const char *word, size_t length);

/* Finds the number of a word, or adds the word with counts of 0. NULL: the number is not
 * needed. Errors: EM_EMEMORY; EM_EDATA: more
 * than 2^26 words. */
em_status em_vocabulary_add(em_vocabulary *vocabulary, const char *word, size_t length,
                            int64_t *number);

/* Counts a token of word `number` in document `document`; documents come one after the other. */
void em_vocabulary_count(em_vocabulary *vocabulary, int64_t number, int64_t document);

/* Valid until a word is added. */
const char *em_vocabulary_word(const em_vocabulary *vocabulary, int64_t number);
em_word_count em_vocabulary_counts(const em_vocabulary *vocabulary, int64_t number);
