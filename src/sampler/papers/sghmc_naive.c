/*
 * Naive stochastic gradient HMC (EQUATIONS 6): HMC whose gradients g ~ grad log p = -grad U come
 * from minibatches, a fresh one for each evaluation, without friction. With W = M^-1:
 *
 *     p ~ N(0, M);  p <- p + eps/2 g(theta)
 *     L times: theta <- theta + eps W p, p <- p + eps g(theta), the last kick by eps/2
 *
 * With Metropolis-Hastings on the energy of all data, H = -log p(theta) + p^T W p / 2, the chain is
 * exact, because the minibatches are auxiliary variables whose law a reversal does not change; it
 * is only inefficient, with one pass over all data per iteration. Otherwise minibatch noise heats
 * it: cov(p) becomes M + (L - 1/2) eps^2 V at the end of a short trajectory. L is fixed, or drawn
 * uniformly from 1 .. 2 leapfrog_steps - 1 and shared by all chains, as in hmc. Energies and lp are
 * those of all data with Metropolis-Hastings, else estimates from the minibatches.
 */
#include "sampler/hamiltonian/hamiltonian.h"
#include "sampler/stochastic/langevin.h"

#include "base/memory.h"

#include <math.h>
#include <string.h>

typedef struct naive_options {
    em_stochastic_options stochastic;
    bool metropolis, jitter;
} naive_options;

static const em_field fields[] = {EM_STOCHASTIC_FIELDS("0.01"),
                                  EM_BOOL(naive_options, metropolis, .fallback = "true",
                                          .doc = "accept or reject by the energy of all data; "
                                                 "false: as printed, heated by O(step_size)"),
                                  EM_JITTER_FIELD(naive_options),
                                  {0}};

static const em_stat stats[] = {
    EM_STAT_LP,        EM_STAT_ACCEPTANCE_RATE, EM_STAT_STEP_SIZE,    EM_STAT_N_STEPS,
    EM_STAT_DIVERGING, EM_STAT_ENERGY,          EM_STAT_ENERGY_ERROR, EM_STAT_COUNT};

typedef struct naive_sampler {
    em_langevin langevin;
    const naive_options *options;
    double *gradient_before;   /* [n_chain][stride] */
    double *kinetic, *initial; /* [n_chain] */
} naive_sampler;

/* Checks that the minibatches of a trajectory are as likely in the reverse order, given all earlier
 * ones. */
static em_status sghmc_naive_check(const naive_options *options)
{
    return options->stochastic.minibatch_order == EM_MINIBATCH_DRAWN
               ? EM_OK
               : em_fail(EM_ECONFIG, "sampler.minibatch_order: found epoch, expected drawn: "
                                     "sghmc_naive is exact only with independent minibatches");
}

static em_status sghmc_naive_set_up(em_sampler *base, int64_t n_chain, int64_t dim)
{
    naive_sampler *s = (naive_sampler *)base;
    const int64_t panel = n_chain * em_stride(dim);
    em_status status = sghmc_naive_check(base->options);

    s->options = base->options;
    status = status ? status : em_langevin_set_up(base, n_chain, dim);
    return status ? status
                  : em_own_all(&base->memory, EM_ARRAY(s->gradient_before, panel),
                               EM_ARRAY(s->kinetic, n_chain), EM_ARRAY(s->initial, n_chain));
}

/* Computes gradient k of the iteration, of at most 2 leapfrog_steps. */
static em_status sghmc_naive_gradient(const naive_sampler *s, const em_step_context *context,
                                      em_block *block, int64_t k)
{
    const em_stochastic_options *options = &s->options->stochastic;

    return em_stochastic_evaluate(options, context, 2 * options->leapfrog_steps, k,
                                  em_block_query(block));
}

static void sghmc_naive_kick(naive_sampler *s, em_block *block, double fraction)
{
    em_langevin_add(&s->langevin, block, fraction, block->gradient, block->momentum);
}

static void sghmc_naive_kinetic_energy(naive_sampler *s, const em_step_context *context,
                                       const em_block *block)
{
    em_mass_velocity(context->mass, block->n_chain, block->momentum, s->langevin.velocity);
    em_kinetic_energy(block->n_chain, block->dim, block->stride, block->momentum,
                      s->langevin.velocity, s->kinetic);
}

