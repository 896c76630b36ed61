#include "data/design/coding.h"

#include "base/memory.h"
#include "base/text.h"
#include "data/table/builder.h"
#include "par/message.h"

#include <stdlib.h>

enum { MOST_COLUMNS = 1000000 };

/* ---------------------------------------------------------------- the columns to make */

static em_status take_formula(const em_table_options *options, const em_table *table,
                              em_coding *coding)
{
    const em_formula_columns columns = {.n = table->n_column, .name = table->name, .fitted = true};
    EM_SCOPED_BY(em_formula_release) em_formula formula = {0};
    em_status status = em_formula_parse(options->formula, &columns, &formula);

    coding->intercept &= formula.intercept;
    coding->n_term = formula.n_term;
    coding->term = formula.term;
    coding->n_derived = formula.n_derived;
    coding->derived = formula.derived;
    formula.term = NULL;
    formula.derived = NULL;
    formula.n_derived = 0;
    return status;
}

static em_status take_columns(em_coding *coding)
{
    em_status status = em_allocate(coding->n, sizeof *coding->term, &coding->term);

    coding->n_term = status ? 0 : coding->n;
    for (int64_t j = 0; j < coding->n_term; j++)
        coding->term[j] = (em_term){1, {j}};
    return status;
}

/* Fails if a function of the formula needs numbers from a column that model.factors makes a factor.
 */
static em_status check_derived(const em_table *table, const em_coding *coding)
{
    for (int64_t k = 0; k < coding->n_derived; k++)
        for (int i = 0; i < coding->derived[k].n_step; i++) {
            const em_step *step = &coding->derived[k].step[i];
            if (step->op == EM_OP_COLUMN && table->factor && table->factor[step->column])
                return em_fail(EM_ECONFIG,
                               "model.formula: found factor %s in %s, expected a column of numbers",
                               em_excerpt_of(table->name[step->column]).text,
                               em_excerpt_of(coding->derived[k].name).text);
        }
    return EM_OK;
}

em_status em_coding_create(const em_table_options *options, const em_table *table,
                           const bool *fitted, em_coding **out)
{
    *out = NULL;
    if (!options->formula && options->factors.count == 0 && !options->levels)
        return EM_OK;
    em_status status = em_allocate(1, sizeof **out, out);
    em_coding *coding = *out;
    if (!status) {
        coding->intercept = options->intercept;
        coding->n = table->n_column;
        status = em_allocate(coding->n, sizeof *coding->is_factor, &coding->is_factor);
    }
    status = status ? status : em_allocate(coding->n, sizeof *coding->factor, &coding->factor);
    if (!status)
        status = options->formula ? take_formula(options, table, coding) : take_columns(coding);
    status = status ? status : check_derived(table, coding);
    for (int64_t j = 0; !status && j < coding->n; j++)
        coding->is_factor[j] = fitted ? fitted[j] : table->factor && table->factor[j];
    if (status)
        em_coding_destroy(out);
    return status;
}

void em_coding_destroy(em_coding **out)
{
    em_coding *coding = *out;

    if (!coding)
        return;
    for (int64_t j = 0; coding->factor && j < coding->n; j++)
        em_release(&coding->factor[j].level);
    for (int64_t k = 0; k < coding->n_derived; k++)
        em_derived_release(&coding->derived[k]);
    em_release_all(&coding->factor, &coding->is_factor, &coding->term, &coding->derived, out);
}

/* ---------------------------------------------------------------- columns */

/* A new column of the design: a product of columns. Each is a number (level -1) or the indicator of
 * a level. */
typedef struct made {
    int n;
    int64_t column[EM_MOST_IN_TERM], level[EM_MOST_IN_TERM];
} made;

typedef struct coding_context {
    const em_coding *coding;
    em_table *table;
    int64_t n_made;
    made *made;    /* [n_made] */
    double *value; /* [n_derived][EM_MOST_DEGREE] of a row */
} coding_context;

static bool is_factor(const em_coding *coding, int64_t column)
{
    return column < coding->n && coding->is_factor[column];
}

/* The number of columns of a derived polynomial; 1 for other functions. */
static int64_t size_of(const em_coding *coding, int64_t column)
{
    return column < coding->n ? 1 : em_derived_size(&coding->derived[column - coding->n]);
}

/* Whether the columns of a are among those of b. */
static bool is_within(const em_term *a, const em_term *b)
{
    int i = 0;

    for (int j = 0; j < b->n && i < a->n; j++)
        i += a->column[i] == b->column[j];
    return i == a->n;
}

/* Whether factor k of term t is the first factor of all terms. It has all levels if there is no
 * intercept. */
static bool is_first(const em_coding *coding, int64_t t, int k)
{
    for (int64_t i = 0; i <= t; i++)
        for (int l = 0; l < coding->term[i].n; l++)
            if (is_factor(coding, coding->term[i].column[l]))
                return i == t && l == k;
    return false;
}

/* R's rule (Chambers & Hastie 1992): a factor in a term has no column for its reference level if
 * the term without this factor is in the formula, or is part of an earlier term. */
