/*
 * Corpora in text, plain or packed: the input is N_OPTION bytes of options and the file. What is
 * accepted holds documents of words in order, the same for one shard as for several, and when it is
 * scanned some documents at a time.
 */
#include "fuzz/fuzz.h"

#include "base/memory.h"
#include "data/corpus/corpus_table.h"

enum { FORMAT, WORDS, SHARDS, N_OPTION };

static void is_sound(const em_corpus *corpus)
{
    const em_rows all = {.all = true};

    REQUIRE(em_corpus_fetch((em_corpus *)corpus, &all) == EM_OK);
    for (int64_t d = 0; d < corpus->n_local; d++) {
        const em_document of = em_corpus_fetched(corpus, d);
        for (int64_t k = 0; k < of.n; k++) {
            REQUIRE(of.word[k] >= 0 && of.word[k] < corpus->n_word && of.count[k] > 0);
            REQUIRE(k == 0 || of.word[k] > of.word[k - 1]);
        }
    }
}

/* Shards have the documents between them, and no other. */
static void in_shards(const em_corpus_options *options, int64_t n_word, int64_t tile,
                      int64_t n_shard, const em_corpus *whole)
{
    int64_t next = 0;

    for (int64_t shard = 0; shard < n_shard; shard++) {
        em_corpus *part;
        REQUIRE(em_corpus_read(options, n_word, tile, shard, n_shard, &part) == EM_OK);
        is_sound(part);
        REQUIRE(part->n_local == 0 || part->first_document == next);
        REQUIRE(part->hash == whole->hash && part->n_token == whole->n_token);
        next += part->n_local;
        em_corpus_destroy(&part);
    }
    REQUIRE(next == whole->n_document);
}

static em_status count_rows(void *to, const em_table *table)
{
    *(int64_t *)to += table->n_row;
    return EM_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    em_corpus_options options = {0};
    em_corpus *corpus = NULL;
    em_table *table = NULL;
    int64_t n_word, n_row = 0;
    em_status status;

    if (size < N_OPTION)
        return 0;
    n_word = data[WORDS] % 64;
    options.format = data[FORMAT] % EM_N_CORPUS_FORMAT;
    options.data = (char *)fuzz_file(data + N_OPTION, size - N_OPTION);
    status = em_corpus_read(&options, n_word, 0, 0, 1, &corpus);
    REQUIRE(!status || *em_error_text());
    if (!status) {
        is_sound(corpus);
        in_shards(&options, n_word, data[SHARDS] % 2 * 8, 1 + data[SHARDS] / 64, corpus);
        REQUIRE(em_corpus_scan(&options, n_word, count_rows, &n_row, &table) == EM_OK);
        REQUIRE(n_row == corpus->n_document);
        em_table_destroy(&table);
    }
    em_corpus_destroy(&corpus);
    return 0;
}
