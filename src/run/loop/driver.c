#include "run/loop/driver.h"

#include "base/memory.h"
#include "base/text/locale.h"
#include "math/linalg.h"
#include "model/model.h"
#include "par/world.h"
#include "run/loop/auto_tempering.h"
#include "run/loop/engine.h"
#include "run/loop/far_modes.h"
#include "run/loop/rank_consistency.h"
#include "run/loop/run_kernel.h"
#include "run/loop/safe_state.h"
#include "run/output/processor_record.h"
#include "run/output/recorder.h"

#include <math.h>

/* ---------------------------------------------------------------- the loop */

/* Whether iteration `iteration` makes a draw, also one that draws: auto has thinned out. */
static bool is_draw(const em_engine *engine, int64_t iteration)
{
    return (iteration + 1 - engine->plan.warmup) % engine->plan.first_thin == 0;
}

/* Counts the gradients of an iteration. A sampler that counts no steps takes one gradient in each
 * iteration. */
static void count_gradients(em_engine *engine)
{
    for (int i = 0; i < engine->n_kernel; i++) {
        const em_kernel *kernel = &engine->kernel[i];
        const bool counts = em_sampler_has_stat(kernel->options->ops, EM_STAT_N_STEPS);
        const double *n_step = kernel->block->stat[EM_STAT_N_STEPS];
        for (int64_t c = 0; c < engine->block->n_chain; c++)
            engine->gradients[c] += counts ? n_step[c] : 1;
    }
}

static em_status step(em_engine *engine, int64_t iteration)
{
    em_status status = em_kernels_step(engine, iteration);

    if (status < 0)
        return status;
    em_auto_tempering_take(engine, iteration);
    if (iteration >= engine->plan.warmup) {
        count_gradients(engine);
        em_chain_statistics_take(engine->statistics, engine->block, is_draw(engine, iteration));
        if (engine->mode_search)
            em_mode_search_observe(engine->mode_search, engine->block, iteration);
    }
    status = em_recorder_take(engine->recorder, engine->block, engine->kernel_block, iteration,
                              engine->monitor, engine->unreported);
    return status < 0 ? status : EM_OK;
}

static void tell(em_engine *engine)
{
    if (engine->request.progress)
        engine->request.progress(engine->request.progress_to, em_engine_report(engine));
}

static em_status stop_early(em_engine *engine, const char *why)
{
    em_status status = engine->transaction ? em_engine_save(engine) : EM_OK;

    em_world_resume();
    return status ? status
                  : em_fail(EM_ESTOPPED, "stopped by %s after %lld of %lld iterations%s", why,
                            (long long)engine->done, (long long)engine->plan.total,
                            engine->transaction ? ", with a checkpoint: go on with --resume" : "");
}

/* Runs iterations up to `end` without waiting for other ranks; then all ranks agree. Collective. */
static em_status run_segment(em_engine *engine, int64_t end)
{
    const double start = em_clock();
    em_status status = em_safe_state_take(engine);

    while (!status && engine->done < end)
        status = step(engine, engine->done++);
    engine->report.seconds.sampling += em_clock() - start;
    if (!status && engine->tempering)
        status = em_tempering_failure(engine->tempering);
    em_timing_tell(em_timing_now(engine));
    return em_safe_state_agree(engine, status);
}

/* Writes the buffered draws when it is `due` or they are many, and at the end of warmup, after
 * which draws belong to another group of the file. Collective. */
static em_status write_draws(em_engine *engine, bool due)
{
    const em_plan *plan = &engine->plan;
    const int64_t stored = em_plan_stored(plan, engine->done);

    const bool is_last = engine->done == plan->total || engine->ended || stored == plan->n_draw;

    if (!due && engine->done != plan->warmup && !is_last &&
        !em_plan_must_write(plan, stored - engine->n_written))
        return EM_OK;
    const em_status status = em_recorder_flush(engine->recorder);
    engine->last_write = em_clock();
    engine->n_written = engine->done == plan->warmup ? 0 : stored;
    return status;
}

