#include "app/summary/advice.h"

#include "base/memory.h"
#include "base/text.h"
#include "diagnostics/limits.h"
#include "diagnostics/psis.h"
#include "run/output/output.h"
#include "run/output/stored_config.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- advice that comes first */

static em_status advise_on_files(em_judge *judge, FILE *out)
{
    const em_reader *incomplete = em_find_incomplete(judge->reader);
    const bool several = em_reader_next(judge->reader) != NULL;
    EM_SCOPED char *unlike = NULL;
    const em_status status = em_thinned_unlike(judge->reader, &unlike);

    if (incomplete)
        fprintf(out,
                "Incomplete: the run that wrote %s did not finish. Continue it from its last "
                "checkpoint by emass run --resume.\n",
                several ? em_reader_path(incomplete) : "this file");
    if (judge->evidence.optimiser)
        fprintf(out,
                "No sample: %s is an optimiser: these numbers describe points on its path and not "
                "the posterior. Choose a sampler (emass list samplers).\n",
                judge->evidence.optimiser);
    if (unlike)
        fprintf(out,
                "Unequal thinning: %s. Means and quantiles are correct. ESS is rough, because it "
                "treats all chains as equally thinned.\n",
                unlike);
    return status;
}

static void advise_on_nonfinite(const em_summary_table *table, FILE *out)
{
    const em_worst_row w = em_find_worst_row(table, EM_JUDGED_NONFINITE);

    if (w.count)
        fprintf(out,
                "Not finite: draws in %lld of %lld rows (%.0f of %s). The model overflows there: "
                "check its priors and its data.\n",
                (long long)w.count, (long long)table->n_row, w.value, w.row->name);
}

static void advise_on_stillness(const em_judge *judge, FILE *out)
{
    const em_findings *f = &judge->evidence.findings;

    if (f->n_still > 0)
        fprintf(out,
                "Stood still: %lld of %lld chains (up to %lld draws in a row without a move). The "
                "steps are too long for the region where these chains were, so this region has the "
                "wrong weight: raise target_accept, %sor reparameterise.\n",
                (long long)f->n_still, (long long)judge->n_chain, (long long)f->longest_still,
                judge->builds_trees ? "" : "use nuts, ");
}

static void advise_on_growth(const em_summary_table *table, FILE *out)
{
    em_worst_row w = {0};

    for (int64_t i = 0; i < table->n_row; i++)
        if (table->row[i].value[table->at.judged + EM_JUDGED_GROWS] != 0)
            em_worst_take(&w, &table->row[i], fabs(table->row[i].value[EM_COLUMN_MEAN]));
    if (w.count)
        fprintf(out,
                "Improper: the draws of %lld of %lld rows keep growing (%s, mean %.2g). The "
                "posterior may be improper: check that every parameter has a prior, and that the "
                "data distinguish the parameters from each other. More draws do not help.\n",
                (long long)w.count, (long long)table->n_row, w.row->name,
                w.row->value[EM_COLUMN_MEAN]);
}

/* Advice about means that few extreme draws determine. */
static void advise_on_tails(const em_judge *judge, const em_summary_table *table, FILE *out)
{
    const double limit = em_psis_good_k(judge->n_chain * judge->n_draw);
    em_worst_row w = {0};

    for (int64_t i = 0; i < table->n_row; i++) {
        const double *judged = table->row[i].value + table->at.judged;
        if (judged[EM_JUDGED_TAIL] > limit && judged[EM_JUDGED_GROWS] == 0)
            em_worst_take(&w, &table->row[i], judged[EM_JUDGED_TAIL]);
    }
    if (w.count)
        fprintf(
            out,
            "Heavy tails: mean, sd and mcse_mean of %lld of %lld rows are not reliable, because "
            "few "
            "extreme draws determine them (%s: Pareto shape %.2g, limit %.2g). The mean may not "
            "exist, and more draws do not help. Use quantiles, or give the parameter a narrower "
            "prior.\n",
            (long long)w.count, (long long)table->n_row, w.row->name, w.value, limit);
}

