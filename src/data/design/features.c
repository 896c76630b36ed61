#include "data/design/features.h"

#include "base/memory.h"
#include "base/text.h"
#include "data/design/coding.h"
#include "data/design/level_order.h"
#include "data/formula/formula.h"
#include "data/table/builder.h"
#include "data/table/date_text.h"
#include "data/table/truth.h"
#include "par/message.h"
#include "par/world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static const char sizes[] = "n_level", values[] = "level_value", codings[] = "poly_coding";

enum { LONGEST_NAME = 100 }; /* of a factor, so that name[level] is a label */
enum { FEWEST_ROWS = 20 };   /* of which a factor with nearly as many levels is a surprise */

/* ---------------------------------------------------------------- levels that a table has */

static void sort_once(int64_t *n, double *value)
{
    const int64_t all = *n;

    qsort(value, (size_t)all, sizeof *value, em_by_first_level);
    *n = 0;
    for (int64_t i = 0; i < all; i++)
        if (*n == 0 || em_level_compare(value[*n - 1], value[i]) != 0)
            value[(*n)++] = value[i];
}

/* The levels of column j in all rows: numbers in their order, then texts in theirs. Collective. */
static em_status find_levels(const em_table *table, int64_t j, int64_t *n, double **level)
{
    EM_SCOPED double *own = NULL;
    int64_t n_own = table->n_row;
    em_status status = em_agree_first(em_allocate_doubles(table->n_row, &own), 0);

    for (int64_t i = 0; !status && i < table->n_row; i++)
        own[i] = table->value[i * table->n_column + j];
    if (!status) {
        sort_once(&n_own, own);
        n_own = n_own > EM_MOST_LEVELS ? EM_MOST_LEVELS + 1 : n_own;
        status = em_world_gather(n_own, sizeof *own, own, n, level);
    }
    if (status)
        return status;
    sort_once(n, *level);
    if (*n <= EM_MOST_LEVELS)
        return EM_OK;
    em_release(level);
    return em_fail(EM_EDATA, "%s:1: found %d or more levels of factor %s, expected at most %d",
                   table->path, EM_MOST_LEVELS + 1, em_excerpt_of(table->name[j]).text,
                   EM_MOST_LEVELS);
}

/* Whether there are so many levels that most coefficients would describe a single row. */
static bool are_many(int64_t n, int64_t n_row)
{
    return n >= FEWEST_ROWS && 2 * n > n_row;
}

/* ---------------------------------------------------------------- reference levels */

static em_status put_reference_first(const em_table *table, int64_t j, const char *reference,
                                     int64_t n, double *level)
{
    const int truth = em_truth_named(reference);
    char text[EM_LEVEL_BYTES] = "";

    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < n; i++) {
            const double first = level[i];
            em_table_print_value(table, j, first, text);
            if (pass == 0 ? strcmp(text, reference) != 0
                          : truth < 0 || em_truth_of_value(table, j, first) != truth)
                continue;
            memmove(level + 1, level, (size_t)i * sizeof *level);
            level[0] = first;
            return EM_OK;
        }
    return em_fail(EM_EDATA, "%s:1: found no level '%s' of factor %s, expected one such as '%s'",
                   table->path, em_excerpt_of(reference).text, em_excerpt_of(table->name[j]).text,
                   text);
}

/* ---------------------------------------------------------------- features of a run */

static em_status create(int64_t n, bool intercept, em_features **out)
{
    const em_status status = em_allocate(1, sizeof **out, out);

    if (status)
        return status;
    (*out)->intercept = intercept;
    (*out)->n = n;
    return em_allocate_all(EM_ARRAY((*out)->name, n), EM_ARRAY((*out)->n_level, n));
}

void em_features_destroy(em_features **out)
{
    em_features *f = *out;

    if (!f)
        return;
    em_release_texts(f->n, &f->name);
    em_release_texts(f->n_all, &f->level);
    em_release_all(&f->n_level, &f->value, &f->poly, out);
}

