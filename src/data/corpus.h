/* A corpus of documents as bags of words: those that this shard holds. */
#ifndef EM_DATA_CORPUS_H
#define EM_DATA_CORPUS_H

#include "emass/field.h"
#include "emass/status.h"

#include <stddef.h>
#include <stdint.h>

typedef enum em_corpus_format {
    EM_CORPUS_AUTO,
    EM_CORPUS_LDA_C,
    EM_CORPUS_DOCWORD
} em_corpus_format;

extern const char *const em_corpus_format_names[];

/* First member of the options of a model on a corpus. */
typedef struct em_corpus_options {
    char *data;       /* the file */
    int format;       /* em_corpus_format */
    char *vocabulary; /* one word a line; NULL: words have numbers alone */
} em_corpus_options;

#define EM_CORPUS_FIELDS(options)                                                                  \
    {"data",                                                                                       \
     EM_FIELD_PATH,                                                                                \
     offsetof(options, corpus.data),                                                               \
     0,                                                                                            \
     0,                                                                                            \
     NULL,                                                                                         \
     NULL,                                                                                         \
     NULL,                                                                                         \
     "corpus: LDA-C (N id:count ...) or UCI docword, plain, .gz or .xz"},                          \
        {"format",                                                                                 \
         EM_FIELD_CHOICE,                                                                          \
         offsetof(options, corpus.format),                                                         \
         0,                                                                                        \
         0,                                                                                        \
         "auto",                                                                                   \
         em_corpus_format_names,                                                                   \
         NULL,                                                                                     \
         "of the corpus; auto: docword when the first line is one number above 0"},                \
    {                                                                                              \
        "vocabulary", EM_FIELD_PATH, offsetof(options, corpus.vocabulary), 0, 0, "", NULL, NULL,   \
            "words of the corpus, one a line, in the order of their ids; absent: numbers"          \
    }

/* Entries start[i] <= k < start[i + 1] are of local document i: count[k] times the word word[k],
 * in the order of the file. */
typedef struct em_corpus {
    char *path;
    int64_t n_document, n_token; /* of the whole corpus */
    int64_t n_word;              /* of the vocabulary, or the largest id that was found, + 1 */
    char **name;                 /* [n_word]; NULL: there is no vocabulary */
    int64_t n_local;             /* documents of this shard, neighbours */
    int64_t first_document;      /* the number of the first of them in the corpus */
    int64_t first_token;         /* tokens in the corpus before that */
    int64_t *start;              /* [n_local + 1] */
    int32_t *word, *count;
    uint64_t hash; /* of the content of both files */
    int64_t start_capacity, word_capacity, count_capacity;
} em_corpus;

/*
 * Reads the whole file, checks all of it, and keeps the documents of shard `shard` of `n_shard`:
 * shards have about as many tokens each, for which more than one of them read the file twice.
 * `n_word` 0: as many words as the vocabulary has, or as are found; otherwise as many as that.
 * Local; every shard fails with the same message. Errors: EM_EDATA, one line naming file and line,
 * what was found and what was expected; EM_EMEMORY. The site "data" of base/fault.h fails here.
 */
em_status em_corpus_read(const em_corpus_options *options, int64_t n_word, int64_t shard,
                         int64_t n_shard, em_corpus **out);
void em_corpus_destroy(em_corpus **corpus); /* NULL-safe. */

#endif
