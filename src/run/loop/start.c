#include "base/memory.h"
#include "emass/model/latent.h"
#include "math/finite.h"
#include "math/rng.h"
#include "model/model.h"
#include "par/world.h"
#include "run/config/compatibility.h"
#include "run/loop/earlier_mass.h"
#include "run/loop/engine.h"
#include "run/loop/prior_draws.h"
#include "run/loop/rank_consistency.h"
#include "run/loop/run_kernel.h"

#include <math.h>

enum { MOST_START_TRIES = 100 };

/* Plans of the mode search. In a plain run chains start where ascents end. A tempered run only
 * looks for modes that its ladders miss, and may spend many evaluations on each of them. Its plan
 * is smaller if a gradient costs two densities for each parameter (search_plan). */
static const em_search_plan plain_search = {.least = 12, .most = 12, .notes_steep = true},
                            tempered_search = {.least = 512,
                                               .most = 512,
                                               .gradients = 100000,
                                               .share = 0.05,
                                               .keeps_one = true,
                                               .farthest = 300};

/* The search of a tempered run has this many searchers, each with its share of the plan and at
 * least one ascent. */
enum { N_SEARCHER = 64 };

/* Warns that a minibatch is larger than the data, so that it has all observations. */
static void warn_of_minibatch(const em_engine *engine, const em_kernel_options *kernel)
{
    const em_sampler_options *options = kernel->options;
    const int64_t total = engine->model->rows.total;

    if (em_takes_minibatches(kernel->ops, options) && options->minibatch > total)
        em_say("warning: sampler.minibatch is %lld, but model %s has %lld observations: every "
               "gradient uses all of them",
               (long long)options->minibatch, engine->model->ops->name, (long long)total);
}

em_status em_engine_load(em_engine *engine)
{
    em_model_context context =
        em_config_model_context(engine->config, engine->grid, &engine->shards);
    em_width width = {0, 0};
    em_status status = engine->transaction ? em_created_read(&engine->created) : EM_OK;

    if (status)
        return status;
    context.minibatches = em_config_takes_minibatches(engine->config);
    context.first_chain = em_grid_first_chain(engine->grid);
    context.n_chain = em_grid_n_local_chain(engine->grid);
    engine->shards = em_shards_of(engine->grid);
    status = em_config_create_model(engine->config, &context, &engine->model);
    status = status ? status : em_check_samplers_suit_model(engine->config, engine->model);
    status = status ? status : em_check_prior_draws_suit_model(engine->config, engine->model);
    if (!status && engine->config->temper.on)
        status = em_check_tempering_suits_model(engine->config, engine->model);
    status = status ? status : em_recorder_width(engine->config, engine->model, &width);
    status = status ? status : em_plan_create(engine->config, width, &engine->plan);
    if (!status)
        status = em_recorder_create(engine->config, engine->grid, engine->model, &engine->plan,
                                    &engine->recorder);
    if (!status && engine->request.sink)
        em_recorder_add(engine->recorder, engine->request.sink, false);
    status = em_agree(status);
    status = status ? status : em_check_ranks_have_one_data(engine->model);
    status = status ? status : em_agree(em_model_summarise(engine->model, engine->grid));
    for (int i = 0; !status && i < engine->config->n_kernel; i++)
        warn_of_minibatch(engine, &engine->config->kernel[i]);
    return status;
}

static em_status create_adaptation(em_engine *engine, em_kernel *kernel)
{
    const em_kernel_options *options = kernel->options;
    const em_status status = em_adapt_create(
        &kernel->mass, options->ops, options->options, engine->grid, kernel->block->dim,
        em_plan_sampler_warmup(engine->config, (int)(kernel - engine->kernel)), kernel->seed,
        &kernel->adapt);

    return status == EM_ECONFIG && options->location
               ? em_fail(status, "%s: %s", options->location, em_error_text())
               : status;
}

/* Begins the adaptation of a sampler, with the identity or with what an earlier run has learned.
 * Collective. */
