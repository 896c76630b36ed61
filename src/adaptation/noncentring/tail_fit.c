/* Parameters with one long tail: the fit of their rows by quantiles, and what they gain. */
#include "adaptation/noncentring/tail_fit.h"

#include "adaptation/noncentring/noncentring_fit.h"
#include "adaptation/prior_proofs/scale_derivative.h"
#include "base/memory.h"
#include "math/order.h"
#include "math/special.h"
#include "math/tail_map.h"

#include <math.h>
#include <string.h>

/* The least gain of a row in log likelihood of a draw, where others have a tail. Chance adds about
 * a share of by_chance / (number of draws), so the first one needs more. The least fall of
 * log(variance of the draws times variance of their derivatives). Of 51 parameters of
 * covid19imperial_v2 (posteriordb) six gain 0.24 to 1.1, and the others at most 0.01. */
static const double least_gain = 0.1, least_of_first = 0.08, by_chance = 5, by_chance_of_first = 30,
                    least_fall = 0.3;

typedef struct tail_draws {
    int64_t n;
    double *x, *g;    /* [n] draws of a parameter, and the derivatives by it */
    double *z, *by_z; /* [n] the same in the coordinates of a row */
    double *sorted;   /* [n] */
    double log_variance_x, log_variance_g;
} tail_draws;

static double log_variance(int64_t n, const double *x)
{
    double mean = 0, square = 0;

    for (int64_t r = 0; r < n; r++)
        mean += x[r] / (double)n;
    for (int64_t r = 0; r < n; r++)
        square += (x[r] - mean) * (x[r] - mean) / (double)n;
    return log(square);
}

static double quantile(const tail_draws *of, double p)
{
    return of->sorted[(int64_t)(p * (double)(of->n - 1) + 0.5)];
}

/* -1: the left one of the distances from the median to the quantiles of 5 and 95 % is clearly the
 * longer one; 1: the right one; 0: neither. Of log gamma variates of shape 1/2 it is 1.9 times as
 * long, and of those of shape 1, of which a row gains too little, 1.6 times. */
static int side_of_tail(const tail_draws *of)
{
    const double clearly = 1.5, median = quantile(of, 0.5), left = median - quantile(of, 0.05),
                 right = quantile(of, 0.95) - median;

    return left > clearly * right ? -1 : right > clearly * left;
}

/*
 * The row by three quantiles: the median, that of 95 % on the side without the tail, and that of
 * `far` in the tail. T is linear in a, so the distances of the two from the median are
 *
 *     d (l + a l'),    d (r + a r').
 *
 * A tail that is longer than any T has gets one for which d r is a third of the distance. Returns
 * false if the quantiles are not distinct.
 */
static bool fit(const tail_draws *of, double far, em_noncentring_row *row)
{
    const double end = 0.95, of_far = em_normal_quantile(far), of_end = em_normal_quantile(end);
    double unused;
    const double l = -em_tail_map(0, of_far, &unused, &unused),
                 r = em_tail_map(0, of_end, &unused, &unused);
    const double l_by = -em_tail_map(1, of_far, &unused, &unused) - l,
                 r_by = em_tail_map(1, of_end, &unused, &unused) - r;
    const double median = quantile(of, 0.5);
    const bool is_left = side_of_tail(of) < 0;
    const double tail = fabs(quantile(of, is_left ? far : 1 - far) - median),
                 other = fabs(quantile(of, is_left ? end : 1 - end) - median);
    const double bent = fmin((r * tail - l * other) / (r * l_by - r_by * l), other * 2 / 3 / r_by);

    *row = (em_noncentring_row){
        .level = 1, .form = EM_SCALE_OF_TAIL, .width = (other - bent * r_by) / r, .shift = median};
    row->degree = (is_left ? 1 : -1) * bent / row->width;
    for (int j = 0; j < EM_MOST_LOCATIONS; j++)
        row->location[j] = -1;
    return other > 0 && bent > 0;
}

