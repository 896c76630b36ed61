#include "diagnostics/divergence_clustering.h"

#include "base/memory.h"
#include "diagnostics/rank.h"

#include <math.h>

static double largest_gap(int64_t n, const em_sorted *sorted, const double *marked,
                          int64_t n_marked)
{
    int64_t below = 0;
    double gap = 0;

    for (int64_t i = 0; i < n; i++) {
        below += marked[sorted[i].index] != 0;
        if (i + 1 < n && sorted[i + 1].value <= sorted[i].value)
            continue; /* ties are passed together */
        gap = fmax(gap, fabs((double)below / (double)n_marked -
                             (double)(i + 1 - below) / (double)(n - n_marked)));
    }
    return gap;
}

/* Counts the marked draws. Draws of one chain that are no more than `lasts` apart count once. */
static int64_t count_separate(int64_t n_chain, int64_t n_draw, const double *marked, double lasts)
{
    int64_t count = 0;

    for (int64_t c = 0; c < n_chain; c++) {
        double last = -INFINITY;
        for (int64_t i = 0; i < n_draw; i++)
            if (marked[c * n_draw + i] != 0 && (double)i - last > lasts) {
                count++;
                last = (double)i;
            }
    }
    return count;
}

em_status em_find_divergence_cluster(int64_t n_chain, int64_t n_draw, const double *x,
                                     const double *marked, double ess, int64_t n_tried,
                                     em_divergence_cluster *out)
{
    const double one_of = 20;
    const int64_t n = n_chain * n_draw;
    EM_SCOPED em_sorted *sorted = NULL, *scratch = NULL;
    int64_t n_marked = 0;

    *out = (em_divergence_cluster){0, INFINITY};
    for (int64_t i = 0; i < n; i++) {
        if (isnan(x[i]))
            return EM_OK;
        n_marked += marked[i] != 0;
    }
    if (n_marked < 1 || n_marked == n)
        return EM_OK;
    em_status status = em_allocate_all(EM_ARRAY(sorted, n), EM_ARRAY(scratch, n));
    if (!status) {
        const double lasts = isfinite(ess) && ess >= 1 ? fmax((double)n / ess, 1) : (double)n;
        const double a = (double)count_separate(n_chain, n_draw, marked, lasts > 1 ? lasts : 0),
                     b = (double)(n - n_marked) / lasts;

        em_sort(n, x, sorted, scratch);
        out->distance = largest_gap(n, sorted, marked, n_marked);
        out->by_chance = sqrt(0.5 * log(2 * one_of * (double)n_tried) * (1 / a + 1 / b));
    }
    return status;
}
