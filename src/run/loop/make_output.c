/* Creates the output of a run. */
#include "run/loop/engine.h"

static em_status write_output(em_engine *engine)
{
    const em_layout *layout = em_recorder_layout(engine->recorder);
    em_sink sink;
    em_status status = em_output_create(
        engine->config, engine->paths->output, engine->paths->checkpoint, engine->grid,
        engine->model, &engine->plan, engine->adapts, &engine->tempered,
        &engine->created, &engine->output);

    if (status)
        return status;
    sink = em_output_sink(engine->output);
    status = sink.begin(sink.state, layout);
    if (!status)
        em_recorder_add(engine->recorder, &sink, true);
    return status ? status : em_engine_put_prior(engine);
}

em_status em_engine_make_output(em_engine *engine)
{
    em_status status = engine->paths ? em_output_paths_make(engine->paths) : EM_OK;

    if (status || !engine->paths)
        return status;
    status = write_output(engine);
    if (status)
        em_output_paths_unmake(engine->paths);
    return status;
}
