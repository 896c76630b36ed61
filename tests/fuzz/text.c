/*
 * Documents in text: the input is N_OPTION bytes of options and the file. What is accepted is the
 * same corpus in every scan, with as many names as documents.
 */
#include "fuzz/fuzz.h"

#include "base/memory.h"
#include "data/text/text_corpus.h"

enum { COLUMN, PHRASES, STOP, N_OPTION };

typedef struct sum {
    int64_t n_row;
    uint64_t hash;
} sum;

static em_status add_rows(void *to, const em_table *table)
{
    sum *s = to;

    for (int64_t k = 0; k < table->n_value; k++)
        REQUIRE(table->column[k] >= 0 && table->value[k] >= 1);
    s->hash += em_table_hash_rows(table, 0, table->n_row, s->n_row);
    s->n_row += table->n_row;
    return EM_OK;
}

static void scan_twice(em_text_corpus *corpus)
{
    sum first = {0}, second = {0};
    em_table *table = NULL;
    em_status status = em_text_corpus_scan(corpus, add_rows, &first, &table);

    REQUIRE(!status || *em_error_text());
    if (!status) {
        em_table_destroy(&table);
        REQUIRE(em_text_corpus_scan(corpus, add_rows, &second, &table) == EM_OK);
        REQUIRE(first.n_row == second.n_row && first.hash == second.hash);
        const em_text_scanned *scanned = em_text_corpus_scanned(corpus);
        REQUIRE(scanned->names.n == first.n_row);
        REQUIRE(scanned->n_dropped >= 0 && scanned->n_dropped < scanned->n_token);
    }
    em_table_destroy(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    em_text_options options = {.least_documents = 1, .most_share = 1, .most_words = 20};
    em_text_corpus *corpus = NULL;

    if (size < N_OPTION)
        return 0;
    options.documents.path = fuzz_file(data + N_OPTION, size - N_OPTION);
    options.documents.text = data[COLUMN] % 2 ? "a" : NULL;
    options.documents.name = data[COLUMN] % 4 == 1 ? "b" : NULL;
    options.phrases = data[PHRASES] % 2 ? data[PHRASES] / 64. : 0;
    options.stop_words = data[STOP] % 2 ? "english" : "none";
    const em_status status = em_text_corpus_create(&options, &corpus);
    REQUIRE(!status || *em_error_text());
    if (!status)
        scan_twice(corpus);
    em_text_corpus_destroy(&corpus);
    return 0;
}
