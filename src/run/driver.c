#include "run/driver.h"

#include "base/locale.h"
#include "base/memory.h"
#include "diag/limits.h"
#include "math/linalg.h"
#include "par/world.h"
#include "run/engine.h"
#include "run/kernel.h"
#include "run/recorder.h"
#include "run/same.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---------------------------------------------------------------- the loop */

static em_status step(em_engine *engine, int64_t iteration)
{
    em_status status = em_kernels_step(engine, iteration);

    if (status < 0)
        return status;
    if (iteration >= engine->plan.warmup)
        em_tally_take(engine->tally, engine->block,
                      (iteration + 1 - engine->plan.warmup) % engine->plan.thin == 0);
    status = em_recorder_take(engine->recorder, engine->block, engine->kernel_block, iteration,
                              engine->monitor, engine->unreported);
    return status < 0 ? status : EM_OK;
}

/* Over all chains. Collective. */
static em_status count(const em_engine *engine, const double *of_chain, int64_t *out)
{
    double sum = 0;
    em_status status = em_grid_sum_chains(engine->grid, 1, of_chain, &sum);

    *out = (int64_t)llround(sum);
    return status;
}

/* The model's own count of this rank, which is added as if it were that of its first chain. */
static em_status count_rejections(em_engine *engine)
{
    em_rejections *total = &engine->report.rejections;
    double *of_chain = NULL;
    em_status status = em_agree(em_allocate(engine->block->n_chain, sizeof *of_chain, &of_chain));

    *total = engine->model->rejections;
    if (!status) {
        of_chain[0] = (double)total->count;
        status = count(engine, of_chain, &total->count);
    }
    em_release(&of_chain);
    return status;
}

static em_status check(em_engine *engine, int64_t done, bool thorough)
{
    const double start = em_clock();
    em_status status = em_monitor_check(engine->monitor, em_plan_stored(&engine->plan, done),
                                        thorough, &engine->report.convergence);

    if (!status)
        status = em_tally_divergences(engine->tally, engine->grid, &engine->report.divergences);
    engine->ended = engine->report.convergence.stop;
    engine->report.seconds.diagnostics += em_clock() - start;
    return status;
}

/* All numbers of all draws, for the last line of progress and the verdict. The stop rule, which a
 * longer run goes on with, counts planned checks only. Collective. */
static em_status check_all(em_engine *engine)
{
    const int64_t n_draw = em_plan_stored(&engine->plan, engine->done);
    const em_convergence *convergence = &engine->report.convergence;
    const int64_t times_met = em_monitor_times_met(engine->monitor);
    const bool ended = engine->ended;
    em_status status = EM_OK;

    if (convergence->n_draw != n_draw || !convergence->thorough)
        status = check(engine, engine->done, true);
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
    report->warmup = engine->plan.warmup;
    report->total = engine->ended ? done : engine->plan.total;
    report->n_draw = done > report->warmup ? em_plan_stored(&engine->plan, done) : 0;
    report->r_hat_limit = em_monitor_r_hat_limit(&engine->config->stop);
    report->ess_limit = em_monitor_ess_limit(&engine->config->stop, report->n_chain);
    if (!report->finished && engine->started > 0)
        report->seconds.total = em_clock() - engine->started;
    return report;
}

static void tell(em_engine *engine)
{
    if (engine->order.progress)
        engine->order.progress(engine->order.progress_to, em_engine_report(engine));
}

/* Seconds until Slurm ends the job, where it says when, less what mpirun needs to end. Rank 0. */
static double job_seconds_left(void)
{
    enum { MPIRUN_SECONDS = 15 };
    const char *text = getenv("SLURM_JOB_END_TIME");
    const double end = text ? strtod(text, NULL) : 0;

    return end > 0 ? end - MPIRUN_SECONDS - (double)time(NULL) : INFINITY;
}

