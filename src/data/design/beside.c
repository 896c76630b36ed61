/* What is no feature: the response and the columns beside the features, taken out of the others. */
#include "data/design/beside.h"

#include "base/memory.h"
#include "data/design/column_selection.h"
#include "par/message.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- one column */

/* The column with this name, or this number from 1. */
static em_status find_column(const em_table *table, const char *what, const char *name,
                             int64_t *column)
{
    em_status status = em_choice_find(table, name, column);

    if (status || *column >= 0)
        return status;
    return em_fail(EM_EDATA,
                   "%s:1: found no %s column '%s', expected one of %s, ..., %s or a number "
                   "from 1 to %lld",
                   table->path, what, name, table->name[0], table->name[table->n_column - 1],
                   (long long)table->n_column);
}

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

/* 0 where a row has no such entry. */
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

/* ---------------------------------------------------------------- which columns */

/* Columns to be taken out; -1: none. */
typedef struct apart {
    int64_t response, beside[EM_N_BESIDE];
} apart;

static bool is_beside(const apart *a, int64_t column)
{
    for (int k = 0; k < EM_N_BESIDE; k++)
        if (a->beside[k] == column)
            return true;
    return false;
}

/* The columns beside the features by their names; the weights of rows that are predicted for need
 * not be there. */
static em_status find_beside(const em_table *table, const em_table_options *options, apart *a)
{
    em_status status = EM_OK;

    for (int k = 0; k < EM_N_BESIDE; k++)
        a->beside[k] = table->is_chosen ? table->beside_at[k] : -1;
    for (int k = 0; !status && !table->is_chosen && k < EM_N_BESIDE; k++)
        if (options->beside[k] && options->fitted && k == EM_BESIDE_WEIGHTS)
            status = em_choice_find(table, options->beside[k], &a->beside[k]);
        else if (options->beside[k])
            status = find_column(table, em_beside_names[k], options->beside[k], &a->beside[k]);
    return status;
}

/* The response is the last column that is left, where no other is named. */
static em_status find_apart(const em_table *table, const em_table_options *options, apart *a)
{
    em_status status = find_beside(table, options, a);

    a->response = table->is_chosen ? table->response_at : table->n_column - 1;
    if (status || table->is_chosen)
        return status;
    while (a->response >= 0 && is_beside(a, a->response))
        a->response--;
    return table->response || !options->response
               ? EM_OK
               : find_column(table, "response", options->response, &a->response);
}

/* No column may have two parts. */
static em_status check_apart(const em_table *table, const apart *a)
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

/* Numbers from 0, one of them above it. Collective. */
static em_status check_weights(const em_table *table)
{
    const double *weight = table->beside[EM_BESIDE_WEIGHTS];
    int64_t held = 0, row, above = 0;

    while (held < table->n_row && weight[held] >= 0)
        above += weight[held++] > 0;
    row = em_table_first_row(table, held < table->n_row ? held : -1);
    em_world_sum(1, &above);
    if (row >= 0)
        return em_fail(EM_EDATA, "%s:%lld: found weight %.15g, expected a number from 0",
                       table->path, (long long)em_table_line(table, row),
                       em_table_number(table, row, weight));
    return above > 0 ? EM_OK
                     : em_fail(EM_EDATA, "%s:1: found weight 0 in all rows, expected some above 0",
                               table->path);
}

/* ---------------------------------------------------------------- they are taken */

/* Those to the right of a column that has been taken out move by one. */
static void move_left(apart *a, int64_t taken)
{
    for (int k = 0; k < EM_N_BESIDE; k++)
        a->beside[k] -= a->beside[k] > taken;
}

static em_status take_beside(em_table *table, apart *a)
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

em_status em_table_take_beside(em_table *table, const em_table_options *options)
{
    apart a;
    em_status status = find_beside(table, options, &a);

    a.response = -1;
    return status ? status : take_beside(table, &a);
}

em_status em_table_take_apart(em_table *table, const em_table_options *options)
{
    apart a;
    em_status status = find_apart(table, options, &a);

    if (!status)
        status = check_apart(table, &a);
    if (!status && !table->response) {
        if (table->text) {
            table->label = table->text[a.response];
            table->text[a.response] = (em_levels){0};
        }
        status = take_column(table, a.response, &table->response);
        move_left(&a, a.response);
    }
    if (!status)
        status = take_beside(table, &a);
    if (!status && table->beside[EM_BESIDE_WEIGHTS])
        status = check_weights(table);
    return status;
}
