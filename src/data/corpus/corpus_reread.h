/* A corpus in text that one rank reads again whenever its documents are needed. */
#pragma once

#include "data/corpus/corpus.h"

/* Calls `see`, unless NULL, with all documents of a corpus in text, and sets all but the path of
 * the corpus. Local. Errors: those of em_corpus_open. */
em_status em_corpus_read_through(em_corpus *corpus, const em_corpus_options *options,
                                 int64_t n_word, em_corpus_see *see, void *to);

/* Calls `see` with all documents of a corpus that em_corpus_read_through has read. Local. Errors:
 * those of em_corpus_open; EM_EDATA if the file has changed. */
em_status em_corpus_reread(const em_corpus *corpus, em_corpus_see *see, void *to);
