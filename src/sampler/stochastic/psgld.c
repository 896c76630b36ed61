/*
 * Stochastic gradient Langevin dynamics with the preconditioner of RMSprop (EQUATIONS 4). With the
 * stochastic gradient g ~ grad log p = -grad U, its mean over the N observations h = g / N, and
 * products, quotients and roots element by element:
 *
 *     v <- b v + (1 - b) h^2,   G = 1 / (lambda + sqrt(v))
 *     theta <- theta + eps (G g + Gamma) + N(0, 2 eps G)
 *
 * of order 1. G depends on the path of the chain, and Gamma_i = dG_ii / dtheta_i is for a shift of
 * the whole path: v' <- b v' + (1 - b) 2 h dh/dtheta, Gamma = -G^2 v' / (2 sqrt(v)), where the
 * diagonal of dh/dtheta is estimated without bias by z (h(theta + d z) - h(theta)) / d with z = -1
 * or 1 at random, from the same minibatch: a second gradient. Without Gamma, as the paper runs it,
 * the law is that of exp(-U) / G. Li et al.'s epsilon is 2 eps. The mass is not used.
 */
#include "base/clones.h"
#include "base/memory.h"
#include "sampler/stochastic/langevin.h"

#include <math.h>

typedef struct psgld_options {
    em_stochastic_options stochastic;
    double square_decay, lambda, difference;
    bool correction;
} psgld_options;

static const em_field fields[] = {
    EM_STOCHASTIC_FIELDS("0.001"),
    EM_REAL(psgld_options, square_decay, .maximum = 0.999999999, .fallback = "0.99",
            .doc = "b, the decay rate of the moving average of squared mean gradients"),
    EM_REAL(
        psgld_options, lambda, .minimum = 1e-300, .maximum = 1e300, .fallback = "1e-5",
        .doc =
            "number added to the root of that average: the preconditioner is at most 1 / lambda"),
    EM_BOOL(psgld_options, correction, .fallback = "true",
            .doc = "the term Gamma of a preconditioner that depends on the position, from a second "
                   "gradient; false: as in the experiments of its paper, which sample another "
                   "distribution"),
    EM_REAL(psgld_options, difference, .minimum = 1e-12, .maximum = 1e12, .fallback = "1e-3",
            .doc = "d, distance from the position at which that second gradient is computed"),
    {0}};

/* The numbers that v and, with the correction, v' take in each chain. Rows line up with the panels.
 */
static int64_t psgld_n_extra(const void *options, int64_t dim)
{
    return em_stride(dim) * (((const psgld_options *)options)->correction ? 2 : 1);
}

/* The b of a step; 0 in the first step. */
static double psgld_keep(const psgld_options *options, int64_t number)
{
    return number == 0 ? 0 : options->square_decay;
}

/* Evaluates the gradients of minibatch k at theta + d z into s->noise, and those at theta into the
 * block. z goes to s->normals. */
static em_status psgld_two_gradients(em_langevin *s, const em_step_context *context,
                                     em_block *block, int64_t k, int64_t number)
{
    const psgld_options *options = s->base.options;
    const int64_t n = block->n_chain * block->stride;

    em_stochastic_normals(context, block, EM_RNG_NOISE, 2 * number, s->normals);
    for (int64_t i = 0; i < n; i++) {
        s->normals[i] = s->normals[i] == 0 ? 0 : copysign(1, s->normals[i]); /* 0: the padding */
        s->velocity[i] = block->theta[i] + options->difference * s->normals[i];
    }
    em_query moved = em_block_query(block);
    moved.theta = s->velocity;
    moved.gradient = s->noise;
    const em_status status =
        em_stochastic_evaluate(s->options, context, s->options->leapfrog_steps, k, moved);
    return status ? status : em_stochastic_gradient(s->options, context, block, k);
}

