/* Corpora as tables: documents are rows, words are columns, counts are the numbers. */
#pragma once

#include "data/corpus/corpus.h"
#include "data/table/builder.h"

/* Tokens of a document, and words of a vocabulary. */
enum { EM_LONGEST_DOCUMENT = 50000000, EM_MOST_WORDS = 10000000 };

/* Reads a corpus. Each rank keeps the rows that it has read. The names of columns are NULL where
 * there is no vocabulary. Collective. Errors, agreed: those of em_corpus_read. */
em_status em_corpus_table_read(const em_corpus_options *options, int64_t n_word, em_table **out);

/* Receives a table whose rows are the next documents. It is valid during the call. Local. */
typedef em_status em_corpus_take(void *to, const em_table *table);

/* Reads a corpus in text on this rank alone, and passes some documents at a time to `take`.
 * `n_word` is that of em_corpus_read. *out gets columns and names, but no rows. Local. Errors:
 * likewise; those of `take`. */
em_status em_corpus_scan(const em_corpus_options *options, int64_t n_word, em_corpus_take *take,
                         void *to, em_table **out);

/* Fills an empty table from text. Ids are below `n_word`, the number of words of the file `whose`;
 * 0: any id. `exact`: a header must have that number of words. With `take`, which one rank alone
 * may use, the table does not keep the rows. Collective. Errors, agreed: likewise. */
em_status em_corpus_read_text(const em_corpus_options *options, int64_t n_word, bool exact,
                              const char *whose, em_corpus_take *take, void *to, em_table *table);

/* The words of a vocabulary, name[n_word], both empty before; each freed by em_release, also after
 * a failure. Local. Errors: EM_EDATA, EM_EMEMORY. */
em_status em_corpus_read_words(const char *path, char ***name, int64_t *n_word);

/* Checks that the file is HDF5, which can be streamed, and the same on all ranks. Collective.
 * Errors, agreed: EM_EDATA. */
em_status em_corpus_check_stream(const em_corpus_options *options);

/* Checks that the numbers of held rows are counts; messages number rows from `row`. Local. Errors:
 * EM_EDATA. */
em_status em_corpus_check_counts(const em_table *table, int64_t row);

/* Fails because a table was given in place of a corpus. Local. */
em_status em_corpus_refuse_table(const char *path);

/* Fails because a file that is read several times has changed meanwhile. Local. */
em_status em_corpus_refuse_change(const char *path);

/* Checks that a corpus has at most the known words (0: any number), and that its hash is the one
 * that was written. Local. Errors: EM_EDATA. */
em_status em_corpus_check_words(const char *path, int64_t found, int64_t most);
em_status em_corpus_check_hash(const char *path, uint64_t found, uint64_t written);

/* Advice about a corpus with other words, for messages: "(...)". Local. */
const char *em_corpus_same_words(const char *path);

/* The number of tokens in the held rows first .. first + count - 1. Local. */
int64_t em_corpus_tokens(const em_table *table, int64_t first, int64_t count);
