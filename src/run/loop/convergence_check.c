/* Reports the progress of a run, and checks whether its chains agree. */
#include "base/memory.h"
#include "run/loop/engine.h"

#include <math.h>

/* Sums a count over all chains. Collective. */
em_status em_count_chains(const em_engine *engine, const double *of_chain, int64_t *out)
{
    double sum = 0;
    em_status status = em_grid_sum_chains(engine->grid, 1, of_chain, &sum);

    *out = (int64_t)llround(sum);
    return status;
}

/* Whether draws: auto may end a tempered run whose draws meet the rule. It may if the weights of
 * modes are known as well, so that more draws would not help. Collective. */
static em_status check_ladders(em_engine *engine, int64_t done, bool *may_end)
{
    const em_stop_options *stop = &engine->config->stop;
    const double ess_limit = em_ess_limit(stop, em_starts_of(&engine->config->run));

    em_release_all(&engine->tempered.of_ladder, &engine->tempered.path);
    const em_status status = em_tempering_conclude(engine->tempering, done, &engine->tempered);
    *may_end = !status && !em_tempering_needs_draws(&engine->tempered,
                                                    em_grid_n_chain(engine->grid), ess_limit);
    return status;
}

/* The worst R-hat of all numbers. A check of the stop rule ends at the first number that misses the
 * limits, and which one that is depends on the number of ranks. Collective. */
static em_status find_worst_r_hat(em_engine *engine, int64_t n_draw, double *out)
{
    em_convergence all = {0};
    em_status status = em_monitor_check(engine->monitor, n_draw, true, false, &all);

    *out = all.r_hat;
    return status;
}

/*
 * Whether chains are in separate modes, and already were after half as many draws, in as many or
 * fewer of them. Then a longer run with draws: auto does not help. The test is made if the number
 * of checks is a power of two, and not before 4 % of stop.max_draws. A run that could converge by
 * stop.max_draws would have an ESS of at least 100 for each chain then, for the weights of modes as
 * well. So the rates at which two chains leave two modes would add up to 8 or more within 4 % of
 * the draws, and the chance that neither leaves is at most exp(-8). Tempered chains cross by swaps
 * and are not tested. Collective.
 */
static em_status check_modes(em_engine *engine, int64_t done, bool *separate)
{
    static const double separated = 1.1, share = 0.04;
    const em_stop_options *stop = &engine->config->stop;
    const em_plan *plan = &engine->plan;
    const int64_t drawn = (done - plan->warmup) / plan->first_thin,
                  checks = drawn / stop->check_every;
    em_modes now = {0}, before = {0};
    int64_t n_growing = 0;
    double r_hat = 0;

    *separate = false;
    if (!plan->until_done || !stop->separate_modes || engine->tempering || checks < 1 ||
        (checks & (checks - 1)) != 0 || (double)drawn < share * (double)stop->max_draws ||
        engine->report.convergence.met)
        return EM_OK;
    em_status status =
        em_monitor_find_modes(engine->monitor, em_plan_stored(plan, done), &now, &n_growing);
    if (!status && em_modes_are_settled(&now))
        status = em_monitor_find_modes(engine->monitor, em_plan_stored(plan, done) / 2, &before,
                                       &n_growing);
    if (!status && em_modes_stay_separate(&before, &now) && n_growing == 0)
        status = find_worst_r_hat(engine, em_plan_stored(plan, done), &r_hat);
    *separate = r_hat > separated;
    return status;
}

/*
 * Whether draws: auto may end by its default rule. The run must have at least 4000 draws of all
 * chains, as in other programs, or sampling must have taken twice as many gradients as warmup.
 * Without this condition a run with cheap draws ended while most of its time was still that of
 * warmup. Collective.
 */
static em_status check_length(em_engine *engine, int64_t done, bool *may_end)
{
    static const double enough = 4000, times_warmup = 2;
    const em_stop_options *stop = &engine->config->stop;
    const double drawn = (double)(done - engine->plan.warmup) / (double)engine->plan.first_thin *
                         (double)engine->config->run.chains;
    int64_t sampling = 0;
    double warmup = 0;

    *may_end = !engine->plan.until_done || engine->tempering || stop->r_hat > 0 || stop->ess > 0 ||
               drawn >= enough;
    if (*may_end)
        return EM_OK;
    for (int i = 0; i < engine->n_kernel; i++) {
        const em_adapt *adapt = engine->kernel[i].adapt;
        const int64_t n = em_adapt_learned(adapt).n_phase;
        warmup += n > 0 ? em_adapt_learned(adapt).phase[n - 1].gradients : 0;
    }
    const em_status status = em_count_chains(engine, engine->gradients, &sampling);
    *may_end = (double)sampling >= times_warmup * warmup;
    return status;
}

