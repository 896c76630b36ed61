#include "run/loop/safe_state.h"

#include "model/external/unsaved_evaluations.h"
#include "par/world.h"

#include <stdio.h>

static bool may_be_lost(const em_engine *engine)
{
    return engine->transaction && engine->model->unsaved;
}

em_status em_safe_state_take(em_engine *engine)
{
    em_safe_state *safe = &engine->safe;

    if (!may_be_lost(engine))
        return EM_OK;
    safe->done = engine->done;
    safe->n_taken = em_output_taken(engine->output);
    const em_visitor visitor = em_state_copy_begin(&safe->copy, engine->block->n_chain);
    const em_status status = em_engine_visit(engine, &visitor);
    return status ? status : safe->copy.status;
}

void em_safe_state_pass(em_engine *engine)
{
    if (engine->model->unsaved)
        em_unsaved_forget(engine->model->unsaved, engine->done);
}

em_status em_safe_state_agree(em_engine *engine, em_status status)
{
    const bool is_lost = status == EM_EMODEL && may_be_lost(engine);

    if (is_lost)
        em_world_ask();
    const em_status agreed = em_agree(is_lost ? EM_OK : status);
    if (agreed || !(is_lost || em_world_interrupted()))
        return agreed;
    if (is_lost)
        em_world_resume();
    return em_agree(is_lost ? status : EM_OK);
}

em_status em_safe_state_save(em_engine *engine, em_status status, int64_t until)
{
    em_safe_state *safe = &engine->safe;
    char why[1024];

    if (status != EM_EMODEL || !may_be_lost(engine))
        return status;
    snprintf(why, sizeof why, "%s", em_error_text());
    engine->done = safe->done;
    safe->until = until;
    em_output_drop(engine->output, safe->n_taken);
    const em_status saved = em_engine_save(engine);
    return saved ? saved
                 : em_fail(status,
                           "%s; stopped after %lld of %lld iterations, with a checkpoint: go on "
                           "with --resume",
                           why, (long long)safe->done, (long long)engine->plan.total);
}
