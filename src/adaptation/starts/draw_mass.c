#include "adaptation/starts/draw_mass.h"

#include "base/memory.h"
#include "math/linalg.h"
#include "par/world.h"

#include <math.h>

/* The largest dimension in which covariances are summed. In more dimensions only variances are,
 * which makes the bound of the entropy larger. */
enum { MOST_PRODUCTS_DIM = 64 };

/* The sums: the number of draws, their log density, their differences from the centre [dim], and
 * the products of these, a lower triangle or its diagonal. */
enum { NUMBER, LOG_DENSITY, DIFFERENCE };

/* About the number of draws with as much information as one independent draw. */
static const double draws_per_independent = 5;

/* With fewer draws nothing is known. */
static const double least_draws = 50;

static bool sums_products(int64_t dim)
{
    return dim <= MOST_PRODUCTS_DIM;
}

int64_t em_draw_mass_size(int64_t dim)
{
    return DIFFERENCE + dim + (sums_products(dim) ? dim * (dim + 1) / 2 : dim);
}

void em_draw_mass_add(double *sums, int64_t dim, const double *centre, const double *theta,
                      double log_density)
{
    double *difference = sums + DIFFERENCE, *product = difference + dim;

    sums[NUMBER]++;
    sums[LOG_DENSITY] += log_density;
    for (int64_t i = 0; i < dim; i++) {
        const double d = theta[i] - centre[i];
        difference[i] += d;
        for (int64_t j = sums_products(dim) ? 0 : i; j <= i; j++)
            *product++ += d * (theta[j] - centre[j]);
    }
}

/* An upper bound of half of the log determinant of the covariance of the draws' law: the smaller
 * one of two estimates, from the covariance of the draws and from its diagonal. To each is added
 * about what it is too small on average, because the draws are few. */
static em_status half_log_determinant(const double *sums, int64_t dim, double *out)
{
    const double n = sums[NUMBER], independent = n / draws_per_independent, d = (double)dim;
    const double *mean = sums + DIFFERENCE, *product = mean + dim;
    double *a = NULL, diagonal = d / (2 * independent);
    double full = d * (d + 1) / (4 * independent);
    em_status status = em_allocate(dim * dim, sizeof *a, &a);

    for (int64_t i = 0; !status && i < dim; i++) {
        for (int64_t j = sums_products(dim) ? 0 : i; j <= i; j++)
            a[i * dim + j] = *product++ / n - mean[i] / n * (mean[j] / n);
        diagonal += log(a[i * dim + i]) / 2;
    }
    *out = diagonal;
    if (!status && sums_products(dim) && independent > 2 * d && em_cholesky(dim, a, dim) == EM_OK) {
        for (int64_t i = 0; i < dim; i++)
            full += log(a[i * dim + i]);
        *out = fmin(diagonal, full);
    }
    em_release(&a);
    return status;
}

em_status em_draw_mass_estimate(em_grid *grid, int64_t dim, const double *sums, double *n,
                                double *log_mass)
{
    const int64_t size = em_draw_mass_size(dim);
    double *all = NULL, half_log_det = NAN;
    em_status status = em_agree(em_allocate(size, sizeof *all, &all));

    status = status ? status : em_grid_sum_chains(grid, size, sums, all);
    *n = status ? 0 : all[NUMBER];
    *log_mass = *n > 0 ? INFINITY : -INFINITY;
    if (!status && *n >= least_draws)
        status = em_agree(half_log_determinant(all, dim, &half_log_det));
    if (!status && isfinite(half_log_det))
        *log_mass = all[LOG_DENSITY] / *n + (double)dim / 2 * (1 + log(2 * M_PI)) + half_log_det;
    em_release(&all);
    return status;
}
