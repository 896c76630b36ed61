/*
 * Hamiltonian Monte Carlo with leapfrog and Metropolis-Hastings (EQUATIONS 1), for a block of
 * chains in lockstep. With g = grad log p = -grad U and W = M^-1:
 *
 *     p ~ N(0, M)
 *     p <- p + eps/2 g(theta);  L times: theta <- theta + eps W p, p <- p + eps g(theta), the last
 *     kick by eps/2;  accept with probability min(1, exp(H_0 - H_L)),  H = -log p(theta) + p^T W
 * p/2
 *
 * L is drawn uniformly from 1 .. 2 leapfrog_steps - 1, because a fixed eps L can be resonant; the
 * draw is shared by all chains, so that they stay in step, and independent of their states, so that
 * each is an HMC chain of its own. The momentum left in the block is the one of the accepted point,
 * or the fresh one where the move was rejected: what Algorithm 1 of Roychowdhury & Parthasarathy
 * stores.
 */
#include "base/memory.h"
#include "math/rng.h"
#include "sampler/hamiltonian.h"

#include <math.h>
#include <string.h>

extern const em_sampler_ops em_hmc;

typedef struct hmc_options {
    em_sampler_options common;
    int64_t leapfrog_steps;
    bool jitter;
} hmc_options;

static const em_field fields[] = {
    EM_SAMPLER_FIELDS,
    {"leapfrog_steps", EM_FIELD_INT, offsetof(hmc_options, leapfrog_steps), 1, 1e6, "10", NULL,
     NULL, "mean number of leapfrog steps of a trajectory"},
    {"jitter", EM_FIELD_BOOL, offsetof(hmc_options, jitter), 0, 0, "true", NULL, NULL,
     "draw the number of steps uniformly from 1 to 2 leapfrog_steps - 1"},
    {NULL, EM_FIELD_BOOL, 0, 0, 0, NULL, NULL, NULL, NULL}};

static const em_stat stats[] = {EM_STAT_LP,           EM_STAT_ACCEPTANCE_RATE, EM_STAT_STEP_SIZE,
                                EM_STAT_N_STEPS,      EM_STAT_DIVERGING,       EM_STAT_ENERGY,
                                EM_STAT_ENERGY_ERROR, EM_STAT_INT_TIME,        EM_STAT_COUNT};

typedef struct hmc_sampler {
    em_sampler base;
    const hmc_options *options;
    em_points points;       /* of the trajectories, one row for each chain */
    double *fresh;          /* [n_chain][stride] the momenta they began with */
    double *initial_energy; /* [n_chain] */
} hmc_sampler;

static void hmc_destroy(em_sampler *base)
{
    hmc_sampler *s = (hmc_sampler *)base;

    if (s) {
        em_points_release(&s->points);
        em_release(&s->fresh);
        em_release(&s->initial_energy);
    }
    em_release(&s);
}

static em_status hmc_create(const void *options, int64_t n_chain, int64_t dim, em_sampler **out)
{
    hmc_sampler *s = NULL;
    em_status status = em_allocate(1, sizeof *s, &s);

    *out = NULL;
    if (!status)
        status = em_points_create(n_chain, dim, &s->points);
    if (!status)
        status = em_allocate(n_chain * em_stride(dim), sizeof(double), &s->fresh);
    if (!status)
        status = em_allocate(n_chain, sizeof(double), &s->initial_energy);
    if (status) {
        hmc_destroy((em_sampler *)s);
        return status;
    }
    s->base.ops = &em_hmc;
    s->options = options;
    *out = &s->base;
    return EM_OK;
}

/* n_step leapfrog steps from where the chains stand, with fresh momenta. */
static em_status trajectory(hmc_sampler *s, const em_step_context *context, const em_block *block,
                            int64_t n_step)
{
    const int64_t n = block->n_chain;
    em_status status = EM_OK;

    em_hamiltonian_refresh(context, block, &s->points);
    memcpy(s->fresh, s->points.momentum, (size_t)(n * block->stride) * sizeof(double));
    for (int64_t c = 0; c < n; c++)
        s->initial_energy[c] = em_hamiltonian_energy(&s->points, c);
    for (int64_t step = 0; status >= 0 && step < n_step; step++)
        status =
            em_hamiltonian_leap(context->target, n, context->mass, context->step_size, &s->points);
    return status < 0 ? status : EM_OK;
}

/* Metropolis-Hastings for one chain. */
static void resolve(hmc_sampler *s, const em_step_context *context, em_block *block, int64_t c)
{
    const em_stream stream = {context->seed, (uint64_t)(block->first_chain + c),
                              (uint64_t)context->iteration, EM_RNG_ACCEPT};
    const double error = em_hamiltonian_energy(&s->points, c) - s->initial_energy[c];
    const bool accept = log(em_uniform(&stream, 0)) < -error;

    if (accept)
        em_hamiltonian_move(&s->points, c, block, c);
    else
        memcpy(block->momentum + c * block->stride, s->fresh + c * block->stride,
               (size_t)block->stride * sizeof(double));
    block->stat[EM_STAT_LP][c] = block->log_density[c];
    block->stat[EM_STAT_ACCEPTANCE_RATE][c] = fmin(1, exp(-error));
    block->stat[EM_STAT_DIVERGING][c] = !(error < EM_DIVERGENCE_LIMIT);
    block->stat[EM_STAT_ENERGY][c] = s->initial_energy[c] + (accept ? error : 0);
    block->stat[EM_STAT_ENERGY_ERROR][c] = error;
}

static int64_t draw_length(const hmc_options *options, const em_step_context *context)
{
    const em_stream stream = {context->seed, EM_ALL_CHAINS, (uint64_t)context->iteration,
                              EM_RNG_TRAJECTORY};

    if (!options->jitter)
        return options->leapfrog_steps;
    return 1 + (int64_t)em_uniform_below(&stream, 0, (uint64_t)(2 * options->leapfrog_steps - 1));
}

static em_status hmc_step(em_sampler *base, const em_step_context *context, em_block *block)
{
    hmc_sampler *s = (hmc_sampler *)base;
    const int64_t n_step = draw_length(s->options, context);
    em_status status = trajectory(s, context, block, n_step);

    for (int64_t c = 0; !status && c < block->n_chain; c++) {
        resolve(s, context, block, c);
        block->stat[EM_STAT_STEP_SIZE][c] = context->step_size[c];
        block->stat[EM_STAT_N_STEPS][c] = (double)n_step;
        block->stat[EM_STAT_INT_TIME][c] = (double)n_step * context->step_size[c];
    }
    return status;
}

static em_status hmc_probe(em_sampler *base, const em_step_context *context, const em_block *block,
                           double *acceptance)
{
    return em_hamiltonian_probe(context, block, &((hmc_sampler *)base)->points, acceptance);
}

const em_sampler_ops em_hmc = {
    .name = "hmc",
    .doc = "Hamiltonian Monte Carlo: leapfrog, Metropolis-Hastings, jittered trajectory length",
    .source = "Duane et al. 1987; Neal 2011; HMC-EM: Roychowdhury & Parthasarathy 2017, Alg. 1",
    .options_size = sizeof(hmc_options),
    .fields = fields,
    .stats = stats,
    .create = hmc_create,
    .destroy = hmc_destroy,
    .step = hmc_step,
    .probe = hmc_probe,
};
