#include "app/summary/evidence.h"

#include "base/memory.h"
#include "base/text.h"
#include "diagnostics/divergence_clustering.h"
#include "diagnostics/growth.h"
#include "diagnostics/limits.h"
#include "diagnostics/tail_shape.h"
#include "math/order.h"
#include "par/world.h"
#include "run/output/output.h"

#include <math.h>
#include <mpi.h>
#include <string.h>

#include "par/mpi_world.h"

/* ---------------------------------------------------------------- the files */

int64_t em_superchains_of(em_reader *reader)
{
    int64_t total = 0, size = 0, n;

    for (; reader; reader = em_reader_next(reader)) {
        const int64_t n_chain = em_reader_n_own_chain(reader);
        if (!em_reader_int(reader, "superchains", &n) || n < 1 || n_chain % n != 0 ||
            (size > 0 && n_chain / n != size))
            return 0;
        size = n_chain / n;
        total += n;
    }
    return total > 1 ? total : 0;
}

const em_reader *em_find_incomplete(em_reader *reader)
{
    int64_t complete;

    for (; reader; reader = em_reader_next(reader))
        if (em_reader_int(reader, "complete", &complete) && !complete)
            return reader;
    return NULL;
}

em_status em_expect_draws(em_reader *reader, const char *group)
{
    if (em_reader_n_draw(reader) > 0 && em_reader_n_chain(reader) > 0)
        return EM_OK;
    const em_reader *unfinished = em_find_incomplete(reader);
    return em_fail(EM_EDATA, "%s: group %s has no draws%s",
                   em_reader_path(unfinished ? unfinished : reader), group,
                   unfinished ? " yet: its run is in warmup, or was stopped there; emass run "
                                "--resume continues a stopped run"
                              : "");
}

/* The sum of an attribute over the files. `before`: the name of the attribute in files of earlier
 * versions. */
static int64_t sum_of(em_reader *reader, const char *name, const char *before)
{
    int64_t count = 0, one;

    for (; reader; reader = em_reader_next(reader))
        if (em_reader_int(reader, name, &one) || em_reader_int(reader, before, &one))
            count += one;
    return count;
}

/* The largest value of an attribute over the files; NaN: no file has it. */
static double largest_of(em_reader *reader, const char *name)
{
    double largest = NAN, one;

    for (; reader; reader = em_reader_next(reader))
        if (em_reader_real(reader, name, &one))
            largest = fmax(largest, one);
    return largest;
}

/* Finds the limits of the verdict: those that files of emass store, else those of
 * diagnostics/limits.h. */
static void find_limits(em_reader *reader, em_evidence *evidence)
{
    evidence->r_hat_limit = EM_R_HAT_LIMIT;
    evidence->ess_limit = 0;
    em_reader_real(reader, "r_hat_limit", &evidence->r_hat_limit);
    for (; reader;
         reader = em_reader_next(reader)) { /* with several files, the sum of their requirements */
        double ess = EM_ESS_LIMIT_PER_CHAIN * (double)em_reader_n_own_chain(reader);

        em_reader_real(reader, "ess_limit", &ess);
        evidence->ess_limit += ess;
    }
}

/* ---------------------------------------------------------------- statistics */

/* The group of statistics that belongs to a group of draws; NULL: none. */
static const char *statistics_of(const char *group)
{
    static const char *const pair[][2] = {{"posterior", "sample_stats"},
                                          {"unconstrained_posterior", "sample_stats"},
                                          {"warmup_posterior", "warmup_sample_stats"}};

    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++)
        if (strcmp(group, pair[i][0]) == 0)
            return pair[i][1];
    return NULL;
}

/* Whether a sampler of the run has an acceptance rate. In a list of samplers, the name of the
 * statistic begins with that of the block. */
static bool accepts(const em_reader *stats)
{
    static const char *const name = "acceptance_rate";

    for (int64_t i = 0; i < em_reader_n_variable(stats); i++) {
        const char *own = em_reader_variable_at(stats, i)->name;
        const size_t length = strlen(own);
        if (length >= strlen(name) && strcmp(own + length - strlen(name), name) == 0)
            return true;
    }
    return false;
}

static em_status open_statistics(em_judge *judge)
{
    static const char *const any[] = {"diverging", "reached_max_treedepth", "energy", "lp"};
    const char *group = statistics_of(judge->group);
    bool there = false;

    for (size_t i = 0; group && i < sizeof any / sizeof *any; i++)
        there = there || em_reader_has(judge->reader, group, any[i]);
    if (!there)
        return EM_OK;
    judge->builds_trees = em_reader_has(judge->reader, group, "tree_depth");
    em_status status = em_reader_open_beside(judge->reader, group, &judge->stats);
    if (!status)
        judge->accepts = accepts(judge->stats);
    if (!status && (em_reader_n_chain(judge->stats) != judge->n_chain ||
                    em_reader_n_draw(judge->stats) != judge->n_draw))
        em_reader_close(&judge->stats); /* they are of other draws */
    return status;
}

