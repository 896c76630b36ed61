/* Moves the columns that are not features out of the table: the response, the exposure, the offset
 * and the weights. */

#include "base/memory.h"
#include "base/text.h"
#include "data/design/column_selection.h"
#include "data/table/table.h"
#include "par/message.h"

#include <string.h>

/* ---------------------------------------------------------------- one column */

static void split_dense(em_table *table, int64_t at, double *out)
{
    const int64_t n = table->n_column, n_left = n - 1;

    for (int64_t i = 0; i < table->n_row; i++) {
        const double *row = table->value + i * n;
        double *left = table->value + i * n_left;

        out[i] = row[at];
        memmove(left, row, (size_t)at * sizeof *row);
        memmove(left + at, row + at + 1, (size_t)(n_left - at) * sizeof *row);
    }
    table->n_value = table->n_row * n_left;
}

/* Splits one column off sparse rows. A row without an entry in that column has the number 0. */
static void split_sparse(em_table *table, int64_t at, double *out)
{
    int64_t begin = 0, to = 0;

    for (int64_t i = 0; i < table->n_row; i++) {
        const int64_t end = table->start[i + 1];
        for (int64_t k = begin; k < end; k++) {
            const int32_t j = table->column[k];
            if (j == at) {
                out[i] = table->value[k];
                continue;
            }
            table->column[to] = j - (j > at);
            table->value[to++] = table->value[k];
        }
        begin = end;
        table->start[i + 1] = to;
    }
    table->n_value = to;
}

/* Splits every row into one column and the rest. Collective. */
static em_status take_column(em_table *table, int64_t at, double **out)
{
    const int64_t n_left = table->n_column - 1;
    em_status status = em_agree_first(em_allocate(table->n_row, sizeof **out, out), 0);

    if (status)
        return status;
    (table->column ? split_sparse : split_dense)(table, at, *out);
    em_release(&table->name[at]);
    if (table->text) {
        em_levels_release(&table->text[at]);
        memmove(&table->text[at], &table->text[at + 1],
                (size_t)(n_left - at) * sizeof *table->text);
        table->text[n_left] = (em_levels){0};
    }
    if (table->factor)
        memmove(&table->factor[at], &table->factor[at + 1],
                (size_t)(n_left - at) * sizeof *table->factor);
    memmove(&table->name[at], &table->name[at + 1], (size_t)(n_left - at) * sizeof *table->name);
    table->n_column = n_left;
    table->total_entries = table->n_value;
    em_world_sum(1, &table->total_entries);
    return EM_OK;
}

/* ---------------------------------------------------------------- the columns to move */

/* Finds the columns that are no features. New rows to predict need no weights. */
static em_status find_beside(const em_table *table, const em_table_options *options,
                             em_set_aside *a)
{
    const char *weights = options->beside[EM_BESIDE_WEIGHTS];
    em_status status = EM_OK;

    if (table->is_chosen)
        memcpy(a->beside, table->beside_at, sizeof a->beside);
    else
        status = em_set_aside_find_beside(options, table, a);
    if (!status && !table->is_chosen && options->fitted && weights)
        status = em_choice_find(table, weights, &a->beside[EM_BESIDE_WEIGHTS]);
    return status;
}

/* Checks that no column has two roles, such as response and weights. */
static em_status check_set_aside(const em_table *table, const em_set_aside *a)
{
    for (int k = 0; k < EM_N_BESIDE; k++) {
        if (a->beside[k] < 0)
            continue;
        if (!table->response && a->response == a->beside[k])
            return em_fail(EM_EDATA,
                           "%s:1: found one column for the response and the %s, expected two",
                           table->path, em_beside_names[k]);
        for (int l = 0; l < k; l++)
            if (a->beside[l] == a->beside[k])
                return em_fail(EM_EDATA,
                               "%s:1: found one column for the %s and the %s, expected two",
                               table->path, em_beside_names[l], em_beside_names[k]);
    }
    if (!table->response && a->response < 0)
        return em_fail(EM_EDATA,
                       "%s:1: found one column for the response and the exposure, expected two",
                       table->path);
    return EM_OK;
}

/* ---------------------------------------------------------------- weights */

/* Checks that weights are 0 or more, and that at least one is above 0. Collective. */
static em_status check_weights(const em_table *table)
{
    const double *weight = table->beside[EM_BESIDE_WEIGHTS];
    int64_t held = 0, above = 0;

    while (held < table->n_row && weight[held] >= 0)
        above += weight[held++] > 0;
    const int64_t row = em_table_first_row(table, held);
    em_world_sum(1, &above);
    if (row >= 0)
        return em_fail(EM_EDATA, "%s:%lld: found weight %.15g, expected a number of at least 0",
                       table->path, (long long)em_table_line(table, row),
                       em_table_number(table, row, weight));
    return above > 0 ? EM_OK
                     : em_fail(EM_EDATA, "%s:1: found weight 0 in all rows, expected some above 0",
                               table->path);
}

/* ---------------------------------------------------------------- moving the columns */

/* Columns to the right of a removed column move left by one. */
static void move_left(em_set_aside *a, int64_t taken)
{
    for (int k = 0; k < EM_N_BESIDE; k++)
        a->beside[k] -= a->beside[k] > taken;
}

