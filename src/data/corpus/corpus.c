#include "data/corpus/corpus.h"

#include "base/memory.h"
#include "data/corpus/corpus_stream.h"
#include "data/corpus/corpus_table.h"
#include "data/shard/redistribute_rows.h"
#include "data/shard/shard_assignment.h"
#include "io/hdf5/numbers.h"
#include "par/message.h"
#include "par/world.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- text that is read for every pass
 */

/* Documents while they are read, and what is known of them so far. */
typedef struct document_pass {
    em_corpus_see *see; /* NULL: none */
    void *to;
    int64_t n_document, n_token;
    int64_t most_documents; /* -1: any number */
    uint64_t sum;           /* of their contributions to the hash */
    int32_t *count;         /* [count_capacity] of the documents in the table */
    int64_t count_capacity;
} document_pass;

static em_status see_rows(document_pass *r, const em_table *table)
{
    em_status status = em_reserve(&r->count, &r->count_capacity, 0, table->n_value);

    for (int64_t k = 0; !status && k < table->n_value; k++)
        r->count[k] = (int32_t)table->value[k];
    for (int64_t i = 0; !status && i < table->n_row; i++) {
        const int64_t first = table->start[i];
        status = r->see(
            r->to, r->n_document + i,
            (em_document){table->start[i + 1] - first, table->column + first, r->count + first});
    }
    return status;
}

static em_status take_rows(void *to, const em_table *table)
{
    document_pass *r = to;
    em_status status = EM_OK;

    if (r->most_documents >= 0 && r->n_document + table->n_row > r->most_documents)
        return em_corpus_refuse_change(table->path);
    if (r->see)
        status = see_rows(r, table);
    r->sum += em_table_hash_rows(table, 0, table->n_row, r->n_document);
    r->n_token += em_corpus_tokens(table, 0, table->n_row);
    r->n_document += table->n_row;
    return status;
}

/* The hash is that of the numbers and the names, as of a table that is read as a whole. */
static uint64_t hash_of(const document_pass *r, int64_t n_word, char **name)
{
    em_table whole = {.total = r->n_document, .n_column = n_word, .name = name};
    EM_SCOPED_BY(em_world_return) em_world *all = em_world_enter(NULL);

    em_table_hash(&whole, r->sum);
    return whole.hash;
}

/* Calls `see`, unless NULL, with all documents of a corpus in text, and sets all but the path of
 * the corpus. Local. Errors: those of em_corpus_open. */
static em_status read_through(em_corpus *corpus, const em_corpus_options *options, int64_t n_word,
                              em_corpus_see *see, void *to)
{
    document_pass r = {.see = see, .to = to, .most_documents = -1};
    EM_SCOPED_BY(em_table_destroy) em_table *words = NULL;
    const em_status status = em_corpus_scan(options, n_word, take_rows, &r, &words);

    if (!status) {
        corpus->is_reread = true;
        corpus->format = options->format;
        corpus->n_document = corpus->n_local = r.n_document;
        corpus->n_token = r.n_token;
        corpus->part = 1;
        corpus->n_word = words->n_column;
        corpus->name = words->name;
        words->name = NULL;
        corpus->hash = hash_of(&r, corpus->n_word, corpus->name);
    }
    em_release(&r.count);
    return status;
}

/* Calls `see` with all documents of a corpus that read_through has read. Errors:
 * those of em_corpus_open; EM_EDATA if the file has changed. */
static em_status reread(const em_corpus *corpus, em_corpus_see *see, void *to)
{
    const em_corpus_options options = {.data = corpus->path, .format = corpus->format};
    document_pass r = {.see = see, .to = to, .most_documents = corpus->n_document};
    EM_SCOPED_BY(em_table_destroy) em_table *words = NULL;
    em_status status = em_corpus_scan(&options, corpus->n_word, take_rows, &r, &words);

    if (!status && hash_of(&r, corpus->n_word, corpus->name) != corpus->hash)
        status = em_corpus_refuse_change(corpus->path);
    em_release(&r.count);
    return status;
}

enum { SEEN_AT_ONCE = 1024 }; /* documents that are fetched for em_corpus_each */

const char *const em_corpus_format_names[] = {"auto", "lda-c",       "docword",
                                              "mtx",  "mtx-columns", NULL};

/* ---------------------------------------------------------------- shares */

/* The tokens of each run of rows: tokens[n_run], on all ranks. */
static void count_runs(const em_table *table, int64_t *tokens)
{
    for (int64_t i = 0; i < table->n_run; i++) {
        const em_row_run *run = &table->run[i];
        tokens[i] =
            run->rank == em_world_rank() ? em_corpus_tokens(table, run->held, run->count) : 0;
    }
    em_world_sum(table->n_run, tokens);
}

