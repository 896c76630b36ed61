/* How far a run is, and whether its chains agree. */
#include "par/world.h"
#include "run/loop/engine.h"

#include <math.h>

/* Over all chains. Collective. */
em_status em_count_chains(const em_engine *engine, const double *of_chain, int64_t *out)
{
    double sum = 0;
    em_status status = em_grid_sum_chains(engine->grid, 1, of_chain, &sum);

    *out = (int64_t)llround(sum);
    return status;
}

em_status em_engine_check(em_engine *engine, int64_t done, bool thorough)
{
    const double start = em_clock();
    em_status status = em_monitor_check(engine->monitor, em_plan_stored(&engine->plan, done),
                                        thorough, &engine->report.convergence);

    if (!status)
        status = em_chain_statistics_divergences(engine->statistics, engine->grid,
                                                 &engine->report.divergences);
    engine->ended = engine->report.convergence.stop;
    engine->report.seconds.diagnostics += em_clock() - start;
    return status;
}

/* All numbers of all draws, for the last line of progress and the verdict. The stop rule, which a
 * longer run goes on with, counts planned checks only. Collective. */
em_status em_engine_check_all(em_engine *engine)
{
    const int64_t n_draw = em_plan_stored(&engine->plan, engine->done);
    const em_convergence *convergence = &engine->report.convergence;
    const int64_t times_met = em_monitor_times_met(engine->monitor);
    const bool ended = engine->ended;
    em_status status = EM_OK;

    if (convergence->n_draw != n_draw || !convergence->thorough)
        status = em_engine_check(engine, engine->done, true);
    em_monitor_set_times_met(engine->monitor, times_met);
    engine->ended = ended;
    return status;
}

const em_report *em_engine_report(em_engine *engine)
{
    em_report *report = &engine->report;
    const int64_t done = engine->done;

    report->n_chain = engine->config->run.chains;
    report->done = done;
    report->before = engine->first_done;
    report->warmup = engine->plan.warmup;
    report->total = engine->ended ? done : engine->plan.total;
    report->n_draw = done > report->warmup ? em_plan_stored(&engine->plan, done) : 0;
    report->r_hat_limit = em_monitor_r_hat_limit(&engine->config->stop);
    report->ess_limit =
        em_monitor_ess_limit(&engine->config->stop, em_monitor_starts(&engine->config->run));
    if (!report->finished && engine->started > 0)
        report->seconds.total = em_clock() - engine->started;
    report->seconds.checkpoint = engine->longest_checkpoint;
    return report;
}
