#include "app/report/report_figures.h"

#include "base/memory.h"
#include "diagnostics/rank.h"

#include <math.h>
#include <stdlib.h>

enum {
    MOST_ROWS = 60,    /* of the intervals */
    MOST_OF_ONE = 25,  /* of a variable */
    MOST_LINES = 8,    /* chains with a line */
    MOST_POINTS = 500, /* of a line */
    MOST_DOTS = 1500   /* of a scatter plot */
};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static const char *name_of(const em_report_data *data, int64_t element)
{
    return data->summary.table.row[element].name;
}

/* ---------------------------------------------------------------- intervals */

static void put_intervals(const em_report_data *data, em_json *json)
{
    const em_summary_table *table = &data->summary.table;
    int64_t n_row = 0, of_one = 0;

    em_json_open(json, "forest", '{');
    em_json_open(json, "rows", '[');
    for (int64_t i = 0; i < table->n_row && n_row < MOST_ROWS; i++) {
        of_one = i > 0 && table->row[i].variable == table->row[i - 1].variable ? of_one + 1 : 1;
        if (of_one > MOST_OF_ONE)
            continue;
        n_row++;
        em_json_open(json, NULL, '{');
        em_json_text(json, "name", name_of(data, i));
        em_json_real(json, "variable", (double)table->row[i].variable);
        em_json_open(json, "quantiles", '[');
        for (int j = EM_AT_Q5; j <= EM_AT_Q95; j++)
            em_json_real(json, NULL, table->row[i].value[j]);
        em_json_close(json, ']');
        em_json_close(json, '}');
    }
    em_json_close(json, ']');
    em_json_real(json, "more", (double)(table->n_row - n_row));
    em_json_close(json, '}');
}

/* ---------------------------------------------------------------- chains */

/* How far the mean of each chain is from the mean of all. */
typedef struct chain_distance {
    double distance;
    int64_t chain;
} chain_distance;

static int compare_distances(const void *left, const void *right)
{
    const chain_distance *a = left, *b = right;

    if (a->distance < b->distance || a->distance > b->distance)
        return a->distance < b->distance ? 1 : -1;
    return (a->chain > b->chain) - (a->chain < b->chain);
}

/* The chains with a line: all of few; of many those whose means are farthest from the mean. */
static em_status choose_chains(const em_report_data *data, const double *draws, int64_t *n,
                               int64_t chosen[MOST_LINES])
{
    chain_distance *d = NULL;
    double mean = 0;
    em_status status = em_allocate(data->n_chain, sizeof *d, &d);

    *n = smaller(data->n_chain, MOST_LINES);
    for (int64_t i = 0; i < data->n_chain * data->n_draw; i++)
        mean += draws[i] / (double)(data->n_chain * data->n_draw);
    for (int64_t c = 0; !status && c < data->n_chain; c++) {
        double distance = 0;
        for (int64_t i = 0; i < data->n_draw; i++)
            distance += (draws[c * data->n_draw + i] - mean) / (double)data->n_draw;
        d[c] = (chain_distance){isfinite(distance) ? fabs(distance) : INFINITY, c};
    }
    if (!status && data->n_chain > MOST_LINES)
        qsort(d, (size_t)data->n_chain, sizeof *d, compare_distances);
    for (int64_t i = 0; !status && i < *n; i++)
        chosen[i] = d[i].chain;
    em_release(&d);
    return status;
}

/* Of each chain, how many draws are in each bin of the ranks among all: [n_chain][n_bin]. All zero
 * where a draw is NaN, which has no rank. */
static em_status count_ranks(const em_report_data *data, const double *draws, int64_t n_bin,
                             double **count)
{
    const int64_t n = data->n_chain * data->n_draw;
    em_sorted *sorted = NULL, *scratch = NULL;
    bool has_nan = false;
    em_status status = em_allocate(data->n_chain * n_bin, sizeof **count, count);

    if (!status)
        status = em_allocate(n, sizeof *sorted, &sorted);
    if (!status)
        status = em_allocate(n, sizeof *scratch, &scratch);
    for (int64_t i = 0; i < n; i++)
        has_nan |= isnan(draws[i]) != 0;
    if (!status && !has_nan) {
        em_sort(n, draws, sorted, scratch);
        for (int64_t rank = 0; rank < n; rank++)
            (*count)[sorted[rank].index / data->n_draw * n_bin + rank * n_bin / n]++;
    }
    em_release(&sorted);
    em_release(&scratch);
    return status;
}

