/*
 * Hamiltonian Monte Carlo with Metropolis-Hastings (EQUATIONS 1), for a block of chains in
 * lockstep. With g = grad log p = -grad U and W = M^-1:
 *
 *     p ~ N(0, M)
 *     p <- p + eps/2 g(theta);  L times: theta <- theta + eps W p, p <- p + eps g(theta), the last
 *     kick by eps/2;  accept with probability min(1, exp(H_0 - H_L)),  H = -log p(theta) + p^T W
 * p/2
 *
 * By default the length is a time T, learned in warmup in units in which the target is whitened:
 * T_j = T (1 - jitter + 2 jitter u_j) with u_j of the base-2 Halton sequence, L = ceil(T_j / eps)
 * steps (at most 100) of T_j / L; and the initial phase uses NUTS. Where adaptation has found that
 * it pays, the integrator is not leapfrog, but has two or three stages (splitting.h): L is then the
 * number of stages of the trajectory, and eps the mean size of a stage. With leapfrog_steps given,
 * L is drawn uniformly from 1 .. 2 leapfrog_steps - 1, because a fixed eps L can be resonant. T_j
 * or L is the same for all chains, which move in lockstep, and independent of their states, so that
 * each chain is an HMC chain. The momentum left in the block is that of the accepted point, or the
 * fresh one if the move was rejected, as in Algorithm 1 of Roychowdhury & Parthasarathy.
 */
#include "base/memory.h"
#include "math/rng.h"
#include "sampler/hamiltonian/hamiltonian.h"
#include "sampler/hamiltonian/nuts.h"

#include <math.h>
#include <string.h>

static const char *const integrators[] = {"auto", "leapfrog", NULL};

typedef struct hmc_options {
    em_sampler_options common;
    int64_t leapfrog_steps; /* INT64_MIN: the trajectory has a time */
    bool jitter;            /* of leapfrog_steps */
    double time;            /* NaN: learned */
    int integrator;         /* index into `integrators` */
    int64_t max_treedepth;  /* in the initial phase */
} hmc_options;

static const em_field fields[] = {
    EM_SAMPLER_FIELDS_WITH("adapt", "0.8", "3"),
    EM_ROW_AS("trajectory", hmc_options, time, EM_FIELD_REAL, double, .minimum = 1e-6,
              .maximum = 1e6, .fallback = "learned", .word = "learned",
              .doc = "length of a trajectory in standard deviations of the target, or learned"),
    EM_CHOICE(hmc_options, integrator, .fallback = "auto", .choices = integrators,
              .doc =
                  "leapfrog; auto: two or three stages where a learned trajectory gains by them"),
    EM_INT(hmc_options, leapfrog_steps, .minimum = 1, .maximum = 1e6, .fallback = "by trajectory",
           .word = "by trajectory",
           .doc = "mean number of leapfrog steps of a trajectory; replaces the option trajectory"),
    EM_JITTER_FIELD(hmc_options),
    EM_NUTS_FIELD(hmc_options, max_treedepth),
    {0}};

/* The statistics of hmc are those of trees, so that it may be replaced by NUTS. The depth is 0 if
 * there are no trees. */
static const em_stat stats[] = {EM_TREE_STATS, EM_STAT_INT_TIME, EM_STAT_COUNT};

typedef struct hmc_sampler {
    em_sampler base;
    const hmc_options *options;
    em_points points;       /* of the trajectories, one row for each chain */
    double *fresh;          /* [n_chain][stride] the momenta they began with */
    double *initial_energy; /* [n_chain] */
    double *last_energy;    /* [n_chain] at the last point before a failed evaluation */
    int64_t *n_good;        /* [n_chain] number of steps before it */
    em_splitting splitting; /* of a step of theirs */
    double *step;           /* [n_chain] their step sizes, for all stages together */
    em_nuts_options initial_options;
    em_sampler *initial; /* NUTS; NULL: the number of steps is given */
} hmc_sampler;

static bool hmc_has_time(const hmc_options *options)
{
    return options->leapfrog_steps == INT64_MIN;
}

static void hmc_release(em_sampler *base)
{
    em_sampler_destroy(&((hmc_sampler *)base)->initial);
}

