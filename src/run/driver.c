#include "run/driver.h"

#include "base/memory.h"
#include "exchange/adapt.h"
#include "math/linalg.h"
#include "math/rng.h"
#include "model/list.h"
#include "par/world.h"
#include "run/output.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Draws kept in memory for diagnostics while running, per chain. */
static const int64_t monitored_bytes = INT64_C(256) << 20;

enum { MOST_START_TRIES = 100 };

/* Everything a run holds on one rank. */
typedef struct em_engine {
    const em_config *config;
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
    double started;    /* clock */
} em_engine;

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
        status = em_adapt_create(&config->mass, config->sampler_options, engine->grid, dim,
                                 config->run.warmup, (uint64_t)config->run.seed, &engine->adapt);
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

/* ---------------------------------------------------------------- the loop */

static em_status step(em_engine *engine, int64_t iteration)
{
    const em_step_context context = {.target = engine->target,
                                     .mass = em_adapt_mass(engine->adapt),
                                     .step_size = em_adapt_step_size(engine->adapt),
                                     .seed = (uint64_t)engine->config->run.seed,
                                     .iteration = iteration};
    em_status status = engine->sampler->ops->step(engine->sampler, &context, engine->block);

    if (status < 0)
        return status;
    if (iteration < engine->plan.warmup)
        em_adapt_observe(engine->adapt, engine->block, iteration);
    else
        for (int64_t c = 0; c < engine->block->n_chain; c++)
            engine->divergent[c] += engine->block->stat[EM_STAT_DIVERGING][c];
    em_output_take(engine->output, engine->block, iteration, engine->monitor);
    return EM_OK;
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

/* The clock is rank 0's. Collective. */
static bool out_of_time(const em_engine *engine)
{
    bool over = em_clock() - engine->started > engine->config->stop.max_time;

    if (isnan(engine->config->stop.max_time))
        return false;
    em_broadcast(&over, sizeof over);
    return over;
}

/*
 * Segments between meetings: within one, ranks do not wait for each other. Sets *done to the
 * iterations done, fewer than planned where the stop rule or the time limit ended the run.
 */
static em_status sample(em_engine *engine, int64_t *done)
{
    const em_plan *plan = &engine->plan;
    em_status status = EM_OK;

    while (!status && *done < plan->total) {
        const int64_t stop = em_plan_next_stop(plan, *done);
        const int64_t meeting =
            *done < plan->warmup ? em_adapt_next_meeting(engine->adapt, *done) : stop;
        const int64_t end = meeting < stop ? meeting : stop;
        const double start = em_clock();

        while (!status && *done < end)
            status = step(engine, (*done)++);
        engine->report->seconds.sampling += em_clock() - start;
        status = em_agree(status);
        if (!status && end == meeting && end <= plan->warmup)
            status =
                em_adapt_meet(engine->adapt, engine->sampler, engine->target, engine->block, end);
        if (status || end < stop)
            continue;
        const double write_start = em_clock();
        status = em_output_flush(engine->output);
        engine->report->seconds.writing += em_clock() - write_start;
        if (!status && em_plan_checks(plan, end))
            status = check(engine, end, false);
        tell(engine, end);
        if (!status && (engine->report->convergence.stop || out_of_time(engine)))
            break;
    }
    return status;
}

/* ---------------------------------------------------------------- the end */

static void word_verdict(const em_engine *engine, int64_t n_draw)
{
    const em_convergence *convergence = &engine->report->convergence;
    const em_stop_options *stop = &engine->config->stop;
    const char *why = n_draw == engine->plan.n_draw ? "as planned"
                      : convergence->stop           ? "by the stop rule"
                                                    : "by stop.max_time";

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

static em_status finish(em_engine *engine, int64_t done)
{
    const int64_t n_draw = em_plan_stored(&engine->plan, done);
    em_status status = EM_OK;

    if (done <= engine->plan.warmup)
        return em_fail(EM_EIO,
                       "stop.max_time passed in warmup, after %lld of %lld iterations: no "
                       "draws",
                       (long long)done, (long long)engine->plan.warmup);
    if (engine->report->convergence.n_draw != n_draw || !engine->report->convergence.thorough)
        status = check(engine, done, true);
    word_verdict(engine, n_draw);
    word_note(engine);
    if (!status)
        status = em_output_finish(
            engine->output, engine->adapt, n_draw,
            &(em_verdict){engine->report->verdict, engine->report->convergence,
                          engine->report->divergences, em_clock() - engine->started});
    engine->report->evaluations = em_target_evaluations(engine->target);
    engine->report->seconds.total = em_clock() - engine->started;
    em_adapt_seconds(engine->adapt, &engine->report->seconds.exchange,
                     &engine->report->seconds.m_step);
    return status;
}

static em_status run(em_engine *engine, bool overwrite)
{
    const em_config *config = engine->config;
    int64_t done = 0;
    em_status status = em_grid_create(config->run.chains, config->run.shards, &engine->grid);

    if (!status)
        status = create_model(engine);
    if (!status)
        status = create_chains(engine);
    if (!status)
        status = start_chains(engine);
    if (!status)
        status = em_output_create(config, engine->grid, engine->model, &engine->plan, overwrite,
                                  &engine->output);
    engine->started = em_clock();
    if (!status)
        status = sample(engine, &done);
    return status ? status : finish(engine, done);
}

em_status em_run(const em_config *config, bool overwrite, em_progress *progress, em_report *report)
{
    em_engine engine = {.config = config, .progress = progress, .report = report};
    em_status status;

    em_linalg_single_thread(); /* ranks are the parallelism; and threads would change the bits */
    memset(report, 0, sizeof *report);
    report->convergence.r_hat = report->convergence.ess = NAN;
    status = run(&engine, overwrite);
    em_output_destroy(&engine.output);
    em_monitor_destroy(&engine.monitor);
    em_adapt_destroy(&engine.adapt);
    if (engine.sampler)
        engine.sampler->ops->destroy(engine.sampler);
    em_block_destroy(&engine.block);
    em_release(&engine.divergent);
    em_target_destroy(&engine.target);
    if (engine.model)
        config->model->destroy(engine.model);
    em_grid_destroy(&engine.grid);
    return status;
}