/* The numbers beside a chains figure, and its lines. */
static em_status put_chain(const em_report_data *data, int64_t element, const double *draws,
                           em_json *json)
{
    const int64_t step = (data->n_draw + MOST_POINTS - 1) / MOST_POINTS;
    const int64_t n_bin = data->n_draw / 25 < 5 ? 5 : smaller(data->n_draw / 25, 20);
    const em_judge_columns *at = &data->summary.column;
    int64_t n, chosen[MOST_LINES];
    double *count = NULL;
    em_status status = choose_chains(data, draws, &n, chosen);

    if (!status)
        status = count_ranks(data, draws, n_bin, &count);
    if (!status) {
        em_json_open(json, NULL, '{');
        em_json_text(json, "name", name_of(data, element));
        em_json_real(json, "r_hat", em_report_value(data, element, at->r_hat));
        em_json_real(json, "ess_bulk", em_report_value(data, element, at->ess_bulk));
        em_json_real(json, "ess_tail", em_report_value(data, element, at->ess_tail));
        em_json_real(json, "draws", (double)data->n_draw);
        em_json_real(json, "step", (double)step);
        em_json_open(json, "traces", '[');
        for (int64_t i = 0; i < n; i++)
            em_json_reals(json, NULL, (data->n_draw + step - 1) / step,
                          draws + chosen[i] * data->n_draw, step);
        em_json_close(json, ']');
        em_json_open(json, "ranks", '[');
        for (int64_t i = 0; i < n; i++)
            em_json_reals(json, NULL, n_bin, count + chosen[i] * n_bin, 1);
        em_json_close(json, ']');
        em_json_close(json, '}');
    }
    em_release(&count);
    return status;
}

static em_status put_chains(const em_report_data *data, em_json *json)
{
    em_status status = EM_OK;

    em_json_open(json, "chains", '[');
    for (int64_t k = 0; !status && k < data->n_shown; k++) {
        double *draws = NULL;
        status = em_report_draws(data, data->shown[k], &draws);
        if (!status)
            status = put_chain(data, data->shown[k], draws, json);
        em_release(&draws);
    }
    em_json_close(json, ']');
    return status;
}

/* ---------------------------------------------------------------- pairs */

/* The ends of an axis. */
typedef struct range {
    double low, high;
} range;

/* What an axis of pairs shows: all draws, or, where they are more than twice as wide as their
 * central 99 %, these. Errors: EM_EMEMORY. */
static em_status find_range(const em_report_data *data, em_diag *diag, const double *draws,
                            range *out)
{
    const double most = 2;
    double end[] = {0.005, 0.995};
    const int64_t n = data->n_chain * data->n_draw;
    const em_status status = em_quantiles(diag, n, draws, 2, end, end);
    const double width = end[1] - end[0];

    *out = (range){INFINITY, -INFINITY};
    for (int64_t i = 0; i < n; i++)
        if (isfinite(draws[i]))
            *out = (range){fmin(out->low, draws[i]), fmax(out->high, draws[i])};
    if (width > 0 && out->high - out->low > most * width)
        *out = (range){end[0], end[1]};
    const double pad = 0.04 * (out->high - out->low);
    if (pad > 0)
        *out = (range){out->low - pad, out->high + pad};
    return status;
}

static bool diverged(const em_report_data *data, int64_t draw)
{
    return data->summary.judge->diverging && data->summary.judge->diverging[draw] != 0;
}

/* How many draws an axis leaves out, and how many of these are divergent. */
static void put_outside(const em_report_data *data, double *const *draws, const range *axis,
                        em_json *json)
{
    int64_t outside = 0, bad = 0;

    for (int64_t i = 0; i < data->n_chain * data->n_draw; i++) {
        bool inside = true;
        for (int64_t k = 0; inside && k < data->n_pair; k++)
            inside = draws[k][i] >= axis[k].low && draws[k][i] <= axis[k].high;
        outside += !inside;
        bad += !inside && diverged(data, i);
    }
    em_json_real(json, "outside", (double)outside);
    em_json_real(json, "outside_divergent", (double)bad);
}

/* The draws with a mark: every step-th one, or those that diverged; MOST_DOTS at most. */
static int64_t pick(const em_report_data *data, bool divergent, double *const *draws, int64_t k,
                    double value[MOST_DOTS])
{
    const int64_t n = data->n_chain * data->n_draw, step = (n + MOST_DOTS - 1) / MOST_DOTS;
    int64_t count = 0;

    for (int64_t i = 0; i < n && count < MOST_DOTS; i++)
        if (divergent ? diverged(data, i) : i % step == 0)
            value[count++] = draws[k][i];
    return count;
}

