/* The state of the adaptation engine, passed to a visitor array by array. The names of arrays are
 * those in checkpoints. */
#include "adaptation/adaptation_internal.h"
#include "base/memory.h"
#include "par/world.h"

#include <stddef.h>
#include <string.h>

/* The number of state variables of dual averaging, and of these and the step size in a pool. */
enum { AVERAGING = EM_DUAL_AVERAGING_NUMBERS, N_STEP_SIZE = AVERAGING + 3 };

/* Visits arrays with one row per pool. A pool is all chains together or, with share: none, one
 * chain. */
static em_status visit_pools(em_adapt *adapt, const em_visitor *visitor, const char *name,
                             int64_t n, double *x)
{
    return adapt->shares ? visitor->shared(visitor->context, name, n, x)
                         : visitor->chains(visitor->context, name, n, x);
}

/* Visits an array to which each pool has a pointer. The arrays are copied to one contiguous array
 * for the visit. */
static em_status visit_member(em_adapt *adapt, const em_visitor *visitor, const char *name,
                              int64_t n, size_t member, double *rows)
{
    for (int64_t i = 0; i < adapt->n_pool; i++)
        memcpy(rows + i * n, *(double **)((char *)&adapt->pools[i] + member),
               (size_t)n * sizeof *rows);
    const em_status status = visit_pools(adapt, visitor, name, n, rows);
    for (int64_t i = 0; !status && i < adapt->n_pool; i++)
        memcpy(*(double **)((char *)&adapt->pools[i] + member), rows + i * n,
               (size_t)n * sizeof *rows);
    return status;
}

static em_status visit_step_sizes(em_adapt *adapt, const em_visitor *visitor, double *rows)
{
    enum { N = N_STEP_SIZE };

    for (int64_t i = 0; i < adapt->n_pool; i++) {
        const em_pool *pool = &adapt->pools[i];
        const double others[] = {pool->step_size, (double)pool->n_published, pool->thermostat_mass};
        memcpy(rows + i * N, &pool->averaging, AVERAGING * sizeof *rows);
        memcpy(rows + i * N + AVERAGING, others, sizeof others);
    }
    const em_status status = visit_pools(adapt, visitor, "step_size", N, rows);
    for (int64_t i = 0; !status && i < adapt->n_pool; i++) {
        em_pool *pool = &adapt->pools[i];
        const double *others = rows + i * N + AVERAGING;
        memcpy(&pool->averaging, rows + i * N, AVERAGING * sizeof *rows);
        pool->step_size = others[0];
        pool->n_published = (int64_t)others[1];
        pool->thermostat_mass = others[2];
    }
    return status;
}

static em_status visit_masses(em_adapt *adapt, const em_visitor *visitor, double *rows)
{
    const int64_t size = adapt->form.ops->size(&adapt->form);

    for (int64_t i = 0; i < adapt->n_pool; i++)
        adapt->form.ops->write(adapt->pools[i].mass, &adapt->form, rows + i * size);
    em_status status = visit_pools(adapt, visitor, "inv_mass", size, rows);
    if (status || !visitor->restores)
        return status;
    for (int64_t i = 0; !status && i < adapt->n_pool; i++) {
        em_mass *mass = NULL;
        status = em_mass_of(&adapt->form, rows + i * size, &mass);
        if (status > 0)
            status = em_fail(EM_EDATA, "the inverse mass of a checkpoint is not positive definite");
        if (!status) {
            em_mass_destroy(&adapt->pools[i].mass);
            adapt->pools[i].mass = mass;
        }
    }
    return em_agree(status);
}

static em_status visit_counters(em_adapt *adapt, const em_visitor *visitor)
{
    int64_t unused = 0; /* has no windows */
    int64_t *const counters[] = {&adapt->n_since, &adapt->s_count,
                                 adapt->windows ? &adapt->windows->e_step_from : &unused,
                                 &adapt->n_m_step};
    enum { N = sizeof counters / sizeof *counters };
    double value[N];

    for (int i = 0; i < N; i++)
        value[i] = (double)*counters[i];
    em_status status = visitor->shared(visitor->context, "adaptation", N, value);
    if (!status && !(value[N - 1] >= 0 && value[N - 1] <= (double)adapt->most_m_steps))
        status = em_fail(EM_EDATA, "a checkpoint has %g M-steps, expected 0 to %lld", value[N - 1],
                         (long long)adapt->most_m_steps);
    for (int i = 0; !status && i < N; i++)
        *counters[i] = (int64_t)value[i];
    return status;
}

