#include "app/summary/loo.h"

#include "app/summary/summary_table.h"
#include "base/memory.h"
#include "base/system/terminal.h"
#include "io/draws/contents.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- whether the data are the same */

/* The data of the observations of two files. */
typedef struct data {
    const char *path[2];
    em_contents *contents[2];
    int64_t n;        /* observations */
    int64_t n_common; /* number of arrays with the same name and size in both */
    int64_t n_equal;
    const char *differs; /* name of the first one that differs; borrowed */
} data;

static bool has_size(const em_contents_array *array, int64_t n)
{
    int64_t size = 1;

    for (int i = 0; i < array->n_axes; i++) {
        if (array->shape[i] < 1 || size > n / array->shape[i])
            return false;
        size *= array->shape[i];
    }
    return array->is_number && !array->is_coordinate && size == n;
}

static em_status compare_array(data *d, const char *group, const char *name)
{
    double *value[2] = {NULL};
    int64_t count[2] = {0};
    em_status status = EM_OK;

    for (int i = 0; !status && i < 2; i++)
        status = em_read_array(d->path[i], group, name, &count[i], &value[i]);
    if (!status) {
        const bool equal = count[0] == count[1] &&
                           memcmp(value[0], value[1], (size_t)count[0] * sizeof **value) == 0;
        d->n_common++;
        d->n_equal += equal;
        d->differs = equal || d->differs ? d->differs : name;
    }
    em_release_all(&value[0], &value[1]);
    return status;
}

static em_status compare_group(data *d, const char *name)
{
    const em_contents_group *first = em_contents_group_of(d->contents[0], name),
                            *other = em_contents_group_of(d->contents[1], name);
    em_status status = EM_OK;

    d->n_common = d->n_equal = 0;
    d->differs = NULL;
    for (int64_t i = 0; first && other && !status && i < first->n_array; i++) {
        const em_contents_array *array = &first->array[i],
                                *same = em_contents_array_of(other, array->name);
        if (same && has_size(array, d->n) && has_size(same, d->n))
            status = compare_array(d, name, array->name);
    }
    return status;
}

/* Whether both files have a hash of their data, and the hashes differ. */
static bool have_other_hashes(const data *d)
{
    const em_contents_attribute *first = em_contents_attribute_of(d->contents[0], "data_hash"),
                                *other = em_contents_attribute_of(d->contents[1], "data_hash");

    return first && other && strcmp(first->text, other->text) != 0;
}

static em_status compare_data(data *d)
{
    em_status status = compare_group(d, "observed_data");

    if (!status && d->n_common > 0)
        return d->differs ? em_fail(EM_EDATA,
                                    "%s: found other values of observed_data/%s than in %s, "
                                    "expected models of the same observations",
                                    d->path[1], d->differs, d->path[0])
                          : EM_OK;
    status = status ? status : compare_group(d, "constant_data");
    if (!status && d->n_equal == 0 && have_other_hashes(d))
        status = em_fail(EM_EDATA,
                         "%s: found other data than in %s (by data_hash), expected models of the "
                         "same observations",
                         d->path[1], d->path[0]);
    return status;
}

em_status em_loo_check_data(const char *first_path, const em_loo *first, const char *other_path,
                            const em_loo *other)
{
    data d = {.path = {first_path, other_path}, .n = first->variable->size};
    em_status status = EM_OK;

    if (other->variable->size != d.n)
        return em_fail(EM_EDATA,
                       "%s: found %lld observations, expected %lld as in %s: models are compared "
                       "on the same observations",
                       other_path, (long long)other->variable->size, (long long)d.n, first_path);
    for (int i = 0; !status && i < 2; i++)
        status = em_contents_read(d.path[i], &d.contents[i]);
    status = status ? status : compare_data(&d);
    em_release_owner(&d.contents[0]);
    em_release_owner(&d.contents[1]);
    return status;
}

/* ---------------------------------------------------------------- the table */

enum { AT_ELPD, AT_SE, AT_P, AT_DIFFERENCE, AT_DIFFERENCE_SE, AT_HIGH, N_COLUMN };

