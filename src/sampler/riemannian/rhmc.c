/*
 * Riemannian manifold Hamiltonian Monte Carlo (EQUATIONS 2): the mass is the model's metric
 * G(theta), with H = -log p + log|G| / 2 + p^T G^-1 p / 2:
 *
 *     p ~ N(0, G(theta));  L steps of the generalised leapfrog of sampler/riemannian/riemann.h;
 *     accept with probability min(1, exp(H_0 - H_L))
 *
 * It is exact if the implicit equations are solved from both ends of each step, to 1e-10; otherwise
 * the move is rejected. A fixed number of rounds, as in the papers, makes the map irreversible,
 * which Metropolis-Hastings does not repair. The number of steps is drawn as in
 * sampler/hamiltonian/hmc.c. The learned mass is not used. At larger steps most rejections are
 * equations without a solution, at the same positions each time; so target_accept is above that of
 * HMC.
 */
#include "base/memory.h"
#include "sampler/hamiltonian/hamiltonian.h"
#include "sampler/riemannian/riemann.h"
#include "sampler/stochastic/stochastic.h"

#include <math.h>
#include <string.h>

typedef struct rhmc_options {
    em_sampler_options common;
    int64_t leapfrog_steps;
    bool jitter;
    em_riemann_options riemann;
} rhmc_options;

static const em_field fields[] = {EM_SAMPLER_FIELDS_FROM("adapt", "0.95"),
                                  EM_INT(rhmc_options, leapfrog_steps, .minimum = 1, .maximum = 1e6,
                                         .fallback = "10",
                                         .doc = "mean number of leapfrog steps of a trajectory"),
                                  EM_JITTER_FIELD(rhmc_options),
                                  EM_RIEMANN_FIELDS(rhmc_options, riemann),
                                  {0}};

static const em_stat stats[] = {EM_STAT_LP,           EM_STAT_ACCEPTANCE_RATE, EM_STAT_STEP_SIZE,
                                EM_STAT_N_STEPS,      EM_STAT_DIVERGING,       EM_STAT_ENERGY,
                                EM_STAT_ENERGY_ERROR, EM_STAT_INT_TIME,        EM_STAT_COUNT};

typedef struct rhmc_sampler {
    em_sampler base;
    const rhmc_options *options;
    em_riemann *riemann;
    double *fresh; /* [n_chain][stride] momenta drawn */
    double initial_energy;
} rhmc_sampler;

static em_status rhmc_set_up(em_sampler *base, int64_t n_chain, int64_t dim)
{
    rhmc_sampler *s = (rhmc_sampler *)base;
    const int64_t stride = em_stride(dim);

    s->options = base->options;
    const em_status status =
        em_riemann_create(&base->memory, dim, &s->options->riemann, &s->riemann);
    return status ? status : em_own_all(&base->memory, EM_ARRAY(s->fresh, n_chain * stride));
}

static double rhmc_energy(const rhmc_sampler *s)
{
    return -s->riemann->log_density + s->riemann->half_log_determinant +
           em_riemann_kinetic(s->riemann);
}

/* Puts chain c at the start of a trajectory with p ~ N(0, G), by the normals in `fresh`. If G is
 * not positive definite, there is no such momentum. The energy is then that of the position alone,
 * because the stored factor is of another position or chain. */
static em_status rhmc_start(rhmc_sampler *s, const em_step_context *context, const em_block *block,
                            int64_t c)
{
    const int64_t row = c * block->stride;
    const size_t bytes = (size_t)block->stride * sizeof(double);
    em_status status = em_riemann_set_position(s->riemann, context->posterior, block->chain[c],
                                               block->theta + row);

    em_riemann_take_state(s->riemann, block, c);
    memset(s->riemann->momentum, 0, bytes);
    s->initial_energy = -block->log_density[c];
    if (!status) {
        em_riemann_add_noise(s->riemann, 1, s->fresh + row, s->riemann->momentum);
        s->initial_energy = rhmc_energy(s);
    }
    memcpy(s->fresh + row, s->riemann->momentum, bytes);
    return status;
}

