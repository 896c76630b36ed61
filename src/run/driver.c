#include "run/driver.h"

#include "base/memory.h"
#include "exchange/adapt.h"
#include "math/linalg.h"
#include "math/rng.h"
#include "model/list.h"
#include "par/world.h"
#include "run/checkpoint.h"
#include "run/initial.h"
#include "run/output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Draws kept in memory for diagnostics while running, per chain. */
static const int64_t monitored_bytes = INT64_C(256) << 20;

enum { MOST_START_TRIES = 100 };

/* Everything a run holds on one rank. */
typedef struct em_engine {
    const em_config *config;
    em_mass_options mass; /* those of the config; the structure of an earlier run's mass */
    em_grid *grid;
    em_model *model;
    em_target *target;
    em_sampler *sampler;
    em_block *block;
    em_adapt *adapt;
    em_monitor *monitor;
    em_output *output;
    em_plan plan;
    em_progress *progress;
    em_report *report;
    double *divergent; /* [n_local_chain] divergences in sampling */
    int64_t done;      /* iterations */
    bool ended;        /* by the stop rule */
    double started, last_checkpoint, longest_checkpoint; /* clock, clock, seconds */
} em_engine;

/* What rank 0's clock says, told to all between segments. */
typedef struct em_tempo {
    int64_t
        pace;  /* iterations in about a second: segments are no longer, so that signals are seen */
    bool over; /* the time limit is near */
    bool checkpoint; /* the last one is old */
} em_tempo;

/* ---------------------------------------------------------------- set up */

static em_status create_model(em_engine *engine)
{
    const em_model_context context = {(uint64_t)engine->config->run.seed,
                                      em_grid_shard(engine->grid), em_grid_n_shard(engine->grid)};
    int64_t width = 0;
    em_status status =
        engine->config->model->create(engine->config->model_options, &context, &engine->model);

    if (!status)
        status = em_output_width(engine->config, engine->model, &width);
    status = em_agree(status);
    if (!status)
        engine->plan = em_plan_create(engine->config, width);
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

static em_status create_chains(em_engine *engine)
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
        status = em_allocate(n_chain, sizeof(double), &engine->divergent);
    status = em_agree(status);
    if (!status)
        status = create_adaptation(engine);
    if (!status)
        status = em_monitor_create(engine->grid, &config->stop, config->run.draws,
                                   engine->plan.width, monitored_bytes, &engine->monitor);
    return status;
}

/* A uniform position in [-radius, radius]^dim; each try has numbers of its own. */
static void place(const em_engine *engine, int64_t c, uint64_t attempt)
{
    const double radius = engine->config->run.init_radius;
    const em_stream stream = {(uint64_t)engine->config->run.seed,
                              (uint64_t)(engine->block->first_chain + c), attempt, EM_RNG_INIT};
    double *theta = engine->block->theta + c * engine->block->stride;

    em_uniforms(&stream, 0, engine->block->dim, theta);
    for (int64_t i = 0; i < engine->block->dim; i++)
        theta[i] = radius * (2 * theta[i] - 1);
}

static bool is_usable(const em_block *block, int64_t c)
{
    bool finite = isfinite(block->log_density[c]);

    for (int64_t i = 0; i < block->dim; i++)
        finite &= isfinite(block->gradient[c * block->stride + i]) != 0;
    return finite;
}