/* Time is over a little before the end: ten seconds, and what three checkpoints took. Rank 0. */
static em_tempo tempo_now(const em_engine *engine)
{
    const double now = em_clock(), elapsed = now - engine->started;
    const double per_iteration =
        engine->report.seconds.sampling / (double)(engine->done - engine->first_done);

    return (em_tempo){
        .pace = per_iteration < 1e-6 ? 1000000 : (int64_t)(1 / per_iteration) + 1,
        .over = elapsed > engine->config->stop.max_time ||
                (engine->place && job_seconds_left() < 10 + 3 * engine->longest_checkpoint),
        .checkpoint = engine->place &&
                      now - engine->last_checkpoint > engine->config->output.checkpoint_every,
        .write = now - engine->last_write > 1};
}

/* The tempo goes with the agreement at the end of a segment, as one word: every other collective
 * costs a turn of all ranks where they are more than there are processors. */
static void tell_tempo(em_tempo tempo)
{
    em_world_tell((int)(tempo.pace << 3 | tempo.write << 2 | tempo.over << 1 | tempo.checkpoint));
}

static em_tempo told_tempo(void)
{
    const int word = em_world_told();

    return (em_tempo){
        .pace = word >> 3, .write = word >> 2 & 1, .over = word >> 1 & 1, .checkpoint = word & 1};
}

static em_status stop_early(em_engine *engine, const char *why)
{
    em_status status = engine->place ? em_engine_save(engine) : EM_OK;

    em_world_resume();
    return status ? status
                  : em_fail(EM_ESTOPPED, "stopped by %s after %lld of %lld iterations%s", why,
                            (long long)engine->done, (long long)engine->plan.total,
                            engine->place ? ", with a checkpoint: go on with --resume" : "");
}

/* Iterations up to `end`, without waiting for other ranks; then all agree. Collective. */
static em_status run_segment(em_engine *engine, int64_t end)
{
    const double start = em_clock();
    em_status status = EM_OK;

    while (!status && engine->done < end)
        status = step(engine, engine->done++);
    engine->report.seconds.sampling += em_clock() - start;
    tell_tempo(tempo_now(engine));
    return em_agree(status);
}

/* Writes the draws, unless few are waiting, and not for long. At the end of warmup they go to
 * another group. Collective. */
static em_status write_draws(em_engine *engine, bool due)
{
    const em_plan *plan = &engine->plan;
    const int64_t stored = em_plan_stored(plan, engine->done);
    em_status status;

    if (!due && engine->done != plan->warmup && engine->done != plan->total && !engine->ended &&
        !em_plan_must_write(plan, stored - engine->n_written))
        return EM_OK;
    status = em_recorder_flush(engine->recorder);
    engine->last_write = em_clock();
    engine->n_written = engine->done == plan->warmup ? 0 : stored;
    return status;
}

/* What is due at a planned stop: write, check, tell. Collective. */
static em_status pause_at(em_engine *engine)
{
    const double start = em_clock();
    em_status status = write_draws(engine, told_tempo().write);

    if (engine->done == engine->plan.warmup) /* steps are too long there, on purpose */
        engine->model->rejections = (em_rejections){.count = 0};
    engine->report.seconds.writing += em_clock() - start;
    if (!status && em_plan_checks(&engine->plan, engine->done))
        status = check(engine, engine->done, false);
    if (!status && (engine->done == engine->plan.total || engine->ended))
        status = check_all(engine);
    tell(engine);
    return status;
}

/* A meeting of the chains, at which warmup may end: *ended. Collective. */
static em_status meet(em_engine *engine, int64_t from, bool *ended)
{
    em_status status = em_kernels_meet(engine, from, ended);

    if (*ended)
        em_plan_end_warmup(&engine->plan, engine->done);
    return status;
}

/* What is due after a segment that began at `from`: nothing, or a meeting, a planned stop. */
static em_status meet_and_pause(em_engine *engine, int64_t from, int64_t meeting, int64_t stop)
{
    const int64_t end = engine->done;
    bool ended = false;
    em_status status = EM_OK;

    if (engine->order.watchful && (end == meeting || end == stop))
        status = em_same_chains(engine);
    if (!status && end == meeting && end <= engine->plan.warmup)
        status = meet(engine, from, &ended);
    if (!status && (ended || end == stop))
        status = pause_at(engine);
    return status;
}

