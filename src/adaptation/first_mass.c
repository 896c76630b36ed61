/*
 * The first mass, from the curvature where the chains start. A diagonal one comes from what the
 * ascents to the starts have found, without further gradients. Where the mass is dense it is
 * replaced by the inverse of minus the Hessian, which differences of gradients give. Parameters
 * that are correlated, such as the coefficients of collinear predictors, would otherwise take
 * trajectories of many steps until windows have enough draws to show it.
 */
#include "adaptation/adaptation_internal.h"
#include "base/memory.h"
#include "math/finite.h"
#include "math/linalg.h"
#include "math/order.h"
#include "par/world.h"

#include <math.h>
#include <string.h>

/* The Hessian is the mean of those at the starts of at most this many chains. It is computed in up
 * to this many dimensions. */
enum { MOST_STARTS = 8, MOST_DIM = 1000 };

/* For columns first .. first + n - 1 of x [n_local_chain][stride]: the median over all chains of
 * the absolute values, into out[n]. The columns of all chains are gathered into `all`. */
static em_status column_medians(em_adapt *adapt, const double *x, int64_t first, int64_t n,
                                double *local, double *out)
{
    double *all = local + adapt->n_local_chain * n, *column = all + adapt->n_chain * n;

    for (int64_t c = 0; c < adapt->n_local_chain; c++)
        for (int64_t i = 0; i < n; i++)
            local[c * n + i] = fabs(x[c * adapt->stride + first + i]);
    const em_status status = em_grid_gather_chains(adapt->grid, n, local, all);
    for (int64_t i = 0; !status && i < n; i++) {
        for (int64_t c = 0; c < adapt->n_chain; c++)
            column[c] = all[c * n + i];
        em_sort_numbers(adapt->n_chain, column);
        out[i] = em_sorted_median(adapt->n_chain, column);
    }
    return status;
}

/* variance [dim]: the inverse curvature found by the ascents from the starts or, without ascents,
 * 1 / |g_i|. The median over the chains is used, because single chains may start where gradients
 * are extreme. Columns are gathered in batches to limit the memory. Collective. */
static em_status learn_variances(em_adapt *adapt, const em_block *block,
                                 const double *inverse_curvature, double *variance)
{
    const int64_t n_chain = adapt->n_chain, dim = adapt->dim;
    const int64_t batch = em_least((1 << 20) / n_chain + 1, dim);
    const double *x = inverse_curvature ? inverse_curvature : block->gradient;
    EM_SCOPED double *work = NULL;
    em_status status = em_agree(
        em_allocate(adapt->n_local_chain * batch + n_chain * (batch + 1), sizeof *work, &work));

    for (int64_t first = 0; !status && first < dim; first += batch)
        status =
            column_medians(adapt, x, first, em_least(dim - first, batch), work, variance + first);
    for (int64_t i = 0; !status && i < dim; i++) {
        const double clipped = fmin(fmax(variance[i], 1e-10), 1e10);
        variance[i] = inverse_curvature ? clipped : 1 / clipped;
    }
    if (!status)
        em_map_first_variances(adapt, variance);
    return status;
}

/* Gradients at the starts of the first chains of this rank, one coordinate moved. */
typedef struct moved_starts {
    em_posterior *posterior;
    int64_t n, dim, stride;
    double *theta, *gradient, *start; /* [n][stride]; start: the gradients at the starts */
    double *log_density;              /* [n] */
    double *row;                      /* [n_local_chain][dim] rows of minus the Hessians */
} moved_starts;

/* Row j of minus the Hessian at the starts of this rank; NaN where a gradient is not known.
 * Collective over the ranks of a group. */
static em_status differentiate(moved_starts *m, const em_block *block, int64_t j, double step)
{
    em_query query = {.n_chain = m->n,
                      .stride = m->stride,
                      .chain = block->chain,
                      .theta = m->theta,
                      .log_density = m->log_density,
                      .gradient = m->gradient};
    em_status status = EM_OK;

    for (int64_t c = 0; c < m->n; c++)
        m->theta[c * m->stride + j] += step;
    if (m->n > 0)
        status = em_posterior_evaluate(m->posterior, &query);
    for (int64_t c = 0; c < m->n; c++) {
        m->theta[c * m->stride + j] -= step;
        for (int64_t i = 0; i < m->dim; i++)
            m->row[c * m->dim + i] =
                status ? NAN
                       : (m->start[c * m->stride + i] - m->gradient[c * m->stride + i]) / step;
    }
    return status > 0 ? EM_OK : status;
}