/* Copies the integers of the phases to doubles for a visitor (out), or from doubles back to
 * integers. */
static void swap_integers(em_adapt *adapt, double *x, bool out)
{
    em_initial_phase *initial = adapt->initial;
    int64_t phase = adapt->phase, unused = 0; /* has no cap of trees */
    int64_t *const integers[] = {&phase,
                                 &adapt->begun,
                                 &initial->window,
                                 &initial->n_stationary,
                                 &adapt->search->from,
                                 &adapt->ended,
                                 &initial->n_reinitialised,
                                 &initial->last_reinitialised,
                                 adapt->tree_depth ? &adapt->tree_depth->cap : &unused,
                                 &initial->segment,
                                 &adapt->n_phase};
    enum { N = sizeof integers / sizeof *integers };

    for (int i = 0; i < N + EM_MOST_SEGMENTS; i++) {
        int64_t *integer = i < N ? integers[i] : &initial->segment_from[i - N];
        if (out)
            x[i] = (double)*integer;
        else
            *integer = (int64_t)x[i];
    }
    adapt->phase = (em_phase_id)phase;
}

/* The number of doubles that hold the state of a trajectory. A time with several stages is kind 3,
 * as a time with leapfrog is 2 also in checkpoints of versions without them. */
enum { N_TRAJECTORY = 3, MULTISTAGE = 3 };

static void swap_trajectory(em_trajectory *t, double *x, bool out)
{
    double kind = t->multistage ? MULTISTAGE : (double)t->kind;
    double *const member[] = {&t->time, &t->jitter, &kind};

    for (int i = 0; i < N_TRAJECTORY; i++)
        *(out ? &x[i] : member[i]) = *(out ? member[i] : &x[i]);
    t->multistage = kind == MULTISTAGE;
    t->kind = t->multistage ? EM_TRAJECTORY_TIME : (em_trajectory_kind)kind;
}

static em_status visit_schedule(em_adapt *adapt, const em_visitor *visitor)
{
    enum { N_INTEGER = 11 + EM_MOST_SEGMENTS, REALS = N_INTEGER + 2 * N_TRAJECTORY };
    enum { N = REALS + AVERAGING + 1 };
    em_length_search *search = adapt->search;
    double *const averaging = (double *)&search->kept_averaging;
    double x[N];
    em_status status = EM_OK;

    for (int out = 1; out >= 0; out--) {
        swap_integers(adapt, x, out);
        swap_trajectory(&search->drawn, x + N_INTEGER, out);
        swap_trajectory(&search->kept, x + N_INTEGER + N_TRAJECTORY, out);
        memcpy(out ? x + REALS : averaging, out ? averaging : x + REALS, AVERAGING * sizeof *x);
        *(out ? &x[N - 1] : &search->kept_steps) = *(out ? &search->kept_steps : &x[N - 1]);
        if (out)
            status = visitor->shared(visitor->context, "warmup_schedule", N, x);
        if (status)
            return status;
    }
    const int64_t segment = adapt->initial->segment;
    if (segment < 0 || segment >= EM_MOST_SEGMENTS || adapt->n_phase < 0 ||
        adapt->n_phase > EM_MOST_PHASES || adapt->phase > EM_PHASE_SAMPLING)
        return em_fail(EM_EDATA,
                       "a checkpoint has phase %d of warmup after %lld others, and %lld segments",
                       (int)adapt->phase, (long long)adapt->n_phase, (long long)segment);
    return EM_OK;
}

/* Visits the flags of the outlying chains, as doubles. */
static em_status visit_outlying(em_adapt *adapt, const em_visitor *visitor)
{
    EM_SCOPED double *x = NULL;
    em_status status = em_agree(em_allocate(adapt->n_chain, sizeof *x, &x));

    for (int64_t c = 0; !status && c < adapt->n_chain; c++)
        x[c] = adapt->outlying[c];
    status = status ? status : visitor->shared(visitor->context, "outlying", adapt->n_chain, x);
    for (int64_t c = 0; !status && c < adapt->n_chain; c++)
        adapt->outlying[c] = x[c] != 0;
    return status;
}