static em_status begin_adaptation(em_engine *engine, em_kernel *kernel)
{
    const char *earlier = engine->config->mass.from;
    EM_SCOPED_BY(em_initial_release) em_initial initial = {.mass = NULL};
    EM_SCOPED double *own = NULL;

    kernel->mass = *kernel->options->mass;
    em_status status =
        em_agree(em_choose_blocks(engine->config, engine->model, &kernel->mass, &own));
    if (!status && earlier)
        status = em_initial_load(earlier, kernel->options->block, kernel->block->dim, &initial);
    if (!status && earlier) {
        kernel->mass.structure = initial.structure;
        kernel->mass.blocks = initial.blocks;
    }
    status = status ? status : create_adaptation(engine, kernel);
    if (!status && earlier)
        status = em_agree(em_adapt_begin_with(kernel->adapt, initial.mass, initial.step_size,
                                              &initial.trajectory));
    if (!status && initial.noncentring)
        status = em_agree(em_adapt_begin_noncentred(
            kernel->adapt, (const em_noncentring_row *)initial.noncentring));
    kernel->mass.blocks = kernel->options->mass->blocks;
    return status;
}

static em_status create_adaptations(em_engine *engine)
{
    em_status status = EM_OK;

    for (int i = 0; !status && i < engine->n_kernel; i++)
        status = begin_adaptation(engine, &engine->kernel[i]);
    for (int i = 0; i < engine->n_kernel; i++) {
        engine->kernel_block[i] = engine->kernel[i].block;
        engine->adapts[i] = engine->kernel[i].adapt;
    }
    return status;
}

/* The first chain of a superchain. All chains of the superchain start where it starts. */
static int64_t leader(const em_engine *engine, int64_t chain)
{
    const em_starts starts = em_starts_of(&engine->config->run);
    const int64_t each = starts.n_superchain > 0 ? starts.n_chain / starts.n_superchain : 1;

    return chain - chain % each;
}

/* Draws a uniform position in [-radius, radius]^dim, unless the model sets the start. Each attempt
 * has its own random numbers. */
static em_status point(void *of, int64_t number, uint64_t attempt, double *theta)
{
    const em_engine *engine = of;
    const int64_t chain = leader(engine, number);
    const em_stream stream = {(uint64_t)engine->config->run.seed, (uint64_t)chain, attempt,
                              EM_RNG_INIT};

    em_uniforms_within(&stream, engine->block->dim, engine->config->run.init_radius, theta);
    const em_draw draw = {stream.seed, chain, (int64_t)attempt, EM_DRAW_START};
    return em_model_start(engine->model, &draw, theta);
}

/* Adds a step of random sign to all coordinates alike, or to one of them. */
static void displace(const em_stream *stream, int64_t dim, double step, bool all, double *theta)
{
    const int64_t i = (int64_t)((double)dim * em_uniform(stream, (uint64_t)dim + 2));
    const double by = em_uniform(stream, (uint64_t)dim + 3) < 0.5 ? -step : step;

    for (int64_t k = 0; k < dim; k++)
        theta[k] += all || k == i ? by : 0;
}

/* Draws the starting points of the further ascents of a tempered run, which look for modes in
 * basins that are small or far away. Of the points, 40 % are in cubes around the origin of 1 to 100
 * times the usual radius, and 10 % in cubes of 1 to 1/100 of it, because a spike is often at the
 * origin. In many dimensions few of them are near to a given position. So the others are in cubes
 * of the usual radius, displaced by 1 to 100 times this radius: equally in all dimensions, as the
 * modes of exchangeable parameters are, or in one. The logarithms of radii and displacements are
 * uniform. */
static em_status wide_point(void *of, int64_t number, uint64_t attempt, double *theta)
{
    const em_engine *engine = of;
    const int64_t dim = engine->block->dim;
    const em_stream stream = {(uint64_t)engine->config->run.seed, (uint64_t)number, attempt,
                              EM_RNG_INIT};
    const double usual = engine->config->run.init_radius;
    const double decades = 2 * em_uniform(&stream, (uint64_t)dim), far = usual * pow(10, decades);
    const double kind = em_uniform(&stream, (uint64_t)dim + 1);
    const double radius = kind < 0.4 ? far : kind < 0.5 ? usual * usual / far : usual;

    em_uniforms_within(&stream, dim, radius, theta);
    if (kind >= 0.5)
        displace(&stream, dim, far, kind < 0.75, theta);
    const em_draw draw = {stream.seed, number, (int64_t)attempt, EM_DRAW_START};
    return em_model_start(engine->model, &draw, theta);
}

