#include "diagnostics/tail_shape.h"

#include "base/memory.h"
#include "diagnostics/psis.h"
#include "math/order.h"

#include <math.h>

static const double far = 10; /* standard deviations */

/* The shape of the n_tail largest of n sorted numbers. Those that are equal to the largest one
 * before them are left out. */
static double upper_shape(int64_t n, int64_t n_tail, const double *sorted, double *excess)
{
    int64_t n_excess = 0;
    double shape = 0, scale;

    for (int64_t i = n - n_tail; i < n; i++)
        if (sorted[i] > sorted[n - n_tail - 1])
            excess[n_excess++] = sorted[i] - sorted[n - n_tail - 1];
    if (n_excess >= EM_PSIS_LEAST_TAIL)
        em_psis_fit(n_excess, excess, &shape, &scale);
    return isfinite(shape) ? shape : 0;
}

em_status em_tail_shape(int64_t n, const double *draws, double mean, double sd, double *shape)
{
    const int64_t n_tail = em_psis_tail(n, 1);
    EM_SCOPED double *sorted = NULL, *excess = NULL;
    double farthest = 0;

    *shape = 0;
    for (int64_t i = 0; i < n; i++)
        farthest = fmax(farthest, fabs(draws[i] - mean));
    if (!(farthest > far * sd) || n_tail < EM_PSIS_LEAST_TAIL)
        return EM_OK;
    const em_status status = em_allocate_all(EM_ARRAY(sorted, n), EM_ARRAY(excess, n_tail));
    for (int side = 0; !status && side < 2; side++) {
        for (int64_t i = 0; i < n; i++)
            sorted[i] = side == 0 ? draws[i] : -draws[i];
        em_sort_numbers(n, sorted);
        *shape = fmax(*shape, upper_shape(n, n_tail, sorted, excess));
    }
    return status;
}
