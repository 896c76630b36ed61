/*
 * Optimisers (EQUATIONS 3): baselines and NOT samplers. With the stochastic gradient
 * g ~ grad log p = -grad U, its mean over the N observations h = g / N, and products, quotients and
 * roots element by element, one inner step is
 *
 *     sgd      p <- m p + g,  theta <- theta + eps W p
 *     rmsprop  v <- b v + (1 - b) h^2,  theta <- theta + eps h / (sqrt(v) + delta)
 *     adam     p <- a p + (1 - a) h,  v <- b v + (1 - b) h^2,
 *              theta <- theta + eps p' / (sqrt(v') + delta),
 *              p' = p / (1 - a^t),  v' = v / (1 - b^t)
 *
 * in step t = 1, 2, ..., from p = v = 0. After they converge, the only spread is that of minibatch
 * noise, which vanishes with eps. The learning rate of a loss that is a mean over observations is N
 * eps for sgd, and eps for the others, which do not use the mass.
 */
#include "base/clones.h"
#include "sampler/stochastic/langevin.h"

#include <math.h>

extern const em_sampler_ops em_sgd, em_rmsprop, em_adam;

typedef struct optimiser_options {
    em_stochastic_options stochastic;
    double momentum, square_decay, delta;
} optimiser_options;

#define SQUARE_FIELDS(b)                                                                           \
    EM_REAL(optimiser_options, square_decay, .maximum = 0.999999999, .fallback = b,                \
            .doc = "b, the decay rate of the moving average of squared gradients"),                \
        EM_REAL(optimiser_options, delta, .minimum = 1e-300, .maximum = 1e300, .fallback = "1e-8", \
                .doc = "number added to the root of that average")

static const em_field sgd_fields[] = {EM_STOCHASTIC_FIELDS("0.001"),
                                      EM_REAL(optimiser_options, momentum, .maximum = 0.999999999,
                                              .fallback = "0",
                                              .doc = "m, the share of the last step that is kept"),
                                      {0}};

static const em_field rmsprop_fields[] = {
    EM_STOCHASTIC_FIELDS("0.001"), SQUARE_FIELDS("0.99"), {0}};

static const em_field adam_fields[] = {
    EM_STOCHASTIC_FIELDS("0.001"),
    EM_REAL(optimiser_options, momentum, .maximum = 0.999999999, .fallback = "0.9",
            .doc = "a, the decay rate of the moving average of gradients"),
    SQUARE_FIELDS("0.999"),
    {0}};

/* ---- the three optimisers ---- */

EM_CLONES static void sgd_gather(int64_t n, double m, const double *restrict g, double *restrict p)
{
    for (int64_t i = 0; i < n; i++)
        p[i] = m * p[i] + g[i];
}

static void sgd_move(em_langevin *s, const em_step_context *context, em_block *block, int64_t k)
{
    const optimiser_options *options = s->base.options;

    (void)k;
    sgd_gather(block->n_chain * block->stride, options->momentum, block->gradient, block->momentum);
    em_langevin_drift(s, context, block, 1);
}

/* Makes a step with h = `mean` times g. */
EM_CLONES static void rmsprop_row(int64_t n, double eps, double mean, double b, double delta,
                                  const double *restrict g, double *restrict v,
                                  double *restrict theta)
{
    for (int64_t i = 0; i < n; i++) {
        const double h = mean * g[i];
        v[i] = b * v[i] + (1 - b) * h * h;
        theta[i] += eps * h / (sqrt(v[i]) + delta);
    }
}

static void rmsprop_move(em_langevin *s, const em_step_context *context, em_block *block, int64_t k)
{
    const optimiser_options *options = s->base.options;
    const int64_t n = block->stride;

    (void)k;
    for (int64_t c = 0; c < block->n_chain; c++)
        rmsprop_row(n, s->eps[c], 1 / em_langevin_observations(context), options->square_decay,
                    options->delta, block->gradient + c * n, block->extra + c * n,
                    block->theta + c * n);
}

typedef struct adam_rates {
    double eps, mean, a, b, delta, of_p, of_v;
} adam_rates;

EM_CLONES static void adam_row(int64_t n, adam_rates r, const double *restrict g,
                               double *restrict p, double *restrict v, double *restrict theta)
{
    for (int64_t i = 0; i < n; i++) {
        const double h = r.mean * g[i];
        p[i] = r.a * p[i] + (1 - r.a) * h;
        v[i] = r.b * v[i] + (1 - r.b) * h * h;
        theta[i] += r.eps * r.of_p * p[i] / (sqrt(r.of_v * v[i]) + r.delta);
    }
}

static void adam_move(em_langevin *s, const em_step_context *context, em_block *block, int64_t k)
{
    const optimiser_options *options = s->base.options;
    const double a = options->momentum, b = options->square_decay;
    const double t = (double)(em_stochastic_step_number(s->options, context, k) + 1);
    adam_rates r = {.mean = 1 / em_langevin_observations(context),
                    .a = a,
                    .b = b,
                    .delta = options->delta,
                    .of_p = 1 / (1 - pow(a, t)),
                    .of_v = 1 / (1 - pow(b, t))};

    for (int64_t c = 0, row = 0; c < block->n_chain; c++, row += block->stride) {
        r.eps = s->eps[c];
        adam_row(block->stride, r, block->gradient + row, block->momentum + row, block->extra + row,
                 block->theta + row);
    }
}

static em_status optimiser_set_up(em_sampler *base, int64_t n_chain, int64_t dim)
{
    ((em_langevin *)base)->after = base->ops == &em_sgd       ? sgd_move
                                   : base->ops == &em_rmsprop ? rmsprop_move
                                                              : adam_move;
    return em_langevin_set_up(base, n_chain, dim);
}

#define OPTIMISER_OPS                                                                              \
    .size = sizeof(em_langevin), .options_size = sizeof(optimiser_options),                        \
    .set_up = optimiser_set_up, .step = em_langevin_step, .optimises = true, EM_LANGEVIN_OPS

const em_sampler_ops em_sgd = {
    .name = "sgd",
    .doc = "stochastic gradient descent with momentum: a baseline, not a sampler (its spread "
           "vanishes with step_size)",
    .source = "Robbins & Monro 1951; Polyak 1964; baseline of Li et al. 2016",
    OPTIMISER_OPS,
    .fields = sgd_fields,
};

const em_sampler_ops em_rmsprop = {
    .name = "rmsprop",
    .doc = "gradient descent with gradients divided by their moving root mean square: a baseline, "
           "not a sampler",
    .source = "Tieleman & Hinton 2012; baseline of Li et al. 2016",
    OPTIMISER_OPS,
    .fields = rmsprop_fields,
    .n_extra = em_stochastic_extra_row,
};

const em_sampler_ops em_adam = {
    .name = "adam",
    .doc = "gradient descent by moving averages of gradients and their squares: a baseline, not a "
           "sampler",
    .source = "Kingma & Ba 2015",
    OPTIMISER_OPS,
    .fields = adam_fields,
    .n_extra = em_stochastic_extra_row,
};
