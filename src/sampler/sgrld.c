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
#include "sampler/langevin.h"
#include "sampler/metric.h"

#include "base/memory.h"

#include <math.h>

extern const em_sampler_ops em_sgrld;

typedef struct sgrld_options {
    em_stochastic_options stochastic;
    em_metric_options metric;
} sgrld_options;

static const em_field fields[] = {
    EM_STOCHASTIC_FIELDS("0.001"), EM_METRIC_FIELDS(sgrld_options, metric), {0}};

typedef struct sgrld_sampler {
    em_langevin langevin;
    em_metric *metric;
} sgrld_sampler;

static void sgrld_destroy(em_sampler *base)
{
    if (base)
        em_metric_destroy(&((sgrld_sampler *)base)->metric);
    em_langevin_destroy(base);
}

static em_status sgrld_create(const void *untyped, int64_t n_chain, int64_t dim, em_sampler **out)
{
    const sgrld_options *options = untyped;
    em_langevin *s = NULL;
    em_status status =
        em_langevin_create(&em_sgrld, options, sizeof(sgrld_sampler), n_chain, dim, &s);

    if (!status)
        status = em_metric_create(&options->metric, EM_DIVERGENCE_OF_INVERSE, n_chain, dim,
                                  &((sgrld_sampler *)s)->metric);
    if (status) {
        sgrld_destroy((em_sampler *)s);
        s = NULL;
    }
    *out = (em_sampler *)s;
    return status;
}

/* theta <- theta + A (eps A^T g + root z) + eps Gamma, for a diagonal A */
static void sgrld_move_diag(int64_t n, double eps, const double *A, const double *g,
                            const double *z, const double *divergence, double *restrict theta)
{
    const double root = sqrt(2 * eps);

    for (int64_t i = 0; i < n; i++)
        theta[i] += A[i] * (eps * (A[i] * g[i]) + root * z[i]) + eps * divergence[i];
}

/* The same for a dense one, with room for A^T g and the drift. */
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

/* One inner step of chain c, from its gradient and normals. */
static void sgrld_move(sgrld_sampler *self, em_block *block, int64_t c)
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
    sgrld_sampler *self = (sgrld_sampler *)base;
    em_langevin *s = &self->langevin;
    const bool is_whole = s->options->common.minibatch == INT64_MIN;
    em_status status = EM_OK;

    em_langevin_begin(s, context, block);
    for (int64_t k = 0; status >= 0 && k < s->options->leapfrog_steps; k++) {
        status = em_langevin_gradient(s, context, block, k);
        if (!status)
            status = em_metric_look(self->metric, context, block, is_whole);
        em_langevin_normals(s, context, block, k);
        for (int64_t c = 0; status >= 0 && c < block->n_chain; c++) {
            status = em_metric_place(self->metric, context, block, c);
            if (status > 0)
                em_langevin_lose(block, c);
            else if (!status)
                sgrld_move(self, block, c);
        }
    }
    em_langevin_end(s, context, block);
    return status < 0 ? status : EM_OK;
}

static em_metric_kind sgrld_metric(const void *options)
{
    return (em_metric_kind)((const sgrld_options *)options)->metric.kind;
}

const em_sampler_ops em_sgrld = {
    .name = "sgrld",
    .doc = "stochastic gradient Riemannian Langevin dynamics, with a choice of metrics",
    .source = "Patterson & Teh 2013; Ma, Chen & Fox 2015, eq. 14",
    .options_size = sizeof(sgrld_options),
    .fields = fields,
    .stats = em_stochastic_stats,
    .create = sgrld_create,
    .destroy = sgrld_destroy,
    .step = sgrld_step,
    .minibatches = true,
    .metric = sgrld_metric,
};
