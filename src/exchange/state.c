/* The state of the adaptation engine, shown to a visitor array by array. */
#include "base/memory.h"
#include "exchange/engine.h"
#include "par/world.h"

#include <stddef.h>
#include <string.h>

/* Numbers that each pool keeps about its step size. */
enum { N_STEP_SIZE = 7 };

/* Rows of numbers, one per pool: of the one that all chains share, or of each chain. */
static em_status visit_pools(em_adapt *adapt, const em_visitor *visitor, const char *name,
                             int64_t n, double *x)
{
    return adapt->shares ? visitor->shared(visitor->context, name, n, x)
                         : visitor->chains(visitor->context, name, n, x);
}

/* An array that each pool keeps by pointer, by way of one that lies together. */
static em_status visit_member(em_adapt *adapt, const em_visitor *visitor, const char *name,
                              int64_t n, size_t member, double *rows)
{
    em_status status;

    for (int64_t i = 0; i < adapt->n_pool; i++)
        memcpy(rows + i * n, *(double **)((char *)&adapt->pools[i] + member),
               (size_t)n * sizeof *rows);
    status = visit_pools(adapt, visitor, name, n, rows);
    for (int64_t i = 0; !status && i < adapt->n_pool; i++)
        memcpy(*(double **)((char *)&adapt->pools[i] + member), rows + i * n,
               (size_t)n * sizeof *rows);
    return status;
}

static em_status visit_step_sizes(em_adapt *adapt, const em_visitor *visitor, double *rows)
{
    enum { N = N_STEP_SIZE };
    em_status status;

    for (int64_t i = 0; i < adapt->n_pool; i++) {
        const em_pool *pool = &adapt->pools[i];
        const em_dual_averaging *averaging = &pool->averaging;
        const double row[N] = {averaging->mu,        averaging->count, averaging->h_bar,
                               averaging->log_bar,   pool->step_size,  (double)pool->n_published,
                               pool->thermostat_mass};
        memcpy(rows + i * N, row, sizeof row);
    }
    status = visit_pools(adapt, visitor, "step_size", N, rows);
    for (int64_t i = 0; !status && i < adapt->n_pool; i++) {
        em_pool *pool = &adapt->pools[i];
        const double *row = rows + i * N;
        pool->averaging =
            (em_dual_averaging){pool->averaging.target, row[0], row[1], row[2], row[3]};
        pool->step_size = row[4];
        pool->n_published = (int64_t)row[5];
        pool->thermostat_mass = row[6];
    }
    return status;
}

static em_status visit_masses(em_adapt *adapt, const em_visitor *visitor, double *rows)
{
    const int64_t size = em_mass_size(adapt->structure, adapt->dim);
    em_status status;

    for (int64_t i = 0; i < adapt->n_pool; i++)
        em_mass_inverse(adapt->pools[i].mass, rows + i * size);
    status = visit_pools(adapt, visitor, "inv_mass", size, rows);
    if (status || !visitor->restores)
        return status;
    for (int64_t i = 0; !status && i < adapt->n_pool; i++) {
        em_mass *mass = NULL;
        status = em_mass_create(adapt->structure, adapt->dim, rows + i * size, &mass);
        if (status > 0)
            status = em_fail(EM_EDATA, "the inverse mass of a checkpoint has no Cholesky factor");
        if (!status) {
            em_mass_destroy(&adapt->pools[i].mass);
            adapt->pools[i].mass = mass;
        }
    }
    return em_agree(status);
}

static em_status visit_counters(em_adapt *adapt, const em_visitor *visitor)
{
    int64_t *const counters[] = {&adapt->n_since, &adapt->s_count, &adapt->e_step_from,
                                 &adapt->n_m_step};
    enum { N = sizeof counters / sizeof *counters };
    double value[N];
    em_status status;

    for (int i = 0; i < N; i++)
        value[i] = (double)*counters[i];
    status = visitor->shared(visitor->context, "adaptation", N, value);
    if (!status && !(value[N - 1] >= 0 && value[N - 1] <= (double)adapt->most_m_steps))
        status = em_fail(EM_EDATA, "a checkpoint has %g M-steps, expected 0 to %lld", value[N - 1],
                         (long long)adapt->most_m_steps);
    for (int i = 0; !status && i < N; i++)
        *counters[i] = (int64_t)value[i];
    return status;
}

/* The widest array of a pool, of which `n_record` numbers are records of M-steps. */
static int64_t widest_array(const em_adapt *adapt, int64_t n_record)
{
    const int64_t size = em_mass_size(adapt->structure, adapt->dim);
    const int64_t widest = size > n_record ? size : n_record;

    return widest > N_STEP_SIZE ? widest : N_STEP_SIZE;
}

em_status em_adapt_visit(em_adapt *adapt, int64_t done, const em_visitor *visitor)
{
    double *rows = NULL;
    em_status status = visit_counters(adapt, visitor);

    if (status)
        return status;
    const int64_t n_record = adapt->n_m_step * (int64_t)(sizeof(em_m_step) / sizeof(double));
    status =
        em_agree(em_allocate(adapt->n_pool * widest_array(adapt, n_record), sizeof *rows, &rows));
    if (!status)
        status = visit_step_sizes(adapt, visitor, rows);
    if (!status)
        status = visit_masses(adapt, visitor, rows);
    if (!status)
        status =
            visit_member(adapt, visitor, "centre", adapt->dim, offsetof(em_pool, centre), rows);
    if (!status)
        status = visit_member(adapt, visitor, "m_steps", n_record, offsetof(em_pool, m_step), rows);
    if (!status && done < adapt->schedule.last)
        status = visitor->chains(visitor->context, "accumulator", adapt->n_accumulator,
                                 adapt->accumulator);
    if (!status)
        status = visitor->chains(visitor->context, "acceptance", 1, adapt->acceptance);
    if (!status && adapt->noise)
        status = em_gradient_noise_visit(adapt->noise, visitor);
    em_publish_to_chains(adapt);
    em_release(&rows);
    return status;
}