static em_status hmc_set_up(em_sampler *base, int64_t n_chain, int64_t dim)
{
    hmc_sampler *s = (hmc_sampler *)base;
    em_status status = em_points_create(&base->memory, n_chain, dim, &s->points);

    s->options = base->options;
    if (!status)
        status = em_own_all(&base->memory, EM_ARRAY(s->fresh, n_chain * em_stride(dim)),
                            EM_ARRAY(s->initial_energy, n_chain), EM_ARRAY(s->last_energy, n_chain),
                            EM_ARRAY(s->n_good, n_chain), EM_ARRAY(s->step, n_chain));
    if (status || !hmc_has_time(s->options))
        return status;
    s->initial_options = (em_nuts_options){s->options->common, s->options->max_treedepth};
    return em_sampler_create(&em_nuts, &s->initial_options, n_chain, dim, &s->initial);
}

/* Records, after `step` stages, the chains whose evaluations failed for the first time. The energy
 * is that of the trajectory only where a step `is_complete`. */
static void hmc_note_failures(hmc_sampler *s, em_posterior *posterior, em_block *block,
                              int64_t step, bool is_complete)
{
    for (int64_t c = 0; c < block->n_chain; c++) {
        if (block->failed[c])
            continue;
        block->failed[c] = em_hamiltonian_failed(posterior, &s->points, c);
        if (!block->failed[c] && is_complete)
            s->last_energy[c] = em_hamiltonian_energy(&s->points, c);
        s->n_good[c] = step - block->failed[c];
    }
}

/* Makes steps of n_stage stages together from the positions of the chains with new momenta. */
static em_status hmc_trajectory(hmc_sampler *s, const em_step_context *context, em_block *block,
                                int64_t n_stage)
{
    const int64_t n = block->n_chain;
    const int each = s->splitting.n_stage;
    const bool may_fail = em_posterior_may_fail(context->posterior);
    em_status status = EM_OK;

    em_hamiltonian_refresh(context, block, &s->points);
    memcpy(s->fresh, s->points.momentum, (size_t)(n * block->stride) * sizeof(double));
    for (int64_t c = 0; c < n; c++) {
        s->initial_energy[c] = s->last_energy[c] = em_hamiltonian_energy(&s->points, c);
        block->failed[c] = false;
    }
    for (int64_t i = 0; status >= 0 && i < n_stage; i++) {
        status = em_hamiltonian_stage(context->posterior, n, context->mass, &s->splitting,
                                      (int)(i % each), s->step, &s->points);
        if (status >= 0 && may_fail)
            hmc_note_failures(s, context->posterior, block, i + 1, (i + 1) % each == 0);
    }
    return status < 0 ? status : EM_OK;
}

/* Accepts or rejects the trajectory of one chain (Metropolis-Hastings). A trajectory with a failed
 * evaluation is rejected. Its acceptance probability, which the step size uses, is that of the last
 * point before the failure. */
static void hmc_resolve(hmc_sampler *s, const em_step_context *context, em_block *block, int64_t c)
{
    const em_stream stream = em_chain_stream(context, block, c, EM_RNG_ACCEPT);
    const bool failed = block->failed[c];
    const double error =
        (failed ? s->last_energy[c] : em_hamiltonian_energy(&s->points, c)) - s->initial_energy[c];
    const bool accept = !failed && log(em_uniform(&stream, 0)) < -error;

    if (accept)
        em_hamiltonian_move(&s->points, c, block, c);
    else
        memcpy(block->momentum + c * block->stride, s->fresh + c * block->stride,
               (size_t)block->stride * sizeof(double));
    block->acceptance[c] = failed && s->n_good[c] == 0 ? 0 : fmin(1, exp(-error));
    block->stat[EM_STAT_ACCEPTANCE_RATE][c] = failed ? 0 : block->acceptance[c];
    block->stat[EM_STAT_DIVERGING][c] = !(error < EM_DIVERGENCE_LIMIT);
    block->stat[EM_STAT_ENERGY][c] = s->initial_energy[c] + (accept ? error : 0);
    block->stat[EM_STAT_ENERGY_ERROR][c] = error;
}

