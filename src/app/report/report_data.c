#include "app/report/report_data.h"

#include "app/summary/advice.h"
#include "base/memory.h"
#include "diagnostics/diag.h"
#include "diagnostics/limits.h"
#include "io/draws/reader.h"

#include <fnmatch.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    em_digits digits;
} columns[EM_N_SHOWN] = {[EM_AT_MEAN] = {"mean", EM_DIGITS_FOUR},
                         [EM_AT_MCSE] = {"mcse_mean", EM_DIGITS_FOUR},
                         [EM_AT_SD] = {"sd", EM_DIGITS_FOUR},
                         [EM_AT_Q5] = {"5%", EM_DIGITS_FOUR},
                         [EM_AT_Q50] = {"50%", EM_DIGITS_FOUR},
                         [EM_AT_Q95] = {"95%", EM_DIGITS_FOUR},
                         [EM_AT_ESS_BULK] = {"ess_bulk", EM_DIGITS_WHOLE},
                         [EM_AT_ESS_TAIL] = {"ess_tail", EM_DIGITS_WHOLE},
                         [EM_AT_R_HAT] = {"r_hat", EM_DIGITS_THOUSANDTHS},
                         [EM_AT_NESTED] = {"r_hat_nested", EM_DIGITS_THOUSANDTHS}};

/* ---------------------------------------------------------------- which elements */

static bool matches(const char *pattern, const char *variable, const char *label)
{
    /* The brackets of theta[2] would be a set of characters to a glob. */
    return strcmp(pattern, label) == 0 || fnmatch(pattern, variable, 0) == 0 ||
           fnmatch(pattern, label, 0) == 0;
}

static bool is_wanted(const char *const *pattern, const char *variable, const char *label)
{
    for (const char *const *p = pattern; p && *p; p++)
        if (matches(*p, variable, label))
            return true;
    return !pattern;
}

static em_status select_elements(em_report_data *data, const char *const *pattern)
{
    int64_t total = 0;
    em_status status;

    for (int64_t i = 0; i < em_reader_n_variable(data->draws); i++)
        total += em_reader_variable_at(data->draws, i)->size;
    status = em_allocate(total, sizeof *data->element, &data->element);
    if (status)
        return status;
    for (int64_t i = 0; i < em_reader_n_variable(data->draws); i++) {
        const em_reader_variable *v = em_reader_variable_at(data->draws, i);

        for (int64_t k = 0; k < v->size; k++)
            if (is_wanted(pattern, v->name, v->label[k]))
                data->element[data->n_element++] = (em_report_element){i, k, v->label[k], NULL};
    }
    if (data->n_element == 0)
        return em_fail(EM_EUSAGE, "%s: --var %s: no such variable or element in group posterior",
                       data->path, pattern ? pattern[0] : "");
    return EM_OK;
}

/* ---------------------------------------------------------------- statistics */

static bool is_called(const char *name, const char *wanted)
{
    const char *dot = strrchr(name, '.');

    return strcmp(name, wanted) == 0 || (dot && strcmp(dot + 1, wanted) == 0);
}

em_status em_report_statistic(em_reader *stats, const char *name, double **out)
{
    em_status status;

    *out = NULL;
    for (int64_t i = 0; stats && i < em_reader_n_variable(stats); i++) {
        const em_reader_variable *v = em_reader_variable_at(stats, i);

        if (v->size != 1 || !is_called(v->name, name))
            continue;
        status = em_allocate_doubles(em_reader_n_chain(stats) * em_reader_n_draw(stats), out);
        return status ? status : em_reader_elements(stats, i, 0, 1, *out);
    }
    return EM_OK;
}

/* A group that need not be there. */
static em_status open_statistics(em_report_data *data, const char *group, em_reader **out)
{
    static const char *const any[] = {"lp", "energy", "step_size", "diverging", "acceptance_rate"};
    em_status status = EM_OK;

    for (size_t i = 0; i < sizeof any / sizeof *any && !*out && !status; i++)
        if (em_reader_has(data->draws, group, any[i]))
            status = em_reader_open(data->path, group, out);
    return status;
}

