#include "app/report/report_data.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

em_status em_report_draws(const em_report_data *data, int64_t element, double **out)
{
    const em_element *e = &data->summary.element[element];
    em_status status = em_allocate_doubles(data->n_chain * data->n_draw, out);

    return status ? status
                  : em_reader_elements(data->summary.reader, e->variable, e->index, 1, *out);
}

em_status em_report_statistic(em_reader *stats, const char *name, double **out)
{
    *out = NULL;
    for (int64_t i = 0; stats && i < em_reader_n_variable(stats); i++) {
        const em_reader_variable *v = em_reader_variable_at(stats, i);
        const char *dot = strrchr(v->name, '.');

        if (v->size != 1 || (strcmp(v->name, name) != 0 && (!dot || strcmp(dot + 1, name) != 0)))
            continue;
        em_status status =
            em_allocate_doubles(em_reader_n_chain(stats) * em_reader_n_draw(stats), out);
        return status ? status : em_reader_elements(stats, i, 0, 1, *out);
    }
    return EM_OK;
}

/* Opens a group of statistics, which a file need not have. */
static em_status open_statistics(em_report_data *data, const char *group, em_reader **out)
{
    static const char *const any[] = {"lp", "energy", "step_size", "diverging", "acceptance_rate"};
    em_status status = EM_OK;

    for (size_t i = 0; i < sizeof any / sizeof *any && !*out && !status; i++)
        if (em_reader_has(data->summary.reader, group, any[i]))
            status = em_reader_open(data->path, group, out);
    return status;
}

/* ---------------------------------------------------------------- what figures show */

/* How badly an element mixes. An element without R-hat, such as a constant, comes last. */
static double badness(const em_report_data *data, int64_t element)
{
    const double r_hat = em_report_value(data, element, data->summary.table.at.r_hat);

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

/* How much the distributions of divergent and other draws differ in an element; 0: not more than by
 * chance. */
static double gathering(const em_report_data *data, int64_t element)
{
    const double *judged = data->summary.table.row[element].value + data->summary.table.at.judged;

    return judged[EM_JUDGED_CLUSTERING] > judged[EM_JUDGED_BY_CHANCE] ? judged[EM_JUDGED_CLUSTERING]
                                                                      : 0;
}

/*
 * Whether the draws of two elements probably have the same ranks, counted from either end, as those
 * of x and -2 x or log x: bulk and tail ESS are equal bit for bit, or the distance of divergent
 * draws from the others is. R-hat of few draws may differ a little, because the distances of the
 * middle draws from the median are equal up to rounding.
 */
static bool have_equal_ranks(const em_report_data *data, int64_t a, int64_t b)
{
    const int64_t bulk = data->summary.table.at.ess_bulk, tail = data->summary.table.at.ess_tail,
                  r_hat = data->summary.place[EM_COLUMN_R_HAT];
    const double apart = fabs(em_report_value(data, a, r_hat) - em_report_value(data, b, r_hat));
    const bool same_tail = em_report_value(data, a, tail) == em_report_value(data, b, tail);

    return em_report_value(data, a, bulk) == em_report_value(data, b, bulk) &&
           (apart < 1e-4 || (same_tail && apart < 1e-2) ||
            (gathering(data, a) > 0 && gathering(data, a) == gathering(data, b)));
}

/* Adds an element to those shown, unless one of those has the same ranks of draws. */
static void add_fresh(const em_report_data *data, int64_t element, int64_t *n, int64_t *shown)
{
    for (int64_t k = 0; k < *n; k++)
        if (have_equal_ranks(data, shown[k], element))
            return;
    shown[(*n)++] = element;
}

/* The next element for the figure of pairs: the one in which divergent draws cluster most or, among
 * equal ones, the one that mixes worst. -1: none is left. */
static int64_t next_gathering(const em_report_data *data, const int64_t *worst, const bool *seen)
{
    int64_t best = -1;
    double most = 0;

    for (int64_t i = 0; i < data->summary.n_element; i++)
        if (!seen[worst[i]] && gathering(data, worst[i]) > most) {
            most = gathering(data, worst[i]);
            best = worst[i];
        }
    return best;
}

static em_status choose_elements(em_report_data *data)
{
    const int64_t n = data->summary.n_element;
    EM_SCOPED int64_t *worst = NULL;
    int64_t next;
    EM_SCOPED bool *seen = NULL;
    em_status status = em_allocate_all(EM_ARRAY(worst, n), EM_ARRAY(seen, n));

    if (!status) {
        for (int64_t i = 0; i < n; i++)
            worst[i] = i;
        qsort_r(worst, (size_t)n, sizeof *worst, compare_worst, data);
        for (int64_t i = 0; i < n && data->n_shown < EM_REPORT_SHOWN; i++)
            add_fresh(data, worst[i], &data->n_shown, data->shown);
        while (data->n_pair < EM_REPORT_PAIRS && (next = next_gathering(data, worst, seen)) >= 0) {
            seen[next] = true;
            add_fresh(data, next, &data->n_pair, data->pair);
        }
        data->n_gathering = data->n_pair;
        for (int64_t i = 0; i < data->n_shown && data->n_pair < EM_REPORT_PAIRS; i++)
            add_fresh(data, data->shown[i], &data->n_pair, data->pair);
    }
    return status;
}

/* ---------------------------------------------------------------- the whole record */

static em_status leave_one_out(em_report_data *data)
{
    double r_eff;
    em_status status = em_loo_open(data->summary.reader, &data->log_likelihood);

    if (status || !data->log_likelihood || em_reader_n_draw(data->log_likelihood) < 1)
        return status;
    status = em_loo_worth(data->summary.reader, &r_eff);
    for (int64_t i = 0;
         !status && i < em_reader_n_variable(data->log_likelihood) && data->n_loo < EM_REPORT_LOO;
         i++)
        status = em_loo_read(data->log_likelihood, i, r_eff, &data->loo[data->n_loo++]);
    return status;
}

em_status em_report_read(em_report_data *data)
{
    data->n_chain = em_reader_n_chain(data->summary.reader);
    data->n_draw = em_reader_n_draw(data->summary.reader);
    em_status status = open_statistics(data, "sample_stats", &data->stats);

    status = status ? status : open_statistics(data, "warmup_sample_stats", &data->warmup);
    status = status ? status : choose_elements(data);
    return status ? status : leave_one_out(data);
}

void em_report_release(em_report_data *data)
{
    em_reader_close(&data->stats);
    em_reader_close(&data->warmup);
    em_reader_close(&data->log_likelihood);
    for (int64_t i = 0; i < data->n_loo; i++)
        em_loo_release(&data->loo[i]);
    em_summary_release(&data->summary);
}