/* Whether the documents of `shard` begin at or before this document, before which there are
 * `before` tokens. */
static bool is_begun(const em_corpus *corpus, int64_t tile, int64_t shard, int64_t n_shard,
                     int64_t document, int64_t before)
{
    if (tile > 0)
        return em_shard_rows(corpus->n_document, tile, shard, n_shard).first <= document;
    return shard < n_shard && before * n_shard / corpus->n_token >= shard;
}

/* The first document of this shard and of the next one, and the tokens before each, as far as this
 * rank has read them. All are doubles below 2^53, so that they can be summed. */
typedef struct bounds {
    double document[2], token[2];
} bounds;

static void find_own_bounds(const em_corpus *corpus, const em_table *table, const int64_t *tokens,
                            int64_t tile, int64_t shard, int64_t n_shard, bounds *b)
{
    int64_t before = 0;

    *b = (bounds){{INFINITY, INFINITY}, {INFINITY, INFINITY}};
    for (int64_t r = 0; r < table->n_run; before += tokens[r++]) {
        const em_row_run *run = &table->run[r];
        int64_t at = before;
        for (int64_t i = 0; run->rank == em_world_rank() && i < run->count; i++) {
            for (int e = 0; e < 2; e++)
                if (isinf(b->document[e]) &&
                    is_begun(corpus, tile, shard + e, n_shard, run->row + i, at)) {
                    b->document[e] = (double)(run->row + i);
                    b->token[e] = (double)at;
                }
            at += em_corpus_tokens(table, run->held + i, 1);
        }
    }
}

/* Finds the bounds of all shards at the same time: every rank looks for those of each shard. */
static em_status find_share(em_corpus *corpus, const em_table *table, int64_t tile, int64_t shard,
                            int64_t n_shard)
{
    EM_SCOPED int64_t *tokens = NULL;
    EM_SCOPED bounds *all = NULL;
    em_status status = em_allocate_all(EM_ARRAY(tokens, table->n_run), EM_ARRAY(all, n_shard));

    status = em_agree_first(status, 0);
    if (!status) {
        count_runs(table, tokens);
        for (int64_t r = 0; r < table->n_run; r++)
            corpus->n_token += tokens[r];
        for (int64_t s = 0; s < n_shard; s++)
            find_own_bounds(corpus, table, tokens, tile, s, n_shard, &all[s]);
        em_world_smallest(4 * n_shard, all->document);
        const bounds *b = &all[shard];
        const double total = (double)corpus->n_document, all_tokens = (double)corpus->n_token;
        corpus->first_document = (int64_t)fmin(b->document[0], total);
        corpus->first_token = (int64_t)fmin(b->token[0], all_tokens);
        corpus->n_local = (int64_t)fmin(b->document[1], total) - corpus->first_document;
    }
    return status;
}

/* ---------------------------------------------------------------- documents that are held */

/* Moves the arrays of the table to the corpus. Values become counts in their own memory. */
static em_status take_over(em_corpus *corpus, em_table *table)
{
    corpus->count = (int32_t *)(void *)table->value;
    for (int64_t k = 0; k < table->n_value; k++) {
        const int32_t count = (int32_t)table->value[k];
        memcpy(&corpus->count[k], &count, sizeof count); /* the memory has doubles so far */
    }
    em_status status = em_reallocate(table->n_value, sizeof *corpus->count, &corpus->count);

    table->value = NULL;
    corpus->start = table->start;
    corpus->word = table->column;
    corpus->name = table->name;
    corpus->n_word = table->n_column;
    corpus->hash = table->hash;
    table->start = NULL;
    table->column = NULL;
    table->name = NULL;
    return em_agree_first(status, 0);
}

static em_status hold(const em_corpus_options *options, int64_t n_word, int64_t tile, int64_t shard,
                      int64_t n_shard, em_corpus *corpus)
{
    EM_SCOPED_BY(em_table_destroy) em_table *table = NULL;
    em_status status = em_corpus_table_read(options, n_word, &table);

    if (status)
        return status;
    corpus->n_document = table->total;
    corpus->part = tile > 0 ? em_shard_rows(table->total, tile, shard, n_shard).part : 1;
    status = find_share(corpus, table, tile, shard, n_shard);
    status = status ? status : em_table_hold(table, corpus->first_document, corpus->n_local);
    return status ? status : take_over(corpus, table);
}

/* ---------------------------------------------------------------- both */

