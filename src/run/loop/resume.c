/* The functions of a run that the output transaction calls: they save and restore the state and
 * write the output. */
#include "base/memory.h"
#include "base/options/part_visitor.h"
#include "emass/model/latent.h"
#include "model/external/failures.h"
#include "model/external/unsaved_evaluations.h"
#include "par/world.h"
#include "run/loop/auto_tempering.h"
#include "run/loop/engine.h"
#include "run/loop/rank_consistency.h"
#include "run/loop/run_kernel.h"
#include "run/output/processor_record.h"

#include <math.h>

/* Visits the position of the run. If the run is now longer than when it was saved, a saved end
 * by the stop rule is ignored. Without a stop rule the saved checks are ignored. */
static em_status visit_position(em_engine *engine, const em_visitor *visitor)
{
    enum { DONE, TIMES_MET, ENDED, PLANNED, WARMUP, N };
    const int64_t times_met =
        engine->plan.has_stop_rule ? em_monitor_times_met(engine->monitor) : 0;
    em_plan *plan = &engine->plan;
    double x[N] = {(double)engine->done, (double)times_met, engine->ended, (double)plan->most_draws,
                   (double)plan->warmup};
    const em_status status = visitor->shared(visitor->context, "position", N, x);

    engine->done = (int64_t)x[DONE];
    em_plan_end_warmup(plan, (int64_t)x[WARMUP]);
    em_monitor_set_times_met(engine->monitor, (int64_t)x[TIMES_MET]);
    engine->ended = (em_ending)x[ENDED];
    if (!plan->until_done && (int64_t)x[PLANNED] != plan->most_draws)
        engine->ended = EM_GOES_ON;
    return status;
}

/* Visits the thinning and the gradients of sampling, which only runs with `draws: auto` save. */
static em_status visit_thinning(em_engine *engine, const em_visitor *visitor)
{
    double thin = (double)engine->plan.thin;
    em_status status = visitor->shared(visitor->context, "thinning", 1, &thin);

    engine->plan.thin = (int64_t)thin;
    return status ? status
                  : visitor->chains(visitor->context, "sampling_gradients", 1, engine->gradients);
}

/* Visits the state that the model keeps for its chains. */
static em_status visit_model(em_model *model, const em_visitor *visitor)
{
    const em_model_latent *latent = model->ops->latent;
    em_part_visitor part;

    return latent && latent->visit
               ? em_agree(latent->visit(model, em_part_visitor_start(&part, visitor, "model_")))
               : EM_OK;
}

em_status em_engine_visit(em_engine *engine, const em_visitor *visitor)
{
    em_status status = visit_position(engine, visitor);

    status = status ? status : em_auto_tempering_visit(engine, visitor);
    if (!status && engine->plan.until_done)
        status = visit_thinning(engine, visitor);
    status = status ? status : em_chain_statistics_visit(engine->statistics, visitor);
    if (!status)
        status = visitor->chains(visitor->context, "unreported", 1, engine->unreported);
    if (!status)
        status = visitor->chains(visitor->context, "unusable_starts", 1, engine->unusable_starts);
    if (!status && engine->model->failures && !engine->tempering)
        status = em_failures_visit(engine->model->failures, visitor);
    if (!status && engine->mode_search)
        status = em_mode_search_visit(engine->mode_search, visitor);
    if (!status && engine->mode_search && engine->tempering && visitor->restores)
        status = em_agree(em_tempering_use_modes(engine->tempering, engine->mode_search));
    status = status ? status : em_recorder_visit(engine->recorder, visitor);
    status = status ? status : em_kernels_visit(engine, visitor);
    return status ? status : visit_model(engine->model, visitor);
}

/* Saves or restores the state. If the model was lost, the last complete state is saved, with the
 * evaluations since then. */
static em_status visit_run(void *run, const em_visitor *visitor)
{
    em_engine *engine = run;
    em_unsaved_evaluations *unsaved = engine->model->unsaved;
    const em_safe_state *safe = &engine->safe;
    const em_status status = safe->until > 0 ? em_state_copy_replay(&safe->copy, visitor)
                                             : em_engine_visit(engine, visitor);

    if (status || !unsaved)
        return status;
    return visitor->restores ? em_unsaved_restore(unsaved, visitor)
                             : em_unsaved_save(unsaved, safe->until, visitor);
}

/* ---------------------------------------------------------------- what the transaction calls */

static em_status create_output(void *run, const char *path, const char *checkpoint)
{
    em_engine *engine = run;
    const em_output_run described = {.config = engine->config,
                                     .path = path,
                                     .checkpoint = checkpoint,
                                     .kernels = engine->kernels,
                                     .grid = engine->grid,
                                     .model = engine->model,
                                     .plan = &engine->plan,
                                     .done = engine->done,
                                     .adapts = engine->adapts,
                                     .tempered = &engine->tempered,
                                     .created = engine->created};
    em_status status = em_output_create(&described, &engine->output);

    if (status)
        return status;
    em_sink sink = em_output_sink(engine->output);
    status = sink.begin(sink.state, em_recorder_layout(engine->recorder));
    if (!status)
        em_recorder_add(engine->recorder, &sink, true);
    return status ? status : em_engine_put_prior(engine);
}

static em_status flush_draws(void *run)
{
    em_engine *engine = run;
    em_status status = em_check_ranks_agree(engine);

    status = status ? status : em_recorder_flush(engine->recorder);
    return status ? status : em_output_sync(engine->output);
}