static em_status set_start(em_engine *engine, int64_t c, uint64_t attempt)
{
    const em_block *block = engine->block;

    return point(engine, block->chain[c], attempt, block->theta + c * block->stride);
}

/* Whether the run searches for modes, which also chooses the starts of chains that are not
 * tempered. This requires gradients, and of a run that is not tempered also samplers with an exact
 * density, one of them with an initial phase, a model without latent variables, and no positions of
 * an earlier run. */
static bool may_search_modes(const em_engine *engine)
{
    const em_model_latent *latent = engine->model->ops->latent;
    bool are_exact = true, has_initial_phase = false;

    if (engine->model->gradient == EM_GRADIENT_NONE)
        return false;
    if (engine
            ->tempering) /* gradients of a simulator are worth a search only if ladders use them */
        return engine->block->dim <= EM_MODE_SEARCH_MOST_DIM &&
               (!engine->model->failures || em_tempering_uses_gradients(engine->tempering));
    for (int i = 0; i < engine->n_kernel; i++) {
        are_exact &= em_kernel_is_exact(&engine->kernel[i]);
        has_initial_phase |= em_adapt_learned(engine->kernel[i].adapt).has_initial_phase;
    }
    return are_exact && has_initial_phase && !engine->config->mass.from_positions &&
           !(latent && latent->visit) && !engine->model->estimates;
}

/* Whether a gradient costs next to nothing: the density has no data, and its author wrote it. */
static bool is_cheap(const em_model *model)
{
    return model->rows.total == 0 && model->gradient == EM_GRADIENT_EXACT &&
           !model->differentiated && !model->failures;
}

static em_search_plan search_plan(const em_engine *engine)
{
    static const double most_for_cheap = 2.5;
    /* By how much the gradients and distances are multiplied. In many dimensions a mode that is
     * somewhat narrower than another one is the nearest optimum in few directions only, and in most
     * of these at a distance greater than its own. */
    const double more = fmin(fmax((double)engine->block->dim / 10, 1), 4);
    em_search_plan plan = engine->tempering ? tempered_search : plain_search;

    plan.seed = (uint64_t)engine->config->run.seed;
    plan.farthest *= more;
    plan.gradients *= is_cheap(engine->model) ? more * fmin(more, most_for_cheap) : more;
    if (engine->tempering && engine->model->gradient == EM_GRADIENT_DIFFERENCES) {
        plan.least = N_SEARCHER;
        plan.gradients /= (double)(2 * engine->block->dim + 1);
    }
    return plan;
}

em_status em_engine_create_search(em_engine *engine)
{
    const em_search_plan plan = search_plan(engine);

    return may_search_modes(engine) ? em_mode_search_create(engine->grid, engine->block->dim, &plan,
                                                            &engine->mode_search)
                                    : EM_OK;
}

em_status em_engine_create_chains(em_engine *engine)
{
    const em_config *config = engine->config;
    const int64_t n_chain = em_grid_n_local_chain(engine->grid);
    /* a rank without a ladder has searchers, which evaluate one point at a time */
    em_status status =
        em_posterior_create(engine->model, engine->grid, em_most(n_chain, 1), &engine->posterior);

    if (!status && config->run.minibatch_sums == EM_MINIBATCH_BY_PARTS)
        status = em_posterior_sum_by_parts(engine->posterior);
    status = em_agree(status);
    status = status ? status : em_kernels_create(engine);
    if (!status)
        status = em_chain_statistics_create(
            config->n_kernel == 1 && !engine->tempering ? config->sampler : NULL, n_chain,
            &engine->statistics);
    if (!status)
        status = em_allocate_all(EM_ARRAY(engine->unreported, n_chain),
                                 EM_ARRAY(engine->gradients, n_chain),
                                 EM_ARRAY(engine->unusable_starts, n_chain));
    status = em_agree(status);
    if (!status && !engine->tempering)
        status = create_adaptations(engine);
    status = status ? status : em_engine_create_search(engine);
    if (!status && em_config_tempers_later(config))
        status = em_warmup_draws_create(engine->grid, engine->block->dim, &engine->warmup_draws);
    status = em_agree(status);
    return status ? status
                  : em_monitor_create(engine->grid, &config->stop, &engine->plan.monitored,
                                      em_starts_of(&config->run).n_superchain, &engine->monitor);
}

