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

/* ---------------------------------------------------------------- intervals */

static json_t *intervals(const em_report_data *data)
{
    const em_summary_table *table = &data->summary.table;
    json_t *rows = json_array();
    int64_t n_row = 0, of_one = 0;

    for (int64_t i = 0; rows && i < table->n_row && n_row < MOST_ROWS; i++) {
        const em_summary_row *row = &table->row[i];
        of_one = i > 0 && row->variable == row[-1].variable ? of_one + 1 : 1;
        if (of_one > MOST_OF_ONE)
            continue;
        json_t *quantiles = json_array();
        for (int j = EM_AT_Q5; j <= EM_AT_Q95; j++)
            em_json_add(&quantiles, em_json_real(row->value[j]));
        em_json_add(&rows, json_pack("{s:o, s:I, s:o}", "name", em_json_text(row->name), "variable",
                                     (json_int_t)row->variable, "quantiles", quantiles));
        n_row++;
    }
    return json_pack("{s:o, s:I}", "rows", rows, "more", (json_int_t)(table->n_row - n_row));
}

/* ---------------------------------------------------------------- chains */

/* The distance of the mean of a chain from the mean of all chains. */
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

/* Chooses the chains that get a line: all if there are few, else those whose means are farthest
 * from the mean of all. */
static em_status choose_chains(const em_report_data *data, const double *draws, int64_t *n,
                               int64_t chosen[MOST_LINES])
{
    EM_SCOPED chain_distance *d = NULL;
    double mean = 0;
    em_status status = em_allocate(data->n_chain, sizeof *d, &d);

    *n = em_least(data->n_chain, MOST_LINES);
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
    return status;
}

/* Counts how many draws of each chain are in each bin of the ranks among all draws:
 * [n_chain][n_bin]. All counts are zero if a draw is NaN, which has no rank. */
static em_status count_ranks(const em_report_data *data, const double *draws, int64_t n_bin,
                             double **count)
{
    const int64_t n = data->n_chain * data->n_draw;
    EM_SCOPED em_sorted *sorted = NULL, *scratch = NULL;
    bool has_nan = false;
    em_status status = em_allocate(data->n_chain * n_bin, sizeof **count, count);

    status = status ? status : em_allocate_all(EM_ARRAY(sorted, n), EM_ARRAY(scratch, n));
    for (int64_t i = 0; i < n; i++)
        has_nan |= isnan(draws[i]) != 0;
    if (!status && !has_nan) {
        em_sort(n, draws, sorted, scratch);
        for (int64_t rank = 0; rank < n; rank++)
            (*count)[sorted[rank].index / data->n_draw * n_bin + rank * n_bin / n]++;
    }
    return status;
}

/* The numbers beside the figure of chains, and its lines. */
static em_status chain_of(const em_report_data *data, int64_t element, const double *draws,
                          json_t **out)
{
    const int64_t step = (data->n_draw + MOST_POINTS - 1) / MOST_POINTS;
    const int64_t n_bin = data->n_draw / 25 < 5 ? 5 : em_least(data->n_draw / 25, 20);
    const em_summary_row *row = &data->summary.table.row[element];
    const em_judge_columns *at = &data->summary.table.at;
    json_t *traces = json_array(), *ranks = json_array();
    int64_t n, chosen[MOST_LINES];
    EM_SCOPED double *count = NULL;
    em_status status = choose_chains(data, draws, &n, chosen);

    status = status ? status : count_ranks(data, draws, n_bin, &count);
    for (int64_t i = 0; !status && i < n; i++) {
        em_json_add(&traces, em_json_drawn((data->n_draw + step - 1) / step,
                                           draws + chosen[i] * data->n_draw, step));
        em_json_add(&ranks, em_json_drawn(n_bin, count + chosen[i] * n_bin, 1));
    }
    *out = json_pack("{s:o, s:o, s:o, s:o, s:I, s:I, s:o, s:o}", "name", em_json_text(row->name),
                     "r_hat", em_json_real(row->value[at->r_hat]), "ess_bulk",
                     em_json_real(row->value[at->ess_bulk]), "ess_tail",
                     em_json_real(row->value[at->ess_tail]), "draws", (json_int_t)data->n_draw,
                     "step", (json_int_t)step, "traces", traces, "ranks", ranks);
    return status ? status : em_json_made(*out);
}

static em_status chains(const em_report_data *data, json_t **out)
{
    em_status status = em_json_made(*out);

    for (int64_t k = 0; !status && k < data->n_shown; k++) {
        EM_SCOPED double *draws = NULL;
        json_t *chain = NULL;
        status = em_report_draws(data, data->shown[k], &draws);
        status = status ? status : chain_of(data, data->shown[k], draws, &chain);
        em_json_add(out, chain);
    }
    return status ? status : em_json_made(*out);
}

/* ---------------------------------------------------------------- pairs */

/* The ends of an axis. */
typedef struct axis_range {
    double low, high;
} axis_range;

/* The range of an axis of pairs: that of all draws, or that of the central 99 % if it is less than
 * half as wide. Errors: EM_EMEMORY. */
static em_status find_range(const em_report_data *data, em_diag *diag, const double *draws,
                            axis_range *out)
{
    const double most = 2;
    double end[] = {0.005, 0.995};
    const int64_t n = data->n_chain * data->n_draw;
    const em_status status = em_quantiles(diag, n, draws, 2, end, end);
    const double width = end[1] - end[0];

    *out = (axis_range){INFINITY, -INFINITY};
    for (int64_t i = 0; i < n; i++)
        if (isfinite(draws[i]))
            *out = (axis_range){fmin(out->low, draws[i]), fmax(out->high, draws[i])};
    if (width > 0 && out->high - out->low > most * width)
        *out = (axis_range){end[0], end[1]};
    const double pad = 0.04 * (out->high - out->low);
    if (pad > 0)
        *out = (axis_range){out->low - pad, out->high + pad};
    return status;
}

