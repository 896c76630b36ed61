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
 * in step t = 1, 2, ..., from p = v = 0. Where they settle, the only spread is that of minibatch
 * noise, which vanishes with eps. The learning rate of a loss that is a mean over observations is N
 * eps for sgd, and eps for the others, which do not use the mass.
 */
#include "base/memory.h"
#include "sampler/langevin.h"

#include <math.h>

extern const em_sampler_ops em_sgd, em_rmsprop, em_adam;

typedef struct optimiser_options {
    em_stochastic_options stochastic;
    double momentum, square_decay, delta;
} optimiser_options;

#define SQUARE_FIELDS(b)                                                                           \
    EM_REAL(optimiser_options, square_decay, .maximum = 0.999999999, .fallback = b,                \
            .doc = "b of the moving average of squared gradients"),                                \
        EM_REAL(optimiser_options, delta, .minimum = 1e-300, .maximum = 1e300, .fallback = "1e-8", \
                .doc = "what is added to its root")

static const em_field sgd_fields[] = {EM_STOCHASTIC_FIELDS("0.001"),
                                      EM_REAL(optimiser_options, momentum, .maximum = 0.999999999,
                                              .fallback = "0",
                                              .doc = "m, what is kept of the last step"),
                                      {0}};

static const em_field rmsprop_fields[] = {
    EM_STOCHASTIC_FIELDS("0.001"), SQUARE_FIELDS("0.99"), {0}};

static const em_field adam_fields[] = {EM_STOCHASTIC_FIELDS("0.001"),
                                       EM_REAL(optimiser_options, momentum, .maximum = 0.999999999,
                                               .fallback = "0.9",
                                               .doc = "a of the moving average of gradients"),
                                       SQUARE_FIELDS("0.999"),
                                       {0}};

typedef struct optimiser optimiser;

/* What is done with the gradient of step t, for all chains of the block. */
typedef void mover(optimiser *s, const em_step_context *context, em_block *block, int64_t t);

struct optimiser {
    em_langevin langevin;
    const optimiser_options *options;
    mover *move;
};

static em_status optimiser_create(const em_sampler_ops *ops, mover *move, const void *options,
                                  int64_t n_chain, int64_t dim, em_sampler **out)
{
    em_langevin *s = NULL;
    em_status status = em_langevin_create(ops, options, sizeof(optimiser), n_chain, dim, &s);

    *out = (em_sampler *)s;
    if (status)
        return status;
    ((optimiser *)s)->options = options;
    ((optimiser *)s)->move = move;
    if (ops->n_extra)
        status = em_langevin_keep_extra(s, n_chain, ops->n_extra(options, dim));
    if (status) {
        em_langevin_destroy(*out);
        *out = NULL;
    }
    return status;
}

static em_status optimiser_step(em_sampler *base, const em_step_context *context, em_block *block)
{
    optimiser *s = (optimiser *)base;
    const int64_t n_step = s->langevin.options->leapfrog_steps;
    em_status status = EM_OK;

    em_langevin_begin(&s->langevin, context, block);
    for (int64_t k = 0; !status && k < n_step; k++) {
        status = em_langevin_gradient(&s->langevin, context, block, k);
        s->move(s, context, block, context->iteration * n_step + k + 1);
    }
    em_langevin_end(&s->langevin, context, block);
    return status;
}

/* v, in rows that line up with the panels */
static int64_t optimiser_squares(const void *options, int64_t dim)
{
    (void)options;
    return em_stride(dim);
}

/* ---- the three ---- */

static void sgd_move(optimiser *s, const em_step_context *context, em_block *block, int64_t t)
{
    const double m = s->options->momentum;

    (void)t;
    for (int64_t i = 0; i < block->n_chain * block->stride; i++)
        block->momentum[i] = m * block->momentum[i] + block->gradient[i];
    em_langevin_drift(&s->langevin, context, block, 1);
}

static void rmsprop_move(optimiser *s, const em_step_context *context, em_block *block, int64_t t)
{
    const double b = s->options->square_decay, delta = s->options->delta;
    const double mean = 1 / em_langevin_observations(context);

    (void)t;
    for (int64_t c = 0; c < block->n_chain; c++)
        for (int64_t i = c * block->stride; i < (c + 1) * block->stride; i++) {
            const double h = mean * block->gradient[i];
            block->extra[i] = b * block->extra[i] + (1 - b) * h * h;
            block->theta[i] += s->langevin.eps[c] * h / (sqrt(block->extra[i]) + delta);
        }
}

static void adam_move(optimiser *s, const em_step_context *context, em_block *block, int64_t t)
{
    const double a = s->options->momentum, b = s->options->square_decay, delta = s->options->delta;
    const double mean = 1 / em_langevin_observations(context);
    const double of_p = 1 / (1 - pow(a, (double)t)), of_v = 1 / (1 - pow(b, (double)t));

    for (int64_t c = 0; c < block->n_chain; c++) {
        const double eps = s->langevin.eps[c];
        for (int64_t i = c * block->stride; i < (c + 1) * block->stride; i++) {
            const double h = mean * block->gradient[i];
            block->momentum[i] = a * block->momentum[i] + (1 - a) * h;
            block->extra[i] = b * block->extra[i] + (1 - b) * h * h;
            block->theta[i] +=
                eps * of_p * block->momentum[i] / (sqrt(of_v * block->extra[i]) + delta);
        }
    }
}

static em_status sgd_create(const void *options, int64_t n_chain, int64_t dim, em_sampler **out)
{
    return optimiser_create(&em_sgd, sgd_move, options, n_chain, dim, out);
}

static em_status rmsprop_create(const void *options, int64_t n_chain, int64_t dim, em_sampler **out)
{
    return optimiser_create(&em_rmsprop, rmsprop_move, options, n_chain, dim, out);
}

static em_status adam_create(const void *options, int64_t n_chain, int64_t dim, em_sampler **out)
{
    return optimiser_create(&em_adam, adam_move, options, n_chain, dim, out);
}

const em_sampler_ops em_sgd = {
    .name = "sgd",
    .doc = "stochastic gradient descent with momentum: a baseline, not a sampler (its spread "
           "vanishes with step_size)",
    .source = "Robbins & Monro 1951; Polyak 1964; baseline of Li et al. 2016",
    .options_size = sizeof(optimiser_options),
    .fields = sgd_fields,
    .stats = em_stochastic_stats,
    .create = sgd_create,
    .destroy = em_langevin_destroy,
    .step = optimiser_step,
    .minibatches = true,
    .optimises = true,
};

const em_sampler_ops em_rmsprop = {
    .name = "rmsprop",
    .doc = "gradient descent in units of the root of the mean squared gradient: a baseline, not a "
           "sampler",
    .source = "Tieleman & Hinton 2012; baseline of Li et al. 2016",
    .options_size = sizeof(optimiser_options),
    .fields = rmsprop_fields,
    .stats = em_stochastic_stats,
    .create = rmsprop_create,
    .destroy = em_langevin_destroy,
    .step = optimiser_step,
    .minibatches = true,
    .optimises = true,
    .n_extra = optimiser_squares,
};

const em_sampler_ops em_adam = {
    .name = "adam",
    .doc = "gradient descent by moving averages of gradients and their squares: a baseline, not a "
           "sampler",
    .source = "Kingma & Ba 2015",
    .options_size = sizeof(optimiser_options),
    .fields = adam_fields,
    .stats = em_stochastic_stats,
    .create = adam_create,
    .destroy = em_langevin_destroy,
    .step = optimiser_step,
    .minibatches = true,
    .optimises = true,
    .n_extra = optimiser_squares,
};