/* Computes H_0 from the log density of all data or of the first minibatch. */
static void sghmc_naive_mark_energy(naive_sampler *s, const em_block *block)
{
    const double *log_density =
        s->options->metropolis ? s->langevin.log_density_before : block->log_density;

    for (int64_t c = 0; c < block->n_chain; c++)
        s->initial[c] = s->kinetic[c] - log_density[c];
}

static em_status sghmc_naive_trajectory(naive_sampler *s, const em_step_context *context,
                                        em_block *block, int64_t n_step)
{
    em_status status = sghmc_naive_gradient(s, context, block, 0);

    sghmc_naive_mark_energy(s, block);
    sghmc_naive_kick(s, block, 0.5);
    for (int64_t k = 1; !status && k <= n_step; k++) {
        em_langevin_drift(&s->langevin, context, block, 1);
        status = sghmc_naive_gradient(s, context, block, k);
        sghmc_naive_kick(s, block, k < n_step ? 1 : 0.5);
    }
    if (!status && s->options->metropolis)
        status = em_block_evaluate(context->posterior, block);
    sghmc_naive_kinetic_energy(s, context, block);
    return status;
}

static bool sghmc_naive_accepts(const naive_sampler *s, const em_step_context *context,
                                const em_block *block, int64_t c, double error)
{
    const em_stream stream = em_chain_stream(context, block, c, EM_RNG_ACCEPT);

    return isfinite(error) && (!s->options->metropolis || log(em_uniform(&stream, 0)) < -error);
}

/* Restores the start of a chain's trajectory, with the momentum drawn there. */
static void sghmc_naive_put_back(const naive_sampler *s, em_block *block, int64_t c)
{
    const int64_t row = c * block->stride;
    const size_t bytes = (size_t)block->stride * sizeof(double);

    memcpy(block->theta + row, s->langevin.theta_before + row, bytes);
    memcpy(block->momentum + row, s->langevin.momentum_before + row, bytes);
    memcpy(block->gradient + row, s->gradient_before + row, bytes);
    block->log_density[c] = s->langevin.log_density_before[c];
}

static void sghmc_naive_resolve(const naive_sampler *s, const em_step_context *context,
                                em_block *block, int64_t c)
{
    const double difference = s->kinetic[c] - block->log_density[c] - s->initial[c];
    const double error = isfinite(difference) ? difference : INFINITY;
    const bool accept = sghmc_naive_accepts(s, context, block, c, error);
    const bool metropolis = s->options->metropolis;

    if (!accept)
        sghmc_naive_put_back(s, block, c);
    em_stochastic_report(&s->options->stochastic, context, block, c,
                         metropolis ? !(error < EM_DIVERGENCE_LIMIT) : !accept);
    block->acceptance[c] = block->stat[EM_STAT_ACCEPTANCE_RATE][c] =
        metropolis ? fmin(1, exp(-error)) : accept;
    block->stat[EM_STAT_ENERGY][c] = s->initial[c] + (accept ? error : 0);
    block->stat[EM_STAT_ENERGY_ERROR][c] = error;
}

static em_status sghmc_naive_step(em_sampler *base, const em_step_context *context, em_block *block)
{
    naive_sampler *s = (naive_sampler *)base;
    const int64_t n_step =
        em_draw_length(context, s->options->stochastic.leapfrog_steps, s->options->jitter);

    em_langevin_refresh(&s->langevin, context, block);
    em_langevin_begin(&s->langevin, context, block, 0);
    memcpy(s->gradient_before, block->gradient,
           (size_t)(block->n_chain * block->stride) * sizeof(double));
    sghmc_naive_kinetic_energy(s, context, block);
    em_status status = sghmc_naive_trajectory(s, context, block, n_step);
    for (int64_t c = 0; !status && c < block->n_chain; c++) {
        sghmc_naive_resolve(s, context, block, c);
        block->n_step[c] = block->stat[EM_STAT_N_STEPS][c] = (double)n_step;
    }
    return status;
}

const em_sampler_ops em_sghmc_naive = {
    .name = "sghmc_naive",
    .doc = "HMC with minibatch gradients and no friction, with or without Metropolis-Hastings on "
           "all data",
    .source = "Chen, Fox & Guestrin 2014, section 3.1; Ma, Chen & Fox 2015, eq. 11",
    .size = sizeof(naive_sampler),
    .options_size = sizeof(naive_options),
    .fields = fields,
    .stats = stats,
    .set_up = sghmc_naive_set_up,
    .release = em_langevin_release,
    .step = sghmc_naive_step,
    .minibatches = true,
};
