#include "base/memory.h"
#include "base/part_visitor.h"
#include "par/world.h"
#include "run/engine.h"
#include "run/kernel.h"
#include "run/same.h"

#include <math.h>
#include <stdio.h>

/* A longer run than the one that was saved forgets that the stop rule had ended that. */
static em_status visit_position(em_engine *engine, const em_visitor *visitor)
{
    enum { DONE, TIMES_MET, ENDED, PLANNED, WARMUP, N };
    double x[N] = {(double)engine->done, (double)em_monitor_times_met(engine->monitor),
                   engine->ended, (double)engine->plan.n_draw, (double)engine->plan.warmup};
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
    em_part_visitor part;

    return model->ops->visit
               ? em_agree(model->ops->visit(model, em_part_visitor_start(&part, visitor, "model_")))
               : EM_OK;
}

static em_status visit_engine(void *state, const em_visitor *visitor)
{
    em_engine *engine = state;
    em_status status = visit_position(engine, visitor);

    if (!status)
        status = em_tally_visit(engine->tally, visitor);
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

    if (!engine->place)
        return em_fail(EM_EUSAGE, "a run without a file has no checkpoints");
    status = em_same_chains(engine);
    if (!status)
        status = em_place_check(engine->place);
    if (!status)
        status = em_recorder_flush(engine->recorder);
    if (!status)
        status = em_output_sync(engine->output);
    if (!status)
        status = em_checkpoint_save(engine->place, engine->config, engine->grid, engine->model,
                                    visit_engine, engine);
    engine->last_checkpoint = em_clock();
    engine->longest_checkpoint = fmax(engine->longest_checkpoint, engine->last_checkpoint - start);
    engine->report.seconds.writing += engine->last_checkpoint - start;
    return status;
}

static void warn(const char *what, const char *why)
{
    em_say("warning: %s%s%s", what, *why ? ": " : "", why);
}

/* The draws that the checkpoint counts on, into an output made anew; nothing is moved before it is
 * known that they are there. *can false: they are not. Collective. */
static em_status restore_draws(em_engine *engine, bool *can)
{
    const em_place *place = engine->place;
    const char *path = NULL;
    em_status status = em_checkpoint_find_draws(place, engine->model, &path);

    if (!status)
        status = em_output_can_restore(em_recorder_layout(engine->recorder), engine->grid,
                                       &engine->plan, path, engine->done, can);
    if (status || !*can)
        return status;
    status = em_place_set_aside(place);
    if (!status)
        status = em_engine_make_output(engine);
    if (!status)
        status = em_output_restore(engine->output, place->draws, engine->done, engine->monitor);
    return status ? status : em_place_forget_draws(place);
}

em_status em_engine_resume(em_engine *engine, bool *resumed)
{
    em_restored restored;
    em_status status = em_checkpoint_restore(engine->place, engine->config, engine->grid,
                                             engine->model, visit_engine, engine, &restored);

    *resumed = !status && restored.found;
    if (!status && !restored.found)
        warn("starting anew", em_error_text());
    if (status || !restored.found)
        return status;
    if (engine->done > engine->plan.total)
        return em_fail(EM_ECONFIG, "run.draws is %lld but the checkpoint has %lld",
                       (long long)engine->plan.n_draw,
                       (long long)em_plan_stored(&engine->plan, engine->done));
    engine->ended = engine->ended && !restored.new_rule;
    status = restore_draws(engine, resumed);
    if (!status && !*resumed)
        warn("starting anew: the draws of the checkpoint are not to be had", em_error_text());
    return status;
}
