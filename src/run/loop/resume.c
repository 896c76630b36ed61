#include "base/memory.h"
#include "base/options/part_visitor.h"
#include "emass/model/latent.h"
#include "par/world.h"
#include "run/loop/engine.h"
#include "run/loop/rank_consistency.h"
#include "run/loop/run_kernel.h"

#include <math.h>
#include <stdio.h>

/* A longer run than the one that was saved forgets that the stop rule had ended that. Without such
 * a rule no checks count. */
static em_status visit_position(em_engine *engine, const em_visitor *visitor)
{
    enum { DONE, TIMES_MET, ENDED, PLANNED, WARMUP, N };
    const int64_t times_met =
        engine->plan.has_stop_rule ? em_monitor_times_met(engine->monitor) : 0;
    double x[N] = {(double)engine->done, (double)times_met, engine->ended,
                   (double)engine->plan.n_draw, (double)engine->plan.warmup};
    const em_status status = visitor->shared(visitor->context, "position", N, x);

    engine->done = (int64_t)x[DONE];
    em_plan_end_warmup(&engine->plan, (int64_t)x[WARMUP]);
    em_monitor_set_times_met(engine->monitor, (int64_t)x[TIMES_MET]);
    engine->ended = x[ENDED] != 0 && (int64_t)x[PLANNED] == engine->plan.n_draw;
    return status;
}

/* What the model keeps for its chains. */
static em_status visit_model(em_model *model, const em_visitor *visitor)
{
    const em_model_latent *latent = model->ops->latent;
    em_part_visitor part;

    return latent && latent->visit
               ? em_agree(latent->visit(model, em_part_visitor_start(&part, visitor, "model_")))
               : EM_OK;
}

static em_status visit_engine(void *state, const em_visitor *visitor)
{
    em_engine *engine = state;
    em_status status = visit_position(engine, visitor);

    if (!status)
        status = em_chain_statistics_visit(engine->statistics, visitor);
    if (!status)
        status = visitor->chains(visitor->context, "unreported", 1, engine->unreported);
    if (!status)
        status = visitor->chains(visitor->context, "unusable_starts", 1, engine->unusable_starts);
    if (!status && engine->mode_search)
        status = em_mode_search_visit(engine->mode_search, visitor);
    if (!status)
        status = em_recorder_visit(engine->recorder, visitor);
    if (!status)
        status = em_kernels_visit(engine, visitor);
    return status ? status : visit_model(engine->model, visitor);
}

em_status em_engine_save(em_engine *engine)
{
    const double start = em_clock();
    em_status status;

    if (!engine->paths)
        return em_fail(EM_EUSAGE, "a run without a file has no checkpoints");
    status = em_check_ranks_agree(engine);
    if (!status)
        status = em_output_paths_check(engine->paths);
    if (!status)
        status = em_recorder_flush(engine->recorder);
    if (!status)
        status = em_output_sync(engine->output);
    if (!status)
        status = em_checkpoint_save(engine->paths, engine->config, engine->grid, engine->model,
                                    visit_engine, engine);
    engine->last_checkpoint = em_clock();
    engine->longest_checkpoint = fmax(engine->longest_checkpoint, engine->last_checkpoint - start);
    engine->report.seconds.writing += engine->last_checkpoint - start;
    return status;
}

/* The file anew, with the draws that the checkpoint counts on. Collective. */
static em_status remake_output(em_engine *engine)
{
    em_status status = em_engine_make_output(engine);

    return status ? status
                  : em_output_restore(engine->output, engine->paths->draws, engine->done,
                                      engine->monitor);
}

/* Nothing is moved before it is known that the draws are there; a finished file that cannot be made
 * anew comes back. *can false: they are not there. Collective. */
static em_status restore_draws(em_engine *engine, const em_restored *restored, bool *can)
{
    const em_output_paths *paths = engine->paths;
    const char *path = NULL;
    em_status status = em_checkpoint_find_draws(paths, engine->model, &path);

    if (!status)
        status = em_output_can_restore(em_recorder_layout(engine->recorder), engine->grid,
                                       &engine->plan, path, engine->done, can);
    if (status || !*can)
        return status;
    if (restored->from_inside)
        status = em_output_paths_turn_checkpoint(paths);
    if (!status)
        status = em_output_paths_set_aside(paths);
    if (status)
        return status;
    status = remake_output(engine);
    if (status && restored->finished)
        em_output_paths_put_back(paths);
    return status ? status : em_output_paths_forget_draws(paths);
}

static void say_where(const em_engine *engine, const em_restored *restored)
{
    const em_plan *plan = &engine->plan;
    const bool in_warmup = engine->done < plan->warmup;
    const char *file = engine->paths->output;

    if (restored->finished)
        em_say("extending %s, a finished run of %lld draws, to %lld", file,
               (long long)em_plan_stored(plan, engine->done), (long long)plan->n_draw);
    else
        em_say("resuming %s at iteration %lld of %s%lld (%s), from %s", file,
               (long long)engine->done,
               in_warmup && engine->config->run.warmup == INT64_MIN ? "at most " : "",
               (long long)plan->total, in_warmup ? "warmup" : "sampling", restored->path);
}

/* A finished file is not drawn anew; otherwise a run that cannot go on begins again. */
static em_status cannot_resume(const em_engine *engine, const em_restored *restored,
                               const char *what)
{
    char reason[1024];

    snprintf(reason, sizeof reason, "%s", em_error_text());
    if (restored->finished)
        return em_fail(EM_EDATA,
                       "%s is complete and cannot be extended: %s%s%s; --overwrite draws all of it "
                       "anew",
                       engine->paths->output, what, *what && *reason ? ": " : "", reason);
    em_say("warning: starting anew%s%s%s%s", *what ? ": " : "", what, *reason ? ": " : "", reason);
    return EM_OK;
}

static em_status go_on(em_engine *engine, const em_restored *restored, bool *resumed)
{
    em_status status;

    if (engine->done > engine->plan.total)
        return em_fail(EM_ECONFIG, "run.draws is %lld but the checkpoint has %lld",
                       (long long)engine->plan.n_draw,
                       (long long)em_plan_stored(&engine->plan, engine->done));
    if (restored->new_rule) { /* which no check was held to */
        engine->ended = false;
        em_monitor_set_times_met(engine->monitor, 0);
    }
    status = restore_draws(engine, restored, resumed);
    if (!status && *resumed)
        say_where(engine, restored);
    else if (!status)
        status = cannot_resume(engine, restored, "the draws of the checkpoint are not to be had");
    return status;
}

em_status em_engine_resume(em_engine *engine, bool *resumed)
{
    em_restored restored;
    em_status status = em_checkpoint_restore(engine->paths, engine->config, engine->grid,
                                             engine->model, visit_engine, engine, &restored);

    *resumed = false;
    if (!status && !restored.found)
        status = cannot_resume(engine, &restored, "");
    else if (!status)
        status = go_on(engine, &restored, resumed);
    if (restored.from_inside && !*resumed)
        em_output_paths_forget_fresh(engine->paths);
    return status;
}