/* Advice about a mode of the mode search without draws nearby. */
static void advise_on_search(const em_judge *judge, FILE *out)
{
    const double log_mass = judge->evidence.mode_search_log_mass;

    if (isnan(log_mass))
        return;
    fprintf(out,
            "A mode elsewhere: the mode search found a mode with about %.2g times the mass of "
            "those that the draws are in (an estimate). No draw is near it. ",
            exp(log_mass));
    fputs(log_mass > 0 ? "The draws miss the larger part of the posterior. " : "", out);
    fputs("The weights of the modes are not known. Run again with another seed or more chains, or "
          "constrain the model to one mode.\n",
          out);
}

/* ---------------------------------------------------------------- R-hat and ESS */

/* The setting that determines the number of draws. */
typedef struct setting {
    char text[64];
} setting;

/* The setting that gives `factor` times as many draws of a chain, rounded up to two digits. For
 * draws: auto it is the limit, if the limit ended the run. Draws that thinning removed are counted.
 */
static setting more_draws(const em_judge *judge, double factor)
{
    EM_SCOPED char *ended_by = NULL;
    int64_t n_draw = judge->n_draw, thinning = 1;
    setting more;

    const bool until_done = em_reader_text(judge->reader, EM_OUTPUT_ENDED_BY, &ended_by);
    if (until_done && em_reader_int(judge->reader, EM_OUTPUT_THINNING, &thinning))
        n_draw *= thinning;
    if (until_done && strcmp(ended_by, "stop.max_draws") == 0)
        em_reader_int(judge->reader, "planned_draws", &n_draw);
    const double n = factor * (double)n_draw;
    const double unit = pow(10, fmax(0, floor(log10(n)) - 1));

    snprintf(more.text, sizeof more.text, "%s: %lld", until_done ? "stop.max_draws" : "run.draws",
             (long long)(ceil(n / unit) * unit));
    return more;
}

/* Whether the advice so far names a problem that more draws do not solve. */
static bool has_cause(const em_judge *judge)
{
    const em_findings *f = &judge->evidence.findings;

    return f->modes.count > 1 || f->n_growing > 0 || f->n_still > 0;
}

static void advise_on_r_hat(const em_judge *judge, const em_worst_row *w, int64_t n_row, FILE *out)
{
    const double slightly = 1.05, enough = 1.2, most = 1000;
    const em_evidence *e = &judge->evidence;
    const double factor = fmin(most, fmax(4, enough * e->ess_limit / e->ess));

    if (w->count == 0)
        return;
    fprintf(out, "%s above %g: %lld of %lld rows (highest %.3f, %s). ",
            e->nested ? "Nested R-hat" : "R-hat", e->r_hat_limit, (long long)w->count,
            (long long)n_row, w->value, w->row->name);
    if (has_cause(judge))
        fputs("The chains do not agree, for the reason above. These numbers do not describe the "
              "posterior.\n",
              out);
    else if (w->value < slightly)
        fprintf(out,
                "The chains do not quite agree yet, so these numbers may be slightly wrong: draw "
                "more, for example %s.\n",
                more_draws(judge, factor).text);
    else
        fprintf(out,
                "The chains do not agree yet, so these numbers do not describe the posterior. Run "
                "longer, warmup included, for example %s.%s\n",
                more_draws(judge, factor).text,
                judge->can_be_tempered ? " If that does not help, look for parameters that the "
                                         "data do not distinguish, and reparameterise."
                                       : "");
}

static void advise_on_ess(const em_judge *judge, const em_worst_row *w, int64_t n_row, FILE *out)
{
    const em_evidence *e = &judge->evidence;
    const double least = -w->value, enough = 1.2, most = 100;

    if (w->count == 0)
        return;
    fprintf(out, "ESS below %g: %lld of %lld rows (lowest %.0f, %s). ", e->ess_limit,
            (long long)w->count, (long long)n_row, least, w->row->name);
    if (e->r_hat > e->r_hat_limit)
        fputs("Where chains do not agree, ESS adds no information.\n", out);
    else if (least > 0 && enough * e->ess_limit < most * least)
        fprintf(out,
                "This is too small for quantiles and for R-hat itself: draw more, for example "
                "%s.\n",
                more_draws(judge, enough * e->ess_limit / least).text);
    else
        fprintf(out, "This is too small for quantiles and for R-hat itself: draw many more%s.\n",
                judge->can_be_tempered ? ", or reparameterise" : "");
}