/* Makes a planned stop: writes draws, and checks convergence if a check is due. Collective. */
static em_status pause_at(em_engine *engine)
{
    const double start = em_clock();
    bool saved;
    em_status status = write_draws(engine, em_timing_told().write);

    if (engine->done == engine->plan.warmup) /* steps in warmup are too long at times, as adaptation
                                                tries them: rejections are not counted */
        engine->model->rejections = (em_rejections){.count = 0};
    engine->report.seconds.writing += em_clock() - start;
    if (!status && engine->done == engine->plan.warmup)
        status = em_kernels_pool(engine);
    if (!status && em_plan_checks(&engine->plan, engine->done))
        status = em_engine_check(engine, engine->done);
    const bool is_over = engine->done == engine->plan.total || engine->ended;
    if (!status && is_over)
        status = em_engine_check_all(engine);
    else if (!status && engine->done > engine->plan.warmup)
        status = em_engine_resize_output(engine, &saved);
    return status;
}

/* Whether stop.end_after ends the run, which must have draws. Local. */
static bool ends_by_time(const em_engine *engine)
{
    return engine->timing.out_of_time && engine->done > engine->plan.warmup &&
           em_plan_stored(&engine->plan, engine->done) > 0;
}

static em_status end_by_time(em_engine *engine)
{
    engine->ended = EM_ENDED_BY_TIME;
    const em_status status = em_engine_check_all(engine);
    if (!status)
        tell(engine);
    return status;
}

/* An adaptation update; *ended: warmup ended with it. Collective. */
static em_status update_adaptation(em_engine *engine, int64_t from, bool *ended)
{
    em_status status = em_kernels_update(engine, from, ended);

    if (!status && *ended)
        status = em_search_far_modes(engine);
    if (!status && *ended)
        status = em_auto_tempering_decide(engine, ended);
    if (*ended)
        em_plan_end_warmup(&engine->plan, engine->done);
    return status;
}

/* Performs the tasks after a segment that began at `from`: an adaptation update, a planned stop,
 * both, or nothing. */
static em_status update_and_pause(em_engine *engine, int64_t from, int64_t next_update,
                                  int64_t stop)
{
    const int64_t end = engine->done;
    bool ended = false;
    em_status status = EM_OK;

    if (engine->request.watchful && (end == next_update || end == stop))
        status = em_check_ranks_agree(engine);
    if (!status && end == next_update && end <= engine->plan.warmup)
        status = update_adaptation(engine, from, &ended);
    status = em_safe_state_save(engine, status, end);
    if (!status)
        em_safe_state_pass(engine);
    if (!status && (ended || end == stop))
        status = pause_at(engine);
    return status;
}

/*
 * Runs segments of iterations until `most` are done. Ranks do not communicate within a segment. A
 * segment ends at adaptation updates, at planned stops, and about every second, when progress is
 * reported. Only updates and stops affect the draws.
 */
static em_status sample(em_engine *engine, int64_t most)
{
    const em_plan *plan = &engine->plan;
    em_status status = EM_OK;

    while (!status && engine->done < most && engine->done < plan->total && !engine->ended) {
        const int64_t stop = em_plan_next_stop(plan, engine->done);
        const int64_t next_update =
            engine->done < plan->warmup ? em_kernels_next_update(engine, engine->done) : stop;
        const int64_t near = em_least(most, next_update < stop ? next_update : stop);
        const int64_t end = em_least(near, engine->done + engine->timing.pace), from = engine->done;

        status = em_safe_state_save(engine, run_segment(engine, end), end);
        const bool interrupted = em_world_interrupted();
        status = status ? status : update_and_pause(engine, from, next_update, stop);
        if (!status)
            tell(engine);
        if (status || engine->ended || engine->done == plan->total)
            break;
        engine->timing = em_timing_told();
        if (interrupted || engine->timing.over)
            status = stop_early(engine, interrupted ? "a signal" : "the time limit");
        else if (ends_by_time(engine))
            status = end_by_time(engine);
        else if (engine->timing.checkpoint)
            status = em_engine_save(engine);
    }
    return status;
}

/* ---------------------------------------------------------------- the end */

static em_status finish(em_engine *engine)
{
    em_status status = em_engine_conclude(engine);

    status = status ? status : em_engine_finish_output(engine);
    em_engine_report(engine);
    engine->report.finished = !status;
    return status;
}