/* Draws of starts. */
typedef struct em_tries {
    bool *usable; /* [n_chain] */
    int64_t lost; /* number of a chain without a usable draw; -1: all have one */
} em_tries;

/* Evaluates the density at the current draws of starts, and draws again for chains without a finite
 * density. Each chain has its own number of attempts, so its start does not depend on other chains
 * of the rank. */
static em_status try_starts(em_engine *engine, em_tries *tries, uint64_t attempt)
{
    em_block *block = engine->block;
    em_status status = EM_OK;

    tries->lost = -1;
    for (int64_t c = 0; !status && c < block->n_chain; c++) {
        if (tries->usable[c])
            continue;
        em_adapt_count_gradients(engine->kernel[0].adapt, c, 1);
        tries->usable[c] = isfinite(block->log_density[c]) &&
                           em_all_finite(block->dim, block->gradient + c * block->stride);
        if (tries->usable[c])
            continue;
        tries->lost = block->chain[c];
        engine->unusable_starts[c]++;
        status = set_start(engine, c, attempt);
    }
    return status;
}

/* Evaluations of minibatches at starts have numbers from here on, above those of iterations. */
static const int64_t start_evaluations = INT64_C(1) << 39;

/* What a sampler requires at a start, as a number: 0 nothing, 1 an estimate of the density, 2 the
 * exact density, 3 also its gradient. */
static int needs(const em_kernel *kernel)
{
    const em_sampler_ops *ops = kernel->options->ops;

    return ops->by_model ? 0 : !em_kernel_is_exact(kernel) ? 1 : ops->without_gradient ? 2 : 3;
}

/* The first sampler that requires most at a start. */
static const em_kernel *most_exacting(const em_engine *engine)
{
    const em_kernel *most = &engine->kernel[0];

    for (int i = 0; i < engine->n_kernel; i++)
        if (needs(&engine->kernel[i]) > needs(most))
            most = &engine->kernel[i];
    return most;
}

/* Evaluates the density, exactly or by an estimate, as the samplers will. */
static em_status evaluate_start(em_engine *engine, em_query query, uint64_t attempt)
{
    const em_kernel *kernel = most_exacting(engine);
    const em_sampler_options *options = kernel->options->options;

    if (kernel->options->ops->without_gradient)
        query.wanted = EM_WANT_LOG_DENSITY;
    if (!engine->model->estimates && em_kernel_is_exact(kernel))
        return em_posterior_evaluate(engine->posterior, &query);
    const em_minibatch minibatch = {
        options->minibatch == INT64_MIN ? INT64_MAX : options->minibatch, options->replacement};
    query.seed = (uint64_t)engine->config->run.seed;
    query.evaluation = start_evaluations + (int64_t)attempt;
    return em_posterior_estimate(engine->posterior, &minibatch, &query);
}

/* Evaluates the density of chains that have no usable position yet. */
static em_status evaluate_starts(em_engine *engine, const em_tries *tries, uint64_t attempt)
{
    const em_block *block = engine->block;
    em_status status = EM_OK;

    if (attempt == 1)
        return evaluate_start(engine, em_block_query(block), attempt);
    for (int64_t c = 0; status >= 0 && c < block->n_chain; c++)
        if (!tries->usable[c])
            status = evaluate_start(engine, em_block_query_of(block, c), attempt);
    return status;
}