static em_status read_statistics(em_report_data *data)
{
    em_status status = open_statistics(data, "sample_stats", &data->stats);

    if (!status)
        status = open_statistics(data, "warmup_sample_stats", &data->warmup);
    if (status)
        return status;
    data->diverging = data->judge->diverging;
    data->n_diverging = data->judge->evidence.divergences;
    return EM_OK;
}

/* ---------------------------------------------------------------- their numbers */

static em_status numbers(const em_report_data *data, em_diag *diag, const double *draws,
                         double *value)
{
    static const int at[] = {EM_AT_Q5, EM_AT_Q25, EM_AT_Q50, EM_AT_Q75, EM_AT_Q95};
    const int64_t n = data->n_chain * data->n_draw;
    double quantile[] = {0.05, 0.25, 0.5, 0.75, 0.95};
    em_diagnosis d;
    em_status status = em_diagnose(diag, data->n_chain, data->n_draw, draws, &d);

    if (!status)
        status = em_quantiles(diag, n, draws, 5, quantile, quantile);
    if (status)
        return status;
    value[EM_AT_MEAN] = d.mean;
    value[EM_AT_MCSE] = d.mcse_mean;
    value[EM_AT_SD] = d.sd;
    value[EM_AT_ESS_BULK] = d.ess_bulk;
    value[EM_AT_ESS_TAIL] = d.ess_tail;
    value[EM_AT_R_HAT] = d.r_hat;
    value[EM_AT_NESTED] =
        data->n_superchain ? em_nested_r_hat(data->n_superchain, data->n_chain, data->n_draw, draws)
                           : NAN;
    for (int i = 0; i < 5; i++)
        value[at[i]] = quantile[i];
    const double *judged = value + EM_AT_JUDGED;
    status = em_judge_row(data->judge, draws, &d, value[data->r_hat], data->n_element,
                          value + EM_AT_JUDGED);
    if (!status && judged[EM_JUDGED_GATHER] > judged[EM_JUDGED_BY_CHANCE])
        value[EM_AT_GATHER] = judged[EM_JUDGED_GATHER];
    return status;
}

em_status em_report_draws(const em_report_data *data, int64_t element, double **out)
{
    const em_report_element *e = &data->element[element];
    em_status status = em_allocate_doubles(data->n_chain * data->n_draw, out);

    return status ? status : em_reader_elements(data->draws, e->variable, e->index, 1, *out);
}

static em_status find_numbers(em_report_data *data)
{
    em_element *wanted = NULL;
    em_elements *elements = NULL;
    em_diag *diag = NULL;
    em_status status =
        em_allocate(data->n_element * EM_N_NUMBER, sizeof *data->value, &data->value);

    if (!status)
        status = em_allocate(data->n_element, sizeof *wanted, &wanted);
    for (int64_t i = 0; !status && i < data->n_element; i++)
        wanted[i] = (em_element){data->element[i].variable, data->element[i].index};
    if (!status)
        status = em_elements_create(data->draws, data->n_element, wanted, &elements);
    if (!status)
        status = em_diag_create(&diag);
    for (int64_t i = 0; !status && i < data->n_element; i++) {
        double *value = data->value + i * EM_N_NUMBER;
        const double *draws;

        data->element[i].value = value;
        status = em_elements_next(elements, &draws);
        if (!status)
            status = numbers(data, diag, draws, value);
    }
    em_diag_destroy(&diag);
    em_elements_destroy(&elements);
    em_release(&wanted);
    return status;
}