/* Reads all draws of a scalar statistic; *value stays NULL if there is none of that name. */
static em_status read_statistic(em_judge *judge, const char *name, double **value)
{
    const int64_t at = judge->stats ? em_reader_find(judge->stats, name) : -1;

    if (at < 0 || em_reader_variable_at(judge->stats, at)->size != 1)
        return EM_OK;
    const em_status status = em_allocate_doubles(judge->n_chain * judge->n_draw, value);
    return status ? status : em_reader_elements(judge->stats, at, 0, 1, *value);
}

/* Counts the divergences, and those of them at which the density was 0. */
static em_status read_divergences(em_judge *judge)
{
    const int64_t n = judge->n_chain * judge->n_draw;
    EM_SCOPED double *error = NULL;
    em_status status = read_statistic(judge, "diverging", &judge->diverging);

    for (int64_t i = 0; !status && judge->diverging && i < n; i++)
        judge->n_marked += judge->diverging[i] != 0;
    judge->evidence.divergences = judge->n_marked;
    if (!status && judge->n_marked == 0)
        em_release(&judge->diverging);
    if (!status && judge->diverging)
        status = read_statistic(judge, "max_energy_error", &error);
    if (!status && judge->diverging && !error)
        status = read_statistic(judge, "energy_error", &error);
    for (int64_t i = 0; error && i < n; i++)
        judge->n_left_support += judge->diverging[i] != 0 && !isfinite(error[i]);
    return status;
}

static em_status read_visits(em_judge *judge)
{
    EM_SCOPED double *visit = NULL;
    em_status status = read_statistic(judge, "visit", &visit);

    if (!status && visit)
        status = em_visits_create(judge->n_chain, judge->n_draw, visit, &judge->visits);
    return status;
}

/* Counts the draws with a flag. */
static em_status count_flag(em_judge *judge, const char *name, int64_t *count)
{
    EM_SCOPED double *flag = NULL;
    em_status status = read_statistic(judge, name, &flag);

    *count = 0;
    for (int64_t i = 0; !status && flag && i < judge->n_chain * judge->n_draw; i++)
        *count += flag[i] != 0;
    return status;
}

/* Takes from the attributes of the files what their runs counted in all iterations, also in those
 * that thinning left out: iterations, divergences and the smallest E-BFMI. If draws at the end of a
 * file are not used, or a file of an earlier version has no count, the draws are counted alone. */
static void count_iterations(em_judge *judge)
{
    em_evidence *e = &judge->evidence;
    double lowest = NAN, one = NAN;
    int64_t n = 0, count = 0;

    e->n_iteration = judge->n_chain * judge->n_draw;
    for (em_reader *file = judge->reader; file; file = em_reader_next(file)) {
        if (!judge->is_posterior || em_reader_n_own_draw(file) != judge->n_draw ||
            !em_reader_int(file, "iterations", &count))
            return;
        n += count;
        if (em_reader_real(file, "smallest_e_bfmi", &one))
            lowest = fmin(lowest, one);
    }
    e->n_iteration = n;
    e->divergences = sum_of(judge->reader, "divergences", "divergences");
    e->findings.e_bfmi = lowest;
}

/* Finds chains that stood still: their log density does not change from draw to draw. Only for
 * kernels that accept or reject. */
static em_status find_still(em_judge *judge)
{
    const int64_t n_draw = judge->n_draw, n_all = judge->n_chain * n_draw;
    em_findings *findings = &judge->evidence.findings;
    double *rate = NULL, acceptance = 0;
    em_status status = read_statistic(judge, "acceptance_rate", &rate);
    const int64_t n = status || !judge->log_density || !rate ? 0 : n_all;
    const double thinning = (double)judge->evidence.n_iteration / (double)n_all;

    for (int64_t i = 0; i < n; i++)
        acceptance += rate[i] / (double)n;
    for (int64_t c = 0; n > 0 && c < judge->n_chain; c++) {
        double state[EM_STILL_STATE] = {0};
        for (int64_t i = 0; i < n_draw; i++)
            em_still_add(state, judge->log_density[c * n_draw + i]);
        const bool always = em_still_longest(state) == (double)n_draw - 1;
        const double length = (double)n_draw * thinning;
        const double longest = always ? length - 1 : em_still_longest(state) * thinning;
        if (em_still_is_stuck(longest, length, (double)n * thinning, acceptance)) {
            findings->n_still++;
            findings->longest_still = em_most(findings->longest_still, (int64_t)longest);
        }
    }
    em_release(&rate);
    return status;
}