/*
 * Segments between meetings, up to `most` iterations: within one, ranks do not wait for each other.
 * They end where chains meet to adapt, at planned stops, and about every second; only the first two
 * change what is drawn.
 */
static em_status sample(em_engine *engine, int64_t most)
{
    const em_plan *plan = &engine->plan;
    em_status status = EM_OK;

    while (!status && engine->done < most && engine->done < plan->total && !engine->ended) {
        const int64_t stop = em_plan_next_stop(plan, engine->done);
        const int64_t meeting =
            engine->done < plan->warmup ? em_kernels_next_meeting(engine, engine->done) : stop;
        const int64_t near = least(most, meeting < stop ? meeting : stop);
        const int64_t end = least(near, engine->done + engine->tempo.pace), from = engine->done;

        status = run_segment(engine, end);
        const bool interrupted = em_world_interrupted();
        if (!status)
            status = meet_and_pause(engine, from, meeting, stop);
        if (status || engine->ended || engine->done == plan->total)
            break;
        engine->tempo = told_tempo();
        if (interrupted || engine->tempo.over)
            status = stop_early(engine, interrupted ? "a signal" : "the time limit");
        else if (engine->tempo.checkpoint)
            status = em_engine_save(engine);
    }
    return status;
}

/* ---------------------------------------------------------------- the end */

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

/* A number and the limit it is held to: "worst R-hat 1.003 (limit 1.01)". */
static void append_number(char *text, size_t bytes, const char *what, const char *format,
                          double value, double limit)
{
    const size_t length = strlen(text);
    char number[32];

    snprintf(number, sizeof number, format, value);
    snprintf(text + length, bytes - length, "%s %s (limit %g)", what,
             isnan(value) ? "undefined" : number, limit);
}

/* One definition of convergence (diag/limits.h): R-hat and ESS, as every progress line has them; no
 * divergence, no chain that stood still; and, of samplers that have an energy, E-BFMI. */
static void word_verdict(em_engine *engine, int64_t n_draw)
{
    em_report *report = &engine->report;
    const em_stop_options *stop = &engine->config->stop;
    const int64_t n_chain = em_grid_n_chain(engine->grid);
    const char *why = n_draw == engine->plan.n_draw ? "as planned" : "by the stop rule";
    char *text = report->verdict;
    const size_t bytes = sizeof report->verdict;

    report->converged = report->convergence.met && report->divergences == 0 &&
                        !(report->e_bfmi < EM_E_BFMI_LIMIT) && engine->findings.n_still == 0;
    snprintf(text, bytes, "%s", report->converged ? "converged" : "not converged");
    append_number(text, bytes, ": worst R-hat", "%.3f", report->convergence.r_hat,
                  em_monitor_r_hat_limit(stop));
    append_number(text, bytes, ", smallest ESS", "%.0f", report->convergence.ess,
                  em_monitor_ess_limit(stop, n_chain));
    if (!isnan(report->e_bfmi))
        append_number(text, bytes, ", smallest E-BFMI", "%.2f", report->e_bfmi, EM_E_BFMI_LIMIT);
    snprintf(text + strlen(text), bytes - strlen(text), ", %lld divergence%s%s",
             (long long)report->divergences, plural(report->divergences),
             report->divergences ? " (limit 0)" : "");
    em_findings_append(&engine->findings, bytes, text);
    snprintf(text + strlen(text), bytes - strlen(text), "; %lld chain%s x %lld draw%s, ended %s",
             (long long)n_chain, plural(n_chain), (long long)n_draw, plural(n_draw), why);
}

/* With exact gradients momenta are N(0, M) whatever M is: says so when the samples show it. */
static void note_momenta(em_engine *engine, const em_kernel *kernel)
{
    const int64_t n = em_adapt_n_m_step(kernel->adapt);
    const em_m_step *record = em_adapt_m_steps(kernel->adapt, 0);
    int64_t by_chance = 0;

    for (int64_t i = 0; i < n; i++)
        by_chance += record[i].trace_deviation < 1 && record[i].diagonal_deviation < 1;
    if (n > 0 && (double)by_chance >= 0.9 * (double)n)
        snprintf(
            engine->report.note, sizeof engine->report.note,
            "in %lld of %lld M-steps the momenta were what the current mass predicts, to within "
            "chance: they carry no information about the mass, and nothing was learned; "
            "mass.estimator: fisher learns it from draws and gradients",
            (long long)by_chance, (long long)n);
}

