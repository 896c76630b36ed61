/* A corpus of documents as bags of words. Each shard holds some of the documents. */
#pragma once

#include "emass/field.h"
#include "emass/model.h"
#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum em_corpus_format {
    EM_CORPUS_AUTO,
    EM_CORPUS_LDA_C,
    EM_CORPUS_DOCWORD,
    EM_CORPUS_MARKET,         /* Matrix Market, rows are documents */
    EM_CORPUS_MARKET_COLUMNS, /* columns are */
    EM_N_CORPUS_FORMAT
} em_corpus_format;

extern const char *const em_corpus_format_names[];

/* First member of the options of a model on a corpus. */
typedef struct em_corpus_options {
    char *data;       /* the file */
    int format;       /* em_corpus_format */
    char *vocabulary; /* one word a line; NULL: words have numbers alone, or HDF5 names them */
    bool stream;      /* read documents when they are needed, and do not hold them in memory */
} em_corpus_options;

/* The rows of those options. */
#define EM_CORPUS_FIELDS                                                                           \
    EM_PATH(em_corpus_options, data,                                                               \
            .doc = "corpus: LDA-C (N id:count ...), UCI docword or Matrix Market, plain, .gz or "  \
                   ".xz; HDF5 by emass convert, or AnnData (.h5ad)"),                              \
        EM_CHOICE(em_corpus_options, format, .fallback = "auto",                                   \
                  .choices = em_corpus_format_names,                                               \
                  .doc = "format of a corpus in text; auto: found from the first line; in Matrix " \
                         "Market (mtx) rows are documents, with mtx-columns columns are"),         \
        EM_PATH(                                                                                   \
            em_corpus_options, vocabulary, .fallback = "",                                         \
            .doc = "words of the corpus, one a line, in the order of their ids; absent: numbers"), \
        EM_BOOL(em_corpus_options, stream, .fallback = "false",                                    \
                .doc =                                                                             \
                    "documents of an HDF5 corpus are read when they are needed, and not held in "  \
                    "memory")

/* The open file of a streamed corpus. */
typedef struct em_corpus_stream em_corpus_stream;

/* The corpus of one shard. In a corpus in memory, local document i has the entries start[i] <= k <
 * start[i + 1]: count[k] times the word word[k], with words in ascending order. */
typedef struct em_corpus {
    char *path;
    int64_t n_document, n_token; /* of the whole corpus */
    int64_t n_word;              /* size of the vocabulary, or the largest id in the data plus 1 */
    char **name;                 /* [n_word]; NULL: there is no vocabulary */
    int64_t n_local;             /* documents of this shard, neighbours */
    int64_t first_document;      /* the number of the first of them in the corpus */
    int64_t first_token;         /* tokens in the corpus before that */
    int64_t part;   /* documents in a part; a shard has whole parts (data/shard/shard_assignment.h);
                       1: shards have about equal numbers of tokens */
    uint64_t hash;  /* hash of words and counts; does not depend on the file format */
    int64_t *start; /* [n_local + 1]; NULL: streamed */
    int32_t *word, *count;
    em_corpus_stream *stream; /* NULL: held, or text that is read again */
    bool is_reread;           /* text of em_corpus_open, which em_corpus_each reads again */
    int format;               /* of that text, em_corpus_format */
    /* Documents that were fetched last. */
    int64_t first_fetched;
    const int64_t *fetched; /* NULL: neighbours */
} em_corpus;

/* One document: count[k] times the word word[k] for k < n, words in ascending order. */
typedef struct em_document {
    int64_t n;
    const int32_t *word, *count;
} em_document;

/* Reads the documents of shard `shard` of `n_shard`. With `tile` 0 all shards have about the same
 * number of tokens. Otherwise they have about the same number of documents: whole parts, as
 * em_shard_rows makes them for that tile. Every rank reads and checks a part of the file, and then
 * receives the documents of its shard. Without shards, `shard` is 0 of 1 on all ranks. `n_word` 0:
 * the number of words is that of the vocabulary, or of the words found. Collective. Errors, agreed:
 * EM_EDATA, one line naming file and line (or row), what was found and what was expected;
 * EM_EMEMORY. The site "data" of base/fault.h fails here. */
em_status em_corpus_read(const em_corpus_options *options, int64_t n_word, int64_t tile,
                         int64_t shard, int64_t n_shard, em_corpus **out);
void em_corpus_destroy(em_corpus **corpus); /* NULL-safe. */

/* Calls `see` with each document of a corpus in order; NULL: only reads and checks them. Few are in
 * memory at a time, of text too, whatever options->stream says. This rank reads the whole file.
 * `see` is called before later documents are checked. em_corpus_each calls again with all documents
 * of *out, and reads the file again; em_corpus_fetch must not be called. Local. Errors: those of
 * em_corpus_read and of `see`. */
typedef em_status em_corpus_see(void *to, int64_t d, em_document of);
em_status em_corpus_open(const em_corpus_options *options, int64_t n_word, em_corpus_see *see,
                         void *to, em_corpus **out);

/* Calls `see` as em_corpus_each does, and frees the documents of a corpus in memory meanwhile.
 * Sizes and names remain. Local. Errors: those of em_corpus_each. */
em_status em_corpus_each_once(em_corpus *corpus, em_corpus_see *see, void *to);

/* Makes documents of this shard, given by local numbers, available until the next call. A streamed
 * corpus reads them: a list all at once, and a range with the following documents in advance. So
 * request few at a time. `rows->index` is borrowed. Local. Errors: EM_EDATA, EM_EIO, EM_EMEMORY;
 * none where documents are held in memory. */
em_status em_corpus_fetch(em_corpus *corpus, const em_rows *rows);

/* Number k of the documents fetched last. Local. */
em_document em_corpus_fetched(const em_corpus *corpus, int64_t k);

/* Calls `see` with all documents of this shard in order, d being the local number, until a status
 * is not EM_OK. Local. Errors: those of em_corpus_fetch and of `see`; those of em_corpus_open, if
 * the corpus is of it. */
em_status em_corpus_each(em_corpus *corpus, em_corpus_see *see, void *to);

/* Checks that the words, if they have names, have the names `name` of the file `whose`; NULL: no
 * names are known. Local. Errors: EM_EDATA. */
em_status em_corpus_check_names(const em_corpus *corpus, char *const *name, const char *whose);