static em_status take_beside(em_table *table, em_set_aside *a)
{
    em_status status = EM_OK;

    for (int k = 0; !status && k < EM_N_BESIDE; k++) {
        if (a->beside[k] < 0)
            continue;
        status = take_column(table, a->beside[k], &table->beside[k]);
        move_left(a, a->beside[k]);
    }
    return status;
}

/* For new rows to predict: moves out only columns that are no features; weights may be missing. */
static em_status take_beside_features(em_table *table, const em_table_options *options)
{
    em_set_aside a;
    em_status status = find_beside(table, options, &a);

    a.response = -1;
    return status ? status : take_beside(table, &a);
}

em_status em_table_set_aside(em_table *table, const em_table_options *options)
{
    em_set_aside a;
    em_status status = find_beside(table, options, &a);

    a.response = table->is_chosen ? table->response_at : -1;
    if (!status && !table->is_chosen && !table->response)
        status = em_set_aside_find_response(options, table, &a);
    status = status ? status : check_set_aside(table, &a);
    if (!status && !table->response) {
        if (table->text) {
            table->label = table->text[a.response];
            table->text[a.response] = (em_levels){0};
        }
        status = take_column(table, a.response, &table->response);
        move_left(&a, a.response);
    }
    status = status ? status : take_beside(table, &a);
    if (!status && table->beside[EM_BESIDE_WEIGHTS])
        status = check_weights(table);
    return status;
}

/* ---- new rows to predict: their columns are arranged as those of the run, by name ---- */

enum { LABEL_BYTES = 256 }; /* as labels are kept */

static bool is_called(const em_table *table, int64_t j, const char *name)
{
    char printable[LABEL_BYTES];

    em_text_escape(table->name[j], printable, sizeof printable);
    return strcmp(printable, name) == 0;
}

/* The first unused column of that name; -1: there is none. The index in the earlier table is tried
 * first. */
static int64_t find(const em_table *table, const char *name, int64_t guess, const bool *taken)
{
    if (guess < table->n_column && !taken[guess] && is_called(table, guess, name))
        return guess;
    for (int64_t j = 0; j < table->n_column; j++)
        if (!taken[j] && is_called(table, j, name))
            return j;
    return -1;
}

/* `found`: what the table has instead of the features of the run. */
static em_status refuse_columns(const em_table *table, const char *found, int64_t n,
                                const char *const *name)
{
    enum { MOST = 5 };
    char names[512] = "";

    for (int64_t j = 0; j < n && j < MOST; j++)
        em_append(sizeof names, names, "%s%s", j > 0 ? ", " : "", name[j]);
    return em_fail(
        EM_EDATA, "%s:1: found %s, expected the %lld feature%s of the run: %s%s%s", table->path,
        found, (long long)n, em_plural(n), names, n > MOST ? ", ..." : "",
        table->is_named || table->column ? "" : " (header: yes takes the first line as names)");
}

/* from[j]: the column that becomes column j. */
static em_status match(const em_table *table, int64_t n, const char *const *name, bool *taken,
                       int64_t *from)
{
    int64_t missing = -1;
    char found[LABEL_BYTES + 16] = "";

    for (int64_t j = n; j-- > 0;) {
        from[j] = find(table, name[j], j, taken);
        if (from[j] >= 0)
            taken[from[j]] = true;
        else
            missing = j;
    }
    if (missing < 0)
        return EM_OK;
    em_append(sizeof found, found, "no column '%s'", name[missing]);
    if (table->is_named || table->n_column != n)
        return refuse_columns(table, found, n, name);
    for (int64_t j = 0; j < n; j++)
        from[j] = j;
    return EM_OK;
}

/* Moves the texts of column from[j] to column j, for all j. */
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
    em_release_texts(table->n_column, &table->name);
    table->name = copy;
    table->n_column = n;
    return status;
}

static em_status arrange_dense(em_table *table, int64_t n, const char *const *name)
{
    const int64_t n_old = table->n_column;
    EM_SCOPED bool *taken = NULL;
    EM_SCOPED int64_t *from = NULL;
    double *value = NULL;
    em_status status = em_allocate_all(EM_ARRAY(taken, n_old), EM_ARRAY(from, n));

    status = status ? status : match(table, n, name, taken, from);
    status = status ? status : em_allocate_doubles(table->n_row * n, &value);
    for (int64_t i = 0; !status && i < table->n_row; i++)
        for (int64_t j = 0; j < n; j++)
            value[i * n + j] = table->value[i * n_old + from[j]];
    status = status ? status : move_texts(table, n, from);
    if (!status) {
        em_release(&table->value);
        table->value = value;
        table->n_value = table->value_capacity = table->n_row * n;
        status = take_names(table, n, name);
    }
    return status;
}

/* The last columns may be absent: none of the rows has a number there. */
static em_status arrange_sparse(em_table *table, int64_t n, const char *const *name)
{
    char found[LABEL_BYTES + 16] = "";

    for (int64_t j = 0; j < table->n_column; j++)
        if (j >= n || !is_called(table, j, name[j])) {
            em_append(sizeof found, found, "column %s", em_excerpt_of(table->name[j]).text);
            return refuse_columns(table, found, n, name);
        }
    return take_names(table, n, name);
}

em_status em_table_arrange(em_table *table, const em_table_options *options, int64_t n_column,
                           const char *const *name)
{
    em_status status = take_beside_features(table, options);

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
