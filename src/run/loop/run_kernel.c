#include "run/loop/run_kernel.h"

#include "base/memory.h"
#include "base/options/part_visitor.h"
#include "par/world.h"
#include "run/config/compatibility.h"
#include "sampler/riemannian/riemannian_metric.h"
#include "sampler/stochastic/stochastic.h"

#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- set up */

static uint64_t seed_of(const em_config *config, int i)
{
    return (uint64_t)config->run.seed + ((uint64_t)i << 54);
}

/* A sampler of all parameters uses the engine's block; a sampler of a block of parameters has its
 * own. */
static em_status create_kernel(em_engine *engine, int i)
{
    const em_kernel_options *options = &engine->config->kernel[i];
    const int64_t first_chain = em_grid_first_chain(engine->grid);
    const int64_t n_chain = em_grid_n_local_chain(engine->grid);
    em_kernel *kernel = &engine->kernel[i];
    em_status status = EM_OK;

    kernel->options = options;
    kernel->parameters = em_sampler_parameters(engine->config, engine->model, i);
    kernel->seed = seed_of(engine->config, i);
    const int64_t dim = kernel->parameters ? kernel->parameters->count : engine->model->dim;
    kernel->posterior = engine->posterior;
    if (kernel->parameters)
        status = em_posterior_create_part(engine->posterior, kernel->parameters, n_chain,
                                          first_chain, engine->block->theta, &kernel->posterior);
    if (!status && kernel->parameters)
        status = em_block_create(first_chain, n_chain, dim,
                                 em_sampler_n_extra(options->ops, options->options, dim),
                                 &kernel->block);
    else if (!status)
        kernel->block = engine->block;
    status = status ? status : em_allocate(n_chain, sizeof(double), &kernel->step_size);
    return status
               ? status
               : em_sampler_create(options->ops, options->options, n_chain, dim, &kernel->sampler);
}

/* Creates the blocks of a tempered run. The first has the state of the ladders. With several
 * kernels, the blocks of the kernels hold only their statistics. */
static em_status create_blocks_of_ladders(em_engine *engine)
{
    const em_config *config = engine->config;
    const int64_t first = em_grid_first_chain(engine->grid);
    const int64_t n = em_grid_n_local_chain(engine->grid);
    em_status status = em_block_create(first, n, engine->model->dim, 0, &engine->block);

    engine->kernel_block[0] = engine->block;
    for (int i = 0; !status && i < config->n_kernel && config->kernel[0].block; i++) {
        status = em_block_create(first, n, 1, 0, &engine->ladder_block[i]);
        engine->kernel_block[i] = engine->ladder_block[i];
    }
    return status;
}

em_status em_ladders_create(em_engine *engine)
{
    const em_config *config = engine->config;
    em_tempering_task task = {.options = &config->temper,
                              .n_kernel = config->n_kernel,
                              .model = engine->model,
                              .grid = engine->grid,
                              .seed = (uint64_t)config->run.seed,
                              .warmup = config->run.warmup,
                              .init_radius = config->run.init_radius,
                              .noncentring = config->mass.noncentring != EM_NONCENTRING_OFF,
                              .first = engine->first_tempered,
                              .why = engine->why_tempered[0] ? engine->why_tempered : NULL};
    const em_status status = em_agree(create_blocks_of_ladders(engine));

    for (int i = 0; i < config->n_kernel; i++)
        task.kernel[i] =
            (em_tempering_kernel){.ops = config->kernel[i].ops,
                                  .options = config->kernel[i].options,
                                  .parameters = em_sampler_parameters(config, engine->model, i),
                                  .seed = seed_of(config, i)};
    return status ? status : em_tempering_create(&task, &engine->tempering);
}

em_status em_kernels_create(em_engine *engine)
{
    const em_config *config = engine->config;
    if (config->temper.on && !em_config_tempers_later(config))
        return em_ladders_create(engine);
    const em_kernel_options *only = config->kernel[0].block ? NULL : &config->kernel[0];
    const int64_t dim = engine->model->dim;
    em_status status = em_block_create(
        em_grid_first_chain(engine->grid), em_grid_n_local_chain(engine->grid), dim,
        only ? em_sampler_n_extra(only->ops, only->options, dim) : 0, &engine->block);

    for (int i = 0; !status && i < config->n_kernel; i++) {
        engine->n_kernel = i + 1;
        status = create_kernel(engine, i);
    }
    return status;
}