em_status em_corpus_read(const em_corpus_options *options, int64_t n_word, int64_t tile,
                         int64_t shard, int64_t n_shard, em_corpus **out)
{
    em_status status = em_allocate(1, sizeof **out, out);

    status = status ? status : em_copy_text(options->data, &(*out)->path);
    status = em_agree_first(status, 0);
    if (!status && options->stream) {
        status = em_corpus_check_stream(options);
        status = status ? status : em_corpus_stream_open(*out, n_word, tile, shard, n_shard);
    } else if (!status) {
        status = hold(options, n_word, tile, shard, n_shard, *out);
    }
    if (status)
        em_corpus_destroy(out);
    return status;
}

/* Frees the documents of a corpus in memory; sizes and names remain. */
static void drop_documents(em_corpus *corpus)
{
    em_release_all(&corpus->start, &corpus->word, &corpus->count);
    em_corpus_stream_close(&corpus->stream);
}

void em_corpus_destroy(em_corpus **out)
{
    em_corpus *corpus = *out;

    if (!corpus)
        return;
    em_release_texts(corpus->n_word, &corpus->name);
    em_release(&corpus->path);
    drop_documents(corpus);
    em_release(out);
}

em_status em_corpus_fetch(em_corpus *corpus, const em_rows *rows)
{
    if (corpus->stream)
        return em_corpus_stream_fetch(corpus, rows);
    corpus->first_fetched = rows->all ? 0 : rows->first;
    corpus->fetched = rows->all ? NULL : rows->index;
    return EM_OK;
}

em_document em_corpus_fetched(const em_corpus *corpus, int64_t k)
{
    if (corpus->stream)
        return em_corpus_stream_fetched(corpus->stream, k);
    const int64_t i = corpus->fetched ? corpus->fetched[k] : corpus->first_fetched + k;
    const int64_t first = corpus->start[i];

    return (em_document){corpus->start[i + 1] - first, corpus->word + first, corpus->count + first};
}

/* Frees the words and counts of `count` documents from number d on. */
static void release_documents(em_corpus *corpus, int64_t d, int64_t count)
{
    const int64_t first = corpus->start[d], n = corpus->start[d + count] - first;

    em_release_pages(corpus->word, first, n, sizeof *corpus->word);
    em_release_pages(corpus->count, first, n, sizeof *corpus->count);
}

static em_status see_each(em_corpus *corpus, bool is_last, em_corpus_see *see, void *to)
{
    em_status status = EM_OK;

    if (corpus->is_reread)
        return reread(corpus, see, to);
    for (int64_t d = 0, count; !status && d < corpus->n_local; d += count) {
        const int64_t left = corpus->n_local - d;
        count = left < SEEN_AT_ONCE ? left : SEEN_AT_ONCE;
        status = corpus->stream ? em_corpus_stream_fetch_some(corpus, d, &count)
                                : em_corpus_fetch(corpus, &(em_rows){.first = d, .count = count});
        for (int64_t k = 0; !status && k < count; k++)
            status = see(to, d + k, em_corpus_fetched(corpus, k));
        if (is_last && corpus->start)
            release_documents(corpus, d, count);
    }
    return status;
}

em_status em_corpus_each(em_corpus *corpus, em_corpus_see *see, void *to)
{
    return see_each(corpus, false, see, to);
}

em_status em_corpus_each_once(em_corpus *corpus, em_corpus_see *see, void *to)
{
    const em_status status = see_each(corpus, true, see, to);

    drop_documents(corpus);
    return status;
}

static em_status open_stream(const em_corpus_options *options, int64_t n_word, em_corpus *corpus)
{
    EM_SCOPED_BY(em_world_return) em_world *all = em_world_enter(NULL);
    const em_status status = em_corpus_check_stream(options);

    return status ? status : em_corpus_stream_open(corpus, n_word, 0, 0, 1);
}

em_status em_corpus_open(const em_corpus_options *options, int64_t n_word, em_corpus_see *see,
                         void *to, em_corpus **out)
{
    em_status status = em_allocate(1, sizeof **out, out);

    status = status ? status : em_copy_text(options->data, &(*out)->path);
    if (!status && em_numbers_is_hdf5(options->data)) {
        status = open_stream(options, n_word, *out);
        status = status || !see ? status : em_corpus_each(*out, see, to);
    } else if (!status) {
        status = read_through(*out, options, n_word, see, to);
    }
    if (status)
        em_corpus_destroy(out);
    return status;
}

em_status em_corpus_check_names(const em_corpus *corpus, char *const *name, const char *whose)
{
    for (int64_t v = 0; corpus->name && name && v < corpus->n_word; v++)
        if (strcmp(corpus->name[v], name[v]) != 0)
            return em_fail(EM_EDATA, "%s: found word %lld '%s', expected '%s' as in %s%s",
                           corpus->path, (long long)v, corpus->name[v], name[v], whose,
                           em_corpus_same_words(corpus->path));
    return EM_OK;
}