/* Adds up minus the Hessians at the starts, row by row. Collective. */
static em_status add_hessians(em_adapt *adapt, moved_starts *m, const em_block *block,
                              const double *variance, double *sum)
{
    static const double step = 1e-3; /* standard deviations */
    em_status status = EM_OK;

    for (int64_t c = 0; c < m->n; c++) {
        const double *state = em_noncentred_state(adapt, block, c);
        const double *theta = state ? state : block->theta + c * block->stride;
        const double *gradient = state ? state + m->dim : block->gradient + c * block->stride;
        memcpy(m->theta + c * m->stride, theta, (size_t)m->dim * sizeof *theta);
        memcpy(m->start + c * m->stride, gradient, (size_t)m->dim * sizeof *gradient);
    }
    for (int64_t j = 0; !status && j < m->dim; j++) {
        status = em_agree(differentiate(m, block, j, step * sqrt(variance[j])));
        status =
            status ? status : em_grid_sum_chains(adapt->grid, m->dim, m->row, sum + j * m->dim);
    }
    for (int64_t c = 0; c < m->n; c++)
        adapt->gradients[c] += (double)m->dim;
    return status;
}

/*
 * The inverse of `sum` [dim][dim] / n into `inverse`. Away from a mode some eigenvalues may be
 * negative; their absolute values are used (Betancourt 2013: SoftAbs). The differences of the
 * matrix and its transpose show the errors of its elements. After the scaling to a diagonal of 1,
 * smaller eigenvalues are not known and are raised to that error. Errors: EM_NONFINITE if nothing
 * is known; EM_EMEMORY, EM_ENUMERIC. Local.
 */
static em_status invert(int64_t dim, double n, double *sum, double *inverse)
{
    EM_SCOPED double *scale = NULL, *value = NULL;
    double error = 1e-12;
    em_status status = em_allocate_all(EM_ARRAY(scale, dim), EM_ARRAY(value, dim));

    for (int64_t i = 0; !status && i < dim; i++)
        scale[i] = 1 / sqrt(fabs(sum[i * dim + i]) / n);
    for (int64_t i = 0; !status && i < dim; i++)
        for (int64_t j = 0; j <= i; j++) {
            const double product = scale[i] * scale[j] / n;
            const double a = sum[i * dim + j] * product, b = sum[j * dim + i] * product;
            error = fmax(error, fabs(a - b));
            sum[i * dim + j] = sum[j * dim + i] = (a + b) / 2;
        }
    if (!status && !(error < 1 && em_all_finite(dim * dim, sum) && em_all_finite(dim, scale)))
        status = EM_NONFINITE;
    status = status ? status : em_eigen(dim, sum, dim, value);
    for (int64_t i = 0; !status && i < dim; i++)
        value[i] = 1 / fmax(fabs(value[i]), error);
    status = status ? status : em_spectral(dim, sum, dim, value, inverse);
    for (int64_t i = 0; !status && i < dim; i++)
        for (int64_t j = 0; j < dim; j++)
            inverse[i * dim + j] *= scale[i] * scale[j];
    return status;
}

/* Replaces `number`, a dense diagonal mass, by the inverse of minus the mean Hessian at the starts,
 * if differences of gradients give it. Rank 0 computes it, so that ranks on different processor
 * types hold the same bits. Collective. Errors: EM_EMEMORY, EM_EMODEL, EM_ENUMERIC, agreed. */