static void put_variables(const em_report_data *data, double *const *draws, const range *axis,
                          em_json *json)
{
    double value[MOST_DOTS];

    em_json_open(json, "variables", '[');
    for (int64_t k = 0; k < data->n_pair; k++) {
        em_json_open(json, NULL, '{');
        em_json_text(json, "name", name_of(data, data->pair[k]));
        em_json_open(json, "range", '[');
        em_json_real(json, NULL, axis[k].low);
        em_json_real(json, NULL, axis[k].high);
        em_json_close(json, ']');
        em_json_reals(json, "draws", pick(data, false, draws, k, value), value, 1);
        em_json_reals(json, "divergent", pick(data, true, draws, k, value), value, 1);
        em_json_close(json, '}');
    }
    em_json_close(json, ']');
}

static em_status put_pairs(const em_report_data *data, em_json *json)
{
    double *draws[EM_REPORT_PAIRS] = {NULL};
    range axis[EM_REPORT_PAIRS];
    em_diag *diag = NULL;
    em_status status = data->n_pair < 2 ? EM_OK : em_diag_create(&diag);

    for (int64_t k = 0; !status && diag && k < data->n_pair; k++) {
        status = em_report_draws(data, data->pair[k], &draws[k]);
        if (!status)
            status = find_range(data, diag, draws[k], &axis[k]);
    }
    if (!status && diag) {
        em_json_open(json, "pairs", '{');
        em_json_real(json, "total", (double)(data->n_chain * data->n_draw));
        em_json_real(json, "diverging", (double)data->summary.judge->evidence.divergences);
        em_json_real(json, "gathering", (double)data->n_gathering);
        put_outside(data, draws, axis, json);
        put_variables(data, draws, axis, json);
        em_json_close(json, '}');
    }
    em_diag_destroy(&diag);
    for (int64_t k = 0; k < data->n_pair; k++)
        em_release(&draws[k]);
    return status;
}

/* ---------------------------------------------------------------- leave-one-out */

/* Observations whose k is too large, or not, as pairs of their number and k. */
static void put_observations(const em_loo *loo, bool high, const char *key, em_json *json)
{
    const int64_t n = loo->variable->size, step = high ? 1 : (n + MOST_DOTS - 1) / MOST_DOTS;
    int64_t count = 0;

    em_json_open(json, key, '[');
    for (int64_t i = 0; i < n && count < MOST_DOTS; i += step) {
        const double k = loo->value[i * EM_N_LOO + EM_LOO_K];
        if (isnan(k) || (k > loo->good_k) != high)
            continue;
        em_json_open(json, NULL, '[');
        em_json_real(json, NULL, (double)i);
        em_json_real(json, NULL, k);
        em_json_close(json, ']');
        count++;
    }
    em_json_close(json, ']');
}

static const char *worst_observation(const em_loo *loo)
{
    int64_t worst = 0;

    for (int64_t i = 0; i < loo->variable->size; i++) {
        const double k = loo->value[i * EM_N_LOO + EM_LOO_K],
                     most = loo->value[worst * EM_N_LOO + EM_LOO_K];
        worst = k > most || isnan(most) ? i : worst;
    }
    return em_reader_label(loo->variable, worst);
}

static void put_loo(const em_report_data *data, em_json *json)
{
    em_json_open(json, "loo", '[');
    for (int64_t i = 0; i < data->n_loo; i++) {
        const em_loo *loo = &data->loo[i];

        em_json_open(json, NULL, '{');
        em_json_text(json, "name", loo->variable->name);
        em_json_real(json, "elpd", loo->elpd);
        em_json_real(json, "se", loo->se);
        em_json_real(json, "p", loo->p);
        em_json_real(json, "good_k", loo->good_k);
        em_json_real(json, "observations", (double)loo->variable->size);
        em_json_real(json, "high", (double)loo->n_high);
        em_json_real(json, "undefined", (double)loo->n_undefined);
        em_json_text(json, "worst", worst_observation(loo));
        put_observations(loo, false, "good", json);
        put_observations(loo, true, "bad", json);
        em_json_close(json, '}');
    }
    em_json_close(json, ']');
}

em_status em_report_figures(const em_report_data *data, em_json *json)
{
    em_json_open(json, "figures", '{');
    em_status status = put_chains(data, json);
    put_intervals(data, json);
    if (!status)
        status = put_pairs(data, json);
    if (!status)
        status = em_report_energy(data, json);
    if (!status)
        status = em_report_mass(data, json);
    if (!status)
        status = em_report_tempering(data, json);
    if (!status)
        status = em_report_steps(data, json);
    put_loo(data, json);
    em_json_close(json, '}');
    return status;
}
