/* New rows for what was learned from others: the same columns, by their names. */
#include "base/memory.h"
#include "base/text.h"
#include "data/table/table.h"
#include "par/message.h"

#include <string.h>

enum { LABEL_BYTES = 256 }; /* as labels are kept */

static bool is_called(const em_table *table, int64_t j, const char *name)
{
    char printable[LABEL_BYTES];

    em_text_escape(table->name[j], printable, sizeof printable);
    return strcmp(printable, name) == 0;
}

/* The first column of that name that is not taken yet; -1: there is none. Most tables have it where
 * the one before had. */
static int64_t find(const em_table *table, const char *name, int64_t guess, const bool *taken)
{
    if (guess < table->n_column && !taken[guess] && is_called(table, guess, name))
        return guess;
    for (int64_t j = 0; j < table->n_column; j++)
        if (!taken[j] && is_called(table, j, name))
            return j;
    return -1;
}

/* from[j]: which column becomes column j. */
static em_status match(const em_table *table, int64_t n, const char *const *name, bool *taken,
                       int64_t *from)
{
    int64_t missing = -1;

    for (int64_t j = n; j-- > 0;) {
        from[j] = find(table, name[j], j, taken);
        if (from[j] >= 0)
            taken[from[j]] = true;
        else
            missing = j;
    }
    if (missing < 0)
        return EM_OK;
    if (table->is_named || table->n_column != n)
        return em_fail(EM_EDATA,
                       "%s:1: found no column '%s', expected those of the %lld features of the run",
                       table->path, name[missing], (long long)n);
    for (int64_t j = 0; j < n; j++)
        from[j] = j;
    return EM_OK;
}

/* The texts of column from[j] become those of column j. */
static em_status move_texts(em_table *table, int64_t n, const int64_t *from)
{
    em_levels *text = NULL;
    em_status status = table->text ? em_allocate(n, sizeof *text, &text) : EM_OK;

    if (status || !table->text)
        return status;
    for (int64_t j = 0; j < n; j++) {
        text[j] = table->text[from[j]];
        table->text[from[j]] = (em_levels){0};
    }
    for (int64_t j = 0; j < table->n_column; j++)
        em_levels_release(&table->text[j]);
    em_release(&table->text);
    table->text = text;
    return EM_OK;
}

static em_status take_names(em_table *table, int64_t n, const char *const *name)
{
    char **copy = NULL;
    em_status status = em_allocate(n, sizeof *copy, &copy);

    for (int64_t j = 0; !status && j < n; j++)
        status = em_copy_text(name[j], &copy[j]);
    for (int64_t j = 0; j < table->n_column; j++)
        em_release(&table->name[j]);
    em_release(&table->name);
    table->name = copy;
    table->n_column = n;
    return status;
}

static em_status arrange_dense(em_table *table, int64_t n, const char *const *name)
{
    const int64_t n_old = table->n_column;
    bool *taken = NULL;
    int64_t *from = NULL;
    double *value = NULL;
    em_status status = em_allocate(n_old, sizeof *taken, &taken);

    if (!status)
        status = em_allocate(n, sizeof *from, &from);
    if (!status)
        status = match(table, n, name, taken, from);
    if (!status)
        status = em_allocate_doubles(table->n_row * n, &value);
    for (int64_t i = 0; !status && i < table->n_row; i++)
        for (int64_t j = 0; j < n; j++)
            value[i * n + j] = table->value[i * n_old + from[j]];
    if (!status)
        status = move_texts(table, n, from);
    if (!status) {
        em_release(&table->value);
        table->value = value;
        table->n_value = table->value_capacity = table->n_row * n;
        status = take_names(table, n, name);
    }
    em_release(&taken);
    em_release(&from);
    return status;
}

/* The last columns may be absent: none of the rows has a number there. */
static em_status arrange_sparse(em_table *table, int64_t n, const char *const *name)
{
    for (int64_t j = 0; j < table->n_column; j++)
        if (j >= n || !is_called(table, j, name[j]))
            return em_fail(EM_EDATA, "%s:1: found column %s, expected the %lld features of the run",
                           table->path, em_excerpt_of(table->name[j]).text, (long long)n);
    return take_names(table, n, name);
}

em_status em_table_arrange(em_table *table, const em_table_options *options, int64_t n_column,
                           const char *const *name)
{
    em_status status = em_table_take_beside(table, options);

    if (!status)
        status = em_agree_first(table->column ? arrange_sparse(table, n_column, name)
                                              : arrange_dense(table, n_column, name),
                                0);
    if (status)
        return status;
    table->total_entries = table->n_value;
    em_world_sum(1, &table->total_entries);
    em_release(&table->response);
    return em_agree_first(em_allocate(table->n_row, sizeof *table->response, &table->response), 0);
}
