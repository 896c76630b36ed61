#include "app/summary/summary_rows.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>

enum { LONG_ARRAY = 20, N_WORST = 5 };

/* One line of the table: a row, several rows that are equal to `like`, or several constant rows. */
typedef struct row_group {
    int64_t row;                /* index in the table of the first of its rows */
    int64_t count, last;        /* how many, and the last */
    bool contiguous;            /* elements in a row */
    const em_summary_row *like; /* NULL: they are constant, or it is the row itself */
    bool constant, chosen, marked;
} row_group;

typedef struct row_arrangement {
    const em_summary_table *table;
    const em_reader *reader;
    const em_rows_order *order;
    int64_t n_value; /* of a row that are compared */
    int64_t *by;     /* [n_row] rows, ordered so that equal ones are adjacent */
    int64_t n_line;
    row_group *line; /* [2 n_row] at most */
} row_arrangement;

/* ---------------------------------------------------------------- equal rows */

static bool is_constant(const row_arrangement *a, const em_summary_row *row)
{
    return row->value[a->table->at.judged + EM_JUDGED_CONSTANT] != 0;
}

static int compare_values(double x, double y)
{
    if (isnan(x) || isnan(y))
        return isnan(x) - isnan(y);
    return (x > y) - (x < y);
}

/* Orders rows. 0: both rows are of one variable and have the same numbers, or are constants of the
 * same value. */
static int compare_rows(const row_arrangement *a, const em_summary_row *x, const em_summary_row *y)
{
    const bool constant = is_constant(a, x);

    if (x->variable != y->variable)
        return x->variable < y->variable ? -1 : 1;
    if (constant != is_constant(a, y))
        return constant ? -1 : 1;
    for (int64_t j = 0; j < (constant ? 1 : a->n_value); j++) {
        const int order = compare_values(x->value[j], y->value[j]);
        if (order)
            return order;
    }
    return 0;
}

static int compare_stably(const void *left, const void *right, void *context)
{
    const row_arrangement *a = context;
    const int64_t i = *(const int64_t *)left, k = *(const int64_t *)right;
    const int order = compare_rows(a, &a->table->row[i], &a->table->row[k]);

    return order ? order : (i > k) - (i < k);
}

static void add_line(row_arrangement *a, const int64_t *by, int64_t count,
                     const em_summary_row *like, bool constant)
{
    const em_summary_row *row = a->table->row;
    row_group *l = &a->line[a->n_line++];

    *l = (row_group){.row = by[0],
                     .count = count,
                     .last = by[count - 1],
                     .contiguous = true,
                     .like = like,
                     .constant = constant};
    for (int64_t k = 1; k < count; k++)
        l->contiguous = l->contiguous && row[by[k]].index == row[by[k - 1]].index + 1;
}

static void find_lines(row_arrangement *a)
{
    const em_summary_row *row = a->table->row;
    const int64_t n = a->table->n_row;

    for (int64_t i = 0; i < n; i++)
        a->by[i] = i;
    qsort_r(a->by, (size_t)n, sizeof *a->by, compare_stably, a);
    for (int64_t first = 0, end; first < n; first = end) {
        const em_summary_row *leader = &row[a->by[first]];
        for (end = first + 1; end < n && compare_rows(a, leader, &row[a->by[end]]) == 0;)
            end++;
        if (is_constant(a, leader)) {
            add_line(a, a->by + first, end - first, NULL, true);
            continue;
        }
        add_line(a, a->by + first, 1, NULL, false);
        if (end - first > 1)
            add_line(a, a->by + first + 1, end - first - 1, leader, false);
    }
}

/* ---------------------------------------------------------------- order of the rows */

static int compare_lines(const void *left, const void *right, void *context)
{
    const row_arrangement *a = context;
    const row_group *x = left, *y = right;
    const em_summary_row *row = a->table->row;

    if (!a->order->sorted) {
        const em_reader_variable *u = em_reader_variable_at(a->reader, row[x->row].variable),
                                 *v = em_reader_variable_at(a->reader, row[y->row].variable);
        if (u->role != v->role)
            return u->role < v->role ? -1 : 1;
        if ((u->size > LONG_ARRAY) != (v->size > LONG_ARRAY))
            return u->size > LONG_ARRAY ? 1 : -1;
    }
    return (x->row > y->row) - (x->row < y->row);
}