/* Visits the phases of the schedule that has an initial phase. */
static em_status visit_phases(em_adapt *adapt, const em_visitor *visitor)
{
    enum { LEAST = 8, EACH = sizeof(em_phase_record) / sizeof(double) }; /* rows, and their size */
    enum { N_STATISTICS = sizeof(em_acceptance_statistics) / sizeof(double) };
    const em_length_search *search = adapt->search;
    em_status status = visit_schedule(adapt, visitor);

    status = status ? status : visit_outlying(adapt, visitor);
    if (!status)
        status = visitor->shared(visitor->context, "phases", EACH * em_most(adapt->n_phase, LEAST),
                                 (double *)adapt->record);
    if (!status)
        status = visitor->shared(visitor->context, "autocorrelation", adapt->dim, search->kept_r);
    const bool initial = adapt->phase == EM_PHASE_INITIAL;
    bool some_outlying = false;
    for (int64_t c = 0; c < adapt->n_chain; c++)
        some_outlying |= adapt->outlying[c];
    const struct {
        bool is_used;
        const char *name;
        int64_t n;
        double *x;
    } rows[] = {
        {initial, "history", adapt->plan->initial, adapt->initial->history},
        {initial, "since", 1, adapt->initial->since},
        {initial, "step_factor", 1, adapt->step_factor},
        {initial && some_outlying, "outlying_row", em_outlying_row_size(adapt->dim),
         adapt->initial->outlying_row},
        {em_phases[adapt->phase].observe == em_trial_observe, "acceptance_statistics", N_STATISTICS,
         (double *)search->statistics},
        {!initial && adapt->plan->searches_length, "lag", em_lag_size(adapt->dim), search->lag}};
    for (size_t i = 0; !status && i < sizeof rows / sizeof *rows; i++)
        if (rows[i].is_used)
            status = visitor->chains(visitor->context, rows[i].name, rows[i].n, rows[i].x);
    for (int64_t c = 0; !status && visitor->restores && c < adapt->n_local_chain; c++)
        status = em_set_outlying_mass(adapt, c);
    return em_agree(status);
}

em_status em_adapt_visit(em_adapt *adapt, int64_t done, const em_visitor *visitor)
{
    EM_SCOPED double *rows = NULL;
    em_status status = visit_counters(adapt, visitor);

    if (status)
        return status;
    while (adapt->windows && done >= em_phase_ends_at(adapt))
        em_enter_phase(adapt, em_phases[adapt->phase].follower, em_phase_ends_at(adapt));
    const int64_t n_record = adapt->n_m_step * (int64_t)(sizeof(em_m_step) / sizeof(double));
    const int64_t widest =
        em_most(em_most(adapt->form.ops->size(&adapt->form), n_record), N_STEP_SIZE);
    status = em_agree(em_allocate(adapt->n_pool * widest, sizeof *rows, &rows));
    status = status ? status : visit_step_sizes(adapt, visitor, rows);
    status = status ? status : visit_masses(adapt, visitor, rows);
    status = status ? status : em_noncentred_visit(adapt, visitor);
    if (!status)
        status =
            visit_member(adapt, visitor, "centre", adapt->dim, offsetof(em_pool, centre), rows);
    if (!status)
        status = visit_member(adapt, visitor, "m_steps", n_record, offsetof(em_pool, m_step), rows);
    if (!status && adapt->plan)
        status = visit_phases(adapt, visitor);
    if (!status && adapt->plan && visitor->restores)
        em_set_target_accept(adapt);
    const bool collects = em_phases[adapt->phase].learns || adapt->phase == EM_PHASE_FIRST_BUFFER;
    if (!status && collects && !adapt->keeps_draws)
        status = visitor->chains(visitor->context, "accumulator",
                                 adapt->n_segment * adapt->n_accumulator, adapt->accumulator);
    if (!status && collects)
        status = em_window_visit(&adapt->window, visitor);
    if (!status)
        status = visitor->chains(visitor->context, "acceptance", 1, adapt->acceptance);
    status = status ? status : visitor->chains(visitor->context, "gradients", 1, adapt->gradients);
    for (int i = 0; !status && i < adapt->n_learner; i++)
        if (adapt->learner[i]->visit)
            status = adapt->learner[i]->visit(adapt, visitor);
    em_publish_to_chains(adapt);
    return status;
}