/* Says so when minibatches bring more noise than a kernel can leave out of its own. Collective. */
static void note_noise(em_engine *engine, const em_kernel *kernel)
{
    const em_sampler_ops *ops = kernel->sampler->ops;
    double share = ops->noise_share ? ops->noise_share(kernel->sampler) : 0;

    em_grid_maximum(engine->grid, 1, &share);
    if (share > 1)
        snprintf(engine->report.note, sizeof engine->report.note,
                 "minibatches bring up to %.3g times the noise that sampler %s may have in some "
                 "direction, so that draws are too wide there: expected at most 1; lower "
                 "sampler.step_size, or raise sampler.minibatch%s",
                 share, ops->name, strcmp(ops->name, "sghmc") == 0 ? " or the friction" : "");
}

/* What the tally says; and where chains do not agree, whether that is the fault of a few.
 * Collective. */
static em_status find_faults(em_engine *engine)
{
    const em_convergence *convergence = &engine->report.convergence;
    em_status status = em_tally_find(engine->tally, engine->grid, &engine->findings);

    engine->report.e_bfmi = engine->findings.e_bfmi;
    if (!status && convergence->r_hat > em_monitor_r_hat_limit(&engine->config->stop))
        status =
            em_monitor_find_apart(engine->monitor, convergence->n_draw, &engine->findings.apart);
    return status;
}

/* What the samplers took and found. Collective. */
static void note_kernels(em_engine *engine)
{
    em_report *report = &engine->report;
    double exchange, m_step;

    report->seconds.exchange = report->seconds.m_step = 0;
    for (int i = 0; i < engine->n_kernel; i++) {
        const em_kernel *kernel = &engine->kernel[i];
        note_momenta(engine, kernel);
        note_noise(engine, kernel);
        em_adapt_seconds(kernel->adapt, &exchange, &m_step);
        report->seconds.exchange += exchange;
        report->seconds.m_step += m_step;
    }
    if (engine->n_kernel == 1)
        em_adapt_describe(engine->kernel[0].adapt, sizeof report->learned, report->learned);
}

/* What there is to say of the run as a whole. Collective. */
static em_status conclude(em_engine *engine)
{
    em_report *report = &engine->report;
    em_status status = check_all(engine); /* a finished run that was resumed has not been checked */

    if (!status)
        status = find_faults(engine);
    if (!status)
        status = count(engine, engine->unreported, &report->unreported);
    if (!status)
        status = count_rejections(engine);
    snprintf(report->failure, sizeof report->failure, "%s", em_recorder_failure(engine->recorder));
    word_verdict(engine, em_plan_stored(&engine->plan, engine->done));
    note_kernels(engine);
    report->evaluations = em_posterior_evaluations(engine->posterior);
    report->seconds.checkpoint = engine->longest_checkpoint;
    return status;
}

/* The last checkpoint lets a finished run be extended; and until the file is complete its draws
 * stand beside it, because HDF5 may lose a file whose metadata was half written. */
static em_status finish(em_engine *engine)
{
    em_status status = conclude(engine);

    if (!status && engine->place)
        status = em_engine_save(engine);
    if (!status && engine->place)
        status = em_place_copy_draws(engine->place);
    if (!status)
        status = em_recorder_finish(engine->recorder, em_engine_report(engine));
    if (!status && engine->place)
        status = em_place_forget_draws(engine->place);
    em_engine_report(engine);
    engine->report.finished = !status;
    return status;
}

static em_status write_output(em_engine *engine)
{
    const em_layout *layout = em_recorder_layout(engine->recorder);
    em_sink sink;
    em_status status =
        em_output_create(engine->config, engine->place->output, engine->grid, engine->model,
                         &engine->plan, engine->adapts, &engine->created, &engine->output);

    if (status)
        return status;
    sink = em_output_sink(engine->output);
    status = sink.begin(sink.state, layout);
    if (!status)
        em_recorder_add(engine->recorder, &sink, true);
    return status;
}

