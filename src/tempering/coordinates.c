/*
 * The coordinates of the copies. They are the model's, or non-centred ones
 * (posterior/noncentring.h) if the draws of a round show that the scale of some parameters depends
 * on another one. Kernels, masses, the learned reference and a normal reference A are in these
 * coordinates; the prior and the modes that a search has found are distributions of the model's
 * parameters, which are transformed. Draws leave the ladders in the model's coordinates, and the
 * map is learned from them there.
 *
 * w = log p - log r has no Jacobian determinant, so swaps and the evidence do not depend on the
 * map.
 */
#include "adaptation/noncentring/noncentring_search.h"
#include "adaptation/noncentring/shared_gradients.h"
#include "base/memory.h"
#include "par/world.h"
#include "tempering/reference.h"
#include "tempering/tempering_internal.h"

#include <math.h>
#include <string.h>

enum { MOST_DIM = 200 }; /* for which a round has enough draws */

em_status em_coordinates_create(em_tempering *t)
{
    const em_tempering_kernel *kernel = &t->task.kernel[0];

    t->learns_map = t->task.noncentring && t->n_kernel == 1 && !kernel->parameters &&
                    kernel->ops->trajectory && !kernel->ops->metric && t->dim <= MOST_DIM;
    em_status status = em_noncentring_create(t->dim, &t->map);
    return status || !t->learns_map ? status
                                    : em_own_all(&t->memory, EM_ARRAY(t->found_map, t->dim));
}

void em_copies_to_model(const em_tempering *t, double *theta, double *gradient, double *log_p)
{
    double *z = t->coordinates;

    if (t->map.n_child == 0)
        return;
    memcpy(z, theta, (size_t)t->dim * sizeof *z);
    const double log_jacobian = em_noncentring_to_model(&t->map, theta, t->map.at);
    if (gradient)
        em_noncentring_push(&t->map, z, t->map.at, gradient);
    if (log_p)
        *log_p -= log_jacobian;
}

void em_copies_from_model(const em_tempering *t, double *theta, double *gradient, double *log_p)
{
    if (t->map.n_child == 0)
        return;
    const double log_jacobian = em_noncentring_from_model(&t->map, theta, t->map.at);
    if (gradient)
        em_noncentring_pull(&t->map, theta, t->map.at, gradient);
    if (log_p)
        *log_p += log_jacobian;
}

/* Sets the map, and transforms all copies to the new coordinates. Local. Errors: EM_EDATA. */
static em_status set_map(em_tempering *t, const em_noncentring_row *row)
{
    double *theta = t->block->theta, *gradient = t->of_model;

    for (int64_t c = 0; c < t->n_copy; c++)
        em_copies_to_model(t, theta + c * t->stride, gradient + c * t->stride, &t->copy[c].log_p);
    const em_status status = em_noncentring_set(&t->map, row);
    for (int64_t c = 0; c < t->n_copy; c++)
        em_copies_from_model(t, theta + c * t->stride, gradient + c * t->stride, &t->copy[c].log_p);
    return status;
}

/* Computes the sums of the draws and their distances from the origin, in the coordinates of the
 * map. The centre of the sums becomes the first draw. unit [dim]: the root mean squares of the
 * non-centred parameters, and 1 for others. */
static void sum_again(em_tempering *t, const em_samples *draws, double *sum, double *unit)
{
    const em_estimator_ops *estimator = em_tempering_estimator(t);
    const em_part whole = {0, t->dim, t->structure};

    memset(sum, 0, (size_t)t->n_accumulator * sizeof *sum);
    memset(t->farthest, 0, (size_t)t->dim * sizeof *t->farthest);
    for (int64_t k = 0; k < draws->n; k++) {
        double *theta = draws->row + k * 2 * t->dim;
        em_copies_from_model(t, theta, theta + t->dim, NULL);
        if (k == 0)
            memcpy(t->centre, theta, (size_t)t->dim * sizeof *theta);
        for (int64_t i = 0; i < t->dim; i++) {
            t->farthest[i] = fmax(t->farthest[i], fabs(theta[i]));
            t->message[i] = theta[i] - t->centre[i];
            unit[i] += theta[i] * theta[i] / (double)draws->n;
        }
        const em_observation sample = {.theta = t->message, .gradient = theta + t->dim};
        em_estimator_observe_part(estimator, &whole, &sample, sum);
    }
    for (int64_t i = 0; i < t->dim; i++)
        unit[i] = t->map.row[i].level > 0 && unit[i] > 0 ? sqrt(unit[i]) : 1;
}

/* The first rank computes, so that ranks on different types of processor hold the same bits. */
static void sum_on_first(em_tempering *t, const em_samples *draws, double *sum, double *unit)
{
    const int64_t n_local = em_grid_n_local_chain(t->task.grid);

    memset(t->farthest, 0, (size_t)(em_most(n_local, 1) * t->dim) * sizeof *t->farthest);
    if (em_world_rank() == 0)
        sum_again(t, draws, sum, unit);
    em_broadcast(unit, (size_t)t->dim * sizeof *unit);
    em_broadcast(sum, (size_t)t->n_accumulator * sizeof *sum);
    em_broadcast(t->centre, (size_t)t->dim * sizeof *sum);
}

/* The largest distance from the mean of x[0], x[step], ..., in standard deviations. */
static double most_outlying(int64_t n, int64_t step, const double *x)
{
    double mean = 0, variance = 0, most = 0;

    for (int64_t k = 0; k < n; k++)
        mean += x[k * step] / (double)n;
    for (int64_t k = 0; k < n; k++) {
        const double away = x[k * step] - mean;
        variance += away * away / (double)n;
        most = fmax(most, fabs(away));
    }
    return most / sqrt(variance);
}

