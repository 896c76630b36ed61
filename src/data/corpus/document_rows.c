#include "data/corpus/document_rows.h"

#include "base/memory.h"

#include <stdlib.h>

enum { TAKEN_ENTRIES = 1 << 18, TAKEN_ROWS = 1 << 18 }; /* at a time */

em_status em_document_rows_add(em_document_rows *r, int64_t line, int64_t word, int64_t count)
{
    r->length += count;
    if (r->length > EM_LONGEST_DOCUMENT)
        return em_fail(EM_EDATA,
                       "%s:%lld: found a document of %lld or more words, expected at most %d",
                       r->path, (long long)line, (long long)r->length, EM_LONGEST_DOCUMENT);
    em_status status = em_reserve(&r->entry, &r->capacity, r->used, r->used + 1);
    if (!status)
        r->entry[r->used++] = (em_document_entry){(int32_t)word, (int32_t)count};
    r->found++;
    return status;
}

static int by_word(const void *a, const void *b)
{
    const em_document_entry *x = a, *y = b;

    return (x->word > y->word) - (x->word < y->word);
}

/* Sorts the words of the document by id, and merges equal words. */
static void put_in_order(em_document_rows *r)
{
    int64_t n = 0;

    for (int64_t i = 1; i < r->used; i++)
        n += r->entry[i].word > r->entry[i - 1].word;
    if (n + 1 >= r->used)
        return;
    qsort(r->entry, (size_t)r->used, sizeof *r->entry, by_word);
    n = 0;
    for (int64_t i = 1; i < r->used; i++)
        if (r->entry[i].word == r->entry[n].word)
            r->entry[n].count += r->entry[i].count;
        else
            r->entry[++n] = r->entry[i];
    r->used = n + 1;
}

static em_status give_rows(em_document_rows *r)
{
    em_status status = r->take(r->to, r->table);

    em_table_clear(r->table);
    return status ? status : em_table_begin_run(r->table, 0);
}

em_status em_document_rows_end(em_document_rows *r, int64_t line)
{
    em_table *table = r->table;
    em_status status = EM_OK;

    put_in_order(r);
    for (int64_t i = 0; !status && i < r->used; i++)
        status = em_table_push_sparse(table, r->entry[i].word, r->entry[i].count);
    if (r->used > 0 && r->entry[r->used - 1].word >= table->n_column)
        table->n_column = r->entry[r->used - 1].word + 1;
    r->used = r->length = 0;
    r->n_row++;
    status = status ? status : em_table_end_row(table, line);
    if (!status && r->take && (table->n_value >= TAKEN_ENTRIES || table->n_row >= TAKEN_ROWS))
        status = give_rows(r);
    return status;
}

em_status em_document_rows_finish(em_document_rows *r)
{
    return r->take ? give_rows(r) : EM_OK;
}

void em_document_rows_release(em_document_rows *r)
{
    em_release(&r->entry);
}