void em_kernels_destroy(em_engine *engine)
{
    for (int i = 0; i < engine->n_kernel; i++) {
        em_kernel *kernel = &engine->kernel[i];
        em_adapt_destroy(&kernel->adapt);
        em_sampler_destroy(&kernel->sampler);
        em_release(&kernel->step_size);
        if (kernel->parameters) {
            em_block_destroy(&kernel->block);
            em_posterior_destroy(&kernel->posterior);
        }
        *kernel = (em_kernel){.options = NULL};
    }
    engine->n_kernel = 0;
    em_tempering_destroy(&engine->tempering);
    for (int i = 0; i < EM_MOST_KERNELS; i++)
        em_block_destroy(&engine->ladder_block[i]);
    em_block_destroy(&engine->block);
}

/* ---------------------------------------------------------------- a part and the whole */

/* Copies the columns of the kernel's parameters from rows of all parameters to rows of its own. */
static void copy_part(const em_kernel *kernel, const double *all, double *own)
{
    const em_block *block = kernel->block;
    const em_parameters *part = kernel->parameters;
    const int64_t wide = em_stride(em_posterior_model(kernel->posterior)->dim);

    for (int64_t c = 0; c < block->n_chain; c++)
        memcpy(own + c * block->stride, all + c * wide + part->first,
               (size_t)part->count * sizeof *own);
}

/* Copies the positions after the move of the sampler to the engine's block. */
static void give_back(em_engine *engine, const em_kernel *kernel)
{
    const em_block *own = kernel->block, *all = engine->block;
    const em_parameters *part = kernel->parameters;
    const size_t n = (size_t)all->n_chain * sizeof(double);

    if (!part)
        return;
    for (int64_t c = 0; c < own->n_chain; c++)
        memcpy(all->theta + c * all->stride + part->first, own->theta + c * own->stride,
               (size_t)part->count * sizeof *own->theta);
    memcpy(engine->block->log_density, kernel->block->log_density, n);
}

/* Recomputes the density where other samplers have moved the chains, for a sampler that caches it.
 */
static em_status reevaluate(const em_kernel *kernel)
{
    const em_sampler_ops *ops = kernel->options->ops;
    const bool remembers = !ops->minibatches && !ops->by_model;

    return kernel->parameters && remembers ? em_block_evaluate(kernel->posterior, kernel->block)
                                           : EM_OK;
}

/* Checks that the model has the metric that the sampler uses. The model computes it at the position
 * of a chain. Collective over the ranks of a group. */
static em_status check_metric(const em_kernel *kernel)
{
    const em_kernel_options *options = kernel->options;
    const em_block *block = kernel->block;
    EM_SCOPED double *metric = NULL;

    if (!options->ops->metric || options->ops->metric(options->options) != EM_METRIC_FISHER)
        return EM_OK;
    em_status status = em_posterior_has_metric(kernel->posterior);
    if (!status && em_posterior_is_diagonal(kernel->posterior))
        return EM_OK;
    status = status ? status : em_metric_check_dim(block->dim);
    if (!status)
        status = em_posterior_share_failure(
            kernel->posterior, em_allocate(block->dim * block->dim, sizeof *metric, &metric));
    if (!status)
        status =
            em_posterior_metric(kernel->posterior, block->chain[0], block->theta, metric, NULL);
    return status == EM_ECONFIG && options->location
               ? em_fail(status, "%s: %s", options->location, em_error_text())
               : status;
}

/* Sets the initial mass from the curvature that the mode search has estimated for the kernel's
 * parameters. Collective. */
static em_status start_adaptation(em_engine *engine, em_kernel *kernel)
{
    const em_block *block = kernel->block;
    const double *scale = engine->mode_search ? em_mode_search_scale(engine->mode_search) : NULL;
    EM_SCOPED double *own = NULL;
    em_status status = EM_OK;

    if (scale && kernel->parameters) {
        status = em_agree(em_allocate(block->n_chain * block->stride, sizeof *own, &own));
        if (!status)
            copy_part(kernel, scale, own);
        scale = own;
    }
    return status ? status
                  : em_adapt_start(kernel->adapt, kernel->sampler, kernel->posterior, kernel->block,
                                   scale);
}

em_status em_kernels_start(em_engine *engine)
{
    const size_t n = (size_t)engine->block->n_chain * sizeof(double);
    em_status status = EM_OK;

    if (engine->tempering)
        return em_tempering_start(engine->tempering, engine->block, engine->kernel_block);
    for (int i = 0; !status && i < engine->n_kernel; i++) {
        em_kernel *kernel = &engine->kernel[i];
        if (kernel->parameters) {
            copy_part(kernel, engine->block->theta, kernel->block->theta);
            copy_part(kernel, engine->block->gradient, kernel->block->gradient);
            memcpy(kernel->block->log_density, engine->block->log_density, n);
        }
        status = em_agree(check_metric(kernel));
        status = status ? status : start_adaptation(engine, kernel);
    }
    return status;
}