/* Updates v'. To be called before v is updated. */
static void psgld_follow(const em_langevin *s, double mean, double b, const em_block *block)
{
    const double difference = ((const psgld_options *)s->base.options)->difference;
    const int64_t n = block->stride;

    for (int64_t c = 0; c < block->n_chain; c++) {
        const double *g = block->gradient + c * n, *there = s->noise + c * n;
        const double *z = s->normals + c * n;
        double *slope = block->extra + c * block->n_extra + n;
        for (int64_t i = 0; i < n; i++) {
            const double second = mean * z[i] * (there[i] - g[i]) / difference;
            slope[i] = b * slope[i] + (1 - b) * 2 * mean * g[i] * second;
        }
    }
}

/* Makes a step with the mean gradient h = `mean` times g. `slope` NULL: without Gamma. */
EM_CLONES static void psgld_move_row(int64_t n, double eps, double lambda, double mean, double b,
                                     const double *restrict g, const double *restrict z,
                                     const double *restrict slope, double *restrict v,
                                     double *restrict theta)
{
    for (int64_t i = 0; i < n; i++) {
        v[i] = b * v[i] + (1 - b) * mean * g[i] * mean * g[i];
        const double root = sqrt(v[i]), G = 1 / (lambda + root);
        const double gamma = slope && root > 0 ? -G * G * slope[i] / (2 * root) : 0;
        theta[i] += eps * (G * g[i] + gamma) + sqrt(2 * eps * G) * z[i];
    }
}

/* Moves the chains after the update of v'. In a coordinate block the extra numbers of a chain begin
 * at its columns if they are only v, and at the chain if they are v and v'. */
static void psgld_move(em_langevin *s, const em_step_context *context, em_block *block, int64_t k)
{
    const psgld_options *options = s->base.options;
    const int64_t n = block->stride, number = em_stochastic_step_number(s->options, context, k);
    const int64_t first = options->correction ? block->first : 0;

    em_stochastic_normals(context, block, EM_RNG_NOISE, 2 * number + 1, s->normals);
    for (int64_t c = 0; c < block->n_chain; c++) {
        double *v = block->extra + c * block->n_extra + first;
        psgld_move_row(
            block->dim, s->eps[c], options->lambda, 1 / em_langevin_observations(context),
            psgld_keep(options, number), block->gradient + c * n, s->normals + c * n,
            options->correction ? v + block->n_extra / 2 : NULL, v, block->theta + c * n);
    }
}

static em_status psgld_iterate(em_sampler *base, const em_step_context *context, em_block *block,
                               int64_t chain)
{
    em_langevin *s = (em_langevin *)base;
    const psgld_options *options = s->base.options;
    const double mean = 1 / em_langevin_observations(context);
    em_status status = EM_OK;

    em_langevin_begin(s, context, block, chain);
    for (int64_t k = 0; !status && k < s->options->leapfrog_steps; k++) {
        const int64_t number = em_stochastic_step_number(s->options, context, k);
        status = options->correction ? psgld_two_gradients(s, context, block, k, number)
                                     : em_stochastic_gradient(s->options, context, block, k);
        if (options->correction)
            psgld_follow(s, mean, psgld_keep(options, number), block);
        em_langevin_move(s, context, block, k, psgld_move);
    }
    em_langevin_end(s, context, block);
    return status;
}

static em_status psgld_step(em_sampler *base, const em_step_context *context, em_block *block)
{
    em_langevin *s = (em_langevin *)base;
    const psgld_options *options = base->options;

    return options->correction
               ? em_stochastic_in_turns(s->options, base, context, block, false, psgld_iterate)
               : em_langevin_in_turns(s, context, block, psgld_iterate);
}

const em_sampler_ops em_psgld = {
    .name = "psgld",
    .doc = "stochastic gradient Langevin dynamics with the preconditioner of RMSprop",
    .source = "Li, Chen, Carlson & Carin 2016, with all of Gamma",
    .size = sizeof(em_langevin),
    .options_size = sizeof(psgld_options),
    .fields = fields,
    EM_LANGEVIN_OPS,
    .set_up = em_langevin_set_up,
    .step = psgld_step,
    .n_extra = psgld_n_extra,
};
