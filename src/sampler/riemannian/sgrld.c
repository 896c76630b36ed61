/*
 * Stochastic gradient Riemannian Langevin dynamics (EQUATIONS 5). With the stochastic gradient
 * g ~ grad log p = -grad U, a metric G(theta) and a root A of its inverse, A A^T = G^-1:
 *
 *     theta <- theta + eps [G^-1 g + Gamma] + N(0, 2 eps G^-1)
 *            = theta + A [eps A^T g + sqrt(2 eps) z] + eps Gamma
 *
 * with Gamma_i = sum_j d(G^-1)_ij / dtheta_j, of order 1. With the metric expanded_mean, G^-1 =
 * diag(theta) and Gamma = 1, theta is reflected at zero: |theta|, whose bias near zero is of a
 * lower order (EQUATIONS 5: shapes well above 1 only). With the metric density and minibatches, U
 * and its gradient in the metric are those of all data, which costs a pass over them for each step.
 * Patterson & Teh's epsilon is 2 eps.
 */
#include "sampler/riemannian/metric_langevin.h"

#include <math.h>

static const em_field fields[] = {
    EM_STOCHASTIC_FIELDS("0.001"), EM_METRIC_FIELDS(em_metric_langevin_options, metric), {0}};

static em_status sgrld_set_up(em_sampler *base, int64_t n_chain, int64_t dim)
{
    return em_metric_langevin_set_up(base, EM_DIVERGENCE_OF_INVERSE, n_chain, dim);
}

/* theta <- theta + A (eps A^T g + root z) + eps Gamma, for a diagonal A */
static void sgrld_move_diag(int64_t n, double eps, const double *A, const double *g,
                            const double *z, const double *divergence, double *restrict theta)
{
    const double root = sqrt(2 * eps);

    for (int64_t i = 0; i < n; i++)
        theta[i] += A[i] * (eps * (A[i] * g[i]) + root * z[i]) + eps * divergence[i];
}

/* theta <- theta + A (eps A^T g + root z) + eps Gamma, for a dense A, with work space for A^T g and
 * the drift. */
static void sgrld_move_dense(const em_metric *metric, double eps, const double *g, const double *z,
                             double *Ag, double *drift, double *theta)
{
    const double root = sqrt(2 * eps);

    em_metric_root_transposed(metric, g, Ag);
    for (int64_t i = 0; i < metric->dim; i++)
        Ag[i] = eps * Ag[i] + root * z[i];
    em_metric_root(metric, Ag, drift);
    for (int64_t i = 0; i < metric->dim; i++)
        theta[i] += drift[i] + eps * metric->divergence[i];
}

/* Makes one inner step of chain c from its gradient and normals. */
static void sgrld_move(em_metric_langevin *self, em_block *block, int64_t c)
{
    em_langevin *s = &self->langevin;
    const em_metric *metric = self->metric;
    const int64_t row = c * block->stride;
    const double *g = block->gradient + row, *z = s->normals + row;
    double *theta = block->theta + row;

    if (metric->structure == EM_MASS_DIAG)
        sgrld_move_diag(block->dim, s->eps[c], metric->root, g, z, metric->divergence, theta);
    else
        sgrld_move_dense(metric, s->eps[c], g, z, s->noise + row, s->velocity + row, theta);
    em_metric_reflect(metric, theta, NULL);
}

static em_status sgrld_step(em_sampler *base, const em_step_context *context, em_block *block)
{
    return em_metric_langevin_step((em_metric_langevin *)base, context, block, NULL, sgrld_move);
}

const em_sampler_ops em_sgrld = {
    .name = "sgrld",
    .doc = "stochastic gradient Riemannian Langevin dynamics, with a choice of metrics",
    .source = "Patterson & Teh 2013; Ma, Chen & Fox 2015, eq. 14",
    .size = sizeof(em_metric_langevin),
    .options_size = sizeof(em_metric_langevin_options),
    .fields = fields,
    EM_LANGEVIN_OPS,
    .set_up = sgrld_set_up,
    .step = sgrld_step,
    .metric = em_metric_langevin_metric,
};