/* Where the chains begin: for each the first of its tries with a finite density and gradient. */
static em_status start_chains(em_engine *engine)
{
    em_block *block = engine->block;
    em_status status = EM_OK;
    int64_t lost = -1;

    for (int64_t c = 0; c < block->n_chain; c++)
        place(engine, c, 0);
    if (engine->config->mass.from && engine->config->mass.from_positions)
        status = em_initial_positions(engine->config->mass.from, block->first_chain, block->n_chain,
                                      block->dim, block->stride, block->theta);
    for (uint64_t attempt = 1; !status && attempt <= MOST_START_TRIES; attempt++) {
        status = em_target_evaluate(engine->target, block->n_chain, block->theta,
                                    block->log_density, block->gradient);
        lost = -1;
        for (int64_t c = 0; !status && c < block->n_chain; c++)
            if (!is_usable(block, c)) {
                lost = block->first_chain + c;
                place(engine, c, attempt);
            }
        if (lost < 0)
            break;
    }
    if (!status && lost >= 0)
        status = em_fail(EM_EMODEL,
                         "chain %lld: no finite log density in %d tries within run.init_radius "
                         "%g of the origin (see emass check)",
                         (long long)lost, MOST_START_TRIES, engine->config->run.init_radius);
    status = em_agree(status);
    return status ? status : em_adapt_start(engine->adapt, engine->sampler, engine->target, block);
}