/* Appends the levels of factor j. */
static em_status add_levels(em_features *f, const em_table *table, int64_t j, int64_t n,
                            const double *level)
{

    if (strlen(table->name[j]) > LONGEST_NAME)
        return em_fail(EM_EDATA,
                       "%s:1: found a factor whose name has %zu bytes, expected at most %d",
                       table->path, strlen(table->name[j]), LONGEST_NAME);
    em_status status = em_reallocate(f->n_all + n, sizeof *f->level, &f->level);
    status = status ? status : em_reallocate(f->n_all + n, sizeof *f->value, &f->value);
    for (int64_t i = 0; !status && i < n; i++) {
        char text[EM_LEVEL_BYTES];
        em_table_print_value(table, j, level[i], text);
        f->value[f->n_all] = em_level_code(level[i]) >= 0 ? NAN : level[i];
        status = em_format_text(&f->level[f->n_all], "%s[%s]", table->name[j], text);
        if (!status)
            f->n_all++;
    }
    f->n_level[j] = (double)n;
    return status;
}

/* Collective. */
static em_status find_factor(const json_t *levels, em_features *f, const em_table *table,
                             em_coding *coding, int64_t j)
{
    const char *reference = table->factor[j];
    em_factor *factor = &coding->factor[j];
    em_status status = find_levels(table, j, &factor->n, &factor->level);

    if (!status && are_many(factor->n, table->total))
        em_say("warning: %s: factor %s has %lld levels in %lld rows, so that most coefficients "
               "describe a single row: leave out a column that identifies rows; numbers need no "
               "factor()",
               table->path, em_excerpt_of(table->name[j]).text, (long long)factor->n,
               (long long)table->total);
    if (!status && factor->n < 2)
        status = em_fail(EM_EDATA, "%s:1: found one level of factor %s in all rows, expected two",
                         table->path, em_excerpt_of(table->name[j]).text);
    status = status ? status : em_level_order_apply(levels, table, j, factor->n, factor->level);
    if (!status && *reference)
        status = put_reference_first(table, j, reference, factor->n, factor->level);
    return em_agree_first(status ? status : add_levels(f, table, j, factor->n, factor->level), 0);
}

/* Collective. */
static em_status find_codings(em_features *f, const em_table *table, em_coding *coding)
{
    em_status status = EM_OK;
    int64_t at = 0;

    for (int64_t k = 0; !status && k < coding->n_derived; k++) {
        status = em_derived_check(&coding->derived[k], table);
        status = status ? status : em_derived_find(&coding->derived[k], table);
        f->n_poly += em_derived_coding_size(&coding->derived[k]);
    }
    status = status ? status : em_agree_first(em_allocate_doubles(f->n_poly, &f->poly), 0);
    for (int64_t k = 0; !status && k < coding->n_derived; k++)
        for (int64_t i = 0; i < em_derived_coding_size(&coding->derived[k]); i++)
            f->poly[at++] = coding->derived[k].coding[i];
    return status;
}

/* Collective. */
static em_status find_features(const em_table_options *options, const em_table *table,
                               em_coding *coding, em_features **out)
{
    json_auto_t *levels = NULL;
    em_status status = create(table->n_column, coding->intercept, out);

    for (int64_t j = 0; !status && j < table->n_column; j++)
        status = em_copy_text(table->name[j], &(*out)->name[j]);
    status = status ? status : em_level_order_load(options, &levels);
    status = em_agree_first(status, 0);
    for (int64_t j = 0; !status && j < table->n_column; j++)
        if (coding->is_factor[j])
            status = find_factor(levels, *out, table, coding, j);
    return status ? status : find_codings(*out, table, coding);
}

/* ---------------------------------------------------------------- features of a file */

/* Reads the arrays of a file, which may be from any program. */
typedef struct stored_features {
    int64_t n, n_size, n_label, n_value, n_poly;
    const char *const *name, *const *label;
    const double *size, *value, *poly;
} stored_features;

static em_status ask(const em_fitted *fitted, stored_features *f)
{
    em_status status = fitted->numbers(fitted->context, sizes, &f->n_size, &f->size);

    if (status || !f->size)
        return status;
    status = fitted->labels(fitted->context, "feature", &f->n, &f->name);
    status = status ? status : fitted->labels(fitted->context, "level", &f->n_label, &f->label);
    status = status ? status : fitted->numbers(fitted->context, codings, &f->n_poly, &f->poly);
    return status ? status : fitted->numbers(fitted->context, values, &f->n_value, &f->value);
}