/* Draws positions until all chains have a finite density. Collective over the ranks of a group. */
static em_status try_points(em_engine *engine, em_tries *tries)
{
    em_status status = EM_OK;

    tries->lost = engine->block->n_chain > 0 ? engine->block->chain[0] : -1;
    for (uint64_t attempt = 1; !status && tries->lost >= 0; attempt++) {
        if (attempt > MOST_START_TRIES)
            return em_fail(EM_EMODEL,
                           "chain %lld: no finite log density in %d tries within run.init_radius "
                           "%g of the origin%s%s (declare the bounds of all parameters, or set "
                           "run.init_radius)",
                           (long long)tries->lost, MOST_START_TRIES,
                           engine->config->run.init_radius,
                           *em_model_why(engine->model) ? ": " : "", em_model_why(engine->model));
        status = evaluate_starts(engine, tries, attempt);
        status = status ? status : try_starts(engine, tries, attempt);
    }
    return status;
}

/* Runs the mode search from the draws, and sets the starts of the chains. Collective. */
static em_status search_starts(em_engine *engine)
{
    EM_SCOPED double *gradients = NULL;
    em_status status = em_agree(em_allocate(engine->block->n_chain, sizeof *gradients, &gradients));

    if (!status)
        status = em_mode_search_start(engine->mode_search, engine->posterior, point, engine,
                                      engine->block, gradients);
    for (int64_t c = 0; !status && c < engine->block->n_chain; c++)
        em_adapt_count_gradients(engine->kernel[0].adapt, c, (int64_t)gradients[c]);
    return status;
}

/* Runs the mode search of a tempered run, for its references. Collective. */
static em_status search_references(em_engine *engine)
{
    const em_search_plan plan = search_plan(engine);
    const em_status status = em_mode_search_shared(engine->mode_search, engine->posterior, &plan,
                                                   N_SEARCHER, wide_point, engine);

    return status ? status
                  : em_agree(em_tempering_use_modes(engine->tempering, engine->mode_search));
}

em_status em_engine_start_chains(em_engine *engine)
{
    em_block *block = engine->block;
    const em_mass_options *mass = &engine->config->mass;
    em_tries tries = {.lost = -1};

    em_status status = em_allocate(block->n_chain, sizeof *tries.usable, &tries.usable);

    for (int64_t c = 0; !status && c < block->n_chain; c++)
        status = set_start(engine, c, 0);
    if (!status && mass->from && mass->from_positions)
        status = em_initial_positions(mass->from, em_grid_first_chain(engine->grid), block->n_chain,
                                      block->dim, block->stride, block->theta);
    status = em_posterior_share_failure(engine->posterior, status);
    if (!status && !engine->tempering && !most_exacting(engine)->options->ops->by_model)
        status = try_points(engine, &tries);
    em_release(&tries.usable);
    status = em_agree(status);
    if (!status && engine->mode_search)
        status = engine->tempering ? search_references(engine) : search_starts(engine);
    return status ? status : em_kernels_start(engine);
}

em_status em_engine_start_ladders(em_engine *engine, const em_tempering_beginning *beginning)
{
    em_status status = EM_OK;

    for (int64_t c = 0; !status && c < engine->block->n_chain; c++)
        status = set_start(engine, c, 0);
    status = em_agree(status);
    if (!status && engine->mode_search)
        status = search_references(engine);
    return status ? status
                  : em_tempering_start_from(engine->tempering, beginning, engine->block,
                                            engine->kernel_block);
}

void em_engine_destroy_chains(em_engine *engine)
{
    engine->first_tempered = 0;
    engine->why_tempered[0] = '\0';
    em_release_owner(&engine->warmup_draws);
    em_monitor_destroy(&engine->monitor);
    em_kernels_destroy(engine);
    em_release_owner(&engine->statistics);
    em_mode_search_destroy(&engine->mode_search);
    em_release_all(&engine->unreported, &engine->gradients, &engine->failed_evaluations,
                   &engine->unusable_starts, &engine->tempered.of_ladder, &engine->tempered.path);
    em_posterior_destroy(&engine->posterior);
}
