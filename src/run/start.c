#include "base/memory.h"
#include "diag/diag.h"
#include "mass/moments.h"
#include "math/rng.h"
#include "par/world.h"
#include "run/engine.h"
#include "run/initial.h"
#include "run/same.h"

#include <math.h>
#include <stdio.h>

enum { MOST_START_TRIES = 100 };

/* A minibatch of more observations than there are is all of them. */
static void warn_of_minibatch(const em_engine *engine)
{
    const em_config *config = engine->config;
    const em_sampler_options *options = config->sampler_options;
    const int64_t total = engine->model->rows.total;

    if (em_takes_minibatches(config->sampler, options) && options->minibatch > total &&
        em_world_rank() == 0)
        fprintf(stderr,
                "emass: warning: sampler.minibatch is %lld, but model %s has %lld observations: "
                "every gradient uses all of them\n",
                (long long)options->minibatch, config->model->name, (long long)total);
}

em_status em_engine_load(em_engine *engine)
{
    const em_model_context context = {
        (uint64_t)engine->config->run.seed, em_grid_shard(engine->grid),
        em_grid_n_shard(engine->grid),
        em_takes_minibatches(engine->config->sampler, engine->config->sampler_options),
        engine->config->model};
    em_width width = {0, 0};
    em_status status = em_created_read(&engine->created);

    if (status)
        return status;
    status = engine->config->model->create(engine->config->model_options, &context, &engine->model);
    if (!status)
        status = em_output_width(engine->config, engine->model, &width);
    if (!status)
        status = em_plan_create(engine->config, width, &engine->plan);
    status = em_agree(status);
    if (!status)
        status = em_same_data(engine->model);
    if (!status)
        warn_of_minibatch(engine);
    return status;
}

/* The adaptation engine, from the identity or from what an earlier run has learned. Collective. */
static em_status create_adaptation(em_engine *engine)
{
    const em_config *config = engine->config;
    const bool earlier = config->mass.from != NULL;
    em_initial initial = {.inverse = NULL};
    em_status status = EM_OK;

    engine->mass = config->mass;
    if (earlier)
        status = em_initial_load(config->mass.from, engine->model->dim, &initial);
    if (!status && earlier)
        engine->mass.structure =
            initial.structure == EM_MASS_DENSE ? EM_STRUCTURE_DENSE : EM_STRUCTURE_DIAG;
    if (!status)
        status = em_adapt_create(&engine->mass, config->sampler, config->sampler_options,
                                 engine->grid, engine->model->dim, config->run.warmup,
                                 (uint64_t)config->run.seed, &engine->adapt);
    if (!status && earlier)
        status = em_agree(em_adapt_begin_with(engine->adapt, initial.inverse, initial.step_size));
    em_initial_release(&initial);
    return status;
}

em_status em_engine_create_chains(em_engine *engine)
{
    const em_config *config = engine->config;
    const int64_t n_chain = em_grid_n_local_chain(engine->grid), dim = engine->model->dim;
    const int64_t n_extra =
        config->sampler->n_extra ? config->sampler->n_extra(config->sampler_options, dim) : 0;
    em_status status = em_target_create(engine->model, engine->grid, n_chain, &engine->target);

    if (!status)
        status = em_block_create(em_grid_first_chain(engine->grid), n_chain, dim, n_extra,
                                 &engine->block);
    if (!status)
        status = config->sampler->create(config->sampler_options, n_chain, dim, &engine->sampler);
    if (!status)
        status = em_allocate(n_chain * EM_EBFMI_STATE, sizeof(double), &engine->energies);
    if (!status)
        status = em_allocate(n_chain, sizeof(double), &engine->divergent);
    if (!status)
        status = em_allocate(n_chain, sizeof(double), &engine->unreported);
    status = em_agree(status);
    if (!status)
        status = create_adaptation(engine);
    if (!status)
        status =
            em_monitor_create(engine->grid, &config->stop, &engine->plan.watch, &engine->monitor);
    return status;
}

/* A uniform position in [-radius, radius]^dim, unless the model has one; each try has numbers of
 * its own. */
static em_status place(const em_engine *engine, int64_t c, uint64_t attempt)
{
    const em_model_ops *ops = engine->model->ops;
    const double radius = engine->config->run.init_radius;
    const em_stream stream = {(uint64_t)engine->config->run.seed,
                              (uint64_t)(engine->block->first_chain + c), attempt, EM_RNG_INIT};
    double *theta = engine->block->theta + c * engine->block->stride;

    em_uniforms(&stream, 0, engine->block->dim, theta);
    for (int64_t i = 0; i < engine->block->dim; i++)
        theta[i] = radius * (2 * theta[i] - 1);
    return ops->place ? ops->place(engine->model, theta) : EM_OK;
}

static bool is_usable(const em_block *block, int64_t c)
{
    return isfinite(block->log_density[c]) &&
           em_all_finite(block->dim, block->gradient + c * block->stride);
}

em_status em_engine_start_chains(em_engine *engine)
{
    em_block *block = engine->block;
    em_status status = EM_OK;
    int64_t lost = -1;

    for (int64_t c = 0; !status && c < block->n_chain; c++)
        status = place(engine, c, 0);
    if (!status && engine->config->mass.from && engine->config->mass.from_positions)
        status = em_initial_positions(engine->config->mass.from, block->first_chain, block->n_chain,
                                      block->dim, block->stride, block->theta);
    for (uint64_t attempt = 1; !status && attempt <= MOST_START_TRIES; attempt++) {
        status = em_target_evaluate(engine->target, block->n_chain, block->theta,
                                    block->log_density, block->gradient);
        lost = -1;
        for (int64_t c = 0; !status && c < block->n_chain; c++)
            if (!is_usable(block, c)) {
                lost = block->first_chain + c;
                status = place(engine, c, attempt);
            }
        if (lost < 0)
            break;
    }
    if (!status && lost >= 0)
        status = em_fail(EM_EMODEL,
                         "chain %lld: no finite log density in %d tries within run.init_radius "
                         "%g of the origin (see emass check)%s%s",
                         (long long)lost, MOST_START_TRIES, engine->config->run.init_radius,
                         engine->model->rejections.count > 0 ? ": " : "",
                         engine->model->rejections.first);
    status = em_agree(status);
    return status ? status : em_adapt_start(engine->adapt, engine->sampler, engine->target, block);
}

void em_engine_destroy_chains(em_engine *engine)
{
    em_monitor_destroy(&engine->monitor);
    em_adapt_destroy(&engine->adapt);
    if (engine->sampler)
        engine->sampler->ops->destroy(engine->sampler);
    engine->sampler = NULL;
    em_block_destroy(&engine->block);
    em_release(&engine->energies);
    em_release(&engine->divergent);
    em_release(&engine->unreported);
    em_target_destroy(&engine->target);
}