static em_status check_found(const stored_features *f)
{
    int64_t left = f->n_value, at = 0;

    for (int64_t j = 0; j < f->n_size && left >= 0; j++)
        left -= f->size[j] >= 0 && f->size[j] <= EM_MOST_LEVELS ? (int64_t)f->size[j] : left + 1;
    if (f->n != f->n_size || f->n_label != f->n_value || left != 0)
        return em_fail(EM_EDATA,
                       "found %lld features of %lld sizes and %lld levels of %lld values in "
                       "constant_data, expected those of a run",
                       (long long)f->n, (long long)f->n_size, (long long)f->n_label,
                       (long long)f->n_value);
    for (int64_t j = 0; j < f->n; j++)
        for (int64_t i = 0; i < (int64_t)f->size[j]; i++, at++) {
            const size_t length = strlen(f->name[j]);
            const char *label = f->label[at];
            if (strncmp(label, f->name[j], length) != 0 || label[length] != '[' ||
                label[strlen(label) - 1] != ']')
                return em_fail(
                    EM_EDATA,
                    "found level '%s' of factor '%s' in constant_data, expected '%s[level]'", label,
                    f->name[j], f->name[j]);
        }
    return EM_OK;
}

/* The value of a level in this table; a level that does not occur has none. */
static em_status value_in(em_table *table, int64_t j, const char *label, double value, double *out)
{
    const size_t first = strlen(table->name[j]) + 1, length = strlen(label) - first - 1;
    char text[EM_FITTED_BYTES];
    int64_t code;
    em_status status = EM_OK;

    *out = value;
    if (!isnan(value))
        return EM_OK;
    memcpy(text, label + first, length);
    text[length] = '\0';
    if (!table->text)
        status = em_allocate(table->n_column, sizeof *table->text, &table->text);
    status = status ? status : em_levels_add(&table->text[j], text, &code);
    if (!status)
        *out = em_level_value(code);
    return status;
}

static em_status take_levels(em_table *table, const stored_features *f, em_coding *coding)
{
    int64_t at = 0;
    em_status status = EM_OK;

    for (int64_t j = 0; !status && j < f->n; j++) {
        em_factor *factor = &coding->factor[j];
        factor->n = (int64_t)f->size[j];
        if (factor->n > 0)
            status = em_allocate_doubles(factor->n, &factor->level);
        for (int64_t i = 0; !status && i < factor->n; i++, at++)
            status = value_in(table, j, f->label[at], f->value[at], &factor->level[i]);
    }
    return status;
}

/* Reads the codings of polynomials. */
static em_status take_codings(const stored_features *f, em_coding *coding)
{
    int64_t at = 0;
    em_status status = EM_OK;

    for (int64_t k = 0; k < coding->n_derived; k++)
        at += em_derived_coding_size(&coding->derived[k]);
    if (at != f->n_poly)
        return em_fail(EM_EDATA, "found %lld numbers of constant_data/%s, expected %lld",
                       (long long)f->n_poly, codings, (long long)at);
    at = 0;
    for (int64_t k = 0; !status && k < coding->n_derived; k++) {
        em_derived *derived = &coding->derived[k];
        const int64_t n = em_derived_coding_size(derived);
        if (n == 0)
            continue;
        status = em_allocate(n, sizeof *derived->coding, &derived->coding);
        for (int64_t i = 0; !status && i < n; i++)
            derived->coding[i] = f->poly[at++];
    }
    return status;
}

/* ---------------------------------------------------------------- a table is read */

/* The response of a formula, such as log(y), replaces its column y. The densities of y and of
 * log(y) cannot be compared, so the hash of the data changes too. Collective. */
