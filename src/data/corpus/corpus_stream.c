#include "data/corpus/corpus_stream.h"

#include "base/memory.h"
#include "data/corpus/corpus_table.h"
#include "data/reader/readers.h"
#include "data/shard/shard_assignment.h"
#include "par/grid.h"
#include "par/message.h"
#include "par/world.h"

enum { PASS_DOCUMENTS = 4096, BATCH_ENTRIES = 1 << 18 };

struct em_corpus_stream {
    em_rows_source *source;
    em_numbers_form form;
    em_table *batch; /* documents in memory */
    int32_t *count;  /* [batch->n_value] */
    int64_t count_capacity;
    int64_t *start; /* [2] of a listed document's entries */
};

/* ---------------------------------------------------------------- documents */

/* Reads at most *count documents with about `most` entries; sets *count to those that it has read.
 */
static em_status read_batch(em_corpus_stream *s, int64_t first, int64_t most, int64_t *count)
{
    em_table_clear(s->batch);
    return em_rows_source_read(s->source, first, most, count, s->batch);
}

/* Reads documents likewise, and asks the kernel to read the following ones ahead. */
static em_status fetch_neighbours(em_corpus_stream *s, int64_t first, int64_t most, int64_t *count)
{
    const em_numbers *numbers = em_rows_source_numbers(s->source);
    em_status status = read_batch(s, first, most, count);
    const int64_t next = first + *count;

    if (!status && next < s->form.n_row && s->batch->n_value > 0) {
        const int64_t more = *count < s->form.n_row - next ? *count : s->form.n_row - next;
        em_numbers_ahead(numbers, EM_NUMBERS_START, next, more);
        status = em_numbers_read(numbers, EM_NUMBERS_START, next, 1, s->start);
        if (!status) {
            em_numbers_ahead(numbers, EM_NUMBERS_COLUMN, s->start[0], s->batch->n_value);
            em_numbers_ahead(numbers, EM_NUMBERS_VALUE, s->start[0], s->batch->n_value);
        }
    }
    return status;
}

/* Reads the listed documents. It asks the kernel for all of them before it waits for the first. */
static em_status fetch_listed(em_corpus_stream *s, int64_t before, int64_t count,
                              const int64_t *index)
{
    const em_numbers *numbers = em_rows_source_numbers(s->source);
    em_status status = EM_OK;

    for (int64_t k = 0; k < count; k++)
        em_numbers_ahead(numbers, EM_NUMBERS_START, before + index[k], 2);
    for (int64_t k = 0; !status && k < count; k++) {
        status = em_numbers_read(numbers, EM_NUMBERS_START, before + index[k], 2, s->start);
        if (!status) {
            em_numbers_ahead(numbers, EM_NUMBERS_COLUMN, s->start[0], s->start[1] - s->start[0]);
            em_numbers_ahead(numbers, EM_NUMBERS_VALUE, s->start[0], s->start[1] - s->start[0]);
        }
    }
    em_table_clear(s->batch);
    for (int64_t k = 0; !status && k < count; k++) {
        int64_t one = 1;
        status = em_rows_source_read(s->source, before + index[k], INT64_MAX, &one, s->batch);
    }
    return status;
}

/* Checks the documents in memory, because the file may have changed since. `row` is the number of
 * the first one. */
static em_status take_counts(em_corpus_stream *s, int64_t row)
{
    em_status status = em_corpus_check_counts(s->batch, row);

    status = status ? status : em_reserve(&s->count, &s->count_capacity, 0, s->batch->n_value);
    for (int64_t k = 0; !status && k < s->batch->n_value; k++)
        s->count[k] = (int32_t)s->batch->value[k];
    return status;
}

