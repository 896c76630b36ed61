/* Learners of quantities besides mass and step size: the covariance of gradient noise, the mass Q
 * of a thermostat, and the tree-depth cap of many chains. */
#include "adaptation/adaptation_internal.h"
#include "par/world.h"

#include <string.h>

/* ---------------------------------------------------------------- gradient noise, by windows */

static em_status observe_noise(em_adapt *adapt, em_posterior *posterior, const em_block *block,
                               int64_t iteration)
{
    return em_gradient_noise_sample(adapt->noise, posterior, adapt->seed, iteration, block);
}

static em_status update_noise(em_adapt *adapt, int64_t done, bool *renews)
{
    if (!em_schedule_window_ends(&adapt->windows->schedule, done))
        return EM_OK;
    *renews = true;
    return em_gradient_noise_publish(adapt->noise);
}

static em_status visit_noise(em_adapt *adapt, const em_visitor *visitor)
{
    return em_gradient_noise_visit(adapt->noise, visitor);
}

const em_learner em_noise_learner = {observe_noise, update_noise, visit_noise};

/* ---------------------------------------------------------------- Q, in each M-step */

/* Where the accumulators of a chain hold the sums of q and q^2. */
static double *sums_of(const em_adapt *adapt, double *accumulator)
{
    return accumulator + adapt->n_accumulator - 2;
}

static em_status observe_thermostat(em_adapt *adapt, em_posterior *posterior, const em_block *block,
                                    int64_t iteration)
{
    const em_step_context context = em_adapt_context(adapt, posterior, iteration);

    for (int64_t c = 0; c < block->n_chain; c++) {
        double *sums = sums_of(adapt, em_accumulators(adapt, c, 0));
        if (!em_is_sample(adapt, block, c))
            continue;
        const double q = adapt->thermostat(&context, block, c);
        sums[0] += q;
        sums[1] += q * q;
    }
    return EM_OK;
}

/* 1 / Q <- (1 - kappa) / Q + kappa / Var q. The variance is taken about the sample mean, because
 * gradient noise shifts the mean of q. */
static void update_pool(const em_adapt *adapt, em_pool *pool, double *accumulator)
{
    em_m_step *m_step = &pool->m_step[adapt->n_m_step - 1];
    const double *sums = sums_of(adapt, accumulator), n = accumulator[0];
    const double mean = sums[0] / n, variance = sums[1] / n - mean * mean, weight = m_step->kappa;

    if (!em_was_refused(adapt, pool) && variance > 0)
        pool->thermostat_mass = 1 / ((1 - weight) / pool->thermostat_mass + weight / variance);
    if (adapt->shares) /* the same bits on processors of different types */
        em_broadcast(&pool->thermostat_mass, sizeof pool->thermostat_mass);
    m_step->thermostat_mass = pool->thermostat_mass;
}

static em_status update_thermostat(em_adapt *adapt, int64_t done, bool *renews)
{
    (void)renews; /* the M-step does */
    if (!em_took_m_step(adapt, done))
        return EM_OK;
    for (int64_t i = 0; i < adapt->n_pool; i++)
        update_pool(adapt, &adapt->pools[i],
                    adapt->shares ? adapt->pooled : em_accumulators(adapt, i, 0));
    return EM_OK;
}

/* Needs no visit of its own: the sums of q are stored with the accumulators, and Q with the numbers
 * of a pool. */
const em_learner em_thermostat_learner = {observe_thermostat, update_thermostat, NULL};

/* ---------------------------------------------------------------- the tree-depth cap */

static em_status observe_trees(em_adapt *adapt, em_posterior *posterior, const em_block *block,
                               int64_t iteration)
{
    em_tree_depths *trees = adapt->tree_depth;

    (void)posterior, (void)iteration;
    trees->step_size = adapt->pools->step_size;
    for (int64_t c = 0; c < block->n_chain; c++)
        em_tree_depth_observe(block->stat[EM_STAT_TREE_DEPTH][c],
                              block->stat[EM_STAT_REACHED_MAX_TREEDEPTH][c] != 0,
                              trees->count + c * EM_DEPTHS);
    return EM_OK;
}

static em_status update_cap(em_adapt *adapt, int64_t done, bool *renews)
{
    em_tree_depths *trees = adapt->tree_depth;
    double count[EM_DEPTHS];
    const em_status status = em_grid_sum_chains(adapt->grid, EM_DEPTHS, trees->count, count);

    (void)done, (void)renews;
    memset(trees->count, 0, (size_t)(adapt->n_local_chain * EM_DEPTHS) * sizeof *count);
    if (!status)
        trees->cap = em_tree_depth_limit(count, trees->step_size / adapt->pools->step_size);
    return status;
}

/* Visits the counts of tree depths. The cap itself is stored with the numbers of the schedule. */
static em_status visit_trees(em_adapt *adapt, const em_visitor *visitor)
{
    return adapt->phase == EM_PHASE_INITIAL
               ? visitor->chains(visitor->context, "depths", EM_DEPTHS, adapt->tree_depth->count)
               : EM_OK;
}

const em_learner em_tree_depth_learner = {observe_trees, update_cap, visit_trees};