/* Adds the diagonal of the inverse mass of a kernel, to the columns of its parameters. */
static em_status add_inverse_mass(const em_kernel *kernel, double *diagonal)
{
    enum { MOST_DENSE = 1000 };
    const int64_t first = kernel->parameters ? kernel->parameters->first : 0;
    const em_mass *mass = em_adapt_learned(kernel->adapt).mass[0];
    const int64_t dim = mass->dim;
    const em_structure structure = mass->ops->structure;
    EM_SCOPED double *matrix = NULL;

    for (int64_t i = 0; i < dim; i++)
        diagonal[first + i] = 1;
    if (structure == EM_MASS_DENSE && dim > MOST_DENSE)
        return EM_OK;
    em_status status = em_allocate(em_mass_size(structure, dim), sizeof *matrix, &matrix);
    status = status ? status : em_mass_matrix(mass, EM_MAP_VELOCITY, structure, matrix);
    for (int64_t i = 0; !status && i < dim; i++)
        diagonal[first + i] = matrix[structure == EM_MASS_DENSE ? i * dim + i : i];
    return status;
}

em_status em_kernels_inverse_mass(const em_engine *engine, double *diagonal)
{
    em_status status = EM_OK;

    for (int i = 0; !status && i < engine->n_kernel; i++)
        status = add_inverse_mass(&engine->kernel[i], diagonal);
    status = em_agree(status);
    if (!status)
        em_broadcast(diagonal, (size_t)engine->block->dim * sizeof *diagonal);
    return status;
}

/* ---------------------------------------------------------------- iterations */

static bool adapts(const em_kernel *kernel, int64_t done)
{
    const int64_t warmup = em_adapt_learned(kernel->adapt).warmup;

    return warmup < 0 || done < warmup;
}

/* The step sizes of a kernel: those that adaptation gives, times the schedule of a stochastic
 * kernel. */
static const double *scheduled(const em_kernel *kernel, int64_t iteration)
{
    const em_kernel_options *options = kernel->options;
    const int64_t n_row = em_posterior_model(kernel->posterior)->rows.total;
    const double *given = em_adapt_learned(kernel->adapt).step_size;

    if (!options->ops->minibatches)
        return given;
    const double scale = em_stochastic_step_scale(options->options, n_row, iteration);
    for (int64_t c = 0; c < kernel->block->n_chain; c++)
        kernel->step_size[c] = scale * given[c];
    return kernel->step_size;
}

static em_status step(const em_kernel *kernel, int64_t iteration, bool warmup,
                      em_steep_points *steep)
{
    em_step_context context = em_adapt_context(kernel->adapt, kernel->posterior, iteration);
    em_status status = reevaluate(kernel);

    context.step_size = scheduled(kernel, iteration);
    context.warmup = warmup;
    context.steep = steep;
    if (status >= 0)
        status = em_adapt_step(kernel->adapt, kernel->sampler, &context, kernel->block);
    if (status >= 0 && adapts(kernel, iteration))
        status = em_adapt_observe(kernel->adapt, kernel->posterior, kernel->block, iteration);
    return status < 0 ? status : EM_OK;
}

/* Gathers the statistics of a whole iteration: those of the last sampler, and flags that are set if
 * any sampler set them. */
static void gather_statistics(em_engine *engine)
{
    static const em_stat any[] = {EM_STAT_DIVERGING, EM_STAT_REACHED_MAX_TREEDEPTH};
    em_block *all = engine->block;

    for (int64_t c = 0; engine->kernel[0].parameters && c < all->n_chain; c++) {
        all->stat[EM_STAT_LP][c] = all->log_density[c];
        for (size_t s = 0; s < sizeof any / sizeof *any; s++) {
            all->stat[any[s]][c] = 0;
            for (int i = 0; i < engine->n_kernel; i++)
                if (engine->kernel[i].block->stat[any[s]][c] != 0)
                    all->stat[any[s]][c] = 1;
        }
    }
}