static em_status derive_response(const em_table_options *options, em_table *table)
{
    const em_formula_columns columns = {
        .n = table->n_column, .name = table->name, .beside = table->beside_at, .chosen = true};
    EM_SCOPED_BY(em_formula_release) em_formula formula = {.response_derived = -1};
    const int64_t n = table->n_column;
    em_status status = em_agree_first(em_formula_parse(options->formula, &columns, &formula), 0);
    const em_derived *derived = !status && formula.response_derived >= 0
                                    ? &formula.derived[formula.response_derived]
                                    : NULL;

    if (derived)
        status = em_derived_check(derived, table);
    for (int64_t i = 0; !status && derived && i < table->n_row; i++)
        table->value[i * n + formula.response] = em_derived_value(derived, table->value + i * n);
    if (!status && derived)
        table->hash = XXH64(derived->name, strlen(derived->name), table->hash);
    return status;
}

/* Fails with a message about the first row with a text in column j. The column also has numbers or,
 * if `dates`, all of its texts are dates. Collective. */
static em_status fail_text(const em_table *table, int64_t j, bool dates)
{
    const int64_t n = table->n_column;
    int64_t held = 0;
    char text[EM_LEVEL_BYTES];

    while (held < table->n_row && em_level_code(table->value[held * n + j]) < 0)
        held++;
    const int64_t row = em_table_first_row(table, held);
    if (held == table->n_row || em_table_row(table, held) != row)
        return em_agree_first(EM_OK, row);
    em_table_print_value(table, j, table->value[held * n + j], text);
    const em_excerpt value = em_excerpt_of(text), name = em_excerpt_of(table->name[j]);
    return em_agree_first(
        em_fail(EM_EDATA, "%s:%lld: found '%s' for column %s, expected a number%s%s%s", table->path,
                (long long)em_table_line_of(table, held), value.text, name.text,
                dates ? ", such as that of days since the first date (factor("
                      : " as in other rows (factor(",
                name.text,
                dates ? ") in the formula has a coefficient for each date)"
                      : ") in the formula is one of categories)"),
        row);
}

/* Whether all texts of a column are dates or, if they are too many for categories, times. */
static bool has_dates(const em_levels *texts, int64_t n_row)
{
    const em_date_text least = are_many(texts->count, n_row) ? EM_CLOCK_TEXT : EM_DATE_TEXT;
    int64_t i = 0;

    while (i < texts->count && em_date_text_of(texts->text[i]) >= least)
        i++;
    return i == texts->count;
}

/* Columns of a formula that have texts, and no numbers, are factors, unless the texts are dates.
 * Collective. */
static em_status find_text_columns(em_table *table)
{
    em_status status = EM_OK;

    for (int64_t j = 0; !status && table->text && j < table->n_column; j++) {
        if (table->text[j].count == 0 || table->factor[j] || j == table->response_at)
            continue;
        int64_t numbers = 0;
        for (int64_t i = 0; i < table->n_row; i++)
            numbers += em_level_code(table->value[i * table->n_column + j]) < 0;
        em_world_sum(1, &numbers);
        const bool dates = numbers == 0 && has_dates(&table->text[j], table->total);
        if (numbers > 0 || dates)
            status = fail_text(table, j, dates);
        else
            table->factor[j] = "";
    }
    for (int64_t j = 0; !status && table->factor && j < table->n_column; j++)
        if (table->factor[j] && j != table->response_at)
            em_truth_merge(table, j);
    return status;
}

/* The name of the column of ones belongs to no other. */
static em_status check_intercept(const em_table *table, bool has_intercept)
{
    for (int64_t j = 0; has_intercept && !table->unnamed && j < table->n_column; j++)
        if (strcmp(table->name[j], "intercept") == 0)
            return em_fail(EM_EDATA,
                           "%s:1: found column 'intercept' beside the intercept of the model, "
                           "expected another name, or no other intercept (intercept: false)",
                           table->path);
    return EM_OK;
}

static em_status read_run(const em_table_options *options, em_table **table, em_features **out)
{
    em_table_options advised = *options;
    EM_SCOPED_BY(em_coding_destroy) em_coding *coding = NULL;

    advised.asks_header = true;
    advised.if_missing = "na: drop leaves such rows out";
    advised.if_text = options->formula ? NULL : "those of categories are listed in model.factors";
    em_status status = em_table_read(&advised, table);

    if (!status && options->formula)
        status = find_text_columns(*table);
    if (!status && options->formula)
        status = derive_response(options, *table);
    status = status ? status : em_table_take_response(*table, options);
    status = status ? status : em_agree_first(em_coding_create(options, *table, NULL, &coding), 0);
    if (!status && coding)
        status = find_features(options, *table, coding, out);
    else if (!status)
        status = em_agree_first(create(0, options->intercept, out), 0);
    if (!status && coding)
        status = em_coding_apply(coding, *table);
    return status ? status : em_agree_first(check_intercept(*table, (*out)->intercept), 0);
}