em_status em_engine_make_output(em_engine *engine)
{
    em_status status = engine->place ? em_place_make(engine->place) : EM_OK;

    if (status || !engine->place)
        return status;
    status = write_output(engine);
    if (status)
        em_place_unmake(engine->place);
    else
        em_place_warn_room(engine->place);
    return status;
}

/* Chains and output, either where a checkpoint left them or at the beginning. */
static em_status begin(em_engine *engine, em_standing standing)
{
    bool resumed = false;
    em_status status = em_engine_create_chains(engine);

    if (!status)
        status = em_recorder_begin(engine->recorder);
    if (!status && standing == EM_STANDS_PARTIAL) {
        status = em_engine_resume(engine, &resumed);
        if (status || resumed)
            return status;
        em_engine_destroy_chains(engine);
        engine->done = 0;
        engine->ended = false;
        status = em_engine_create_chains(engine);
        if (!status)
            status = em_recorder_begin(engine->recorder);
    }
    if (!status)
        status = em_engine_start_chains(engine);
    if (!status && engine->place)
        status = em_place_clear(engine->place);
    return status ? status : em_engine_make_output(engine);
}

/* What stands where the output goes. Collective. */
static em_status take_place(em_engine *engine, em_standing *standing)
{
    em_status status = em_place_take(engine->config, &engine->place);

    if (!status)
        status = em_checkpoint_look(engine->config, engine->place, engine->order.mode, standing);
    engine->report.was_finished = engine->report.finished = *standing == EM_STANDS_FINISHED;
    if (!status && engine->report.was_finished)
        status = em_place_forget_draws(engine->place);
    return status;
}

static em_status set_up(em_engine *engine)
{
    const em_config *config = engine->config;
    em_standing standing = EM_STANDS_NOTHING;
    em_status status = em_grid_create(config->run.chains, config->run.shards, &engine->grid);

    if (!status && engine->order.mode != EM_RUN_NO_FILE)
        status = take_place(engine, &standing);
    if (status || engine->report.was_finished)
        return status;
    status = em_engine_load(engine);
    if (!status)
        status = begin(engine, standing);
    engine->first_done = engine->done;
    engine->started = engine->last_checkpoint = engine->last_write = em_clock();
    return status;
}

em_status em_engine_create(const em_config *config, const em_order *order, em_engine **out)
{
    em_engine *engine = NULL;
    em_locale locale = em_locale_enter();
    em_status status = em_agree(em_allocate(1, sizeof *engine, &engine));

    *out = engine;
    if (!status) {
        engine->config = config;
        engine->order = *order;
#ifdef EM_DEBUG
        engine->order.watchful = true;
#endif
        engine->tempo.pace = 1;
        engine->report.convergence.r_hat = engine->report.convergence.ess = NAN;
        engine->report.e_bfmi = NAN;
        em_linalg_use_threads(1); /* ranks are the parallelism; and threads change the bits */
        status = set_up(engine);
    }
    if (status)
        em_engine_destroy(out);
    em_locale_leave(&locale);
    return status;
}

em_status em_engine_advance(em_engine *engine, int64_t iterations)
{
    em_report *report = &engine->report;
    em_locale locale = em_locale_enter();
    const int64_t left = engine->plan.total - engine->done;
    em_status status = engine->failure;

    if (!status && !report->finished) {
        status = sample(engine, engine->done + least(iterations, left));
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
    em_place_release(&engine->place);
    em_recorder_destroy(&engine->recorder);
    em_engine_destroy_chains(engine);
    if (engine->model)
        engine->config->model->destroy(engine->model);
    em_grid_destroy(&engine->grid);
    em_release(out);
}

em_status em_sample(const em_config *config, const em_order *order, em_report *report)
{
    em_engine *engine;
    em_status status = em_engine_create(config, order, &engine);

    *report = (em_report){.convergence = {.r_hat = NAN, .ess = NAN}};
    if (!status)
        status = em_engine_advance(engine, INT64_MAX);
    if (engine)
        *report = *em_engine_report(engine);
    em_engine_destroy(&engine);
    return status;
}