em_status em_engine_check(em_engine *engine, int64_t done)
{
    const double start = em_clock();
    int64_t gradients = 0;
    bool separate = false, may_end = true;
    em_status status = check_length(engine, done, &may_end);

    if (!status)
        status = em_monitor_check(engine->monitor, em_plan_stored(&engine->plan, done), false,
                                  may_end, &engine->report.convergence);
    if (!status)
        status = em_chain_statistics_divergences(engine->statistics, engine->grid,
                                                 &engine->report.divergences);
    if (!status && engine->tempering && engine->plan.until_done && engine->report.convergence.stop)
        status = check_ladders(engine, done, &engine->report.convergence.stop);
    if (!status && engine->config->stop.max_gradients > 0)
        status = em_count_chains(engine, engine->gradients, &gradients);
    status = status ? status : check_modes(engine, done, &separate);
    engine->ended =
        engine->report.convergence.stop ? EM_ENDED_BY_RULE
        : engine->config->stop.max_gradients > 0 && gradients >= engine->config->stop.max_gradients
            ? EM_ENDED_BY_GRADIENTS
        : separate ? EM_ENDED_BY_MODES
                   : EM_GOES_ON;
    engine->report.seconds.diagnostics += em_clock() - start;
    return status;
}

em_status em_engine_check_all(em_engine *engine)
{
    const double start = em_clock();
    const int64_t n_draw = em_plan_stored(&engine->plan, engine->done);
    em_convergence *convergence = &engine->report.convergence;

    if (convergence->n_draw == n_draw && convergence->thorough)
        return EM_OK;
    em_status status = em_monitor_check(engine->monitor, n_draw, true, false, convergence);
    if (!status)
        status = em_chain_statistics_divergences(engine->statistics, engine->grid,
                                                 &engine->report.divergences);
    engine->report.seconds.diagnostics += em_clock() - start;
    return status;
}

em_diagnoses *em_engine_diagnoses(const em_engine *engine)
{
    return engine->monitor ? em_monitor_diagnoses(engine->monitor) : NULL;
}

/* The iterations in a second, once iterations take about equally long; NaN before that. */
static double find_rate(em_engine *engine)
{
    const int64_t even_from = em_least(engine->model->even_from, engine->plan.warmup);
    const double now = em_clock();

    if (engine->even_since == 0 && engine->done >= even_from) {
        const bool always = engine->first_done >= even_from;
        engine->even_since = always ? engine->started : now;
        engine->even_done = always ? engine->first_done : engine->done;
    }
    return engine->even_since > 0 && engine->done > engine->even_done && now > engine->even_since
               ? (double)(engine->done - engine->even_done) / (now - engine->even_since)
               : NAN;
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
    report->n_draw = em_plan_stored_draws(&engine->plan, done).sampling;
    report->r_hat_limit = em_r_hat_limit(&engine->config->stop);
    report->ess_limit = em_ess_limit(&engine->config->stop, em_starts_of(&engine->config->run));
    if (!report->finished && engine->started > 0) {
        report->seconds.total = em_clock() - engine->started;
        report->rate = find_rate(engine);
    }
    report->seconds.checkpoint = engine->longest_checkpoint;
    return report;
}

em_progress_record em_report_progress(const em_report *report)
{
    const bool sampling = report->done > report->warmup;
    const double rate = (double)(report->done - report->before) / report->seconds.total;

    return (em_progress_record){.iteration = report->done,
                                .total = report->total,
                                .phase = sampling ? "sampling" : "warmup",
                                .r_hat = sampling ? report->convergence.r_hat : NAN,
                                .ess = sampling ? report->convergence.ess : NAN,
                                .some_numbers = !report->convergence.thorough,
                                .divergences = report->divergences,
                                .at_most = !sampling,
                                .draws_per_second = rate > 0 ? rate * (double)report->n_chain : NAN,
                                .seconds_left =
                                    (double)(report->total - report->done) / report->rate};
}