static em_status read_as(const em_table_options *options, const em_fitted_columns *columns,
                         em_table **table)
{
    em_table_options as = *options;

    as.fitted = columns;
    as.labelled = false;
    as.columns = columns->n;
    const em_status status = em_table_read(&as, table);
    return status ? status : em_table_arrange(*table, &as, columns->n, columns->name);
}

/* Reads the features of a run whose columns were not coded. */
static em_status read_plain(const em_table_options *options, const em_fitted *fitted,
                            em_table **table, em_features **out)
{
    em_fitted_columns columns = {0, NULL, NULL};
    EM_SCOPED bool *no_factor = NULL;
    em_status status = fitted->labels(fitted->context, "coefficient", &columns.n, &columns.name);

    if (!status && columns.n < options->intercept)
        status = em_fail(EM_EDATA, "found %lld coefficients of the run, expected features",
                         (long long)columns.n);
    if (!status) {
        columns.n -= options->intercept;
        columns.name += options->intercept;
        status = em_allocate(columns.n, sizeof *no_factor, &no_factor);
    }
    status = status ? status : create(0, options->intercept, out);
    columns.is_factor = no_factor;
    status = em_agree_first(status, 0);
    return status ? status : read_as(options, &columns, table);
}

static em_status read_coded(const em_table_options *options, const stored_features *f,
                            em_table **table, em_features **out)
{
    EM_SCOPED bool *is_factor = NULL;
    EM_SCOPED_BY(em_coding_destroy) em_coding *coding = NULL;
    em_status status = em_allocate(f->n, sizeof *is_factor, &is_factor);

    for (int64_t j = 0; !status && j < f->n; j++)
        is_factor[j] = f->size[j] > 0;
    status = em_agree_first(status, 0);
    const em_fitted_columns columns = {f->n, f->name, is_factor};
    status = status ? status : read_as(options, &columns, table);
    status = status ? status : em_coding_create(options, *table, is_factor, &coding);
    status = status ? status : take_levels(*table, f, coding);
    for (int64_t j = 0; !status && j < f->n; j++)
        em_truth_match(*table, j, coding->factor[j].n, coding->factor[j].level);
    status = status ? status : take_codings(f, coding);
    status = status ? status : create(0, coding->intercept, out);
    status = em_agree_first(status, 0);
    return status ? status : em_coding_apply(coding, *table);
}

em_status em_features_read(const em_table_options *options, const em_fitted *fitted,
                           em_table **table, em_features **out)
{
    stored_features f = {0};

    *table = NULL;
    *out = NULL;
    if (!fitted)
        return read_run(options, table, out);
    em_status status = ask(fitted, &f);
    if (!status && f.size)
        status = check_found(&f);
    status = em_agree_first(status, 0);
    if (status)
        return status;
    return f.size ? read_coded(options, &f, table, out) : read_plain(options, fitted, table, out);
}

int em_features_data(const em_features *f, em_datum data[EM_FEATURES_ARRAYS])
{
    static const char group[] = "constant_data";

    if (f->n == 0)
        return 0;
    data[0] = (em_datum){group,
                         {.name = sizes,
                          .storage = EM_STORE_INT,
                          .n_axes = 1,
                          .shape = {f->n},
                          .axis = {"feature"},
                          .label = {(const char *const *)f->name}},
                         f->n_level};
    data[1] = (em_datum){group,
                         {.name = values,
                          .n_axes = 1,
                          .shape = {f->n_all},
                          .axis = {"level"},
                          .label = {(const char *const *)f->level}},
                         f->value};
    int n = f->n_all > 0 ? 2 : 1;
    if (f->n_poly > 0)
        data[n++] =
            (em_datum){group, {.name = codings, .n_axes = 1, .shape = {f->n_poly}}, f->poly};
    return n;
}
