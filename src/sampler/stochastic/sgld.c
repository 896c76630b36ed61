/*
 * Stochastic gradient Langevin dynamics with a constant preconditioner (EQUATIONS 4). With the
 * stochastic gradient g ~ grad log p = -grad U, W = M^-1 as the preconditioner D, and V the
 * covariance of g:
 *
 *     theta <- theta + eps W g(theta) + N(0, 2 eps W - eps^2 W V W)
 *            = theta + W (eps g(theta) + N(0, 2 eps (M - eps/2 V)))
 *
 * of order 1 in eps. V is the pooled estimate with `correct_noise`, else zero, which leaves another
 * bias of order 1. If steps decrease, weight averages over the draws by the statistic step_size.
 * Welling & Teh's epsilon is 2 eps.
 */
#include "base/clones.h"
#include "base/memory.h"
#include "sampler/stochastic/langevin.h"

#include <math.h>

typedef struct sgld_options {
    em_stochastic_options stochastic;
    bool correct_noise;
} sgld_options;

static const em_field fields[] = {
    EM_STOCHASTIC_FIELDS("0.001"), EM_CORRECT_NOISE_FIELD(sgld_options, "false"), {0}};

static em_status sgld_make_bath(const void *self, const em_bath_key *key, em_bath **out)
{
    (void)self;
    return em_bath_of_mass(key->mass, key->noise, out);
}

static double sgld_refresh_bytes(int64_t dim)
{
    return em_bytes_of_doubles(2 * dim) + em_bath_bytes(dim);
}

/* The step eps g + sqrt(2 eps) noise, before it is multiplied by a root of W. */
EM_CLONES static void sgld_mix(int64_t n, double eps, const double *restrict gradient,
                               double *restrict noise)
{
    const double root = sqrt(2 * eps);

    for (int64_t i = 0; i < n; i++)
        noise[i] = eps * gradient[i] + root * noise[i];
}

EM_CLONES static void sgld_add(int64_t n, const double *restrict from, double *restrict to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

/* theta <- theta + W (eps g + N(0, 2 eps (M - eps/2 V))) */
static void sgld_move(em_langevin *s, const em_step_context *context, em_block *block, int64_t k)
{
    const int64_t n = block->stride;

    em_stochastic_noise(s->options, context, block, k, s->normals);
    em_bath_noise(s->bath, block->n_chain, 0.5, s->eps, s->normals, s->noise);
    for (int64_t c = 0; c < block->n_chain; c++)
        sgld_mix(n, s->eps[c], block->gradient + c * n, s->noise + c * n);
    em_mass_velocity(context->mass, block->n_chain, s->noise, s->velocity);
    sgld_add(block->n_chain * n, s->velocity, block->theta);
}

static em_status sgld_set_up(em_sampler *base, int64_t n_chain, int64_t dim)
{
    em_langevin *s = (em_langevin *)base;
    em_baths *baths = &s->baths;
    const em_status status = em_langevin_set_up(base, n_chain, dim);

    s->after = sgld_move;
    baths->make = sgld_make_bath;
    baths->corrects = ((const sgld_options *)base->options)->correct_noise;
    baths->of_any_step = true;
    return status;
}

static em_status sgld_refresh(em_sampler *base, const em_step_context *context, em_block *block)
{
    (void)block;
    return em_baths_update(&((em_langevin *)base)->baths, context, base);
}

const em_sampler_ops em_sgld = {
    .name = "sgld",
    .doc = "stochastic gradient Langevin dynamics, the inverse mass as preconditioner",
    .source = "Welling & Teh 2011; Ma, Chen & Fox 2015, eq. 13",
    .size = sizeof(em_langevin),
    .options_size = sizeof(sgld_options),
    .fields = fields,
    EM_LANGEVIN_OPS,
    .set_up = sgld_set_up,
    .step = em_langevin_step,
    .uses_noise = true,
    .refresh = sgld_refresh,
    .refresh_bytes = sgld_refresh_bytes,
    .noise_share = em_langevin_noise_share,
};
