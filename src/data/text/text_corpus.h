/* A corpus from documents in text. One pass over the documents chooses the words; with phrases it
 * takes three passes. Each scan is another pass. Only word counts and one document are in memory.
 * All Local. */
#pragma once

#include "data/corpus/corpus_table.h"
#include "data/text/documents.h"

/* Which words the corpus has. */
typedef struct em_text_options {
    em_documents_options documents;
    const char
        *stop_words; /* words to leave out: "english", "none", or a file with one word a line */
    int64_t least_documents; /* a word must be in at least this many documents */
    double most_share;       /* and in at most this share of all documents */
    int64_t most_words;      /* if there are more, those with the most tokens are kept */
    double phrases; /* neighbours a b, each in at least `least_documents`, become one word if (n_ab
                       - least_documents) n_words / (n_a n_b) exceeds this; 0: no phrases */
    const char *like; /* an HDF5 corpus whose words are used; NULL: none */
} em_text_options;

/* A text of each document. */
typedef struct em_document_texts {
    char **text;
    int64_t n, capacity;
    bool given; /* one at least is no empty text */
} em_document_texts;

/* What a scan has read. */
typedef struct em_text_scanned {
    em_document_texts names, labels;
    int64_t n_token, n_dropped; /* all tokens, and those whose word is not in the vocabulary */
} em_text_scanned;

typedef struct em_text_corpus em_text_corpus;

/* Chooses the words. `options` is borrowed. Errors: those of em_documents_next; EM_EDATA where no
 * word is left. */
em_status em_text_corpus_create(const em_text_options *options, em_text_corpus **out);
void em_text_corpus_destroy(em_text_corpus **corpus); /* NULL-safe. */

/* Reads all documents, as em_corpus_scan does; *out names the words. Words are in the order of
 * their bytes, or as in `like`. Errors: likewise. */
em_status em_text_corpus_scan(em_text_corpus *corpus, em_corpus_take *take, void *to,
                              em_table **out);

/* What the last scan has read. */
const em_text_scanned *em_text_corpus_scanned(const em_text_corpus *corpus);
