#include "run/loop/auto_tempering.h"

#include "base/memory.h"
#include "par/world.h"
#include "run/loop/run_kernel.h"

#include <string.h>

/* Whether the decision for or against tempering is not yet made. */
static bool is_open(const em_engine *engine)
{
    return engine->warmup_draws && !engine->tempering && engine->done < engine->plan.warmup;
}

void em_auto_tempering_take(em_engine *engine, int64_t iteration)
{
    if (engine->warmup_draws && !engine->tempering && iteration < engine->plan.warmup)
        em_warmup_draws_take(engine->warmup_draws, engine->block, iteration);
}

/* ---------------------------------------------------------------- the ladders begin */

/* What the chains hand over to the ladders. This struct owns its arrays. */
typedef struct handover {
    double *theta, *mean, *variance, *inverse_mass;
    em_noncentring_row *noncentring;
    em_tempering_beginning beginning;
} handover;

/* Collective. */
static em_status take_chains(em_engine *engine, handover *h)
{
    const int64_t stride = engine->block->stride, dim = engine->model->dim;
    const em_noncentring *map = em_kernels_map(engine);
    bool known = false;
    em_status status = em_allocate_all(EM_ARRAY(h->theta, em_grid_n_chain(engine->grid) * stride),
                                       EM_ARRAY(h->mean, dim), EM_ARRAY(h->variance, dim),
                                       EM_ARRAY(h->inverse_mass, dim));

    if (!status && map)
        status = em_allocate(dim, sizeof *h->noncentring, &h->noncentring);
    if (!status && map)
        memcpy(h->noncentring, map->row, (size_t)dim * sizeof *map->row);
    for (int i = 0; i < engine->n_kernel; i++)
        h->beginning.step_size[i] = em_adapt_learned(engine->kernel[i].adapt).step_size[0];
    status = em_agree(status);
    status = status ? status : em_kernels_inverse_mass(engine, h->inverse_mass);
    if (!status)
        status = em_grid_gather_chains(engine->grid, stride, engine->block->theta, h->theta);
    if (!status)
        status = em_warmup_draws_moments(engine->warmup_draws, map, h->mean, h->variance, &known);
    if (status)
        return status;
    h->beginning.theta = h->theta;
    h->beginning.mean = known ? h->mean : NULL;
    h->beginning.variance = h->variance;
    h->beginning.inverse_mass = h->inverse_mass;
    h->beginning.noncentring = h->noncentring;
    em_broadcast(h->beginning.step_size, sizeof h->beginning.step_size);
    return EM_OK;
}

/* Replaces the samplers by ladders, which have no positions yet. Collective. */
static em_status exchange(em_engine *engine)
{
    em_kernels_destroy(engine);
    memset(engine->adapts, 0, sizeof engine->adapts);
    em_release_owner(&engine->statistics);
    em_mode_search_destroy(&engine->mode_search);
    em_release_owner(&engine->warmup_draws);
    em_status status = em_agree(
        em_chain_statistics_create(NULL, em_grid_n_local_chain(engine->grid), &engine->statistics));
    status = status ? status : em_ladders_create(engine);
    return status ? status : em_agree(em_engine_create_search(engine));
}

static em_status begin_ladders(em_engine *engine)
{
    handover h = {.theta = NULL};
    em_status status = take_chains(engine, &h);

    status = status ? status : exchange(engine);
    status = status ? status : em_engine_start_ladders(engine, &h.beginning);
    em_release_all(&h.theta, &h.mean, &h.variance, &h.inverse_mass, &h.noncentring);
    return status;
}

/* ---------------------------------------------------------------- the decision */

em_status em_auto_tempering_decide(em_engine *engine, bool *ended)
{
    em_plan *plan = &engine->plan;
    em_warmup_modes found;

    if (!engine->warmup_draws || engine->tempering)
        return EM_OK;
    const em_status status = em_warmup_draws_find_modes(engine->warmup_draws, engine->mode_search,
                                                        engine->posterior, &found);
    if (status || !em_warmup_modes_several(&found)) {
        em_release_owner(&engine->warmup_draws);
        return status;
    }
    em_warmup_modes_describe(&found, sizeof engine->why_tempered, engine->why_tempered);
    engine->first_tempered = engine->done;
    em_say("warmup ends after %lld iterations in several modes, %s: the run continues with "
           "parallel tempering",
           (long long)engine->done, engine->why_tempered);
    em_plan_end_warmup(plan, engine->done + em_tempering_most_warmup(engine->config->run.warmup));
    *ended = false;
    return begin_ladders(engine);
}

/* ---------------------------------------------------------------- checkpoints */

em_status em_auto_tempering_visit(em_engine *engine, const em_visitor *visitor)
{
    enum { SWITCHED, FIRST, WHY, N = WHY + sizeof engine->why_tempered / sizeof(double) };
    double x[N] = {engine->tempering != NULL, (double)engine->first_tempered};

    if (!em_config_tempers_later(engine->config))
        return EM_OK;
    memcpy(x + WHY, engine->why_tempered, sizeof engine->why_tempered);
    em_status status = visitor->shared(visitor->context, "tempered", N, x);
    if (status)
        return status;
    if (visitor->restores && x[SWITCHED] != 0 && !engine->tempering) {
        engine->first_tempered = (int64_t)x[FIRST];
        memcpy(engine->why_tempered, x + WHY, sizeof engine->why_tempered);
        engine->why_tempered[sizeof engine->why_tempered - 1] = '\0';
        status = exchange(engine);
    }
    if (!status && is_open(engine))
        status = em_warmup_draws_visit(engine->warmup_draws, visitor);
    return status;
}