/* The line with the worst, which is the largest, number among those that are not marked; NULL: none
 * is left. */
static row_group *worst_of(const row_arrangement *a, bool by_ess)
{
    const em_judge_columns *at = &a->table->at;
    row_group *worst = NULL;
    double most = -INFINITY;

    for (int64_t i = 0; i < a->n_line; i++) {
        row_group *l = &a->line[i];
        const double *x = a->table->row[l->row].value;
        const double bad = by_ess ? -fmin(x[at->ess_bulk], x[at->ess_tail]) : x[at->r_hat];
        if (l->marked || l->like || l->constant || !(bad > most))
            continue;
        most = bad;
        worst = l;
    }
    return worst;
}

/* Chooses the lines to be shown, where there are too many: those that mix worst, then the first. */
static void choose(row_arrangement *a)
{
    const int64_t most = a->order->most;
    int64_t n_chosen = 0;

    for (int k = 0; a->n_line > most && k < 2 * N_WORST && n_chosen < most; k++) {
        row_group *l = worst_of(a, k % 2);
        if (l) {
            l->marked = l->chosen = true;
            n_chosen++;
        }
    }
    for (int64_t i = 0; i < a->n_line && n_chosen < most; i++)
        if (!a->line[i].chosen) {
            a->line[i].chosen = true;
            n_chosen++;
        }
}

/* ---------------------------------------------------------------- their texts */

static em_status name_line(const row_arrangement *a, const row_group *l, char **out)
{
    const em_summary_row *row = a->table->row;
    const char *mark = l->marked && a->order->marks ? " *" : "";
    const char *first = row[l->row].name, *last = row[l->last].name;

    if (l->count == 1)
        return em_format_text(out, "%s%s", first, mark);
    if (l->contiguous)
        return em_format_text(out, "%s to %s", first, last);
    return l->count == 2
               ? em_format_text(out, "%s and %s", first, last)
               : em_format_text(out, "%s and %lld more", first, (long long)(l->count - 1));
}

static em_status put_line(const row_arrangement *a, const row_group *l, em_summary_row *out)
{
    *out = a->table->row[l->row];
    out->name = out->note = NULL;
    em_status status = name_line(a, l, (char **)&out->name);
    if (!status && l->like)
        status = em_format_text((char **)&out->note, "as %s", l->like->name);
    else if (!status && l->constant)
        status = em_format_text((char **)&out->note, "constant %.6g", out->value[EM_COLUMN_MEAN]);
    return status;
}

em_status em_rows_arrange(const em_summary_table *table, const em_reader *reader,
                          const em_rows_order *order, em_visible_rows *out)
{
    row_arrangement a = {table, reader, order, .n_value = table->n_column};
    em_status status = em_allocate(table->n_row, sizeof *a.by, &a.by);

    *out = (em_visible_rows){.table = {.n_column = table->n_column, .column = table->column}};
    status = status ? status : em_allocate(2 * table->n_row, sizeof *a.line, &a.line);
    if (!status) {
        find_lines(&a);
        qsort_r(a.line, (size_t)a.n_line, sizeof *a.line, compare_lines, &a);
        choose(&a);
        out->n_line = a.n_line;
        status = em_allocate(a.n_line, sizeof *out->table.row, &out->table.row);
    }
    for (int64_t i = 0; !status && i < a.n_line; i++)
        if (a.line[i].chosen)
            status = put_line(&a, &a.line[i], &out->table.row[out->table.n_row++]);
    em_release_all(&a.by, &a.line);
    return status;
}

void em_rows_release(em_visible_rows *rows)
{
    for (int64_t i = 0; i < rows->table.n_row; i++)
        em_release_all(&rows->table.row[i].name, &rows->table.row[i].note);
    em_release(&rows->table.row);
}
