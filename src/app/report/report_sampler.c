/* The numbers of the figures that show the sampler. */
#include "app/report/report_figures.h"
#include "base/memory.h"

#include <math.h>

enum { ENERGY_BINS = 40, MOST_POINTS = 200 };

/* ---------------------------------------------------------------- energy */

/* Takes from energies the means of their chains; returns their standard deviation. */
static double centre_energies(const em_report_data *data, double *energy)
{
    const double n = (double)data->n_draw;
    double sum = 0;

    for (int64_t c = 0; c < data->n_chain; c++) {
        double *e = energy + c * data->n_draw, mean = 0;
        for (int64_t i = 0; i < data->n_draw; i++)
            mean += e[i] / n;
        for (int64_t i = 0; i < data->n_draw; i++) {
            e[i] -= mean;
            sum += e[i] * e[i] / (n * (double)data->n_chain);
        }
    }
    return sqrt(sum);
}

/* Two histograms over [-4, 4] standard deviations: of the centred energies, and of their changes
 * from draw to draw. */
static void count_energies(const em_report_data *data, const double *energy, double spread,
                           double marginal[ENERGY_BINS], double transition[ENERGY_BINS])
{
    const double bins = ENERGY_BINS / (8 * spread);

    for (int64_t i = 0; i < data->n_chain * data->n_draw; i++) {
        const double at = (energy[i] + 4 * spread) * bins;
        const double change =
            i % data->n_draw ? (energy[i] - energy[i - 1] + 4 * spread) * bins : -1;
        if (at >= 0 && at < ENERGY_BINS)
            marginal[(int)at] += 1;
        if (change >= 0 && change < ENERGY_BINS)
            transition[(int)change] += 1;
    }
}

em_status em_report_energy(const em_report_data *data, em_json *json)
{
    double marginal[ENERGY_BINS] = {0}, transition[ENERGY_BINS] = {0}, lowest = INFINITY;
    double *energy = NULL;
    em_status status = em_report_statistic(data->stats, "energy", &energy);

    if (status || !energy)
        return status;
    for (int64_t c = 0; c < data->n_chain; c++)
        lowest = fmin(lowest, em_ebfmi(data->n_draw, energy + c * data->n_draw));
    const double spread = centre_energies(data, energy);
    if (spread > 0 && isfinite(spread)) {
        count_energies(data, energy, spread, marginal, transition);
        em_json_open(json, "energy", '{');
        em_json_real(json, "e_bfmi", lowest);
        em_json_real(json, "spread", spread);
        em_json_reals(json, "marginal", ENERGY_BINS, marginal, 1);
        em_json_reals(json, "transition", ENERGY_BINS, transition, 1);
        em_json_close(json, '}');
    }
    em_release(&energy);
    return status;
}

/* ---------------------------------------------------------------- what warmup learned */

/* The eigenvalues after each M-step. A merged file fills up the steps of runs that have fewer with
 * NaN, and these are left out. */
em_status em_report_mass(const em_report_data *data, em_json *json)
{
    static const char *const name[] = {"iteration", "smallest_eigenvalue", "largest_eigenvalue"};
    double *column[3] = {NULL};
    int64_t n[3] = {0}, kept = 0;
    char path[64];
    em_status status = EM_OK;

    for (int k = 0; !status && k < 3; k++) {
        snprintf(path, sizeof path, "mass_adaptation/%s", name[k]);
        if (em_reader_has(data->summary.reader, "mass_adaptation", name[k]))
            status = em_read_array(data->path, path, &n[k], &column[k]);
    }
    const bool good =
        !status && column[0] && column[1] && column[2] && n[0] == n[1] && n[0] == n[2];
    for (int64_t i = 0; good && i < n[0]; i++) {
        if (!isfinite(column[1][i]) || !isfinite(column[2][i]))
            continue;
        for (int k = 0; k < 3; k++)
            column[k][kept] = column[k][i];
        kept++;
    }
    if (kept > 0) {
        em_json_open(json, "mass", '{');
        for (int k = 0; k < 3; k++) {
            em_json_open(json, name[k], '[');
            for (int64_t i = 0; i < kept; i++)
                em_json_real(json, NULL, column[k][i]);
            em_json_close(json, ']');
        }
        em_json_close(json, '}');
    }
    for (int k = 0; k < 3; k++)
        em_release(&column[k]);
    return status;
}

/* ---------------------------------------------------------------- tempering */

