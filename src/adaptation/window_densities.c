/*
 * The log densities of all chains in the later half of the initial phase so far, by which the end
 * of a window finds outlying chains and decides whether the phase ends. A chain may have come to
 * the log densities of the others within that half. This transient is left out of the mass and of
 * the test, so that the phase need not last until it lies in the earlier half.
 */
#include "adaptation/adaptation_internal.h"
#include "base/memory.h"
#include "par/world.h"

#include <math.h>
#include <string.h>

/* Before this iteration chains are on their way, and log densities do not tell a transient from the
 * positions in a funnel, because there have been too few draws for a search for its map. */
enum { EARLIEST_TRANSIENT = 60 };

/* The summary of the log densities that are known. `work` is [n]. */
static em_log_density_window summarise(int64_t n, const double *history, double every, double *work)
{
    int64_t known = 0;

    for (int64_t t = 0; t < n; t++)
        if (!isnan(history[t]))
            work[known++] = history[t];
    em_log_density_window out = em_log_density_window_of(known, work);
    out.length *= every;
    return out;
}

/* The log densities [n_local_chain][n] of iterations from .. from + n - 1, and `work`. */
typedef struct histories {
    int64_t from, n;
    double *of, *work; /* work: [n] or [n_chain] */
    em_log_density_window *local;
} histories;

/* Summaries of iterations `first` .. n - 1 of them. Collective. */
static em_status gather(const em_adapt *adapt, const histories *h, int64_t first,
                        em_log_density_window *all)
{
    const double every = em_has_mapped_densities(adapt) ? adapt->window.every : 1;

    for (int64_t c = 0; c < adapt->n_local_chain; c++)
        h->local[c] = summarise(h->n - first, h->of + c * h->n + first, every, h->work);
    return em_grid_gather_chains(adapt->grid, sizeof *all / sizeof(double),
                                 (const double *)h->local, (double *)all);
}

/* Leaves out the draws of local chain c before iteration `since`, and sums that have some of them.
 */
static void forget(em_adapt *adapt, int64_t c, int64_t since)
{
    const em_initial_phase *initial = adapt->initial;

    initial->since[c] = (double)since;
    em_window_forget(&adapt->window, c, (double)since);
    for (int64_t k = 0; !adapt->keeps_draws && em_learns(adapt) && k <= initial->segment; k++)
        if (initial->segment_from[k] < since)
            memset(em_accumulators(adapt, c, k), 0, (size_t)adapt->n_accumulator * sizeof(double));
}

/* Leaves out transients, which end at the log densities that chains have had lately.
 * Collective. */
static em_status leave_out_transients(em_adapt *adapt, const histories *h,
                                      em_log_density_window *all)
{
    const em_status status = gather(adapt, h, h->n - h->n / 4, all);

    if (status)
        return status;
    const double least = em_least_log_density(adapt->n_chain, all, adapt->dim, h->work);
    for (int64_t c = 0; c < adapt->n_local_chain; c++) {
        const int64_t length = em_transient_length(h->n, h->of + c * h->n, least);
        if (length == 0)
            continue;
        forget(adapt, c, h->from + length);
        for (int64_t t = 0; t < length; t++)
            h->of[c * h->n + t] = NAN;
    }
    return EM_OK;
}

em_status em_gather_log_densities(em_adapt *adapt, int64_t done, em_log_density_window *all)
{
    const int64_t from = em_warmup_window_begin(done), n = done - from, n_chain = adapt->n_chain;
    histories h = {.from = from, .n = n};
    em_status status = em_agree(em_allocate_all(EM_ARRAY(h.local, adapt->n_local_chain),
                                                EM_ARRAY(h.work, n > n_chain ? n : n_chain),
                                                EM_ARRAY(h.of, adapt->n_local_chain * n)));

    for (int64_t c = 0; !status && c < adapt->n_local_chain; c++) {
        em_noncentred_log_densities(adapt, c, from, h.of + c * n);
        for (int64_t t = 0; t < n && (double)(from + t) < adapt->initial->since[c]; t++)
            h.of[c * n + t] = NAN;
    }
    if (!status && done >= EARLIEST_TRANSIENT)
        status = leave_out_transients(adapt, &h, all);
    status = status ? status : gather(adapt, &h, 0, all);
    em_release_all(&h.local, &h.work, &h.of);
    return status;
}