static em_status find_energy(em_judge *judge)
{
    double *energy = NULL, lowest = fmin(INFINITY, judge->evidence.findings.e_bfmi);
    em_status status = read_statistic(judge, "energy", &energy);

    for (int64_t c = 0; !status && energy && c < judge->n_chain; c++) {
        const double e_bfmi = em_ebfmi(judge->n_draw, energy + c * judge->n_draw);

        judge->n_low_energy += e_bfmi < EM_E_BFMI_LIMIT;
        lowest = fmin(lowest, e_bfmi);
    }
    judge->evidence.findings.e_bfmi = isfinite(lowest) ? lowest : NAN;
    em_release(&energy);
    return status;
}

/* ---------------------------------------------------------------- rows */

em_status em_judge_create(em_reader *reader, const char *group, em_judge **out)
{
    em_status status = em_allocate(1, sizeof **out, out);
    em_judge *judge = *out;

    if (!status) {
        *judge = (em_judge){.reader = reader,
                            .group = group,
                            .n_chain = em_reader_n_chain(reader),
                            .n_draw = em_reader_n_draw(reader)};
        int64_t can = 1;
        em_reader_int(reader, EM_OUTPUT_CAN_BE_TEMPERED, &can);
        judge->can_be_tempered = can != 0;
        judge->is_posterior =
            strcmp(group, "posterior") == 0 || strcmp(group, "unconstrained_posterior") == 0;
        judge->evidence.findings.e_bfmi = NAN;
        find_limits(reader, &judge->evidence);
        status = open_statistics(judge);
    }
    status = status ? status : em_mode_finder_create(judge->n_chain, judge->n_draw, &judge->finder);
    status = status ? status : read_statistic(judge, "lp", &judge->log_density);
    status = status ? status : read_divergences(judge);
    status = status ? status : read_visits(judge);
    if (status)
        em_judge_destroy(out);
    return status;
}

void em_judge_destroy(em_judge **judge)
{
    if (*judge) {
        em_reader_close(&(*judge)->stats);
        em_release_owner(&(*judge)->finder);
        em_release_all(&(*judge)->diverging, &(*judge)->log_density);
        em_release_owner(&(*judge)->visits);
        em_release(&(*judge)->evidence.optimiser);
    }
    em_release(judge);
}

/* Finds the range of the divergent draws of a row. If there are ten or more, the lowest and the
 * highest tenth of them are left out. */
static em_status find_divergent_range(const em_judge *judge, const double *draws, double *value)
{
    const int64_t n = judge->n_chain * judge->n_draw, n_marked = judge->n_marked;
    const int64_t tail = n_marked / 10;
    EM_SCOPED double *x = NULL;
    int64_t k = 0, inside = 0;
    em_status status = em_allocate(n_marked, sizeof *x, &x);

    if (status)
        return status;
    for (int64_t i = 0; i < n; i++)
        if (judge->diverging[i] != 0)
            x[k++] = draws[i];
    em_sort_numbers(k, x);
    value[EM_JUDGED_LOW] = x[tail];
    value[EM_JUDGED_HIGH] = x[k - 1 - tail];
    for (int64_t i = 0; i < n; i++)
        inside += draws[i] >= x[tail] && draws[i] <= x[k - 1 - tail];
    value[EM_JUDGED_SHARE] = (double)inside / (double)n;
    return EM_OK;
}

em_status em_judge_row(em_judge *judge, const double *draws, const em_diagnosis *diagnosis,
                       double r_hat, bool watched, double *value)
{
    const int64_t n = judge->n_chain * judge->n_draw;
    const bool disagrees = r_hat > judge->evidence.r_hat_limit;
    em_divergence_cluster cluster = {0, INFINITY};
    int64_t n_nonfinite = 0;
    em_status status = EM_OK;

    for (int64_t k = 0; k < EM_N_JUDGED; k++)
        value[k] = 0;
    for (int64_t i = 0; i < n; i++)
        n_nonfinite += !isfinite(draws[i]);
    value[EM_JUDGED_UNWATCHED] = !watched;
    value[EM_JUDGED_NONFINITE] = (double)n_nonfinite;
    value[EM_JUDGED_CONSTANT] = diagnosis->constant;
    if (!watched)
        return EM_OK;
    value[EM_JUDGED_SEPARATION] = em_mode_finder_examine(judge->finder, draws);
    value[EM_JUDGED_GROWS] = disagrees && em_grows(judge->n_chain, judge->n_draw, draws);
    const bool varies = n_nonfinite == 0 && !diagnosis->constant;
    if (varies)
        status = em_tail_shape(n, draws, diagnosis->mean, diagnosis->sd, &value[EM_JUDGED_TAIL]);
    if (!status && varies && judge->diverging) {
        status = em_find_divergence_cluster(judge->n_chain, judge->n_draw, draws, judge->diverging,
                                            diagnosis->ess_bulk, judge->n_row, &cluster);
        status = status ? status : find_divergent_range(judge, draws, value);
    }
    value[EM_JUDGED_CLUSTERING] = cluster.distance;
    value[EM_JUDGED_BY_CHANCE] = cluster.by_chance;
    return status;
}

