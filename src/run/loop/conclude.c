/* The verdict, notes and warnings at the end of a run. */
#include "base/memory.h"
#include "base/text.h"
#include "diagnostics/limits.h"
#include "model/external/failures.h"
#include "par/world.h"
#include "run/convergence/verdict.h"
#include "run/loop/engine.h"
#include "run/loop/far_modes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Counts the rejections of all ranks. A model counts them for its rank; the count is added as that
 * of the rank's first chain. */
static em_status count_rejections(em_engine *engine)
{
    em_rejections *total = &engine->report.rejections;
    EM_SCOPED double *of_chain = NULL;
    em_status status =
        em_agree(em_allocate(engine->block->n_chain + 1, sizeof *of_chain, &of_chain));

    *total = engine->model->rejections;
    if (!status) {
        of_chain[0] = (double)total->count;
        status = em_count_chains(engine, of_chain, &total->count);
    }
    return status;
}

/* Lists the first failed evaluations of all chains in JSON. Collective. */
static em_status list_failures(em_engine *engine)
{
    enum { MOST_LISTED = 32, EACH = EM_MOST_FAILURES * EM_FAILURE_BYTES };
    const int64_t n_chain = em_grid_n_chain(engine->grid);
    const void *own = engine->model->failures->text;
    EM_SCOPED double *gathered = NULL;
    em_text_stream text;
    int64_t n_listed = 0;
    em_status status = em_agree(em_allocate(n_chain, EACH, &gathered));

    if (!status) /* texts as doubles, which are copied as they are */
        status = em_grid_gather_chains(engine->grid, EACH / sizeof(double), own, gathered);
    const char *all = (const char *)(const void *)gathered;
    status = status ? status : em_text_begin(&text);
    for (int64_t i = 0; !status && i < n_chain * EM_MOST_FAILURES && n_listed < MOST_LISTED; i++)
        if (all[i * EM_FAILURE_BYTES])
            fprintf(text.out, "%s%s", n_listed++ ? ",\n " : "[", all + i * EM_FAILURE_BYTES);
    if (!status) {
        fputs(n_listed ? "]" : "[]", text.out);
        status = em_text_end(&text, status, &engine->failed_evaluations);
    }
    return em_agree(status);
}

/* Counts the evaluations that failed. Collective. */
static em_status count_failures(em_engine *engine)
{
    em_failed_evaluations *failed = &engine->report.failed_evaluations;
    const em_failures *failures = engine->model->failures;

    *failed = (em_failed_evaluations){.count = 0};
    if (!failures)
        return EM_OK;
    em_release(&engine->failed_evaluations);
    em_status status = em_count_chains(engine, failures->count, &failed->count);
    status = status ? status : em_count_chains(engine, failures->evaluations, &failed->total);
    snprintf(failed->first, sizeof failed->first, "%s", failures->first);
    if (!status && failed->count > 0 && !engine->tempering) /* whose copies are on any rank */
        status = list_failures(engine);
    failed->list = engine->failed_evaluations;
    return status;
}

/* The first kernel that is an optimiser and not a sampler. Local. */
static const char *find_optimiser(const em_engine *engine)
{
    for (int i = 0; i < engine->n_kernel; i++)
        if (engine->kernel[i].options->ops->optimises)
            return engine->kernel[i].options->ops->name;
    return NULL;
}

/* Writes how the run ended, such as "; 4 chains x 500 draws, 1 of 4 kept, ended by the stop rule".
 * Local. */
static void word_end(em_engine *engine, int64_t n_draw, size_t bytes, char *text)
{
    const em_plan *plan = &engine->plan;
    const long long n_chain = em_grid_n_chain(engine->grid),
                    thinned = plan->thin / plan->first_thin;
    const char *by = engine->report.ended_by;
    char kept[64] = "", why[128];

    if (thinned > 1)
        snprintf(kept, sizeof kept, "1 of %lld kept, ", thinned);
    if (by)
        snprintf(why, sizeof why, "by %s%s", by,
                 engine->ended == EM_ENDED_BY_TIME ? ", which no other run reproduces" : "");
    else
        snprintf(why, sizeof why, "%s", n_draw == plan->n_draw ? "as planned" : "by the stop rule");
    snprintf(text, bytes, "; %lld chain%s x %lld draw%s, %sended %s", n_chain, em_plural(n_chain),
             (long long)n_draw, em_plural(n_draw), kept, why);
}