static em_status create_chains(em_engine *engine)
{
    const em_status status = em_engine_create_chains(engine);

    return status ? status : em_recorder_begin(engine->recorder);
}

/* Sets up chains and output, from a checkpoint or from the beginning. */
static em_status begin(em_engine *engine)
{
    bool resumed = false;
    em_status status = create_chains(engine);

    if (!status && engine->transaction && em_transaction_may_resume(engine->transaction)) {
        status = em_engine_resume(engine, &resumed);
        if (status || resumed)
            return status;
        em_engine_destroy_chains(engine);
        engine->done = 0;
        engine->ended = EM_GOES_ON;
        status = create_chains(engine);
    }
    status = status ? status : em_engine_start_chains(engine);
    return status ? status : em_engine_begin_output(engine);
}

static em_status take_output(em_engine *engine)
{
    const em_status status =
        em_transaction_open(engine->config, engine->request.mode, &engine->transaction);

    engine->report.was_finished = engine->report.finished =
        !status && em_transaction_is_done(engine->transaction);
    return status;
}

static em_status set_up(em_engine *engine)
{
    const em_config *config = engine->config;
    em_status status =
        config->temper.on && !em_config_tempers_later(config)
            ? em_grid_create_any(config->run.chains, em_config_group_size(config), &engine->grid)
            : em_grid_create(config->run.chains, em_config_group_size(config), &engine->grid);

    status = status ? status : em_processor_check_ranks(engine->request.same_kernels);
    if (!status && engine->request.mode != EM_RUN_NO_FILE)
        status = take_output(engine);
    if (status || engine->report.was_finished)
        return status;
    status = em_engine_load(engine);
    status = status ? status : begin(engine);
    engine->first_done = engine->done;
    engine->started = engine->last_checkpoint = engine->last_write = em_clock();
    return status;
}

em_status em_engine_create(const em_config *config, const em_engine_request *request,
                           em_engine **out)
{
    em_locale locale = em_locale_enter();
    em_status status = em_agree(em_allocate(1, sizeof **out, out));
    em_engine *engine = *out;

    if (!status) {
        engine->config = config;
        engine->request = *request;
#ifdef EM_DEBUG
        engine->request.watchful = true;
#endif
        engine->timing.pace = 1;
        engine->report.convergence.r_hat = engine->report.convergence.ess = NAN;
        engine->report.e_bfmi = engine->report.mode_search_log_mass = NAN;
        em_linalg_use_threads(1); /* ranks are the parallelism; and threads change the bits */
        status = em_agree(em_linalg_reserve());
    }
    status = status ? status : set_up(engine);
    if (status)
        em_engine_destroy(out);
    em_locale_leave(&locale);
    return status;
}

em_status em_engine_advance(em_engine *engine, int64_t iterations)
{
    em_report *report = &engine->report;
    em_locale locale = em_locale_enter();
    const int64_t most = INT64_MAX - engine->done; /* the end of warmup may change the total */
    em_status status = engine->failure;

    if (!status && !report->finished) {
        status = sample(engine, engine->done + em_least(iterations, most));
        if (!status && (engine->done == engine->plan.total || engine->ended))
            status = finish(engine);
    }
    if (status < 0 && status != EM_ESTOPPED)
        engine->failure = status;
    em_locale_leave(&locale);
    return status;
}

void em_engine_destroy(em_engine **out)
{
    em_engine *engine = *out;

    if (!engine)
        return;
    em_output_destroy(&engine->output);
    em_transaction_close(&engine->transaction);
    em_release_owner(&engine->recorder);
    em_engine_destroy_chains(engine);
    em_model_destroy(&engine->model);
    em_release(&engine->kernels);
    em_grid_destroy(&engine->grid);
    em_state_copy_release(&engine->safe.copy);
    em_release(out);
}

em_status em_sample(const em_config *config, const em_engine_request *request, em_report *report)
{
    EM_SCOPED_BY(em_engine_destroy) em_engine *engine = NULL;
    em_status status = em_engine_create(config, request, &engine);

    *report = (em_report){.convergence = {.r_hat = NAN, .ess = NAN}, .mode_search_log_mass = NAN};
    status = status ? status : em_engine_advance(engine, INT64_MAX);
    if (engine)
        *report = *em_engine_report(engine);
    return status;
}
