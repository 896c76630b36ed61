#include "adaptation/starts/mode_visits.h"

#include "adaptation/starts/draw_mass.h"
#include "base/memory.h"

#include <math.h>

em_status em_mode_visits_create(int64_t n_local, int64_t dim, em_mode_visits *out)
{
    *out = (em_mode_visits){.n_outside = em_draw_mass_size(dim)};
    return em_allocate_all(EM_ARRAY(out->near, n_local * EM_MOST_MODES),
                           EM_ARRAY(out->inside, n_local * EM_MOST_MODES),
                           EM_ARRAY(out->outside, n_local * out->n_outside));
}

void em_mode_visits_release(em_mode_visits *visits)
{
    em_release_all(&visits->near, &visits->inside, &visits->outside);
}

double em_least_inside(const em_optimum_mode *mode, int64_t dim)
{
    const double half = 0.5 * (double)dim;

    return mode->log_density - half - sqrt(half);
}

/* ---------------------------------------------------------------- one draw */

/* The log density of the normal approximation of a mode, times its mass. */
static double log_law(const em_optimum_mode *m, int64_t dim, const double *theta)
{
    double square = 0;

    for (int64_t i = 0; i < dim; i++) {
        const double d = theta[i] - m->centre[i];
        double sum = m->precision[i * dim + i] * d / 2;
        for (int64_t j = 0; j < i; j++)
            sum += m->precision[i * dim + j] * (theta[j] - m->centre[j]);
        square += 2 * d * sum;
    }
    return m->log_density - square / 2;
}

void em_mode_visits_count(em_mode_visits *visits, int64_t c, int64_t dim, int64_t n_mode,
                          const em_optimum_mode *mode, const double *theta, double log_density)
{
    int64_t nearest = 0;
    double most = -INFINITY;

    for (int64_t m = 0; m < n_mode; m++) {
        const double law = log_law(&mode[m], dim, theta);
        if (law > most) {
            most = law;
            nearest = m;
        }
    }
    visits->near[c * EM_MOST_MODES + nearest]++;
    if (log_density < em_least_inside(&mode[nearest], dim))
        em_draw_mass_add(visits->outside + c * visits->n_outside, dim, mode[0].centre, theta,
                         log_density);
    else
        visits->inside[c * EM_MOST_MODES + nearest]++;
}

/* ---------------------------------------------------------------- all draws */

em_status em_mode_visits_sum(const em_mode_visits *visits, em_grid *grid, int64_t dim,
                             em_mode_counts *out)
{
    double n_outside;
    em_status status = em_grid_sum_chains(grid, EM_MOST_MODES, visits->near, out->near);

    status = status ? status : em_grid_sum_chains(grid, EM_MOST_MODES, visits->inside, out->inside);
    return status ? status
                  : em_draw_mass_estimate(grid, dim, visits->outside, &n_outside,
                                          &out->log_mass_outside);
}