/* Whether a map suits the draws: it has two parameters or more, or one with a curved location,
 * which is proved; and none of them has an outlier that is farther than 8 standard deviations and
 * farther than any in the model's coordinates. A curved ridge of two parameters can look like a
 * funnel of one. The map that is fitted to most of a ridge has outliers at its ends, and a normal
 * reference that reaches them is hardly ever near to the rest. */
static em_status suits(const em_noncentring *map, const em_samples *draws, bool *out)
{
    const double farthest = 8;
    const int64_t dim = map->dim, width = 2 * dim;
    EM_SCOPED double *z = NULL;
    em_status status = em_allocate_doubles(draws->n * width, &z);

    *out = map->n_child > 1 || em_noncentring_count(map).curved > 0;
    for (int64_t k = 0; !status && k < draws->n; k++) {
        memcpy(z + k * width, draws->row + k * width, (size_t)dim * sizeof *z);
        em_noncentring_from_model(map, z + k * width, NULL);
    }
    for (int64_t i = 0; !status && i < map->n_child; i++) {
        const int64_t at = map->child[i];
        const double there = most_outlying(draws->n, width, z + at);
        *out &= there < farthest || there < most_outlying(draws->n, width, draws->row + at);
    }
    return status;
}

/* Whether two modes that the search has found differ in x_k by more than 4 standard deviations of
 * the narrower one. number [dim + dim^2] is work space. */
static bool differs_in(const em_tempering *t, int64_t k, double *number, double *variance)
{
    double centre[EM_MOST_MODES], sd[EM_MOST_MODES];

    for (int64_t m = 0; m < t->n_mode; m++) {
        em_reference_write(t->mode_law[m], number);
        em_reference_covariance(t->mode_law[m], EM_MASS_DIAG, variance);
        centre[m] = number[k];
        sd[m] = sqrt(variance[k]);
        for (int64_t n = 0; n < m; n++)
            if (fabs(centre[m] - centre[n]) > 4 * fmin(sd[m], sd[n]))
                return true;
    }
    return false;
}

em_status em_coordinates_judge(const em_tempering *t, const em_noncentring *map, bool *separates)
{
    EM_SCOPED double *number = NULL, *variance = NULL;
    em_status status =
        em_allocate_all(EM_ARRAY(number, t->dim + t->dim * t->dim), EM_ARRAY(variance, t->dim));

    *separates = false;
    for (int64_t i = 0; !status && i < map->n_child && !*separates; i++) {
        const em_noncentring_row *row = &map->row[map->child[i]];
        if (row->form == EM_SCALE_CONSTANT) /* it is proved, and so is the same in all modes */
            continue;
        *separates = differs_in(t, (int64_t)row->scale, number, variance) ||
                     (row->second_degree != 0 &&
                      differs_in(t, (int64_t)row->second_scale, number, variance));
    }
    return status;
}

/* Chooses among the map that a search finds, the present one, and the identity. Local. */
static em_status choose(em_tempering *t, const em_samples *draws, const em_normal_prior *prior)
{
    EM_SCOPED_BY(em_noncentring_release) em_noncentring found = {0};
    int64_t n_child = 0;
    bool fine = false, separates = false;
    em_status status = em_noncentring_create(t->dim, &found);

    status = status ? status
                    : em_noncentring_search(t->dim, draws, prior, false, t->found_map, &n_child);
    status = status ? status : em_noncentring_set(&found, t->found_map);
    status = status ? status : suits(&found, draws, &fine);
    status = status ? status : em_coordinates_judge(t, &found, &separates);
    fine &= !separates;
    if (!status && !fine) {
        memcpy(t->found_map, t->map.row, (size_t)t->dim * sizeof *t->found_map);
        status = suits(&t->map, draws, &fine);
    }
    for (int64_t i = 0; !status && !fine && i < t->dim; i++)
        t->found_map[i] = (em_noncentring_row){.level = 0};
    return status;
}

em_status em_coordinates_find(em_tempering *t, const em_samples *draws, bool *grows)
{
    const int64_t was = t->map.n_child;
    EM_SCOPED em_normal_prior *prior = NULL;
    int64_t n_child = 0, n_evaluated = 0;
    em_status status = em_agree(em_allocate_all(EM_ARRAY(prior, t->dim)));

    status = status ? status
                    : em_prove_priors_together(t->of_parameters, t->copies, t->dim, draws, false,
                                               prior, &n_evaluated);
    status = status ? status : em_agree(em_world_rank() == 0 ? choose(t, draws, prior) : EM_OK);
    if (status)
        return status;
    em_broadcast(t->found_map, (size_t)t->dim * sizeof *t->found_map);
    for (int64_t i = 0; i < t->dim; i++)
        n_child += t->found_map[i].level > 0;
    *grows = n_child > was + was / 8;
    return EM_OK;
}

em_status em_coordinates_exchange(em_tempering *t, const em_samples *draws, double *sum)
{
    const int64_t was = t->map.n_child;
    EM_SCOPED double *unit = NULL;
    em_status status = em_agree(em_allocate(t->dim, sizeof *unit, &unit));

    status = status ? status : em_agree(set_map(t, t->found_map));
    if (!status && t->map.n_child > 0)
        sum_on_first(t, draws, sum, unit);
    if (!status && (t->map.n_child > 0 || was > 0))
        status = em_agree(em_reference_restart(t, t->map.n_child > 0 ? unit : NULL));
    return status;
}
