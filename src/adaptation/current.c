/* What the chains use now, and what has been learned so far: the read access to the engine. */
#include "adaptation/adaptation_internal.h"

void em_publish_to_chains(em_adapt *adapt)
{
    for (int64_t c = 0; c < adapt->n_local_chain; c++) {
        adapt->chain_mass[c] = em_pool_of(adapt, c)->mass;
        adapt->chain_step[c] = em_pool_of(adapt, c)->step_size *
                               (adapt->warmup.runs ? adapt->warmup.step_factor[c] : 1);
        adapt->chain_thermostat[c] = em_pool_of(adapt, c)->thermostat_mass;
    }
}

em_step_context em_adapt_context(const em_adapt *adapt, em_posterior *posterior, int64_t done)
{
    return (em_step_context){.posterior = posterior,
                             .mass = adapt->chain_mass,
                             .step_size = adapt->chain_step,
                             .seed = adapt->seed,
                             .iteration = done,
                             .noise = em_adapt_noise(adapt),
                             .thermostat_mass = em_adapt_thermostat_mass(adapt),
                             .trajectory = em_adapt_trajectory(adapt, done)};
}

static int64_t depth_cap_at(const em_warmup *warmup, int64_t iteration)
{
    const int64_t planned = em_warmup_tree_depth_cap(iteration);

    return warmup->depth_cap > 0 && (planned == 0 || warmup->depth_cap < planned)
               ? warmup->depth_cap
               : planned;
}

em_trajectory em_adapt_trajectory(const em_adapt *adapt, int64_t iteration)
{
    const em_warmup *warmup = &adapt->warmup;
    em_trajectory out = {.kind = EM_TRAJECTORY_OPTIONS};

    if (!warmup->runs)
        return out;
    if (warmup->phase == EM_PHASE_INITIAL)
        return (em_trajectory){.kind = EM_TRAJECTORY_U_TURN,
                               .max_depth = depth_cap_at(warmup, iteration),
                               .arriving = true};
    out = warmup->drawn;
    out.number = iteration - warmup->time_from + 1;
    return out;
}

const em_mass *const *em_adapt_mass(const em_adapt *adapt)
{
    return adapt->chain_mass;
}

const double *em_adapt_step_size(const em_adapt *adapt)
{
    return adapt->chain_step;
}

const double *em_adapt_thermostat_mass(const em_adapt *adapt)
{
    return adapt->thermostat ? adapt->chain_thermostat : NULL;
}

const em_noise *const *em_adapt_noise(const em_adapt *adapt)
{
    return adapt->noise ? em_gradient_noise_published(adapt->noise) : NULL;
}

const em_mass_form *em_adapt_form(const em_adapt *adapt)
{
    return &adapt->form;
}

int64_t em_adapt_warmup(const em_adapt *adapt)
{
    return adapt->warmup.runs ? adapt->warmup.ended : adapt->schedule.warmup;
}

bool em_adapt_has_initial_phase(const em_adapt *adapt)
{
    return adapt->warmup.runs && adapt->warmup.plan.initial > 0;
}

void em_adapt_count_gradients(em_adapt *adapt, int64_t chain, int64_t n)
{
    adapt->warmup.gradients[chain] += (double)n;
}

int64_t em_adapt_n_phase(const em_adapt *adapt)
{
    return adapt->warmup.n_phase;
}

const em_phase_record *em_adapt_phases(const em_adapt *adapt)
{
    return adapt->warmup.record;
}

int64_t em_adapt_n_reinitialised(const em_adapt *adapt)
{
    return adapt->warmup.n_reinitialised;
}

int64_t em_adapt_n_m_step(const em_adapt *adapt)
{
    return adapt->n_m_step;
}

int64_t em_adapt_n_pool(const em_adapt *adapt)
{
    return adapt->shares ? 1 : em_grid_n_chain(adapt->grid);
}

const em_m_step *em_adapt_m_steps(const em_adapt *adapt, int64_t local_pool)
{
    return adapt->pools[local_pool].m_step;
}

/* Counts what grows with the number of chains or faster than the dimension: accumulators and kept
 * draws, their exact sums, and the matrices of each mass. */
double em_adapt_bytes(const em_adapt *adapt)
{
    enum { MAPS = 4, SUM = 1 + 4 };
    const double sums = (double)adapt->n_accumulator;
    const double each = (double)adapt->n_segment * sums +
                        (double)(adapt->window.n_slot * 2 * adapt->dim) +
                        (double)(adapt->warmup.runs ? adapt->warmup.plan.initial : 0);
    const double mass = (double)adapt->form.ops->size(&adapt->form);

    return sizeof(double) * ((double)adapt->n_local_chain * each + SUM * sums +
                             MAPS * (double)adapt->n_pool * mass) +
           em_gradient_noise_bytes(adapt->noise);
}

void em_adapt_seconds(const em_adapt *adapt, double *exchange, double *m_steps)
{
    *exchange = adapt->exchange_seconds;
    *m_steps = adapt->m_step_seconds;
}