static bool has_contrasts(const em_coding *coding, int64_t t, int k)
{
    const em_term *term = &coding->term[t];
    em_term rest = {0};

    if (!coding->intercept && is_first(coding, t, k))
        return false;
    for (int l = 0; l < term->n; l++)
        if (l != k)
            rest.column[rest.n++] = term->column[l];
    if (rest.n == 0)
        return true;
    for (int64_t i = 0; i < t; i++)
        if (is_within(&rest, &coding->term[i]))
            return true;
    return false;
}

/* Makes the columns of a term; levels of its first factor vary fastest. `made` NULL: only counts.
 */
static int64_t make_term(const em_coding *coding, int64_t t, made *out)
{
    const em_term *term = &coding->term[t];
    int64_t first[EM_MOST_IN_TERM], size[EM_MOST_IN_TERM], total = 1;

    for (int k = 0; k < term->n; k++) {
        const int64_t j = term->column[k];
        first[k] = !is_factor(coding, j) ? -1 : has_contrasts(coding, t, k);
        size[k] = is_factor(coding, j) ? coding->factor[j].n - first[k] : size_of(coding, j);
        total = total * size[k] > MOST_COLUMNS ? MOST_COLUMNS + 1 : total * size[k];
    }
    for (int64_t i = 0; out && i < total; i++) {
        int64_t rest = i;
        out[i].n = term->n;
        for (int k = 0; k < term->n; k++) {
            out[i].column[k] = term->column[k];
            out[i].level[k] = first[k] < 0 && size[k] == 1 ? -1
                              : first[k] < 0               ? rest % size[k]
                                                           : first[k] + rest % size[k];
            rest /= size[k];
        }
    }
    return total;
}

static em_status make_columns(coding_context *m)
{
    int64_t total = 0, at = 0;

    for (int64_t t = 0; t < m->coding->n_term && total <= MOST_COLUMNS; t++)
        total += make_term(m->coding, t, NULL);
    if (total > MOST_COLUMNS)
        return em_fail(
            EM_EDATA,
            "%s:1: found %lld or more columns made of factors and products, expected at most %d",
            m->table->path, (long long)total, MOST_COLUMNS);
    const em_status status = em_allocate(total, sizeof *m->made, &m->made);
    m->n_made = status ? 0 : total;
    for (int64_t t = 0; !status && t < m->coding->n_term; t++)
        at += make_term(m->coding, t, m->made + at);
    return status;
}

/* ---------------------------------------------------------------- names */

/* Writes the name of a column, such as sex[male]:age or, in R's way, poly(age, 2)1. */
static em_status name_column(const coding_context *m, const made *of, char **out)
{
    em_status status = em_copy_text("", out);

    for (int k = 0; !status && k < of->n; k++) {
        const int64_t j = of->column[k], d = j - m->coding->n;
        const char *name = d < 0 ? m->table->name[j] : m->coding->derived[d].name;
        char text[EM_LEVEL_BYTES], *longer = NULL;

        if (of->level[k] < 0)
            status = em_format_text(&longer, "%s%s%s", *out, k ? ":" : "", name);
        else if (d >= 0)
            status = em_format_text(&longer, "%s%s%s%lld", *out, k ? ":" : "", name,
                                    (long long)of->level[k] + 1);
        else {
            em_table_print_value(m->table, j, m->coding->factor[j].level[of->level[k]], text);
            status = em_format_text(&longer, "%s%s%s[%s]", *out, k ? ":" : "", name, text);
        }
        em_release(out);
        *out = longer;
    }
    return status;
}

/* ---------------------------------------------------------------- rows */

int em_level_compare(double a, double b)
{
    const int64_t x = em_level_code(a), y = em_level_code(b);

    if (x >= 0 || y >= 0)
        return (x > y) - (x < y);
    return (a > b) - (a < b);
}

int em_by_first_level(const void *a, const void *b)
{
    return em_level_compare(*(const double *)a, *(const double *)b);
}

typedef struct indexed_level {
    double level;
    int64_t index;
} indexed_level;

/* The sorted levels of factor j, for a binary search. */
static em_status sort_levels(coding_context *m, int64_t j, indexed_level **out)
{
    const em_factor *factor = &m->coding->factor[j];
    em_status status = em_allocate(factor->n, sizeof **out, out);

    for (int64_t i = 0; !status && i < factor->n; i++)
        (*out)[i] = (indexed_level){factor->level[i], i};
    if (!status)
        qsort(*out, (size_t)factor->n, sizeof **out, em_by_first_level);
    return status;
}

/* Lists the levels of factor j, as "'a', 'b' or 'c'". Of more than six levels it lists five, and
 * the number of all. */
