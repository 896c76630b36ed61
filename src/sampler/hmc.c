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
#include "sampler/sampler.h"

#include <math.h>
#include <string.h>

/* An energy error beyond which a trajectory is called divergent, as in Stan. */
static const double divergence_limit = 1000;

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
    /* The trajectory: panels [n_chain][stride] and vectors [n_chain]. */
    double *theta, *momentum, *velocity, *gradient, *fresh;
    double *log_density, *kinetic, *initial_energy;
} hmc_sampler;

static void hmc_destroy(em_sampler *base)
{
    hmc_sampler *s = (hmc_sampler *)base;

    if (s)
        em_release(&s->theta);
    em_release(&s);
}

static em_status hmc_create(const void *options, int64_t n_chain, int64_t dim, em_sampler **out)
{
    const int64_t panel = n_chain * em_stride(dim), vector = em_stride(n_chain);
    hmc_sampler *s = NULL;
    em_status status = em_allocate(1, sizeof *s, &s);

    *out = NULL;
    if (!status)
        status = em_allocate(5 * panel + 3 * vector, sizeof(double), &s->theta);
    if (status) {
        hmc_destroy((em_sampler *)s);
        return status;
    }
    s->base.ops = &em_hmc;
    s->options = options;
    s->momentum = s->theta + panel;
    s->velocity = s->momentum + panel;
    s->gradient = s->velocity + panel;
    s->fresh = s->gradient + panel;
    s->log_density = s->fresh + panel;
    s->kinetic = s->log_density + vector;
    s->initial_energy = s->kinetic + vector;
    *out = &s->base;
    return EM_OK;
}

/* p ~ N(0, M), and H_0 where the chains stand. */
static void refresh(hmc_sampler *s, const em_step_context *context, const em_block *block)
{
    for (int64_t c = 0; c < block->n_chain; c++) {
        const em_stream stream = {context->seed, (uint64_t)(block->first_chain + c),
                                  (uint64_t)context->iteration, EM_RNG_MOMENTUM};
        double *z = s->velocity + c * block->stride;
        em_normals(&stream, block->dim, z);
        memset(z + block->dim, 0, (size_t)(block->stride - block->dim) * sizeof *z);
    }
    em_mass_momentum(context->mass, block->n_chain, s->velocity, s->fresh);
    em_mass_velocity(context->mass, block->n_chain, s->fresh, s->velocity);
    em_kinetic_energy(block->n_chain, block->dim, block->stride, s->fresh, s->velocity, s->kinetic);
    for (int64_t c = 0; c < block->n_chain; c++)
        s->initial_energy[c] = s->kinetic[c] - block->log_density[c];
}

/* p <- p + fraction eps g */
static void kick(hmc_sampler *s, const em_step_context *context, const em_block *block,
                 double fraction)
{
    for (int64_t c = 0; c < block->n_chain; c++) {
        const double eps = fraction * context->step_size[c];
        double *p = s->momentum + c * block->stride;
        const double *g = s->gradient + c * block->stride;
        for (int64_t i = 0; i < block->stride; i++)
            p[i] += eps * g[i];
    }
}

/* theta <- theta + eps W p */
static void drift(hmc_sampler *s, const em_step_context *context, const em_block *block)
{
    em_mass_velocity(context->mass, block->n_chain, s->momentum, s->velocity);
    for (int64_t c = 0; c < block->n_chain; c++) {
        const double eps = context->step_size[c];
        double *theta = s->theta + c * block->stride;
        const double *v = s->velocity + c * block->stride;
        for (int64_t i = 0; i < block->stride; i++)
            theta[i] += eps * v[i];
    }
}

static em_status trajectory(hmc_sampler *s, const em_step_context *context, const em_block *block,
                            int64_t n_step)
{
    const size_t panel = (size_t)(block->n_chain * block->stride) * sizeof(double);

    memcpy(s->theta, block->theta, panel);
    memcpy(s->gradient, block->gradient, panel);
    memcpy(s->momentum, s->fresh, panel);
    kick(s, context, block, 0.5);
    for (int64_t step = 1; step <= n_step; step++) {
        drift(s, context, block);
        em_status status = em_target_evaluate(context->target, block->n_chain, s->theta,
                                              s->log_density, s->gradient);
        if (status < 0)
            return status;
        kick(s, context, block, step < n_step ? 1 : 0.5);
    }
    em_mass_velocity(context->mass, block->n_chain, s->momentum, s->velocity);
    em_kinetic_energy(block->n_chain, block->dim, block->stride, s->momentum, s->velocity,
                      s->kinetic);
    return EM_OK;
}

/* H_L - H_0; plus infinity where it is not finite. */
static double energy_error(const hmc_sampler *s, int64_t c)
{
    const double error = s->kinetic[c] - s->log_density[c] - s->initial_energy[c];
    return isfinite(error) ? error : INFINITY;
}

static void copy_row(const em_block *block, int64_t c, const double *from, double *to)
{
    memcpy(to + c * block->stride, from + c * block->stride, (size_t)block->stride * sizeof *to);
}

/* Metropolis-Hastings for one chain. */
static void resolve(hmc_sampler *s, const em_step_context *context, em_block *block, int64_t c)
{
    const em_stream stream = {context->seed, (uint64_t)(block->first_chain + c),
                              (uint64_t)context->iteration, EM_RNG_ACCEPT};
    const double error = energy_error(s, c);
    const bool accept = isfinite(error) && log(em_uniform(&stream, 0)) < -error;

    copy_row(block, c, accept ? s->momentum : s->fresh, block->momentum);
    if (accept) {
        copy_row(block, c, s->theta, block->theta);
        copy_row(block, c, s->gradient, block->gradient);
        block->log_density[c] = s->log_density[c];
    }
    block->stat[EM_STAT_LP][c] = block->log_density[c];
    block->stat[EM_STAT_ACCEPTANCE_RATE][c] = fmin(1, exp(-error));
    block->stat[EM_STAT_DIVERGING][c] = !(error < divergence_limit);
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
    em_status status;

    refresh(s, context, block);
    status = trajectory(s, context, block, n_step);
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
    hmc_sampler *s = (hmc_sampler *)base;
    em_status status;

    refresh(s, context, block);
    status = trajectory(s, context, block, 1);
    for (int64_t c = 0; !status && c < block->n_chain; c++)
        acceptance[c] = fmin(1, exp(-energy_error(s, c)));
    return status;
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