static em_status make_table(em_report_data *data)
{
    em_status status = em_allocate(EM_N_SHOWN, sizeof *data->table.column, &data->table.column);

    if (!status)
        status = em_allocate(data->n_element, sizeof *data->table.row, &data->table.row);
    if (status)
        return status;
    data->table.n_column = data->n_superchain ? EM_N_SHOWN : EM_AT_NESTED;
    for (int j = 0; !status && j < data->table.n_column; j++) {
        data->table.column[j].digits = columns[j].digits;
        status = em_copy_text(columns[j].name, &data->table.column[j].name);
    }
    data->table.column[data->r_hat].most = EM_R_HAT_LIMIT;
    for (int64_t i = 0; i < data->n_element; i++)
        data->table.row[i] = (em_summary_row){.name = data->element[i].name,
                                              .value = data->element[i].value,
                                              .variable = data->element[i].variable,
                                              .index = data->element[i].index};
    data->table.n_row = data->n_element;
    return status;
}

/* How badly an element mixes; what has no R-hat, constants, comes last. */
static double badness(const em_report_data *data, int64_t element)
{
    const double r_hat = data->element[element].value[data->r_hat];

    return isnan(r_hat) ? -1 : r_hat;
}

static int compare_worst(const void *left, const void *right, void *given)
{
    const em_report_data *data = given;
    const int64_t i = *(const int64_t *)left, k = *(const int64_t *)right;
    const double a = badness(data, i), b = badness(data, k);

    if (a < b || a > b)
        return a < b ? 1 : -1;
    return (i > k) - (i < k);
}

static em_status find_worst(em_report_data *data)
{
    em_status status = em_allocate(data->n_element, sizeof *data->worst, &data->worst);

    if (status)
        return status;
    for (int64_t i = 0; i < data->n_element; i++)
        data->worst[i] = i;
    qsort_r(data->worst, (size_t)data->n_element, sizeof *data->worst, compare_worst, data);
    return EM_OK;
}

enum { NEAR = 10000 };

/*
 * Whether draws have the ranks of others, from either end, as those of a multiple or a logarithm:
 * then the bulk ESS is the same to the bit, and R-hat but for roundings of the distances from the
 * median, or how divergent draws gather.
 */
static bool says_the_same(const double *a, const double *b)
{
    return a[EM_AT_ESS_BULK] == b[EM_AT_ESS_BULK] &&
           (fabs(a[EM_AT_R_HAT] - b[EM_AT_R_HAT]) * NEAR < 1 ||
            (a[EM_AT_GATHER] > 0 && a[EM_AT_GATHER] == b[EM_AT_GATHER]));
}

/* Adds an element to those shown, unless one of them has its ranks. */
static void add_fresh(const em_report_data *data, int64_t element, int64_t *n, int64_t *shown)
{
    for (int64_t k = 0; k < *n; k++)
        if (says_the_same(data->element[shown[k]].value, data->element[element].value))
            return;
    shown[(*n)++] = element;
}

/* What the figures show: those that mix worst. */
static void find_shown(em_report_data *data)
{
    for (int64_t i = 0; i < data->n_element && data->n_shown < EM_REPORT_SHOWN; i++)
        add_fresh(data, data->worst[i], &data->n_shown, data->shown);
}

/* Pairs: where divergent draws gather, of as many the one that mixes worse, then those that mix
 * worst. */
static em_status find_pairs(em_report_data *data)
{
    bool *seen = NULL;
    em_status status = em_allocate(data->n_element, sizeof *seen, &seen);

    while (!status && data->n_pair < EM_REPORT_PAIRS) {
        int64_t best = -1;
        double most = 0;

        for (int64_t i = 0; i < data->n_element; i++) {
            const double gather = data->element[data->worst[i]].value[EM_AT_GATHER];
            if (!seen[data->worst[i]] && gather > most) {
                most = gather;
                best = data->worst[i];
            }
        }
        if (best < 0)
            break;
        seen[best] = true;
        add_fresh(data, best, &data->n_pair, data->pair);
    }
    data->n_gathering = data->n_pair;
    for (int64_t i = 0; !status && i < data->n_shown && data->n_pair < EM_REPORT_PAIRS; i++)
        add_fresh(data, data->shown[i], &data->n_pair, data->pair);
    em_release(&seen);
    return status;
}

