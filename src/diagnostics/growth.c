#include "diagnostics/growth.h"

#include <math.h>

enum { FEWEST_DRAWS = 16, QUARTERS = 4 };

static const double enormous = 1e10, factor = 3, large = 10;

/* The mean size of draws first .. end - 1 of all chains. */
static double mean_size(int64_t n_chain, int64_t n_draw, const double *draws, int64_t first,
                        int64_t end)
{
    double sum = 0;

    for (int64_t c = 0; c < n_chain; c++)
        for (int64_t i = first; i < end; i++)
            sum += fabs(draws[c * n_draw + i]) / (double)(end - first);
    return sum / (double)n_chain;
}

bool em_grows(int64_t n_chain, int64_t n_draw, const double *draws)
{
    double size[QUARTERS], whole = 0;
    bool rises = true;

    if (n_draw < FEWEST_DRAWS)
        return false;
    for (int q = 0; q < QUARTERS; q++) {
        size[q] =
            mean_size(n_chain, n_draw, draws, q * n_draw / QUARTERS, (q + 1) * n_draw / QUARTERS);
        whole += size[q] / QUARTERS;
        rises = rises && (q == 0 || size[q] > size[q - 1]);
    }
    return whole >= enormous ||
           (rises && size[QUARTERS - 1] >= large && size[QUARTERS - 1] >= factor * size[0]);
}