/* One array of the group `tempering`, of any shape, as numbers in a row. */
static em_status put_tempering(const em_report_data *data, const char *name, em_json *json)
{
    double *value = NULL;
    int64_t n = 0;
    char path[64];
    em_status status;

    snprintf(path, sizeof path, "tempering/%s", name);
    status = em_read_array(data->path, path, &n, &value);
    em_json_open(json, name, '[');
    for (int64_t i = 0; i < n; i++)
        em_json_real(json, NULL, value[i]);
    em_json_close(json, ']');
    em_release(&value);
    return status;
}

em_status em_report_tempering(const em_report_data *data, em_json *json)
{
    static const char *const name[] = {"beta", "rejection", "round_scans", "round_log_evidence",
                                       "log_evidence"};
    static const char *const path[] = {"index_process", "index_process_scan"};
    em_status status = EM_OK;

    if (!em_reader_has(data->summary.reader, "tempering", "round_log_evidence"))
        return EM_OK;
    em_json_open(json, "tempering", '{');
    for (size_t i = 0; !status && i < sizeof name / sizeof *name; i++)
        status = put_tempering(data, name[i], json);
    for (size_t i = 0; !status && i < sizeof path / sizeof *path &&
                       em_reader_has(data->summary.reader, "tempering", path[i]);
         i++)
        status = put_tempering(data, path[i], json);
    em_json_close(json, '}');
    return status;
}

/* ---------------------------------------------------------------- step size and acceptance */

/* Means of a statistic over chains and intervals of iterations, and the range of the chains'. `x`
 * counts iterations from the first of warmup. */
typedef struct history {
    int64_t n;
    double x[2 * MOST_POINTS], mean[2 * MOST_POINTS], low[2 * MOST_POINTS], high[2 * MOST_POINTS];
} history;

/* Adds the iterations of one group: the first stored draw is iteration `from`, and draws are
 * `stride` iterations apart. */
static em_status add_history(em_reader *stats, const char *name, double from, double stride,
                             history *h)
{
    double *value = NULL;
    em_status status = em_report_statistic(stats, name, &value);

    if (status || !value)
        return status;
    const int64_t n_chain = em_reader_n_chain(stats), n_draw = em_reader_n_draw(stats);
    const int64_t width = (n_draw + MOST_POINTS - 1) / MOST_POINTS;
    for (int64_t first = 0; first < n_draw; first += width) {
        const int64_t end = first + width < n_draw ? first + width : n_draw, at = h->n++;
        h->low[at] = INFINITY;
        h->high[at] = -INFINITY;
        h->mean[at] = 0;
        for (int64_t c = 0; c < n_chain; c++) {
            double mean = 0;
            for (int64_t i = first; i < end; i++)
                mean += value[c * n_draw + i] / (double)(end - first);
            h->mean[at] += mean / (double)n_chain;
            h->low[at] = fmin(h->low[at], mean);
            h->high[at] = fmax(h->high[at], mean);
        }
        h->x[at] = from + stride * (double)(first + end) / 2;
    }
    em_release(&value);
    return EM_OK;
}

static em_status put_history(const em_report_data *data, const char *name, history *h,
                             em_json *json)
{
    const int64_t stored = data->warmup ? em_reader_n_draw(data->warmup) : 0;
    int64_t warmup = 0;
    em_status status = EM_OK;

    h->n = 0;
    em_reader_int(data->summary.reader, "tuning_steps", &warmup);
    if (warmup > 0 && stored > 0)
        status = add_history(data->warmup, name, 0, (double)warmup / (double)stored, h);
    if (!status)
        status = add_history(data->stats, name, (double)warmup, 1, h);
    if (status || h->n == 0)
        return status;
    em_json_open(json, NULL, '{');
    em_json_text(json, "statistic", name);
    em_json_real(json, "warmup", (double)warmup);
    em_json_reals(json, "x", h->n, h->x, 1);
    em_json_reals(json, "mean", h->n, h->mean, 1);
    em_json_reals(json, "low", h->n, h->low, 1);
    em_json_reals(json, "high", h->n, h->high, 1);
    em_json_close(json, '}');
    return EM_OK;
}

em_status em_report_steps(const em_report_data *data, em_json *json)
{
    history *h = NULL;
    em_status status = em_allocate(1, sizeof *h, &h);

    em_json_open(json, "steps", '[');
    if (!status)
        status = put_history(data, "step_size", h, json);
    if (!status)
        status = put_history(data, "acceptance_rate", h, json);
    em_json_close(json, ']');
    em_release(&h);
    return status;
}