static bool diverged(const em_report_data *data, int64_t draw)
{
    return data->summary.judge->diverging && data->summary.judge->diverging[draw] != 0;
}

/* Counts the draws outside the range of an axis, and how many of them are divergent. */
static void count_outside(const em_report_data *data, double *const *draws, const axis_range *axis,
                          int64_t count[2])
{
    for (int64_t i = 0; i < data->n_chain * data->n_draw; i++) {
        bool inside = true;
        for (int64_t k = 0; inside && k < data->n_pair; k++)
            inside = draws[k][i] >= axis[k].low && draws[k][i] <= axis[k].high;
        count[0] += !inside;
        count[1] += !inside && diverged(data, i);
    }
}

/* Chooses the draws that get a mark: every step-th draw, or those that diverged; MOST_DOTS at most.
 */
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

static json_t *variables(const em_report_data *data, double *const *draws, const axis_range *axis)
{
    double some[MOST_DOTS], bad[MOST_DOTS];
    json_t *out = json_array();

    for (int64_t k = 0; out && k < data->n_pair; k++) {
        const int64_t n = pick(data, false, draws, k, some),
                      n_bad = pick(data, true, draws, k, bad);
        em_json_add(&out, json_pack("{s:o, s:[o, o], s:o, s:o}", "name",
                                    em_json_text(data->summary.table.row[data->pair[k]].name),
                                    "range", em_json_real(axis[k].low), em_json_real(axis[k].high),
                                    "draws", em_json_drawn(n, some, 1), "divergent",
                                    em_json_drawn(n_bad, bad, 1)));
    }
    return out;
}

static em_status pairs(const em_report_data *data, json_t **out)
{
    double *draws[EM_REPORT_PAIRS] = {NULL};
    axis_range axis[EM_REPORT_PAIRS];
    int64_t outside[2] = {0};
    EM_SCOPED_BY(em_diag_destroy) em_diag *diag = NULL;
    em_status status = em_diag_create(&diag);

    for (int64_t k = 0; !status && k < data->n_pair; k++) {
        status = em_report_draws(data, data->pair[k], &draws[k]);
        status = status ? status : find_range(data, diag, draws[k], &axis[k]);
    }
    if (!status) {
        count_outside(data, draws, axis, outside);
        *out = json_pack(
            "{s:I, s:I, s:I, s:I, s:I, s:o}", "total", (json_int_t)(data->n_chain * data->n_draw),
            "diverging", (json_int_t)data->summary.judge->evidence.divergences, "gathering",
            (json_int_t)data->n_gathering, "outside", (json_int_t)outside[0], "outside_divergent",
            (json_int_t)outside[1], "variables", variables(data, draws, axis));
        status = em_json_made(*out);
    }
    for (int64_t k = 0; k < data->n_pair; k++)
        em_release(&draws[k]);
    return status;
}

/* ---------------------------------------------------------------- leave-one-out */

/* The observations whose k is too large (`high`) or is not, as pairs of their number and k. */
static json_t *observations(const em_loo *loo, bool high)
{
    const int64_t n = loo->variable->size, step = high ? 1 : (n + MOST_DOTS - 1) / MOST_DOTS;
    json_t *out = json_array();

    for (int64_t i = 0; out && i < n && json_array_size(out) < MOST_DOTS; i += step) {
        const double k = loo->value[i * EM_N_LOO + EM_LOO_K];
        if (!isnan(k) && (k > loo->good_k) == high)
            em_json_add(&out, json_pack("[I, o]", (json_int_t)i, em_json_real(k)));
    }
    return out;
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

static json_t *leave_one_out(const em_loo *loo)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:o, s:o, s:o}", "name",
                     em_json_text(loo->variable->name), "elpd", em_json_real(loo->elpd), "se",
                     em_json_real(loo->se), "p", em_json_real(loo->p), "good_k",
                     em_json_real(loo->good_k), "observations", (json_int_t)loo->variable->size,
                     "high", (json_int_t)loo->n_high, "undefined", (json_int_t)loo->n_undefined,
                     "worst", em_json_text(worst_observation(loo)), "good",
                     observations(loo, false), "bad", observations(loo, true));
}

em_status em_report_figures(const em_report_data *data, json_t **out)
{
    json_t *all_chains = json_array(), *of_pairs = NULL, *energy = NULL, *mass = NULL,
           *tempering = NULL, *steps = NULL, *loo = json_array();
    em_status status = chains(data, &all_chains);

    if (!status && data->n_pair > 1)
        status = pairs(data, &of_pairs);
    status = status ? status : em_report_energy(data, &energy);
    status = status ? status : em_report_mass(data, &mass);
    status = status ? status : em_report_tempering(data, &tempering);
    status = status ? status : em_report_steps(data, &steps);
    for (int64_t i = 0; !status && i < data->n_loo; i++)
        em_json_add(&loo, leave_one_out(&data->loo[i]));
    *out = json_pack("{s:o, s:o, s:o*, s:o*, s:o*, s:o*, s:o, s:o}", "chains", all_chains, "forest",
                     intervals(data), "pairs", of_pairs, "energy", energy, "mass", mass,
                     "tempering", tempering, "steps", steps ? steps : json_array(), "loo", loo);
    return status ? status : em_json_made(*out);
}