/* ---------------------------------------------------------------- the advice */

static em_judge_columns columns_of(const em_report_data *data)
{
    return (em_judge_columns){.ess_bulk = EM_AT_ESS_BULK,
                              .ess_tail = EM_AT_ESS_TAIL,
                              .r_hat = data->r_hat,
                              .judged = EM_AT_JUDGED};
}

em_status em_report_advice(const em_report_data *data, char **out)
{
    const em_judge_columns at = columns_of(data);
    char *text = NULL;
    size_t size = 0;
    FILE *words = open_memstream(&text, &size);
    em_status status = words ? EM_OK : em_fail(EM_EMEMORY, "out of memory");

    *out = NULL;
    if (!status)
        status = em_advise(data->judge, &data->table, &at, words);
    if (words)
        fclose(words);
    if (!status)
        status = em_copy_text(text ? text : "", out);
    free(text);
    return status;
}

em_status em_report_rows(const em_report_data *data, int64_t most, em_shown_rows *out)
{
    const em_judge_columns at = columns_of(data);
    const em_rows_order order = {.at = &at, .most = most};

    return em_rows_arrange(&data->table, data->draws, &order, out);
}

/* ---------------------------------------------------------------- leave-one-out */

static em_status leave_one_out(em_report_data *data)
{
    double r_eff;
    em_status status = em_loo_open(data->draws, &data->log_likelihood);

    if (status || !data->log_likelihood || em_reader_n_draw(data->log_likelihood) < 1)
        return status;
    status = em_loo_worth(data->draws, &r_eff);
    for (int64_t i = 0;
         !status && i < em_reader_n_variable(data->log_likelihood) && data->n_loo < EM_REPORT_LOO;
         i++)
        status = em_loo_read(data->log_likelihood, i, r_eff, &data->loo[data->n_loo++]);
    return status;
}

/* ---------------------------------------------------------------- all of it */

em_status em_report_read(const char *path, const char *const *pattern, em_report_data *data)
{
    em_status status;

    *data = (em_report_data){.path = path};
    status = em_reader_open(path, "posterior", &data->draws);
    if (status)
        return status;
    data->n_chain = em_reader_n_chain(data->draws);
    data->n_draw = em_reader_n_draw(data->draws);
    data->n_superchain = em_superchains_of(data->draws);
    data->r_hat = data->n_superchain ? EM_AT_NESTED : EM_AT_R_HAT;
    status = em_expect_draws(data->draws, "posterior");
    if (!status)
        status = select_elements(data, pattern);
    if (!status)
        status = em_judge_create(data->draws, "posterior", &data->judge);
    if (!status)
        status = read_statistics(data);
    if (!status)
        status = find_numbers(data);
    if (!status)
        status = make_table(data);
    if (!status)
        status = find_worst(data);
    if (status)
        return status;
    find_shown(data);
    status = find_pairs(data);
    if (!status) {
        const em_judge_columns at = columns_of(data);
        status = em_judge_conclude(data->judge, &data->table, &at);
    }
    return status ? status : leave_one_out(data);
}

void em_report_release(em_report_data *data)
{
    em_judge_destroy(&data->judge);
    em_reader_close(&data->draws);
    em_reader_close(&data->stats);
    em_reader_close(&data->warmup);
    em_reader_close(&data->log_likelihood);
    for (int64_t i = 0; i < data->n_loo; i++)
        em_loo_release(&data->loo[i]);
    for (int64_t j = 0; j < data->table.n_column; j++)
        em_release(&data->table.column[j].name);
    em_release(&data->table.column);
    em_release(&data->table.row);
    em_release(&data->element);
    em_release(&data->worst);
    em_release(&data->value);
}