/* The chains of this rank after an iteration. */
static em_update chains_after(const em_engine *engine, int64_t iteration)
{
    const em_block *block = engine->block;

    return (em_update){.n_chain = block->n_chain,
                       .stride = block->stride,
                       .chain = block->chain,
                       .theta = block->theta,
                       .log_density = block->log_density,
                       .seed = (uint64_t)engine->config->run.seed,
                       .number = iteration,
                       .warmup = iteration < engine->plan.warmup};
}

em_status em_kernels_pool(em_engine *engine)
{
    const em_update at = chains_after(engine, engine->done - 1);

    return em_posterior_pool(engine->posterior, &at);
}

/* Where one kernel, without non-centred groups, notes steep points. NULL: nowhere. */
static em_steep_points *steep_points(em_engine *engine)
{
    if (!engine->mode_search || engine->n_kernel != 1 || engine->tempering)
        return NULL;
    const em_noncentring *map = em_kernels_map(engine);
    return !map || em_noncentring_count(map).scaled == 0
               ? em_mode_search_steep_points(engine->mode_search)
               : NULL;
}

em_status em_kernels_step(em_engine *engine, int64_t iteration)
{
    const bool warmup = iteration < engine->plan.warmup;
    em_steep_points *steep = warmup ? NULL : steep_points(engine);
    em_status status = EM_OK;

    if (engine->tempering)
        em_tempering_scan(engine->tempering, iteration, engine->block, engine->kernel_block);
    for (int i = 0; !status && i < engine->n_kernel; i++) {
        status = step(&engine->kernel[i], iteration, warmup, steep);
        give_back(engine, &engine->kernel[i]);
    }
    gather_statistics(engine);
    const em_update after = chains_after(engine, iteration);
    return status ? status : em_posterior_after_iteration(engine->posterior, &after);
}

/* ---------------------------------------------------------------- adaptation updates */

static int64_t kernel_next_update(const em_kernel *kernel, int64_t done)
{
    return adapts(kernel, done) ? em_adapt_next_update(kernel->adapt, done) : INT64_MAX;
}

int64_t em_kernels_next_update(const em_engine *engine, int64_t done)
{
    int64_t next = INT64_MAX;

    if (engine->tempering)
        return em_tempering_next_update(engine->tempering, done);
    for (int i = 0; i < engine->n_kernel; i++)
        next = em_least(next, kernel_next_update(&engine->kernel[i], done));
    return next;
}

em_status em_kernels_update(em_engine *engine, int64_t from, bool *ended)
{
    em_status status = EM_OK;

    if (engine->tempering)
        return em_tempering_update(engine->tempering, engine->done, ended);
    *ended = true;
    for (int i = 0; !status && i < engine->n_kernel; i++) {
        em_kernel *kernel = &engine->kernel[i];
        if (kernel_next_update(kernel, from) == engine->done) {
            status = em_agree(reevaluate(kernel));
            if (!status)
                status = em_adapt_update(kernel->adapt, kernel->sampler, kernel->posterior,
                                         kernel->block, engine->done);
            give_back(engine, kernel);
        }
        *ended &= !adapts(kernel, engine->done);
    }
    *ended &= !status;
    return status;
}

/* ---------------------------------------------------------------- checkpoints */

static em_status visit_block(em_block *block, const em_visitor *visitor)
{
    em_status status = visitor->chains(visitor->context, "theta", block->stride, block->theta);

    if (!status)
        status = visitor->chains(visitor->context, "momentum", block->stride, block->momentum);
    if (!status)
        status = visitor->chains(visitor->context, "gradient", block->stride, block->gradient);
    if (!status)
        status = visitor->chains(visitor->context, "log_density", 1, block->log_density);
    if (!status && block->n_extra > 0)
        status = visitor->chains(visitor->context, "extra", block->n_extra, block->extra);
    return status;
}

em_status em_kernels_visit(em_engine *engine, const em_visitor *visitor)
{
    em_block *all = engine->block;
    em_status status = EM_OK;

    if (engine->tempering)
        return em_tempering_visit(engine->tempering, visitor);
    if (engine->kernel[0].parameters)
        status = visitor->chains(visitor->context, "theta", all->stride, all->theta);
    for (int i = 0; !status && i < engine->n_kernel; i++) {
        em_kernel *kernel = &engine->kernel[i];
        char prefix[32] = "";
        em_part_visitor part;
        if (kernel->parameters)
            snprintf(prefix, sizeof prefix, "kernel%d_", i);
        const em_visitor *own = em_part_visitor_start(&part, visitor, prefix);
        status = visit_block(kernel->block, own);
        status = status ? status : em_adapt_visit(kernel->adapt, engine->done, own);
    }
    return status;
}