/* Writes the verdict. There is one definition of convergence (run/convergence/verdict.h,
 * diagnostics/limits.h): R-hat and ESS are those of every progress line. */
static void word_verdict(em_engine *engine, int64_t n_draw)
{
    static const char *const ended_by[] = {[EM_GOES_ON] = "stop.max_draws",
                                           [EM_ENDED_BY_RULE] = "the stop rule",
                                           [EM_ENDED_BY_GRADIENTS] = "stop.max_gradients",
                                           [EM_ENDED_BY_TIME] = "stop.end_after",
                                           [EM_ENDED_BY_MODES] = "separate modes"};
    em_report *report = &engine->report;
    const em_stop_options *stop = &engine->config->stop;
    const int64_t n_chain = em_grid_n_chain(engine->grid);
    const em_starts starts = em_starts_of(&engine->config->run);
    char *text = report->verdict;
    const size_t bytes = sizeof report->verdict;

    char warning[512] = "";

    report->optimiser = find_optimiser(engine);
    if (engine->plan.until_done)
        report->ended_by = ended_by[engine->ended];
    if (engine->tempering)
        em_tempering_warning(&engine->tempered, n_chain, em_ess_limit(stop, starts), sizeof warning,
                             warning);
    const em_evidence evidence = {
        .r_hat = report->convergence.r_hat,
        .ess = report->convergence.ess,
        .r_hat_limit = em_r_hat_limit(stop),
        .ess_limit = em_ess_limit(stop, starts),
        .nested = starts.n_superchain > 0,
        .undefined = !report->convergence.met,
        .constant = n_chain > 1 && n_draw >= EM_STILL_DRAWS && isnan(report->convergence.r_hat),
        .divergences = report->divergences,
        .n_iteration = n_chain * (engine->done - engine->plan.warmup),
        .findings = engine->findings,
        .mode_search_log_mass = report->mode_search_log_mass,
        .is_tempered = engine->tempering != NULL,
        .tempering = warning[0] ? warning : NULL,
        .tempering_failed = engine->tempering && em_tempering_has_failed(&engine->tempered),
        .optimiser = report->optimiser,
    };
    report->converged = em_verdict_of(&evidence) != EM_NOT_CONVERGED;
    em_verdict_word(&evidence, bytes, text);
    word_end(engine, n_draw, bytes - strlen(text), text + strlen(text));
}

/* Adds a note if the samples show that the momenta are N(0, M) and carry no information, as with
 * exact gradients. */
static void note_momenta(em_engine *engine, const em_kernel *kernel)
{
    const int64_t n = em_adapt_learned(kernel->adapt).n_m_step;
    const em_m_step *record = em_adapt_m_steps(kernel->adapt, 0);
    int64_t by_chance = 0;

    for (int64_t i = 0; i < n; i++)
        by_chance += record[i].trace_deviation < 1 && record[i].diagonal_deviation < 1;
    if (n > 0 && (double)by_chance >= 0.9 * (double)n)
        snprintf(engine->report.note, sizeof engine->report.note,
                 "in %lld of %lld M-steps the momenta agreed with the current mass to within "
                 "chance: they carry no information about the mass, and nothing was learned; "
                 "mass.estimator: fisher learns it from draws and gradients",
                 (long long)by_chance, (long long)n);
}

/* Adds a note if the noise of minibatches is larger than the noise that a kernel injects, so that
 * it cannot be corrected for. Collective. */
static void note_noise(em_engine *engine, const em_kernel *kernel)
{
    const em_sampler_ops *ops = kernel->sampler->ops;
    double share = ops->noise_share ? ops->noise_share(kernel->sampler) : 0;

    em_grid_maximum(engine->grid, 1, &share);
    if (share > 1)
        snprintf(engine->report.note, sizeof engine->report.note,
                 "in some direction minibatches add %.3g times the noise that sampler %s can "
                 "correct for, so the draws are too wide there: expected at most 1; lower "
                 "sampler.step_size, or raise sampler.minibatch%s%s",
                 share, ops->name, ops->noise_remedy ? ", or " : "",
                 ops->noise_remedy ? ops->noise_remedy : "");
}