/* Computes the difference of the sums, and its standard error from the differences of the
 * observations. */
static void find_difference(const em_loo *loo, const em_loo *best, double *value)
{
    const int64_t n = loo->variable->size;
    double squares = 0;

    value[AT_DIFFERENCE] = loo->elpd - best->elpd;
    for (int64_t i = 0; i < n; i++) {
        const int64_t k = i * EM_N_LOO + EM_LOO_ELPD;
        const double off = loo->value[k] - best->value[k] - value[AT_DIFFERENCE] / (double)n;
        squares += off * off;
    }
    value[AT_DIFFERENCE_SE] = sqrt(squares);
}

/* The file with the largest elpd_loo. A file without one is chosen only if no file has one. */
static const em_loo *find_best(int64_t n, const em_loo_files *files)
{
    const em_loo *best = &files[0].loo;

    for (int64_t i = 1; i < n; i++)
        if (isnan(best->elpd) || files[i].loo.elpd > best->elpd)
            best = &files[i].loo;
    return best;
}

static em_status fill_table(int64_t n, const char *const *path, const em_loo_files *files,
                            double *value, em_summary_table *table)
{
    static const char *const column[N_COLUMN] = {[AT_ELPD] = "elpd_loo",
                                                 [AT_SE] = "se",
                                                 [AT_P] = "p_loo",
                                                 [AT_DIFFERENCE] = "elpd_diff",
                                                 [AT_DIFFERENCE_SE] = "diff_se",
                                                 [AT_HIGH] = "high_k"};
    const em_loo *best = find_best(n, files);
    em_status status = em_table_begin(n, N_COLUMN, table);

    for (int j = 0; !status && j < N_COLUMN; j++)
        status =
            em_table_add_column(table, j == AT_HIGH ? EM_DIGITS_WHOLE : EM_DIGITS_FOUR, column[j]);
    for (int64_t i = 0; !status && i < n; i++) {
        const em_loo *loo = &files[i].loo;
        double *row = value + i * N_COLUMN;
        row[AT_ELPD] = loo->elpd;
        row[AT_SE] = loo->se;
        row[AT_P] = loo->p;
        row[AT_HIGH] = (double)(loo->n_high + loo->n_undefined);
        find_difference(loo, best, row);
        table->row[i] = (em_summary_row){.name = path[i], .value = row};
    }
    if (!status)
        em_table_sort(table, AT_ELPD, false);
    return status;
}

static em_status explain(const em_summary_table *table)
{
    const double little = 4, few = 2;
    const double *second = table->row[1].value;
    em_prose prose;
    em_status status = em_prose_begin(stdout, &prose);

    if (status)
        return status;
    fputs("elpd_diff is elpd_loo minus the largest one, diff_se its standard error over the same "
          "observations, high_k the observations whose Pareto k is too large. ",
          prose.words);
    if (isnan(second[AT_DIFFERENCE]))
        fputs("A model whose elpd_loo is undefined cannot be compared.\n", prose.words);
    else if (-second[AT_DIFFERENCE] < little ||
             -second[AT_DIFFERENCE] < few * second[AT_DIFFERENCE_SE])
        fprintf(prose.words,
                "%s and %s cannot be told apart: the difference is below 4, or below twice its "
                "standard error.\n",
                table->row[0].name, table->row[1].name);
    else
        fprintf(prose.words, "%s predicts best.\n", table->row[0].name);
    em_prose_end(&prose, 100);
    return EM_OK;
}

em_status em_loo_compare(int64_t n, const char *const *path, const em_loo_files *files, bool csv)
{
    EM_SCOPED_BY(em_table_release) em_summary_table table = {0};
    EM_SCOPED double *value = NULL;
    em_status status = em_allocate(n * N_COLUMN, sizeof *value, &value);

    status = status ? status : fill_table(n, path, files, value, &table);
    if (!status && csv)
        em_table_print_csv(&table, stdout);
    if (!status && !csv) {
        em_table_print(&table, stdout);
        status = explain(&table);
    }
    return status;
}