/* Makes one generalised leapfrog step. */
static em_status rhmc_leap(rhmc_sampler *s, const em_step_context *context, const em_block *block,
                           int64_t c)
{
    const em_query here = em_riemann_query(s->riemann, block, c);
    em_status status = em_riemann_advance(s->riemann, context->step_size[c]);

    status = status ? status : em_posterior_evaluate(context->posterior, &here);
    return status ? status : em_riemann_finish(s->riemann, context->step_size[c]);
}

/* H_L - H_0 of a trajectory of chain c; infinity if it is not finite or an equation could not be
 * solved. */
static em_status rhmc_trajectory(rhmc_sampler *s, const em_step_context *context,
                                 const em_block *block, int64_t c, int64_t n_step, double *error)
{
    em_status status = rhmc_start(s, context, block, c);

    for (int64_t k = 0; !status && k < n_step; k++)
        status = rhmc_leap(s, context, block, c);
    *error = status ? INFINITY : rhmc_energy(s) - s->initial_energy;
    if (!isfinite(*error))
        *error = INFINITY;
    return status < 0 ? status : EM_OK;
}

/* Accepts or rejects the trajectory of one chain (Metropolis-Hastings). */
static void rhmc_resolve(rhmc_sampler *s, const em_step_context *context, em_block *block,
                         int64_t c, double error)
{
    const em_stream stream = em_chain_stream(context, block, c, EM_RNG_ACCEPT);
    const bool accept = isfinite(error) && log(em_uniform(&stream, 0)) < -error;
    const int64_t row = c * block->stride;

    if (accept)
        em_riemann_put_state(s->riemann, block, c);
    else
        em_copy_row(block->stride, s->fresh + row, block->momentum + row);
    block->acceptance[c] = block->stat[EM_STAT_ACCEPTANCE_RATE][c] = fmin(1, exp(-error));
    block->stat[EM_STAT_DIVERGING][c] = !(error < EM_DIVERGENCE_LIMIT);
    block->stat[EM_STAT_ENERGY][c] = s->initial_energy + (accept ? error : 0);
    block->stat[EM_STAT_ENERGY_ERROR][c] = error;
}

static em_status rhmc_step(em_sampler *base, const em_step_context *context, em_block *block)
{
    rhmc_sampler *s = (rhmc_sampler *)base;
    const int64_t n_step = em_draw_length(context, s->options->leapfrog_steps, s->options->jitter);
    em_status status = EM_OK;
    double error;

    em_stochastic_normals(context, block, EM_RNG_MOMENTUM, context->iteration, s->fresh);
    for (int64_t c = 0; !status && c < block->n_chain; c++) {
        status = rhmc_trajectory(s, context, block, c, n_step, &error);
        rhmc_resolve(s, context, block, c, error);
        em_block_record_steps(block, c, context->step_size[c], (double)n_step);
    }
    return status;
}

static em_status rhmc_probe(em_sampler *base, const em_step_context *context, const em_block *block,
                            double *acceptance)
{
    rhmc_sampler *s = (rhmc_sampler *)base;
    em_status status = EM_OK;
    double error;

    em_stochastic_normals(context, block, EM_RNG_MOMENTUM, context->iteration, s->fresh);
    for (int64_t c = 0; !status && c < block->n_chain; c++) {
        status = rhmc_trajectory(s, context, block, c, 1, &error);
        acceptance[c] = fmin(1, exp(-error));
    }
    return status;
}

const em_sampler_ops em_rhmc = {
    .name = "rhmc",
    .doc = "Riemannian HMC: the model's metric as a mass that depends on position",
    .source = "Girolami & Calderhead 2011, section 6; Roychowdhury & Parthasarathy 2017, eq 2",
    .size = sizeof(rhmc_sampler),
    .options_size = sizeof(rhmc_options),
    .fields = fields,
    .stats = stats,
    .set_up = rhmc_set_up,
    .step = rhmc_step,
    .metric = em_riemann_metric_of,
    .probe = rhmc_probe,
};
