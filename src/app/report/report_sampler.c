/* The numbers of the figures that show the sampler. */
#include "app/report/report_figures.h"
#include "base/memory.h"

#include <math.h>

enum { ENERGY_BINS = 40, MOST_POINTS = 200 };

/* ---------------------------------------------------------------- energy */

/* Subtracts from energies the means of their chains; returns their standard deviation. */
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

/* Makes two histograms over [-4, 4] standard deviations: of the centred energies, and of their
 * changes from draw to draw. */
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

em_status em_report_energy(const em_report_data *data, json_t **out)
{
    double marginal[ENERGY_BINS] = {0}, transition[ENERGY_BINS] = {0}, lowest = INFINITY;
    EM_SCOPED double *energy = NULL;
    em_status status = em_report_statistic(data->stats, "energy", &energy);

    if (status || !energy)
        return status;
    for (int64_t c = 0; c < data->n_chain; c++)
        lowest = fmin(lowest, em_ebfmi(data->n_draw, energy + c * data->n_draw));
    const double spread = centre_energies(data, energy);
    if (spread > 0 && isfinite(spread)) {
        count_energies(data, energy, spread, marginal, transition);
        *out = json_pack("{s:o, s:o, s:o, s:o}", "e_bfmi", em_json_real(lowest), "spread",
                         em_json_real(spread), "marginal", em_json_drawn(ENERGY_BINS, marginal, 1),
                         "transition", em_json_drawn(ENERGY_BINS, transition, 1));
        status = em_json_made(*out);
    }
    return status;
}

/* ---------------------------------------------------------------- what warmup learned */

/* Writes the eigenvalues after each M-step. In a merged file, runs with fewer M-steps are padded
 * with NaN, which is left out. */
em_status em_report_mass(const em_report_data *data, json_t **out)
{
    static const char *const name[] = {"iteration", "smallest_eigenvalue", "largest_eigenvalue"};
    double *column[3] = {NULL};
    int64_t n[3] = {0}, kept = 0;
    em_status status = EM_OK;

    for (int k = 0; !status && k < 3; k++)
        if (em_reader_has(data->summary.reader, "mass_adaptation", name[k]))
            status = em_read_array(data->path, "mass_adaptation", name[k], &n[k], &column[k]);
    const bool good =
        !status && column[0] && column[1] && column[2] && n[0] == n[1] && n[0] == n[2];
    for (int64_t i = 0; good && i < n[0]; i++)
        if (isfinite(column[1][i]) && isfinite(column[2][i])) {
            for (int k = 0; k < 3; k++)
                column[k][kept] = column[k][i];
            kept++;
        }
    if (kept > 0) {
        *out = json_pack("{s:o, s:o, s:o}", name[0], em_json_reals(kept, column[0]), name[1],
                         em_json_reals(kept, column[1]), name[2], em_json_reals(kept, column[2]));
        status = em_json_made(*out);
    }
    em_release_all(&column[0], &column[1], &column[2]);
    return status;
}

/* ---------------------------------------------------------------- tempering */

/* Writes the arrays of the group `tempering`. Each array, of any shape, becomes a list of numbers.
 */
em_status em_report_tempering(const em_report_data *data, json_t **out)
{
    static const char *const name[] = {
        "beta",         "rejection",     "round_scans",       "round_log_evidence",
        "log_evidence", "index_process", "index_process_scan"};
    em_status status = EM_OK;

    if (!em_reader_has(data->summary.reader, "tempering", "round_log_evidence"))
        return EM_OK;
    *out = json_object();
    for (size_t i = 0; !status && i < sizeof name / sizeof *name; i++) {
        EM_SCOPED double *value = NULL;
        int64_t n = 0;

        if (!em_reader_has(data->summary.reader, "tempering", name[i]))
            continue;
        status = em_read_array(data->path, "tempering", name[i], &n, &value);
        if (!status && json_object_set_new(*out, name[i], em_json_reals(n, value)))
            status = em_json_made(NULL);
    }
    return status;
}

/* ---------------------------------------------------------------- step size and acceptance */

/* The means of a statistic over chains and over intervals of iterations, and the range of the means
 * of chains. `x` counts iterations from the beginning of warmup. */
typedef struct history {
    int64_t n;
    double x[2 * MOST_POINTS], mean[2 * MOST_POINTS], low[2 * MOST_POINTS], high[2 * MOST_POINTS];
} history;

/* Adds the iterations of one group: the first stored draw is iteration `from`, and draws are
 * `stride` iterations apart. */
static em_status add_history(em_reader *stats, const char *name, double from, double stride,
                             history *h)
{
    EM_SCOPED double *value = NULL;
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
    return EM_OK;
}

static em_status history_of(const em_report_data *data, const char *name, history *h, json_t **out)
{
    const int64_t stored = data->warmup ? em_reader_n_draw(data->warmup) : 0;
    int64_t warmup = 0;
    em_status status = EM_OK;

    h->n = 0;
    em_reader_int(data->summary.reader, "tuning_steps", &warmup);
    if (warmup > 0 && stored > 0)
        status = add_history(data->warmup, name, 0, (double)warmup / (double)stored, h);
    status = status ? status : add_history(data->stats, name, (double)warmup, 1, h);
    if (status || h->n == 0)
        return status;
    json_t *one =
        json_pack("{s:s, s:I, s:o, s:o, s:o, s:o}", "statistic", name, "warmup", (json_int_t)warmup,
                  "x", em_json_drawn(h->n, h->x, 1), "mean", em_json_drawn(h->n, h->mean, 1), "low",
                  em_json_drawn(h->n, h->low, 1), "high", em_json_drawn(h->n, h->high, 1));
    em_json_add(out, one);
    return em_json_made(*out);
}

em_status em_report_steps(const em_report_data *data, json_t **out)
{
    EM_SCOPED history *h = NULL;
    em_status status = em_allocate(1, sizeof *h, &h);

    *out = json_array();
    status = status ? status : history_of(data, "step_size", h, out);
    return status ? status : history_of(data, "acceptance_rate", h, out);
}