void em_judge_combine(em_judge *judge)
{
    if (em_world_size() > 1)
        MPI_Allreduce(MPI_IN_PLACE, em_mode_finder_sums(judge->finder),
                      (int)em_mode_finder_width(judge->finder), MPI_UINT64_T, MPI_SUM,
                      em_world_ranks());
}

/* ---------------------------------------------------------------- the verdict */

static void judge_rows(em_judge *judge, const em_summary_table *table)
{
    em_evidence *e = &judge->evidence;
    int64_t n_varying = 0, n_watched = 0;

    e->r_hat = e->ess = NAN;
    for (int64_t i = 0; i < table->n_row; i++) {
        const double *x = table->row[i].value, *judged = x + table->at.judged;
        const double ess = fmin(x[table->at.ess_bulk], x[table->at.ess_tail]);

        if (judged[EM_JUDGED_UNWATCHED] != 0)
            continue;
        n_watched++;
        n_varying += judged[EM_JUDGED_CONSTANT] == 0;
        e->undefined =
            e->undefined || (judged[EM_JUDGED_CONSTANT] == 0 &&
                             (isnan(x[table->at.r_hat]) || isnan(x[table->at.ess_bulk]) ||
                              isnan(x[table->at.ess_tail])));
        e->r_hat = fmax(e->r_hat, x[table->at.r_hat]);
        e->ess = fmin(e->ess, ess);
        e->findings.n_growing += judged[EM_JUDGED_GROWS] != 0;
    }
    e->constant =
        n_watched > 0 && n_varying == 0 && judge->n_chain > 1 && judge->n_draw >= EM_STILL_DRAWS;
}

em_status em_judge_conclude(em_judge *judge, const em_summary_table *table)
{
    em_evidence *e = &judge->evidence;
    char *optimiser = NULL;
    em_status status = em_mode_finder_count(judge->finder, &e->findings.modes);

    judge_rows(judge, table);
    if (!(e->r_hat > e->r_hat_limit))
        e->findings.modes = (em_modes){0};
    e->is_tempered = judge->visits != NULL;
    e->nested = em_superchains_of(judge->reader) > 0;
    count_iterations(judge);
    e->mode_search_log_mass = largest_of(judge->reader, "mode_search_log_mass");
    judge->redrawn_starts = sum_of(judge->reader, "redrawn_starts", "redrawn_starts");
    judge->reinitialised_chains = sum_of(judge->reader, "reinitialised_chains", "rescued_chains");
    judge->evaluations = sum_of(judge->reader, "n_evaluations", "n_evaluations");
    judge->failed_evaluations =
        sum_of(judge->reader, "n_failed_evaluations", "n_failed_evaluations");
    if (em_reader_text(judge->reader, "optimiser", &optimiser))
        e->optimiser = optimiser;
    status = status ? status : find_still(judge);
    status = status ? status : find_energy(judge);
    return status ? status : count_flag(judge, "reached_max_treedepth", &e->findings.n_saturated);
}

/* A text of the file, or NULL. */
static char *stored_verdict(em_judge *judge)
{
    char *text = NULL;

    return !em_reader_next(judge->reader) && !em_find_incomplete(judge->reader) &&
                   em_reader_text(judge->reader, "verdict", &text)
               ? text
               : NULL;
}

em_status em_judge_verdict(em_judge *judge, em_verdict *verdict, char **text)
{
    static const char with_warnings[] = "converged with warnings", good[] = "converged:";
    char words[1024];

    *text = stored_verdict(judge);
    if (*text) {
        *verdict = strncmp(*text, with_warnings, strlen(with_warnings)) == 0
                       ? EM_CONVERGED_WITH_WARNINGS
                   : strncmp(*text, good, strlen(good)) == 0 ? EM_CONVERGED
                                                             : EM_NOT_CONVERGED;
        return EM_OK;
    }
    *verdict = em_verdict_of(&judge->evidence);
    em_verdict_word(&judge->evidence, sizeof words, words);
    return em_format_text(text, "%s; %lld chain%s x %lld draw%s", words, (long long)judge->n_chain,
                          em_plural(judge->n_chain), (long long)judge->n_draw,
                          em_plural(judge->n_draw));
}