static em_status fail_fewer(const em_plan *plan, int64_t done, const char *file)
{
    const long long has = (long long)((done - plan->warmup) / plan->first_thin);

    return em_fail(EM_ECONFIG,
                   "%s: found %s: %lld for a run that has %lld draws of each chain, expected %lld "
                   "or more (the draws that are there can be read as they are)",
                   file, plan->until_done ? "stop.max_draws" : "run.draws",
                   (long long)plan->most_draws, has, has);
}

static em_status find_draws(void *run, bool new_rule, const char *file, bool *found)
{
    em_engine *engine = run;

    if (engine->done > engine->plan.total)
        return fail_fewer(&engine->plan, engine->done, file);
    em_release(&engine->kernels);
    const em_status status =
        em_processor_check_file(file, engine->request.same_kernels, &engine->kernels);
    if (status)
        return status;
    if (new_rule) { /* no check so far was made by it */
        engine->ended = EM_GOES_ON;
        em_monitor_set_times_met(engine->monitor, 0);
    }
    if (engine->ended == EM_ENDED_BY_TIME)
        engine->ended = EM_GOES_ON;
    em_plan_resize(&engine->plan, engine->done, engine->ended != EM_GOES_ON);
    return em_output_can_restore(em_recorder_layout(engine->recorder), engine->grid, &engine->plan,
                                 file, engine->done, found);
}

static em_status copy_draws(void *run, const char *file)
{
    em_engine *engine = run;

    return em_output_restore(engine->output, file, engine->monitor);
}

static em_status finish_output(void *run)
{
    em_engine *engine = run;

    return em_recorder_finish(engine->recorder, em_engine_report(engine));
}

static em_transaction_run transaction_run(em_engine *engine)
{
    return (em_transaction_run){.grid = engine->grid,
                                .model = engine->model,
                                .run = engine,
                                .create = create_output,
                                .flush = flush_draws,
                                .visit = visit_run,
                                .seconds = engine->created.reproducible ? NULL : &engine->spent,
                                .find_draws = find_draws,
                                .copy_draws = copy_draws,
                                .finish = finish_output};
}

/* ---------------------------------------------------------------- functions that the loop calls */

em_status em_engine_begin_output(em_engine *engine)
{
    const em_transaction_run run = transaction_run(engine);

    return engine->transaction ? em_transaction_begin(engine->transaction, &run) : EM_OK;
}

em_status em_engine_save(em_engine *engine)
{
    const em_transaction_run run = transaction_run(engine);
    const double start = em_clock();

    if (!engine->transaction)
        return em_fail(EM_EUSAGE, "a run without a file has no checkpoints");
    engine->spent = engine->report.seconds.earlier + (start - engine->started);
    em_broadcast(&engine->spent, sizeof engine->spent);
    const em_status status = em_transaction_save(engine->transaction, &run);
    engine->last_checkpoint = em_clock();
    engine->longest_checkpoint = fmax(engine->longest_checkpoint, engine->last_checkpoint - start);
    engine->report.seconds.writing += engine->last_checkpoint - start;
    return status;
}

static void say_where(const em_engine *engine, const em_resumption *resumption)
{
    const em_plan *plan = &engine->plan;
    const bool in_warmup = engine->done < plan->warmup;

    if (resumption->extends)
        em_say("extending %s, a finished run of %lld draws, to %lld", resumption->output,
               (long long)((engine->done - plan->warmup) / plan->first_thin),
               (long long)plan->most_draws);
    else
        em_say("resuming %s at iteration %lld of %s%lld (%s), from %s", resumption->output,
               (long long)engine->done,
               in_warmup && engine->config->run.warmup == INT64_MIN ? "at most " : "",
               (long long)plan->total, in_warmup ? "warmup" : "sampling", resumption->checkpoint);
}

em_status em_engine_resume(em_engine *engine, bool *resumed)
{
    const em_transaction_run run = transaction_run(engine);
    em_resumption resumption;
    const em_status status = em_transaction_resume(engine->transaction, &run, &resumption);

    *resumed = !status && resumption.resumed;
    engine->report.seconds.earlier = engine->spent;
    if (*resumed)
        say_where(engine, &resumption);
    return status;
}

em_status em_engine_resize_output(em_engine *engine, bool *saved)
{
    const em_transaction_run run = transaction_run(engine);
    const bool is_over = engine->ended || engine->done == engine->plan.total;
    const int64_t thin = engine->plan.thin;
    em_plan plan = engine->plan;
    em_status status = EM_OK;

    *saved = false;
    if (!em_plan_resize(&plan, engine->done, is_over))
        return EM_OK;
    if (engine->transaction)
        status = em_recorder_flush(engine->recorder); /* by the thinning so far */
    engine->plan = plan;
    for (int64_t t = thin; t < plan.thin; t *= 2)
        em_monitor_thin(engine->monitor);
    engine->n_written = em_plan_stored(&plan, engine->done);
    if (status || !engine->transaction)
        return status;
    status = em_engine_save(engine);
    em_recorder_remove(engine->recorder, engine->output);
    em_output_destroy(&engine->output);
    *saved = true;
    return status ? status : em_transaction_remake(engine->transaction, &run);
}

em_status em_engine_finish_output(em_engine *engine)
{
    const em_transaction_run run = transaction_run(engine);
    bool saved = false;
    em_status status = em_engine_resize_output(engine, &saved);

    if (status)
        return status;
    if (!engine->transaction)
        return finish_output(engine);
    if (!saved)
        status = em_engine_save(engine);
    return status ? status : em_transaction_finish(engine->transaction, &run);
}
