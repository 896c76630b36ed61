/* A corpus in HDF5 whose documents are read only when they are needed. */
#pragma once

#include "data/corpus/corpus.h"

/* Opens the file that corpus->path names and fills in all else, after one pass over the file in
 * which each rank checks its part. Collective. Errors, agreed: as em_corpus_read. */
em_status em_corpus_stream_open(em_corpus *corpus, int64_t n_word, int64_t tile, int64_t shard,
                                int64_t n_shard);
void em_corpus_stream_close(em_corpus_stream **stream); /* NULL-safe. Local. */

/* em_corpus_fetch and em_corpus_fetched for a corpus that is read when needed. Local. */
em_status em_corpus_stream_fetch(const em_corpus *corpus, const em_rows *rows);

/* Fetches the documents first .. first + *count - 1 of this shard, or fewer if they have many
 * words: sets *count, at least 1. Local. Errors: those of em_corpus_fetch. */
em_status em_corpus_stream_fetch_some(const em_corpus *corpus, int64_t first, int64_t *count);
em_document em_corpus_stream_fetched(const em_corpus_stream *stream, int64_t k);