em_status em_corpus_stream_fetch(const em_corpus *corpus, const em_rows *rows)
{
    em_corpus_stream *s = corpus->stream;
    const int64_t first = corpus->first_document + (rows->all || rows->index ? 0 : rows->first);
    int64_t count = rows->all ? corpus->n_local : rows->count;
    const em_status status = rows->index && !rows->all
                                 ? fetch_listed(s, first, count, rows->index)
                                 : fetch_neighbours(s, first, INT64_MAX, &count);

    return status ? status : take_counts(s, first);
}

em_status em_corpus_stream_fetch_some(const em_corpus *corpus, int64_t first, int64_t *count)
{
    em_corpus_stream *s = corpus->stream;
    const int64_t row = corpus->first_document + first;
    const em_status status = fetch_neighbours(s, row, BATCH_ENTRIES, count);

    return status ? status : take_counts(s, row);
}

em_document em_corpus_stream_fetched(const em_corpus_stream *s, int64_t k)
{
    const int64_t first = s->batch->start[k];

    return (em_document){s->batch->start[k + 1] - first, s->batch->column + first,
                         s->count + first};
}

/* ---------------------------------------------------------------- the first pass */

/* The end of the documents of part p. */
static int64_t end_of_part(const em_corpus_stream *s, int64_t p)
{
    return (p + 1) * PASS_DOCUMENTS < s->form.n_row ? (p + 1) * PASS_DOCUMENTS : s->form.n_row;
}

/* Counts the tokens of each PASS_DOCUMENTS documents in tokens[n_part]. The ranks take turns. */
static em_status pass(em_corpus_stream *s, int64_t n_part, int64_t *tokens, uint64_t *hash)
{
    const int64_t first = em_partition_first(n_part, em_world_size(), em_world_rank());
    const int64_t end = em_partition_first(n_part, em_world_size(), em_world_rank() + 1);
    em_status status = EM_OK;
    int64_t row = 0;

    for (int64_t p = first; !status && p < end; p++) {
        const int64_t last = end_of_part(s, p);
        int64_t count;
        for (row = p * PASS_DOCUMENTS; !status && row < last; row += status ? 0 : count) {
            count = last - row;
            status = fetch_neighbours(s, row, BATCH_ENTRIES, &count);
            status = status ? status : em_corpus_check_counts(s->batch, row);
            *hash += status ? 0 : em_table_hash_rows(s->batch, 0, count, row);
            tokens[p] += status ? 0 : em_corpus_tokens(s->batch, 0, count);
        }
    }
    return em_agree_first(status, row);
}

/* Finds the first document that has at least `token` tokens before it or whose number is
 * `document`. found: this document, and the tokens before it. */
static em_status find_document(em_corpus_stream *s, int64_t n_part, const int64_t *tokens,
                               int64_t token, int64_t document, int64_t found[2])
{
    int64_t part = 0, before = 0;
    em_status status = EM_OK;

    while (part < n_part && before + tokens[part] < token &&
           (part + 1) * PASS_DOCUMENTS <= document)
        before += tokens[part++];
    found[0] = part < n_part ? part * PASS_DOCUMENTS : s->form.n_row;
    found[1] = before;
    const int64_t end = end_of_part(s, part);
    while (!status && found[0] < end && found[1] < token && found[0] < document) {
        int64_t count = end - found[0];
        status = read_batch(s, found[0], BATCH_ENTRIES, &count);
        for (int64_t i = 0; !status && i < count && found[1] < token && found[0] < document; i++) {
            found[1] += em_corpus_tokens(s->batch, i, 1);
            found[0]++;
        }
    }
    return status;
}

/* Finds the first document of a shard, by the tokens before it or by its number. */
static em_status find_bound(em_corpus *corpus, int64_t n_part, const int64_t *tokens, int64_t tile,
                            int64_t shard, int64_t n_shard, int64_t found[2])
{
    const int64_t n = corpus->n_document, all = corpus->n_token;

    if (tile > 0)
        return find_document(corpus->stream, n_part, tokens, INT64_MAX,
                             em_shard_rows(n, tile, shard, n_shard).first, found);
    return find_document(corpus->stream, n_part, tokens,
                         shard < n_shard ? (all * shard + n_shard - 1) / n_shard : INT64_MAX, n,
                         found);
}