static void list_levels(const coding_context *m, int64_t j, size_t bytes, char *out)
{
    const em_factor *factor = &m->coding->factor[j];
    const int64_t n = factor->n > 6 ? 5 : factor->n;
    char text[EM_LEVEL_BYTES];

    *out = '\0';
    for (int64_t i = 0; i < n; i++) {
        const char *before = i == 0 ? "" : i + 1 == factor->n ? " or " : ", ";
        em_table_print_value(m->table, j, factor->level[i], text);
        em_append(bytes, out, "%s'%s'", before, em_excerpt_of(text).text);
    }
    if (n < factor->n)
        em_append(bytes, out, " or another of the %lld levels of the run", (long long)factor->n);
}

static em_status fail_level(const coding_context *m, int64_t i, int64_t j)
{
    const em_table *table = m->table;
    char found[EM_LEVEL_BYTES], known[1024];

    em_table_print_value(table, j, table->value[i * table->n_column + j], found);
    list_levels(m, j, sizeof known, known);
    return em_fail(EM_EDATA, "%s:%lld: found level '%s' of factor %s, expected %s", table->path,
                   (long long)em_table_line_of(table, i), em_excerpt_of(found).text,
                   em_excerpt_of(table->name[j]).text, known);
}

/* Replaces values of factor j by the numbers of their levels; *bad: the first row with an unknown
 * one. */
static em_status number_levels(coding_context *m, int64_t j, int64_t *bad)
{
    em_table *table = m->table;
    const size_t n = (size_t)m->coding->factor[j].n;
    EM_SCOPED indexed_level *sorted = NULL;
    em_status status = sort_levels(m, j, &sorted);

    for (int64_t i = 0; !status && i < table->n_row && (*bad < 0 || i < *bad); i++) {
        double *value = &table->value[i * table->n_column + j];
        const indexed_level wanted = {*value, 0};
        const indexed_level *at = bsearch(&wanted, sorted, n, sizeof wanted, em_by_first_level);
        if (at) {
            *value = (double)at->index;
            continue;
        }
        (void)fail_level(m, i, j);
        *bad = i;
    }
    return status;
}

/* The number of column j in a row; for a factor 1 or 0, whether the row is at that level. */
static double value_of(const coding_context *m, const double *from, int64_t j, int64_t level)
{
    if (j >= m->coding->n)
        return m->value[(j - m->coding->n) * EM_MOST_DEGREE + (level < 0 ? 0 : level)];
    return level < 0 ? from[j] : from[j] == (double)level;
}

static void make_row(const coding_context *m, const double *from, double *to)
{
    for (int64_t k = 0; k < m->coding->n_derived; k++)
        em_derived_make(&m->coding->derived[k], from, m->value + k * EM_MOST_DEGREE);
    for (int64_t c = 0; c < m->n_made; c++) {
        const made *of = &m->made[c];
        to[c] = 1;
        for (int k = 0; k < of->n; k++)
            to[c] *= value_of(m, from, of->column[k], of->level[k]);
    }
}

static em_status make_rows(coding_context *m)
{
    em_table *table = m->table;
    double *value = NULL;
    em_status status = em_allocate_doubles(table->n_row * m->n_made, &value);

    if (!status)
        status = em_allocate_doubles(m->coding->n_derived * EM_MOST_DEGREE, &m->value);
    for (int64_t i = 0; !status && i < table->n_row; i++)
        make_row(m, table->value + i * table->n_column, value + i * m->n_made);
    em_release(&m->value);
    if (status) {
        em_release(&value);
        return status;
    }
    em_release(&table->value);
    table->value = value;
    table->n_value = table->value_capacity = table->n_row * m->n_made;
    return EM_OK;
}

static em_status rename_columns(coding_context *m)
{
    em_table *table = m->table;
    char **name = NULL;
    em_status status = em_allocate(m->n_made, sizeof *name, &name);

    for (int64_t c = 0; !status && c < m->n_made; c++)
        status = name_column(m, &m->made[c], &name[c]);
    for (int64_t j = 0; j < table->n_column; j++) {
        em_release(&table->name[j]);
        if (table->text)
            em_levels_release(&table->text[j]);
    }
    em_release_all(&table->text, &table->name);
    table->name = name;
    table->n_column = m->n_made;
    return status;
}

em_status em_coding_apply(const em_coding *coding, em_table *table)
{
    coding_context m = {.coding = coding, .table = table};
    int64_t bad = -1;
    em_status status = EM_OK;

    for (int64_t k = 0; !status && k < coding->n_derived; k++)
        status = em_derived_check(&coding->derived[k], table);
    for (int64_t j = 0; !status && j < coding->n; j++)
        if (coding->is_factor[j])
            status = number_levels(&m, j, &bad);
    status = em_agree_first(status     ? status
                            : bad >= 0 ? EM_EDATA
                                       : EM_OK,
                            bad >= 0 ? em_table_row(table, bad) : 0);
    status = status ? status : make_columns(&m);
    status = status ? status : make_rows(&m);
    status = status ? status : rename_columns(&m);
    em_release(&m.made);
    status = em_agree_first(status, 0);
    if (status)
        return status;
    table->total_entries = table->n_value;
    em_world_sum(1, &table->total_entries);
    return EM_OK;
}