static void advise_on_rows(const em_judge *judge, const em_summary_table *table, FILE *out)
{
    em_worst_row r_hat = {0}, ess = {0};
    int64_t n_undefined = 0, n_row = 0;

    for (int64_t i = 0; i < table->n_row; i++) {
        const em_summary_row *row = &table->row[i];
        const double *x = row->value, least = fmin(x[table->at.ess_bulk], x[table->at.ess_tail]);

        if (x[table->at.judged + EM_JUDGED_UNWATCHED] != 0)
            continue;
        n_row++;
        if (x[table->at.r_hat] > judge->evidence.r_hat_limit)
            em_worst_take(&r_hat, row, x[table->at.r_hat]);
        if (least < judge->evidence.ess_limit)
            em_worst_take(&ess, row, -least);
        n_undefined +=
            (x[table->at.judged + EM_JUDGED_CONSTANT] == 0 || isnan(judge->evidence.r_hat)) &&
            (isnan(x[table->at.r_hat]) || isnan(x[table->at.ess_bulk]) ||
             isnan(x[table->at.ess_tail]));
    }
    advise_on_r_hat(judge, &r_hat, n_row, out);
    advise_on_ess(judge, &ess, n_row, out);
    if (n_undefined && em_verdict_of(&judge->evidence) == EM_NOT_CONVERGED)
        fprintf(out,
                "Undefined (nan): R-hat or ESS of %lld of %lld rows. These are constant, take "
                "few values, are not finite, or have too few draws.\n",
                (long long)n_undefined, (long long)n_row);
}

/* ---------------------------------------------------------------- the sampler */

/* Names the row in which divergent draws differ most from the others, if there is one. */
static void tell_divergent_range(const em_summary_table *table, FILE *out)
{
    const em_summary_row *row = em_find_worst_row(table, EM_JUDGED_CLUSTERING).row;
    const double small = 0.25, most = 0.5;

    if (!row)
        return;
    const double *x = row->value + table->at.judged;
    const bool clusters = x[EM_JUDGED_CLUSTERING] > x[EM_JUDGED_BY_CHANCE];
    if (x[EM_JUDGED_SHARE] > (clusters ? most : small))
        return; /* they are everywhere */
    fprintf(out,
            clusters ? "They cluster where %s is %.3g to %.3g, a range with %.2g %% of all draws. "
                     : "They are closest together in %s, at %.3g to %.3g, a range with %.2g %% of "
                       "all draws. This may be chance. ",
            row->name, x[EM_JUDGED_LOW], x[EM_JUDGED_HIGH], 100 * x[EM_JUDGED_SHARE]);
}

/* Advises on divergences whose trajectories left the support. Returns whether they are most of the
 * divergences. */
static bool tell_left_support(const em_judge *judge, FILE *out)
{
    const int64_t all = judge->n_marked, left = judge->n_left_support;

    if (all == 0 || 10 * left < 9 * all)
        return false;
    fprintf(out,
            "In %lld of these trajectories the log density was not finite. A parameter may have a "
            "bound that the model does not declare, for example by a uniform prior: declare it "
            "(Stan: lower=, upper=). If there is none, raise target_accept or reparameterise.\n",
            (long long)left);
    return true;
}

/* Advises on divergences of samplers without acceptance, in which positions diverge to infinity if
 * the step size is too large. */
static void advise_on_divergences(const em_judge *judge, const em_summary_table *table, FILE *out)
{
    const em_evidence *e = &judge->evidence;
    const int64_t limit = em_divergence_limit(e);

    if (e->divergences == 0)
        return;
    fprintf(out, "Divergences: %lld of %lld draws (%.3g %%). ", (long long)e->divergences,
            (long long)e->n_iteration, 100.0 * (double)e->divergences / (double)e->n_iteration);
    if (!judge->accepts) {
        fputs("The step size is too large for this sampler, which rejects no step: set "
              "sampler.step_size to a tenth of it or less.\n",
              out);
        return;
    }
    tell_divergent_range(table, out);
    if (tell_left_support(judge, out))
        return;
    if (e->divergences <= limit && e->is_tempered) {
        fputs("Copies may reach this region from other temperatures, but not the neck of a funnel "
              "whose non-centred form warmup did not find: compare with a run without temper, or "
              "reparameterise.\n",
              out);
        return;
    }
    fputs(e->divergences <= limit
              ? "So few are only a warning. The integrator fails where the posterior bends "
                "sharply, and this region may have slightly too little weight. "
                "A higher sampler.target_accept, such as 0.99, should prevent them.\n"
              : "The integrator fails where the posterior bends sharply, and the draws miss this "
                "region: raise target_accept, reparameterise, or use sampler walnuts.\n",
          out);
}