static em_status take_curvature(em_adapt *adapt, em_posterior *posterior, const em_block *block,
                                const double *variance, double *number)
{
    const int64_t dim = adapt->dim, stride = adapt->stride;
    const int64_t n_start = em_least(adapt->n_chain, MOST_STARTS);
    moved_starts m = {.dim = dim, .stride = stride};
    EM_SCOPED double *sum = NULL;
    em_status status = em_noncentred_posterior(adapt, posterior, &m.posterior);

    m.n = n_start - adapt->first_chain;
    m.n = m.n < 0 ? 0 : em_least(m.n, adapt->n_local_chain);
    status = status ? status
                    : em_allocate_all(EM_ARRAY(sum, dim * dim), EM_ARRAY(m.theta, m.n * stride),
                                      EM_ARRAY(m.gradient, m.n * stride),
                                      EM_ARRAY(m.start, m.n * stride), EM_ARRAY(m.log_density, m.n),
                                      EM_ARRAY(m.row, adapt->n_local_chain * dim));
    status = em_agree(status);
    status = status ? status : add_hessians(adapt, &m, block, variance, sum);
    if (!status && em_world_rank() == 0) {
        EM_SCOPED double *inverse = NULL;
        status = em_allocate_doubles(dim * dim, &inverse);
        status = status ? status : invert(dim, (double)n_start, sum, inverse);
        if (!status)
            memcpy(number, inverse, (size_t)(dim * dim) * sizeof *inverse);
        status = status > 0 ? EM_OK : status;
    }
    em_release_all(&m.theta, &m.gradient, &m.start, &m.log_density, &m.row);
    status = em_agree(status);
    if (!status)
        em_broadcast(number, (size_t)(dim * dim) * sizeof *number);
    return status;
}

/* Makes the numbers the first mass, and returns the one before in *was. Collective. */
static em_status set_mass(em_adapt *adapt, const double *number, em_mass **was)
{
    em_mass *mass = NULL;
    const em_status status = em_agree(em_mass_of(&adapt->form, number, &mass));

    if (status)
        return status;
    *was = adapt->pools->mass;
    adapt->pools->mass = mass;
    em_publish_to_chains(adapt);
    return EM_OK;
}

/* The numbers [dim][dim] of the current mass, which is dense, and its variances [dim]. Local. */
static void read_variances(const em_adapt *adapt, double *number, double *variance)
{
    const em_mass *mass = adapt->pools->mass;

    mass->ops->write(mass, &adapt->form, number);
    for (int64_t i = 0; i < adapt->dim; i++)
        variance[i] = number[i * (adapt->dim + 1)];
}

em_status em_learn_first_variances(em_adapt *adapt, const em_block *block,
                                   const double *inverse_curvature)
{
    EM_SCOPED double *variance = NULL, *number = NULL;
    EM_SCOPED_BY(em_mass_destroy) em_mass *was = NULL;
    em_status status = em_agree(em_allocate_all(
        EM_ARRAY(variance, adapt->dim), EM_ARRAY(number, adapt->form.ops->size(&adapt->form))));

    status = status ? status : learn_variances(adapt, block, inverse_curvature, variance);
    if (!status)
        adapt->form.ops->spread(&adapt->form, variance, number);
    return status ? status : set_mass(adapt, number, &was);
}

em_status em_learn_first_curvature(em_adapt *adapt, em_posterior *posterior, const em_block *block,
                                   em_mass **was)
{
    const int64_t dim = adapt->dim;
    EM_SCOPED double *variance = NULL, *number = NULL;

    *was = NULL;
    if (adapt->form.ops != &em_mass_dense || !adapt->shares || dim > MOST_DIM)
        return EM_OK;
    em_status status =
        em_agree(em_allocate_all(EM_ARRAY(variance, dim), EM_ARRAY(number, dim * dim)));
    if (!status)
        read_variances(adapt, number, variance);
    status = status ? status : take_curvature(adapt, posterior, block, variance, number);
    status = status ? status : set_mass(adapt, number, was);
    return status > 0 ? EM_OK : status; /* not positive definite after rounding */
}

void em_restore_mass(em_adapt *adapt, em_mass **was)
{
    em_mass_destroy(&adapt->pools->mass);
    adapt->pools->mass = *was;
    *was = NULL;
    em_publish_to_chains(adapt);
}

em_status em_keep_variances(em_adapt *adapt)
{
    const int64_t dim = adapt->dim;
    EM_SCOPED double *variance = NULL, *number = NULL;
    EM_SCOPED_BY(em_mass_destroy) em_mass *was = NULL;

    if (adapt->form.ops != &em_mass_dense)
        return EM_OK;
    em_status status =
        em_agree(em_allocate_all(EM_ARRAY(variance, dim), EM_ARRAY(number, dim * dim)));
    if (status)
        return status;
    read_variances(adapt, number, variance);
    adapt->form.ops->spread(&adapt->form, variance, number);
    return set_mass(adapt, number, &was);
}