/* Element n of the base-2 Halton sequence: the bits of n, mirrored at the binary point. */
static double hmc_halton(int64_t n)
{
    double x = 0, weight = 0.5;

    for (; n > 0; n >>= 1, weight /= 2)
        x += (double)(n & 1) * weight;
    return x;
}

/* The number of stages of a trajectory of n leapfrog steps, if steps have two or three stages: n,
 * or the next number that is 2, 4 or a multiple of 3. */
static int64_t hmc_n_stage(int64_t n)
{
    return n <= 2 ? 2 : n == 4 ? 4 : 3 * ((em_least(n, EM_MOST_STEPS_OF_TIME - 1) + 2) / 3);
}

/* The number of stages of the trajectories of all chains; leapfrog has one a step. The splitting
 * and the step sizes are written to s. A trajectory time is divided by the step size of the first
 * chain, because all chains then have the same step size. */
static int64_t hmc_plan_stages(hmc_sampler *s, const em_step_context *context, int64_t n_chain)
{
    const em_trajectory *t = &context->trajectory;
    int64_t n_stage = 1;
    int each = 1; /* stages of a step */
    double longest = INFINITY;

    if (hmc_has_time(s->options)) {
        const double time = t->time * (1 - t->jitter + 2 * t->jitter * hmc_halton(t->number));
        const double stage =
            fmin(context->step_size[0], t->multistage ? EM_LONGEST_STAGE : INFINITY);
        n_stage = (int64_t)fmin(fmax(ceil(time / stage - 1e-9), 1), EM_MOST_STEPS_OF_TIME);
        if (t->multistage) {
            n_stage = hmc_n_stage(n_stage);
            each = n_stage % 3 == 0 ? 3 : 2;
        }
        longest = time / (double)n_stage;
    } else
        n_stage = em_draw_length(context, s->options->leapfrog_steps, s->options->jitter);
    for (int64_t c = 0; c < n_chain; c++)
        s->step[c] = each * fmin(context->step_size[c], longest);
    s->splitting = each == 1 ? em_leapfrog : em_splitting_create(each, s->step[0]);
    return n_stage;
}

static em_status hmc_step(em_sampler *base, const em_step_context *context, em_block *block)
{
    hmc_sampler *s = (hmc_sampler *)base;

    if (s->initial && context->trajectory.kind != EM_TRAJECTORY_TIME)
        return em_nuts.step(s->initial, context, block);
    const int64_t n_stage = hmc_plan_stages(s, context, block->n_chain);
    em_status status = hmc_trajectory(s, context, block, n_stage);
    for (int64_t c = 0; !status && c < block->n_chain; c++) {
        hmc_resolve(s, context, block, c);
        em_block_record_steps(block, c, s->step[c] / s->splitting.n_stage, (double)n_stage);
        block->stat[EM_STAT_TREE_DEPTH][c] = block->stat[EM_STAT_REACHED_MAX_TREEDEPTH][c] = 0;
    }
    return status;
}

static em_trajectory hmc_kind_of_trajectory(const void *options)
{
    const hmc_options *o = options;

    if (!hmc_has_time(o))
        return (em_trajectory){.kind = EM_TRAJECTORY_OPTIONS};
    return (em_trajectory){.kind = EM_TRAJECTORY_TIME,
                           .time = o->time,
                           .jitter = 0.2,
                           .multistage = isnan(o->time) && o->integrator == 0};
}

static em_status hmc_probe(em_sampler *base, const em_step_context *context, const em_block *block,
                           double *acceptance)
{
    return em_hamiltonian_probe(context, block, &((hmc_sampler *)base)->points, acceptance);
}

const em_sampler_ops em_hmc = {
    .name = "hmc",
    .doc = "Hamiltonian Monte Carlo: Metropolis-Hastings, trajectories of learned length",
    .source = "Duane et al. 1987; Neal 2011; HMC-EM: Roychowdhury & Parthasarathy 2017, Alg. 1",
    .size = sizeof(hmc_sampler),
    .options_size = sizeof(hmc_options),
    .fields = fields,
    .stats = stats,
    .set_up = hmc_set_up,
    .release = hmc_release,
    .step = hmc_step,
    .trajectory = hmc_kind_of_trajectory,
    .probe = hmc_probe,
};