/* Advises on trajectories that are short because evaluations failed, and not because of the
 * posterior. */
static void advise_on_failed_evaluations(const em_judge *judge, FILE *out)
{
    const int64_t failed = judge->failed_evaluations, all = judge->evaluations;

    if (failed == 0 || !judge->builds_trees || em_verdict_of(&judge->evidence) != EM_NOT_CONVERGED)
        return;
    fprintf(out, "Failed evaluations: %lld", (long long)failed);
    if (all > 0)
        fprintf(out, " of %lld (%.2g %%)", (long long)all, 100.0 * (double)failed / (double)all);
    fputs(". A single one rejects the whole trajectory. With sampler slice it rejects one step of "
          "a move.\n",
          out);
}

static void advise_on_energy(const em_judge *judge, FILE *out)
{
    const double lowest = judge->evidence.findings.e_bfmi;

    if (!(lowest < EM_E_BFMI_LIMIT))
        return;
    fprintf(out, "E-BFMI below %g", EM_E_BFMI_LIMIT);
    if (judge->evidence.n_iteration == judge->n_chain * judge->n_draw)
        fprintf(out, ": %lld of %lld chains", (long long)judge->n_low_energy,
                (long long)judge->n_chain);
    fprintf(out,
            " (lowest %.2g). The energy changes too slowly to reach heavy tails, so standard "
            "deviations and outer quantiles may be too small: reparameterise the model, or draw "
            "more.\n",
            lowest);
}

static void advise_on_warmup(const em_judge *judge, FILE *out)
{
    const int64_t moved = judge->reinitialised_chains, redrawn = judge->redrawn_starts;

    if (moved > 0)
        fprintf(out,
                "Reinitialised: in warmup %lld chain%s could not move at any step size and took "
                "the position of another chain (mass.rescue: true). R-hat does not show that %s "
                "not independent of it. With mass.rescue: false all chains are independent.\n",
                (long long)moved, em_plural(moved), moved == 1 ? "it is" : "they are");
    if (redrawn > 0)
        fprintf(
            out,
            "Starts drawn anew: %lld, because the first start had no finite density, could not be "
            "moved, or led to an optimum of negligible mass. The chains are still independent.\n",
            (long long)redrawn);
}

static void advise_on_trees(const em_judge *judge, FILE *out)
{
    const int64_t n = judge->evidence.findings.n_saturated, n_all = judge->n_chain * judge->n_draw;

    if (n > 0)
        fprintf(out,
                "Saturated tree depth: %lld of %lld draws (%.3g %%). Trajectories were cut short. "
                "This costs time but causes no bias: warm up longer, or allow deeper trees "
                "(sampler.max_treedepth).\n",
                (long long)n, (long long)n_all, 100.0 * (double)n / (double)n_all);
}

em_status em_advise(em_judge *judge, const em_summary_table *table, FILE *out)
{
    em_status status = advise_on_files(judge, out);

    advise_on_nonfinite(table, out);
    advise_on_stillness(judge, out);
    status = status ? status : em_advise_on_modes(judge, table, out);
    advise_on_growth(table, out);
    if (!status && strcmp(judge->group, "posterior") == 0)
        status = em_advise_on_priors(judge->reader, judge->n_chain * judge->n_draw,
                                     judge->log_density, out);
    advise_on_search(judge, out);
    advise_on_rows(judge, table, out);
    advise_on_tails(judge, table, out);
    advise_on_divergences(judge, table, out);
    advise_on_failed_evaluations(judge, out);
    advise_on_energy(judge, out);
    advise_on_warmup(judge, out);
    advise_on_trees(judge, out);
    return status;
}
