/*
 * Stochastic gradient Riemannian HMC (EQUATIONS 8). With the stochastic gradient
 * g ~ grad log p = -grad U of covariance V, a metric G(theta), a root A of its inverse, A A^T =
 * G^-1, and momenta r ~ N(0, I):
 *
 *     r <- r + A^T [eps (g - v) + N(0, 2 eps I - eps^2 V)] + eps Delta,  v = A r
 *     theta <- theta + eps A r,            Delta_i = sum_j dA_ji / dtheta_j
 *
 * of order 1. For the symmetric root A = G^-1/2 this is equation 17 of Ma, Chen & Fox (2015) with
 * its signs put right: the friction A^T A is G^-1 and Delta its correction term. A need not be
 * symmetric (the recipe of EQUATIONS 13 with D_rr = A^T A, Q_r,theta = A^T), and a triangular one
 * is cheaper. V is the pooled estimate where `correct_noise` asks for it. `naive` omits Delta, as
 * an example of an error that remains at every step size (equation 16). With the metric
 * expanded_mean theta is reflected at zero, and r is reversed. The metric density with minibatches
 * costs a pass over all data for each step. The law of the momenta does not depend on the
 * posterior: the criterion `momentum` has nothing to learn here.
 */
#include "sampler/riemannian/metric_langevin.h"

#include <math.h>

typedef struct sgrhmc_options {
    em_metric_langevin_options base;
    bool correct_noise, naive;
} sgrhmc_options;

static const em_field fields[] = {
    EM_STOCHASTIC_FIELDS("0.01"),
    EM_METRIC_FIELDS(sgrhmc_options, base.metric),
    EM_CORRECT_NOISE_FIELD(sgrhmc_options, "true"),
    EM_BOOL(sgrhmc_options, naive, .fallback = "false",
            .doc = "leave out the correction for the change of the metric: WRONG at every step "
                   "size, to show why it is there (EQUATIONS 8)"),
    {0}};

/* Makes a bath that draws N(0, I - b V), for any mass. */
static em_status sgrhmc_make_bath(const void *self, const em_bath_key *key, em_bath **out)
{
    EM_SCOPED_BY(em_mass_destroy) em_mass *identity = NULL;
    em_status status = em_mass_identity(EM_MASS_DIAG, key->mass->dim, &identity);

    (void)self;
    return status ? status : em_bath_of_mass(identity, key->noise, out);
}

static em_status sgrhmc_set_up(em_sampler *base, int64_t n_chain, int64_t dim)
{
    em_baths *baths = &((em_langevin *)base)->baths;
    const em_status status = em_metric_langevin_set_up(base, EM_DIVERGENCE_OF_ROOT, n_chain, dim);

    baths->make = sgrhmc_make_bath;
    baths->corrects = ((const sgrhmc_options *)base->options)->correct_noise;
    return status;
}

/* Draws N(0, I - eps/2 V) from the standard normals. */
static void sgrhmc_agitate(em_metric_langevin *self, const em_block *block)
{
    em_langevin *s = &self->langevin;

    em_bath_noise(s->bath, block->n_chain, 0.5, s->eps, s->normals, s->noise);
}

/* Makes one inner step of chain c from its gradient and noise. */
static void sgrhmc_move(em_metric_langevin *self, em_block *block, int64_t c)
{
    em_langevin *s = &self->langevin;
    const em_metric *metric = self->metric;
    const int64_t row = c * block->stride;
    const bool naive = ((const sgrhmc_options *)self->options)->naive;
    const double eps = s->eps[c], root = sqrt(2 * eps), correction = naive ? 0 : eps;
    const double *g = block->gradient + row;
    double *theta = block->theta + row, *r = block->momentum + row;
    double *v = s->velocity + row, *force = s->noise + row, *change = s->normals + row;

    em_metric_root(metric, r, v);
    for (int64_t i = 0; i < block->dim; i++)
        force[i] = eps * (g[i] - v[i]) + root * force[i];
    em_metric_root_transposed(metric, force, change);
    for (int64_t i = 0; i < block->dim; i++)
        r[i] += change[i] + correction * metric->divergence[i];
    em_metric_root(metric, r, v);
    for (int64_t i = 0; i < block->dim; i++)
        theta[i] += eps * v[i];
    em_metric_reflect(metric, theta, r);
}

static em_status sgrhmc_step(em_sampler *base, const em_step_context *context, em_block *block)
{
    em_metric_langevin *s = (em_metric_langevin *)base;
    const em_status status = em_baths_update(&s->langevin.baths, context, NULL);

    return status ? status
                  : em_metric_langevin_step(s, context, block, sgrhmc_agitate, sgrhmc_move);
}

/* r ~ N(0, I) */
static em_status sgrhmc_refresh(em_sampler *base, const em_step_context *context, em_block *block)
{
    em_stochastic_normals(context, block, EM_RNG_MOMENTUM, context->iteration, block->momentum);
    return em_baths_update(&((em_langevin *)base)->baths, context, NULL);
}

const em_sampler_ops em_sgrhmc = {
    .name = "sgrhmc",
    .doc = "stochastic gradient Riemannian HMC, with a choice of metrics",
    .source = "Ma, Chen & Fox 2015, eq. 17 and Alg. 1",
    .size = sizeof(em_metric_langevin),
    .options_size = sizeof(sgrhmc_options),
    .fields = fields,
    EM_LANGEVIN_OPS,
    .set_up = sgrhmc_set_up,
    .step = sgrhmc_step,
    .metric = em_metric_langevin_metric,
    .uses_noise = true,
    .refresh = sgrhmc_refresh,
    .noise_share = em_langevin_noise_share,
};