static em_status find_share(em_corpus *corpus, int64_t n_part, const int64_t *tokens, int64_t tile,
                            int64_t shard, int64_t n_shard)
{
    int64_t begin[2], end[2];

    for (int64_t p = 0; p < n_part; p++)
        corpus->n_token += tokens[p];
    if (corpus->n_token == 0)
        return em_fail(EM_EDATA, "%s: found no words in %lld documents, expected some",
                       corpus->path, (long long)corpus->n_document);
    em_status status = find_bound(corpus, n_part, tokens, tile, shard, n_shard, begin);
    status = status ? status : find_bound(corpus, n_part, tokens, tile, shard + 1, n_shard, end);
    if (status)
        return status;
    corpus->first_document = begin[0];
    corpus->first_token = begin[1];
    corpus->n_local = end[0] - begin[0];
    corpus->part = tile > 0 ? em_shard_rows(corpus->n_document, tile, shard, n_shard).part : 1;
    return EM_OK;
}

/* Computes the hash of the numbers and the names, which equals that of a table with the same
 * content, and compares it with that in the file. */
static em_status check_hash(em_corpus *corpus, uint64_t sum)
{
    const em_numbers_form *form = &corpus->stream->form;
    em_table whole = {
        .total = corpus->n_document, .n_column = corpus->n_word, .name = corpus->name};

    em_table_hash(&whole, sum);
    corpus->hash = whole.hash;
    return form->hashed ? em_corpus_check_hash(corpus->path, corpus->hash, form->hash) : EM_OK;
}

static em_status open_file(em_corpus *corpus, int64_t n_word)
{
    em_corpus_stream *s;
    em_status status = em_allocate(1, sizeof *s, &corpus->stream);

    if (status)
        return status;
    s = corpus->stream;
    status = em_rows_source_open(corpus->path, &s->source);
    status = status ? status : em_table_create(corpus->path, &s->batch);
    status = status ? status : em_allocate(2, sizeof *s->start, &s->start);
    if (status)
        return status;
    s->form = em_numbers_form_of(em_rows_source_numbers(s->source));
    if (s->form.n_entry < 0 || s->form.labelled)
        return em_corpus_refuse_table(corpus->path);
    corpus->n_document = s->form.n_row;
    corpus->n_word = s->form.n_column;
    return em_corpus_check_words(corpus->path, corpus->n_word, n_word);
}

em_status em_corpus_stream_open(em_corpus *corpus, int64_t n_word, int64_t tile, int64_t shard,
                                int64_t n_shard)
{
    uint64_t hash = 0;
    EM_SCOPED int64_t *tokens = NULL;
    em_status status = open_file(corpus, n_word);

    if (!status)
        status = em_read_column_names(em_rows_source_numbers(corpus->stream->source), corpus->path,
                                      false, &corpus->name);
    const int64_t n_part = status ? 0 : (corpus->n_document + PASS_DOCUMENTS - 1) / PASS_DOCUMENTS;
    status = status ? status : em_allocate(n_part, sizeof *tokens, &tokens);
    status = em_agree_first(status, 0);
    status = status ? status : pass(corpus->stream, n_part, tokens, &hash);
    status = status ? status : check_hash(corpus, hash);
    if (!status) {
        em_world_sum(n_part, tokens);
        status = em_agree_first(find_share(corpus, n_part, tokens, tile, shard, n_shard), 0);
    }
    return status;
}

void em_corpus_stream_close(em_corpus_stream **out)
{
    em_corpus_stream *s = *out;

    if (!s)
        return;
    em_rows_source_close(&s->source);
    em_table_destroy(&s->batch);
    em_release_all(&s->count, &s->start, out);
}