/* Collects the findings of the chain statistics. If chains disagree, it also finds the cause.
 * Collective. */
static em_status find_faults(em_engine *engine)
{
    const em_convergence *convergence = &engine->report.convergence;
    em_findings *findings = &engine->findings;
    em_status status = em_chain_statistics_find(engine->statistics, engine->grid, findings);

    engine->report.e_bfmi = findings->e_bfmi;
    if (!status && convergence->r_hat > em_r_hat_limit(&engine->config->stop))
        status = em_monitor_find_modes(engine->monitor, convergence->n_draw, &findings->modes,
                                       &findings->n_growing);
    return status;
}

/* The warmup summaries of all samplers: "topics: warmup ...; weights: warmup ...". Local. */
static void describe_kernels(em_engine *engine)
{
    char *out = engine->report.learned, text[sizeof engine->report.learned];
    const size_t bytes = sizeof engine->report.learned;

    out[0] = '\0';
    for (int i = 0; i < engine->n_kernel; i++) {
        const char *block = engine->kernel[i].options->block;
        em_adapt_summarise(engine->kernel[i].adapt, sizeof text, text);
        if (text[0])
            em_append(bytes, out, "%s%s%s%s", out[0] ? "; " : "", block ? block : "",
                      block ? ": " : "", text);
    }
}

/* Collects the findings of the samplers and of their adaptation. Collective. */
static void note_kernels(em_engine *engine)
{
    em_report *report = &engine->report;

    report->seconds.exchange = report->seconds.m_step = 0;
    for (int i = 0; i < engine->n_kernel; i++) {
        const em_kernel *kernel = &engine->kernel[i];
        note_momenta(engine, kernel);
        note_noise(engine, kernel);
        report->seconds.exchange += em_adapt_learned(kernel->adapt).exchange_seconds;
        report->seconds.m_step += em_adapt_learned(kernel->adapt).m_step_seconds;
    }
    describe_kernels(engine);
}

/* Reports starts that were drawn again, and modes without draws nearby. Collective. */
static em_status find_missed_modes(em_engine *engine)
{
    em_report *report = &engine->report;
    em_mode_findings found = {.log_mass = NAN};
    em_status status = em_count_chains(engine, engine->unusable_starts, &report->redrawn_starts);

    if (!status && engine->mode_search)
        status = em_mode_search_conclude(engine->mode_search, &found);
    if (!status && engine->mode_search && found.n_missed == 0 && isnan(found.log_mass))
        status = em_search_steep_points(engine, &found);
    if (!engine->tempering)
        report->redrawn_starts += found.n_redrawn;
    report->mode_search_log_mass = found.log_mass;
    return status;
}

/* Collects the findings of the ladders. Collective. */
static em_status conclude_tempering(em_engine *engine)
{
    em_report *report = &engine->report;

    em_release_all(&engine->tempered.of_ladder, &engine->tempered.path);
    em_status status = em_tempering_conclude(engine->tempering, engine->done, &engine->tempered);
    if (!status)
        em_tempering_describe(&engine->tempered, em_grid_n_chain(engine->grid),
                              sizeof report->tempering, report->tempering);
    return status;
}

/* Fills the report of the run. Collective. */
em_status em_engine_conclude(em_engine *engine)
{
    em_report *report = &engine->report;
    em_status status =
        em_engine_check_all(engine); /* a finished run that was resumed has not been checked */

    status = status ? status : find_faults(engine);
    status = status ? status : find_missed_modes(engine);
    status = status ? status : em_count_chains(engine, engine->unreported, &report->unreported);
    status = status ? status : count_rejections(engine);
    status = status ? status : count_failures(engine);
    if (!status && engine->tempering)
        status = conclude_tempering(engine);
    snprintf(report->failure, sizeof report->failure, "%s", em_recorder_failure(engine->recorder));
    word_verdict(engine, em_plan_stored(&engine->plan, engine->done));
    note_kernels(engine);
    report->evaluations = em_posterior_evaluations(engine->posterior);
    if (engine->tempering)
        report->evaluations += em_tempering_evaluations(engine->tempering);
    return status;
}