/* What a row brings. */
typedef struct improvement {
    double
        gain; /* in log likelihood of a draw, over the normal law with the moments of the draws */
    double fall; /* of log(variance of the draws times variance of their derivatives) */
} improvement;

static improvement evaluate(const tail_draws *of, const em_noncentring_row *row)
{
    improvement out = {.gain = 0.5 * of->log_variance_x + 0.5};

    for (int64_t r = 0; r < of->n; r++) {
        double slope, by;
        const double z = em_tail_map_inverse(row->degree, (of->x[r] - row->shift) / row->width);
        em_tail_map(row->degree, z, &slope, &by);
        out.gain -= (0.5 * z * z + log(row->width * slope)) / (double)of->n;
        of->z[r] = z;
        of->by_z[r] = of->g[r] * row->width * slope + by;
    }
    out.fall = of->log_variance_x + of->log_variance_g - log_variance(of->n, of->z) -
               log_variance(of->n, of->by_z);
    return out;
}

/* Finds the row with the largest gain, which it returns: 0 if the row does not make the draws and
 * their derivatives clearly more nearly normal. Of a parameter that is seldom almost 0, few draws
 * are in the tail, so the most telling quantile differs. */
static double find_row(const tail_draws *of, em_noncentring_row *row)
{
    static const double far[] = {0.02, 0.05, 0.1};
    improvement best = {.gain = least_gain + by_chance / (double)of->n};

    row->level = 0;
    for (size_t k = 0; side_of_tail(of) != 0 && k < sizeof far / sizeof *far; k++) {
        em_noncentring_row tried;
        if (!fit(of, far[k], &tried))
            continue;
        const improvement now = evaluate(of, &tried);
        if (now.gain > best.gain) {
            best = now;
            *row = tried;
        }
    }
    if (best.fall < least_fall)
        row->level = 0;
    return row->level > 0 ? best.gain : 0;
}

/* Adds the rows that were found to a map. */
static void add_rows(int64_t dim, const em_noncentring_row *found, em_noncentring_row *row)
{
    bool any = false;

    for (int64_t i = 0; i < dim; i++)
        any |= found[i].level > 0;
    for (int64_t i = 0; any && i < dim; i++) {
        if (row[i].level > 0)
            row[i].level++;
        else if (found[i].level > 0)
            row[i] = found[i];
    }
}

em_status em_tail_fit(int64_t dim, const em_samples *samples, bool is_known,
                      em_noncentring_row *row)
{
    const int64_t n = em_least(samples->n, EM_MOST_NONCENTRING_DRAWS);
    EM_SCOPED_BY(em_noncentring_release) em_noncentring map = {0};
    tail_draws of = {.n = n};
    EM_SCOPED_BY(em_release_owned) em_owner memory = {NULL};
    double *panel = NULL;
    em_noncentring_row *found = NULL;
    double most = 0;

    if (!em_suffices_for_noncentring(dim, samples->n))
        return EM_OK;
    em_status status = em_noncentring_create(dim, &map);
    status = status ? status : em_noncentring_set(&map, row);
    status = status ? status
                    : em_own_all(&memory, EM_ARRAY(panel, 2 * dim * n), EM_ARRAY(found, dim),
                                 EM_ARRAY(of.z, n), EM_ARRAY(of.by_z, n), EM_ARRAY(of.sorted, n));
    status = status ? status : em_transform_samples(&map, samples, n, 0, 2 * dim, panel);
    for (int64_t i = 0; !status && i < dim; i++) {
        if (row[i].level > 0)
            continue;
        of.x = panel + i * n;
        of.g = panel + (dim + i) * n;
        memcpy(of.sorted, of.x, (size_t)n * sizeof *of.sorted);
        em_sort_numbers(n, of.sorted);
        of.log_variance_x = log_variance(n, of.x);
        of.log_variance_g = log_variance(n, of.g);
        most = fmax(most, find_row(&of, &found[i]));
        found[i].scale = (double)i;
    }
    if (!status && (is_known || most > least_of_first + by_chance_of_first / (double)n))
        add_rows(dim, found, row);
    return status;
}
