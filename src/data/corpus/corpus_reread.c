#include "data/corpus/corpus_reread.h"

#include "base/memory.h"
#include "data/corpus/corpus_table.h"
#include "par/world.h"

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

static em_status refuse_change(const char *path)
{
    return em_fail(EM_EDATA,
                   "%s: found other documents when it was read again, expected a file that nothing "
                   "changes meanwhile",
                   path);
}

static em_status see_rows(document_pass *r, const em_table *table)
{
    em_status status =
        em_array_reserve(&r->count, &r->count_capacity, 0, table->n_value, sizeof *r->count);

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
        return refuse_change(table->path);
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
    em_world *world = em_world_enter(NULL);

    em_table_hash(&whole, r->sum);
    em_world_enter(world);
    return whole.hash;
}

em_status em_corpus_read_through(em_corpus *corpus, const em_corpus_options *options,
                                 int64_t n_word, em_corpus_see *see, void *to)
{
    document_pass r = {.see = see, .to = to, .most_documents = -1};
    em_table *words = NULL;
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
    em_table_destroy(&words);
    em_release(&r.count);
    return status;
}

em_status em_corpus_reread(const em_corpus *corpus, em_corpus_see *see, void *to)
{
    const em_corpus_options options = {.data = corpus->path, .format = corpus->format};
    document_pass r = {.see = see, .to = to, .most_documents = corpus->n_document};
    em_table *words = NULL;
    em_status status = em_corpus_scan(&options, corpus->n_word, take_rows, &r, &words);

    if (!status && hash_of(&r, corpus->n_word, corpus->name) != corpus->hash)
        status = refuse_change(corpus->path);
    em_table_destroy(&words);
    em_release(&r.count);
    return status;
}