static void destroy_chains(em_engine *engine)
{
    em_monitor_destroy(&engine->monitor);
    em_adapt_destroy(&engine->adapt);
    if (engine->sampler)
        engine->sampler->ops->destroy(engine->sampler);
    engine->sampler = NULL;
    em_block_destroy(&engine->block);
    em_release(&engine->divergent);
    em_target_destroy(&engine->target);
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

/* A longer run than the one that was saved forgets that the stop rule had ended that. */
static em_status visit_position(em_engine *engine, const em_visitor *visitor)
{
    enum { DONE, TIMES_MET, ENDED, PLANNED, N };
    double x[N] = {(double)engine->done, (double)em_monitor_times_met(engine->monitor),
                   engine->ended, (double)engine->plan.n_draw};
    const em_status status = visitor->shared(visitor->context, "position", N, x);

    engine->done = (int64_t)x[DONE];
    em_monitor_set_times_met(engine->monitor, (int64_t)x[TIMES_MET]);
    engine->ended = x[ENDED] != 0 && (int64_t)x[PLANNED] == engine->plan.n_draw;
    return status;
}

static em_status visit_engine(void *state, const em_visitor *visitor)
{
    em_engine *engine = state;
    em_status status = visit_position(engine, visitor);

    if (!status)
        status = visit_block(engine->block, visitor);
    if (!status)
        status = visitor->chains(visitor->context, "divergent", 1, engine->divergent);
    return status ? status : em_adapt_visit(engine->adapt, engine->done, visitor);
}

static em_status save_checkpoint(em_engine *engine)
{
    const double start = em_clock();
    em_status status = em_output_flush(engine->output);

    if (!status)
        status = em_output_sync(engine->output);
    if (!status)
        status = em_checkpoint_save(engine->config, engine->grid, engine->model->data_hash,
                                    visit_engine, engine);
    engine->last_checkpoint = em_clock();
    engine->longest_checkpoint = fmax(engine->longest_checkpoint, engine->last_checkpoint - start);
    engine->report->seconds.writing += engine->last_checkpoint - start;
    return status;
}

static void warn(const char *what, const char *why)
{
    if (em_world_rank() == 0)
        fprintf(stderr, "emass: warning: %s%s%s\n", what, *why ? ": " : "", why);
}

/* Restores the chains, and the draws from the file that was there. *resumed false: start anew. */
static em_status resume(em_engine *engine, bool *resumed)
{
    const em_config *config = engine->config;
    char *aside = NULL;
    em_status status = em_checkpoint_restore(config, engine->grid, engine->model->data_hash,
                                             visit_engine, engine, resumed);

    if (!status && !*resumed)
        warn("starting anew", em_error_text());
    if (status || !*resumed)
        return status;
    if (engine->done > engine->plan.total)
        return em_fail(EM_ECONFIG, "run.draws is %lld but the checkpoint has %lld",
                       (long long)engine->plan.n_draw,
                       (long long)em_plan_stored(&engine->plan, engine->done));
    status = em_agree(em_beside(config, ".draws", &aside));
    if (!status)
        status = em_draws_set_aside(config);
    if (!status)
        status = em_output_can_restore(config, engine->grid, &engine->plan, aside, engine->done,
                                       resumed);
    if (!status && !*resumed)
        warn("starting anew: the draws of the checkpoint are not to be had", em_error_text());
    if (!status && *resumed)
        status = em_output_create(config, engine->grid, engine->model, &engine->plan, true,
                                  &engine->output);
    if (!status && *resumed)
        status = em_output_restore(engine->output, aside, engine->done, engine->monitor);
    if (!status && *resumed)
        status = em_draws_forget(config);
    em_release(&aside);
    return status;
}

/* ---------------------------------------------------------------- the loop */

static em_status step(em_engine *engine, int64_t iteration)
{
    const em_step_context context = {.target = engine->target,
                                     .mass = em_adapt_mass(engine->adapt),
                                     .step_size = em_adapt_step_size(engine->adapt),
                                     .seed = (uint64_t)engine->config->run.seed,
                                     .iteration = iteration,
                                     .noise = em_adapt_noise(engine->adapt)};
    em_status status = engine->sampler->ops->step(engine->sampler, &context, engine->block);

    if (status < 0)
        return status;
    if (iteration < engine->plan.warmup)
        status = em_adapt_observe(engine->adapt, engine->target, engine->block, iteration);
    else
        for (int64_t c = 0; c < engine->block->n_chain; c++)
            engine->divergent[c] += engine->block->stat[EM_STAT_DIVERGING][c];
    em_output_take(engine->output, engine->block, iteration, engine->monitor);
    return status < 0 ? status : EM_OK;
}

static em_status count_divergences(em_engine *engine)
{
    double sum = 0;
    em_status status = em_grid_sum_chains(engine->grid, 1, engine->divergent, &sum);

    engine->report->divergences = (int64_t)llround(sum);
    return status;
}

static em_status check(em_engine *engine, int64_t done, bool thorough)
{
    const double start = em_clock();
    em_status status = em_monitor_check(engine->monitor, em_plan_stored(&engine->plan, done),
                                        thorough, &engine->report->convergence);

    if (!status)
        status = count_divergences(engine);
    engine->report->seconds.diagnostics += em_clock() - start;
    return status;
}

static void tell(const em_engine *engine, int64_t done)
{
    const em_plan *plan = &engine->plan;
    const double seconds = em_clock() - engine->started;
    const double rate = (double)done / seconds;

    if (em_world_rank() != 0)
        return;
    em_progress_tell(engine->progress,
                     &(em_progress_record){
                         .iteration = done,
                         .total = plan->total,
                         .phase = done <= plan->warmup ? "warmup" : "sampling",
                         .r_hat = done > plan->warmup ? engine->report->convergence.r_hat : NAN,
                         .ess = done > plan->warmup ? engine->report->convergence.ess : NAN,
                         .divergences = engine->report->divergences,
                         .draws_per_second = rate * (double)em_grid_n_chain(engine->grid),
                         .seconds_left = (double)(plan->total - done) / rate});
}

/* Seconds until the scheduler ends the job, where it says so in seconds since 1970. Rank 0. */
static double job_seconds_left(void)
{
    const char *text = getenv("SLURM_JOB_END_TIME");
    const double end = text ? strtod(text, NULL) : 0;

    return end > 0 ? end - (double)time(NULL) : INFINITY;
}

/* Time is over a little before the end: ten seconds, and what three checkpoints took. Collective.
 */
static em_tempo keep_tempo(const em_engine *engine, int64_t first_done)
{
    const double now = em_clock(), elapsed = now - engine->started;
    const double limit = engine->config->stop.max_time;
    const double per_iteration =
        engine->report->seconds.sampling / (double)(engine->done - first_done);
    em_tempo tempo = {.pace = 1};

    if (em_world_rank() == 0) {
        tempo.pace = per_iteration < 1e-6 ? 1000000 : (int64_t)(1 / per_iteration) + 1;
        tempo.over = elapsed > limit || job_seconds_left() < 10 + 3 * engine->longest_checkpoint;
        tempo.checkpoint = now - engine->last_checkpoint > engine->config->output.checkpoint_every;
    }
    em_broadcast(&tempo, sizeof tempo);
    return tempo;
}

static em_status stop_early(em_engine *engine, const char *why)
{
    em_status status = save_checkpoint(engine);

    return status ? status
                  : em_fail(EM_ESTOPPED,
                            "stopped by %s after %lld of %lld iterations, with a checkpoint: go on "
                            "with --resume",
                            why, (long long)engine->done, (long long)engine->plan.total);
}

/* Iterations up to `end`, without waiting for other ranks; then all agree. Collective. */
static em_status run_segment(em_engine *engine, int64_t end)
{
    const double start = em_clock();
    em_status status = EM_OK;

    while (!status && engine->done < end)
        status = step(engine, engine->done++);
    engine->report->seconds.sampling += em_clock() - start;
    return em_agree(status);
}

/* What is due at a planned stop: write, check, tell. Collective. */
static em_status pause_at(em_engine *engine)
{
    const double start = em_clock();
    em_status status = em_output_flush(engine->output);

    engine->report->seconds.writing += em_clock() - start;
    if (!status && em_plan_checks(&engine->plan, engine->done))
        status = check(engine, engine->done, false);
    engine->ended = engine->report->convergence.stop;
    tell(engine, engine->done);
    return status;
}

/*
 * Segments between meetings: within one, ranks do not wait for each other. They end where chains
 * meet to adapt, at planned stops, and about every second; only the first two change what is drawn.
 */
static em_status sample(em_engine *engine)
{
    const em_plan *plan = &engine->plan;
    const int64_t first_done = engine->done;
    em_tempo tempo = {.pace = 1};
    em_status status = EM_OK;

    while (!status && engine->done < plan->total && !engine->ended) {
        const int64_t stop = em_plan_next_stop(plan, engine->done);
        const int64_t meeting =
            engine->done < plan->warmup ? em_adapt_next_meeting(engine->adapt, engine->done) : stop;
        const int64_t near = meeting < stop ? meeting : stop;
        const int64_t end = near - engine->done > tempo.pace ? engine->done + tempo.pace : near;

        status = run_segment(engine, end);
        const bool interrupted = em_world_interrupted();
        if (!status && end == meeting && end <= plan->warmup)
            status =
                em_adapt_meet(engine->adapt, engine->sampler, engine->target, engine->block, end);
        if (!status && end == stop)
            status = pause_at(engine);
        if (status || engine->ended || engine->done == plan->total)
            break;
        tempo = keep_tempo(engine, first_done);
        if (interrupted || tempo.over)
            status = stop_early(engine, interrupted ? "a signal" : "the time limit");
        else if (tempo.checkpoint)
            status = save_checkpoint(engine);
    }
    return status;
}

/* ---------------------------------------------------------------- the end */

static void word_verdict(const em_engine *engine, int64_t n_draw)
{
    const em_convergence *convergence = &engine->report->convergence;
    const em_stop_options *stop = &engine->config->stop;
    const char *why = n_draw == engine->plan.n_draw ? "as planned" : "by the stop rule";

    snprintf(
        engine->report->verdict, sizeof engine->report->verdict,
        "%s: worst R-hat %.4g (limit %g), smallest ESS %.4g (limit %g), %lld divergences; %lld "
        "chains x %lld draws, ended %s",
        convergence->met ? "converged" : "not converged", convergence->r_hat,
        em_monitor_r_hat_limit(stop), convergence->ess, em_monitor_ess_limit(stop),
        (long long)engine->report->divergences, (long long)em_grid_n_chain(engine->grid),
        (long long)n_draw, why);
}

/* With exact gradients momenta are N(0, M) whatever M is: says so when the samples show it. */
static void word_note(const em_engine *engine)
{
    const int64_t n = em_adapt_n_m_step(engine->adapt);
    const em_m_step *record = em_adapt_m_steps(engine->adapt, 0);
    int64_t by_chance = 0;

    for (int64_t i = 0; i < n; i++)
        by_chance += record[i].trace_deviation < 1 && record[i].diagonal_deviation < 1;
    if (n > 0 && (double)by_chance >= 0.9 * (double)n)
        snprintf(
            engine->report->note, sizeof engine->report->note,
            "in %lld of %lld M-steps the momenta were what the current mass predicts, to within "
            "chance: they carry no information about the mass, and nothing was learned; "
            "mass.estimator: fisher learns it from draws and gradients",
            (long long)by_chance, (long long)n);
}

/* The last checkpoint lets a finished run be extended; and until the file is complete its draws
 * stand beside it, because HDF5 may lose a file whose metadata was half written. */
static em_status finish(em_engine *engine)
{
    const int64_t n_draw = em_plan_stored(&engine->plan, engine->done);
    em_convergence *convergence = &engine->report->convergence;
    em_status status = EM_OK;

    if (convergence->n_draw != n_draw || !convergence->thorough)
        status = check(engine, engine->done, true);
    if (!status)
        status = save_checkpoint(engine);
    if (!status)
        status = em_draws_copy(engine->config);
    word_verdict(engine, n_draw);
    word_note(engine);
    if (!status)
        status = em_output_finish(engine->output, engine->adapt, n_draw,
                                  &(em_verdict){engine->report->verdict, *convergence,
                                                engine->report->divergences,
                                                em_clock() - engine->started});
    if (!status)
        status = em_draws_forget(engine->config);
    engine->report->evaluations = em_target_evaluations(engine->target);
    engine->report->seconds.total = em_clock() - engine->started;
    engine->report->seconds.checkpoint = engine->longest_checkpoint;
    em_adapt_seconds(engine->adapt, &engine->report->seconds.exchange,
                     &engine->report->seconds.m_step);
    return status;
}

/* Chains and output, either where a checkpoint left them or at the beginning. */
static em_status begin(em_engine *engine, em_run_mode mode, em_standing standing)
{
    bool resumed = false;
    em_status status = create_chains(engine);

    if (!status && standing == EM_STANDS_PARTIAL) {
        status = resume(engine, &resumed);
        if (status || resumed)
            return status;
        destroy_chains(engine);
        engine->done = 0;
        engine->ended = false;
        status = create_chains(engine);
    }
    if (!status)
        status = start_chains(engine);
    if (!status)
        status = em_output_create(engine->config, engine->grid, engine->model, &engine->plan,
                                  mode != EM_RUN_NEW, &engine->output);
    return status ? status : em_checkpoint_forget(engine->config);
}

static em_status run(em_engine *engine, em_run_mode mode)
{
    const em_config *config = engine->config;
    em_standing standing = EM_STANDS_NOTHING;
    em_status status = em_grid_create(config->run.chains, config->run.shards, &engine->grid);

    if (!status && mode == EM_RUN_RESUME)
        status = em_checkpoint_look(config, &standing);
    engine->report->was_finished = standing == EM_STANDS_FINISHED;
    if (status || engine->report->was_finished)
        return status ? status : em_draws_forget(config);
    status = create_model(engine);
    if (!status)
        status = begin(engine, mode, standing);
    engine->started = engine->last_checkpoint = em_clock();
    if (!status)
        status = sample(engine);
    return status ? status : finish(engine);
}

em_status em_run(const em_config *config, em_run_mode mode, em_progress *progress,
                 em_report *report)
{
    em_engine engine = {.config = config, .progress = progress, .report = report};
    em_status status;

    em_linalg_single_thread(); /* ranks are the parallelism; and threads would change the bits */
    memset(report, 0, sizeof *report);
    report->convergence.r_hat = report->convergence.ess = NAN;
    status = run(&engine, mode);
    em_output_destroy(&engine.output);
    destroy_chains(&engine);
    if (engine.model)
        config->model->destroy(engine.model);
    em_grid_destroy(&engine.grid);
    return status;
}
