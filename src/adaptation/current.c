/* Read access to the engine: the current masses and step sizes, and the records so far. */
#include "adaptation/adaptation_internal.h"
#include "base/text.h"

#include <math.h>

void em_publish_to_chains(em_adapt *adapt)
{
    for (int64_t c = 0; c < adapt->n_local_chain; c++) {
        const em_mass *own = adapt->initial ? adapt->initial->outlying_mass[c] : NULL;
        adapt->chain_mass[c] = own ? own : em_pool_of(adapt, c)->mass;
        adapt->chain_step[c] = em_pool_of(adapt, c)->step_size * adapt->step_factor[c];
        adapt->chain_thermostat[c] = em_pool_of(adapt, c)->thermostat_mass;
    }
}

/* The lesser of the planned tree-depth cap and the learned one; 0: there is none. */
static int64_t depth_cap_at(const em_adapt *adapt, int64_t iteration)
{
    const int64_t planned = em_warmup_tree_depth_cap(iteration);
    const int64_t learned = adapt->tree_depth ? adapt->tree_depth->cap : 0;

    return learned > 0 && (planned == 0 || learned < planned) ? learned : planned;
}

static em_trajectory trajectory_of(const em_adapt *adapt, int64_t iteration)
{
    em_trajectory out = {.kind = EM_TRAJECTORY_OPTIONS};

    if (adapt->phase == EM_PHASE_INITIAL)
        return (em_trajectory){.kind = EM_TRAJECTORY_U_TURN,
                               .max_depth = depth_cap_at(adapt, iteration),
                               .initial_phase = true};
    if (adapt->search) {
        out = adapt->search->drawn;
        out.number = iteration - adapt->search->from + 1;
    }
    return out;
}

em_step_context em_adapt_context(const em_adapt *adapt, em_posterior *posterior, int64_t iteration)
{
    return (em_step_context){.posterior = posterior,
                             .mass = adapt->chain_mass,
                             .step_size = adapt->chain_step,
                             .seed = adapt->seed,
                             .iteration = iteration,
                             .noise =
                                 adapt->noise ? em_gradient_noise_published(adapt->noise) : NULL,
                             .thermostat_mass = adapt->thermostat ? adapt->chain_thermostat : NULL,
                             .trajectory = trajectory_of(adapt, iteration)};
}

em_learned em_adapt_learned(const em_adapt *adapt)
{
    return (em_learned){
        .mass = adapt->chain_mass,
        .form = &adapt->form,
        .step_size = adapt->chain_step,
        .n_pool = adapt->shares ? 1 : adapt->n_chain,
        .n_m_step = adapt->n_m_step,
        .warmup = adapt->ended,
        .has_initial_phase = adapt->plan && adapt->plan->initial > 0,
        .n_phase = adapt->n_phase,
        .phase = adapt->record,
        .gradients = adapt->gradients,
        .n_reinitialised = adapt->initial ? adapt->initial->n_reinitialised : 0,
        .exchange_seconds = adapt->exchange_seconds,
        .m_step_seconds = adapt->m_step_seconds,
    };
}

void em_adapt_count_gradients(em_adapt *adapt, int64_t chain, int64_t n)
{
    adapt->gradients[chain] += (double)n;
}

void em_adapt_count_after_warmup(em_adapt *adapt, double n)
{
    if (adapt->n_phase > 0)
        adapt->record[adapt->n_phase - 1].gradients += n;
}

const em_m_step *em_adapt_m_steps(const em_adapt *adapt, int64_t local_pool)
{
    return adapt->pools[local_pool].m_step;
}

/* "T 2, 3 steps", or "T 2, cut at 100 steps" where the step size is too small for the time. */
static void append_trajectory(const em_trajectory *drawn, double step_size, size_t bytes, char *out)
{
    const double needed = fmax(drawn->multistage ? 2 : 1, ceil(drawn->time / step_size));
    const bool is_cut = em_trajectory_is_cut(drawn, step_size);

    em_append(bytes, out, "; T %.3g, %s%.0f %s", drawn->time, is_cut ? "cut at " : "",
              is_cut ? EM_MOST_STEPS_OF_TIME : needed, drawn->multistage ? "stages" : "steps");
}

void em_adapt_summarise(const em_adapt *adapt, size_t bytes, char *out)
{
    const em_initial_phase *phase = adapt->initial;

    out[0] = '\0';
    if (adapt->n_phase == 0)
        return;
    const em_trajectory *drawn = &adapt->search->drawn;
    const em_phase_record *initial = &adapt->record[0], *last = &adapt->record[adapt->n_phase - 1];
    em_append(bytes, out, "warmup %.0f iterations, %.0f gradients; initial phase ", last->iteration,
              last->gradients);
    if ((int)initial->end == EM_END_REACHED)
        em_append(bytes, out, "ended at iteration %.0f", initial->iteration);
    else
        em_append(bytes, out, "of the given %.0f iterations, %s", initial->iteration,
                  phase->n_stationary >= 2 ? "chains stationary" : "not all chains stationary");
    if (drawn->kind == EM_TRAJECTORY_TIME)
        append_trajectory(drawn, adapt->pools->step_size, bytes, out);
    else if (adapt->plan->learned)
        em_append(bytes, out, "; the curvature varies, so NUTS makes the draws");
    if (adapt->pools->averaging.target > adapt->sampler_options->target_accept)
        em_append(bytes, out, "; target acceptance %g", adapt->pools->averaging.target);
    if (adapt->noncentred)
        em_noncentring_tell(&adapt->noncentred->map, bytes, out);
    if (phase->n_reinitialised > 0)
        em_append(bytes, out,
                  "; %lld chain%s took the position of another, the last at iteration %lld",
                  (long long)phase->n_reinitialised, em_plural(phase->n_reinitialised),
                  (long long)phase->last_reinitialised);
}

/* Counts only what grows with the number of chains or faster than the dimension: accumulators and
 * kept draws, their exact sums, and the matrices of each mass. */
double em_adapt_bytes(const em_adapt *adapt)
{
    enum { MAPS = 4, SUM = 1 + 4 };
    const double sums = (double)adapt->n_accumulator;
    const double each = (double)adapt->n_segment * sums +
                        (double)(adapt->window.n_slot * 2 * adapt->dim) +
                        (double)(adapt->noncentred ? 3 * adapt->stride + 1 : 0) +
                        (double)(adapt->plan ? adapt->plan->initial : 0) +
                        (double)(adapt->plan ? em_outlying_row_size(adapt->dim) : 0);
    const double mass = (double)adapt->form.ops->size(&adapt->form);

    return sizeof(double) * ((double)adapt->n_local_chain * each + SUM * sums +
                             MAPS * (double)adapt->n_pool * mass) +
           em_gradient_noise_bytes(adapt->noise);
}
