/* Private to the room: the adaptation engine from inside. */
#ifndef EM_EXCHANGE_ENGINE_H
#define EM_EXCHANGE_ENGINE_H

#include "exchange/adapt.h"
#include "exchange/gradient_noise.h"
#include "exchange/schedule.h"
#include "exchange/step_size.h"
#include "mass/estimator.h"

/* Chains that share one mass and step size. */
typedef struct em_pool {
    em_mass *mass;
    em_dual_averaging averaging;
    double step_size;
    double *centre;         /* [dim] what positions are measured from */
    em_m_step *m_step;      /* [n_m_step], room for most_m_steps */
    int64_t n_published;    /* estimates that went into the mass */
    double thermostat_mass; /* Q of a sampler that has it learned */
} em_pool;

struct em_adapt {
    const em_mass_options *options;
    const em_sampler_options *sampler_options;
    const em_estimator_ops *estimator;
    em_grid *grid;
    em_structure structure;
    em_schedule schedule;
    uint64_t seed;
    int64_t dim, stride, n_local_chain;
    bool adapts_step, shares;
    bool has_step; /* an earlier run has found it: it is not searched for at the start */
    double (*thermostat)(const em_step_context *, const em_block *, int64_t); /* NULL: Q is given */

    int64_t n_pool; /* on this rank: 1, or its number of chains */
    em_pool *pools;
    const em_mass **chain_mass; /* [n_local_chain] */
    double *chain_step;         /* [n_local_chain] */
    double *chain_thermostat;   /* [n_local_chain] Q */
    em_gradient_noise *noise;   /* NULL: neither the estimator nor the kernel wants it */

    /* E-step: per chain the estimator's accumulators, the sum of positions from the centre, those
     * of the S_count rule, and the sums of q and q^2 of a thermostat. */
    int64_t n_estimator, n_accumulator;
    double *accumulator; /* [n_local_chain][n_accumulator] */
    double *pooled;      /* [n_accumulator] */
    double *acceptance;  /* [n_local_chain] sum since the last meeting */
    int64_t n_since;     /* iterations since the last meeting */
    double *sample;      /* [2][stride]: a centred position, a velocity */
    double *estimate;    /* [em_mass_size] */
    double *probe;       /* [n_local_chain] */

    int64_t s_count;     /* of the current E-step */
    int64_t e_step_from; /* iterations done when the current E-step began */
    int64_t n_m_step, most_m_steps;
    double exchange_seconds, m_step_seconds;
};

/*
 * The M-step of all pools after `done` iterations: estimates from the accumulators, averages them
 * in, guards and publishes them, records what was done, and begins the next E-step. A pool whose
 * samples did not allow an estimate keeps its mass, and of a window, the samples: it goes on into
 * the next one. Collective. Errors: EM_EMEMORY, EM_ENUMERIC, agreed.
 */
em_status em_take_m_step(em_adapt *adapt, int64_t done);

/* Where the sums of a thermostat are among the accumulators of a chain. Local. */
int64_t em_thermostat_sums(const em_adapt *adapt);

/* Gives every chain the mass and step size of its pool. Local. */
void em_publish_to_chains(em_adapt *adapt);

#endif
