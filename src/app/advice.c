#include "app/advice.h"

#include "base/memory.h"
#include "diag/apart.h"
#include "diag/diag.h"
#include "diag/limits.h"
#include "run/thinned.h"

#include <math.h>
#include <string.h>

/* How many rows have a bad value in a column, and the worst of them. */
typedef struct verdict {
    int64_t count;
    double worst;
    const char *name;
} verdict;

static void above(const em_table *table, int64_t column, double limit, verdict *v)
{
    for (int64_t i = 0; i < table->n_row; i++) {
        double x = table->row[i].value[column];

        if (!(x > limit))
            continue;
        if (v->count++ == 0 || x > v->worst)
            *v = (verdict){v->count, x, table->row[i].name};
    }
}

/* Below in either of two columns. */
static void either_below(const em_table *table, int64_t one, int64_t two, double limit, verdict *v)
{
    for (int64_t i = 0; i < table->n_row; i++) {
        double x = fmin(table->row[i].value[one], table->row[i].value[two]);

        if (!(x < limit))
            continue;
        if (v->count++ == 0 || x < v->worst)
            *v = (verdict){v->count, x, table->row[i].name};
    }
}

/* What the numbers are held to: the limits of the verdict in a file of emass, else those of
 * diag/limits.h. */
typedef struct limits {
    double r_hat, ess;
} limits;

static limits limits_of(em_reader *reader)
{
    limits found = {EM_R_HAT_LIMIT, 0};

    em_reader_real(reader, "r_hat_limit", &found.r_hat);
    for (; reader; reader = em_reader_next(reader)) { /* of several, what they want together */
        double ess = EM_ESS_LIMIT_PER_CHAIN * (double)em_reader_n_own_chain(reader);

        em_reader_real(reader, "ess_limit", &ess);
        found.ess += ess;
    }
    return found;
}

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

/* The file that is not complete, or NULL. */
static const em_reader *find_incomplete(em_reader *reader)
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
    const em_reader *unfinished = find_incomplete(reader);
    return em_fail(EM_EDATA, "%s: group %s has no draws%s",
                   em_reader_path(unfinished ? unfinished : reader), group,
                   unfinished ? " yet: the run that writes it is in warmup, or was stopped there, "
                                "and then goes on by the same emass run with --resume"
                              : "");
}

/* `r_hat_name`: what the table's is called. */
static void advise_on_rows(const em_table *table, const em_advice_columns *column, limits limit,
                           const char *r_hat_name, FILE *out)
{
    verdict r_hat = {0}, ess = {0}, nonfinite = {0};
    int64_t n_undefined = 0;

    above(table, column->n_nonfinite, 0, &nonfinite);
    above(table, column->r_hat, limit.r_hat, &r_hat);
    either_below(table, column->ess_bulk, column->ess_tail, limit.ess, &ess);
    for (int64_t i = 0; i < table->n_row; i++) {
        const double *x = table->row[i].value;

        n_undefined +=
            isnan(x[column->r_hat]) || isnan(x[column->ess_bulk]) || isnan(x[column->ess_tail]);
    }
    if (nonfinite.count)
        fprintf(out,
                "Not finite: draws in %lld of %lld rows (%.0f of %s). The model overflows there: "
                "look at its priors and its data.\n",
                (long long)nonfinite.count, (long long)table->n_row, nonfinite.worst,
                nonfinite.name);
    if (r_hat.count)
        fprintf(out,
                "%s above %g: %lld of %lld rows (highest %.3f, %s). The chains do not agree "
                "yet, so these numbers are not of the posterior: run longer, warmup included.\n",
                r_hat_name, limit.r_hat, (long long)r_hat.count, (long long)table->n_row,
                r_hat.worst, r_hat.name);
    if (ess.count)
        fprintf(out,
                "ESS below %g: %lld of %lld rows (lowest %.0f, %s). Too little "
                "for quantiles and for R-hat itself: draw more.\n",
                limit.ess, (long long)ess.count, (long long)table->n_row, ess.worst, ess.name);
    if (n_undefined)
        fprintf(out,
                "Undefined (nan): R-hat or ESS of %lld of %lld rows. These are constant, take few "
                "values, are not finite, or have too few draws.\n",
                (long long)n_undefined, (long long)table->n_row);
}

/* All draws of a scalar statistic; *value stays NULL where there is none of that name. */
static em_status read_statistic(em_reader *stats, const char *name, double **value)
{
    em_status status;

    for (int64_t i = 0; i < em_reader_n_variable(stats); i++) {
        const em_reader_variable *variable = em_reader_variable_at(stats, i);

        if (strcmp(variable->name, name) != 0 || variable->size != 1)
            continue;
        if ((status =
                 em_allocate_doubles(em_reader_n_chain(stats) * em_reader_n_draw(stats), value)))
            return status;
        return em_reader_elements(stats, i, 0, 1, *value);
    }
    return EM_OK;
}

/* How many chains stood still, by log densities that do not change from draw to draw; of kernels
 * that accept or reject. */
static em_status advise_on_stillness(em_reader *stats, const char *group, FILE *out)
{
    const int64_t n_chain = em_reader_n_chain(stats), n_draw = em_reader_n_draw(stats);
    double *log_density = NULL, *rate = NULL, longest = 0, acceptance = 0;
    int64_t count = 0;
    em_status status = read_statistic(stats, "lp", &log_density);

    if (!status)
        status = read_statistic(stats, "acceptance_rate", &rate);
    const int64_t n = status || !log_density || !rate ? 0 : n_chain * n_draw;
    for (int64_t i = 0; i < n; i++)
        acceptance += rate[i] / (double)n;
    for (int64_t c = 0; n > 0 && c < n_chain; c++) {
        double state[EM_STILL_STATE] = {0};
        for (int64_t i = 0; i < n_draw; i++)
            em_still_add(state, log_density[c * n_draw + i]);
        if (em_still_is_stuck(em_still_longest(state), (double)n_draw, (double)n, acceptance)) {
            count++;
            longest = fmax(longest, em_still_longest(state));
        }
    }
    if (count)
        fprintf(out,
                "Stood still: %lld of %lld chains (up to %.0f draws in a row without a move). "
                "Steps are too long for where they were, so that this part has the wrong weight: "
                "raise target_accept, %sor reparameterise.\n",
                (long long)count, (long long)n_chain, longest,
                em_reader_has(stats, group, "tree_depth") ? "" : "use nuts, ");
    em_release(&log_density);
    em_release(&rate);
    return status;
}

/* Reports a statistic that should never be true. */
static em_status advise_on_flag(em_reader *stats, const char *name, const char *title,
                                const char *advice, FILE *out)
{
    int64_t n = em_reader_n_chain(stats) * em_reader_n_draw(stats), count = 0;
    double *flag = NULL;
    em_status status = read_statistic(stats, name, &flag);

    for (int64_t i = 0; !status && flag && i < n; i++)
        count += flag[i] != 0;
    if (count)
        fprintf(out, "%s: %lld of %lld draws (%.3g %%). %s\n", title, (long long)count,
                (long long)n, 100.0 * (double)count / (double)n, advice);
    em_release(&flag);
    return status;
}

static em_status advise_on_energy(em_reader *stats, FILE *out)
{
    int64_t n_chain = em_reader_n_chain(stats), n_draw = em_reader_n_draw(stats), count = 0;
    double *energy = NULL, lowest = INFINITY;
    em_status status = read_statistic(stats, "energy", &energy);

    for (int64_t c = 0; !status && energy && c < n_chain; c++) {
        double ebfmi = em_ebfmi(n_draw, energy + c * n_draw);

        count += ebfmi < EM_E_BFMI_LIMIT;
        lowest = fmin(lowest, ebfmi);
    }
    if (count)
        fprintf(out,
                "E-BFMI below %g: %lld of %lld chains (lowest %.2g). The energy changes too "
                "slowly to reach heavy tails: reparameterise the model, or draw more.\n",
                EM_E_BFMI_LIMIT, (long long)count, (long long)n_chain, lowest);
    em_release(&energy);
    return status;
}

/* Where nothing is accepted or rejected, a step that is too large goes to infinity at last. */
static em_status advise_on_divergences(em_reader *stats, const char *group, FILE *out)
{
    const bool accepts = em_reader_has(stats, group, "acceptance_rate");

    return advise_on_flag(stats, "diverging", "Divergences",
                          accepts ? "The integrator fails where the posterior bends sharply, and "
                                    "misses that part: raise target_accept, reparameterise, or "
                                    "take sampler walnuts."
                                  : "The step size is too large, and nothing rejects what it leads "
                                    "to: give sampler.step_size a tenth of it, or less.",
                          out);
}

static em_status advise_on_statistics(const em_reader *reader, const char *group, FILE *out)
{
    em_reader *stats;
    em_status status = em_reader_open_beside(reader, group, &stats);

    if (status)
        return status;
    status = advise_on_divergences(stats, group, out);
    if (!status)
        status = advise_on_flag(stats, "reached_max_treedepth", "Saturated tree depth",
                                "Trajectories were cut short, which costs time: warm up longer, "
                                "or allow deeper trees.",
                                out);
    if (!status)
        status = advise_on_stillness(stats, group, out);
    if (!status)
        status = advise_on_energy(stats, out);
    em_reader_close(&stats);
    return status;
}

/* How much higher the mean log density of a chain is than that of the others; NaN: unknown. */
static em_status density_above_others(const em_reader *reader, const char *group, int64_t chain,
                                      double *out)
{
    em_reader *stats = NULL;
    double *log_density = NULL, *mean = NULL;
    em_status status = em_reader_open_beside(reader, group, &stats);

    *out = NAN;
    if (!status)
        status = read_statistic(stats, "lp", &log_density);
    if (!status && log_density) {
        const int64_t n_chain = em_reader_n_chain(stats), n_draw = em_reader_n_draw(stats);
        status = em_allocate(2 * n_chain, sizeof *mean, &mean);
        for (int64_t i = 0; !status && i < n_chain * n_draw; i++)
            mean[i / n_draw] += log_density[i] / (double)n_draw;
        if (!status)
            *out = em_above_others(n_chain, mean, chain, mean + n_chain);
    }
    em_release(&log_density);
    em_release(&mean);
    em_reader_close(&stats);
    return status;
}

/* A few chains that are not where the others are, in a row whose R-hat says so too. */
static em_status advise_on_apart(em_reader *reader, const char *stats, const em_table *table,
                                 const em_advice_columns *column, FILE *out)
{
    const double r_hat_limit = limits_of(reader).r_hat, lower = 10;
    const em_row *worst = NULL;
    double above = NAN;
    em_status status = EM_OK;

    for (int64_t i = 0; i < table->n_row; i++) {
        const em_row *row = &table->row[i];
        if (row->value[column->n_apart] > 0 && row->value[column->r_hat] > r_hat_limit &&
            (!worst || row->value[column->distance] > worst->value[column->distance]))
            worst = row;
    }
    if (!worst)
        return EM_OK;
    const int64_t chain = (int64_t)worst->value[column->apart];
    if (stats && em_reader_has(reader, stats, "lp"))
        status = density_above_others(reader, stats, chain, &above);
    if (status)
        return status;
    fprintf(out,
            "Apart from the others: %.0f of %lld chains, chain %lld by %.*f standard "
            "deviations (%s)",
            worst->value[column->n_apart], (long long)em_reader_n_chain(reader), (long long)chain,
            worst->value[column->distance] < 100 ? 1 : 0, worst->value[column->distance],
            worst->name);
    if (above < -lower)
        fprintf(out,
                ", where the log density is %.3g lower. It is stuck in a mode of hardly any "
                "weight: run again with another seed or a smaller init_radius.\n",
                -above);
    else
        fprintf(out, ". The posterior seems to have modes that chains do not cross, and their "
                     "weights are not known: reparameterise, or constrain it to one.\n");
    return EM_OK;
}

/* The sum of an attribute over the files. */
static int64_t count_chains(em_reader *reader, const char *name)
{
    int64_t count = 0, one;

    for (; reader; reader = em_reader_next(reader))
        count += em_reader_int(reader, name, &one) ? one : 0;
    return count;
}

static void advise_on_moves(em_reader *reader, FILE *out)
{
    const int64_t count = count_chains(reader, "moved_chains");

    if (count > 0)
        fprintf(out,
                "Moved: %lld chains had arrived in a mode of hardly any mass, and went on from "
                "another of more than a thousand times as much, which climbs from other starts had "
                "found. R-hat knows nothing of where they came from; with mass.rescue: false "
                "nobody looks elsewhere.\n",
                (long long)count);
}

/* A few are as it should be; of many, some may have come from where there is mass. */
static void advise_on_rescue(em_reader *reader, FILE *out)
{
    const int64_t count = count_chains(reader, "rescued_chains");

    if (count > 0 && 4 * count <= em_reader_n_chain(reader))
        fprintf(out,
                "Rescued, which is ordinary: in warmup %lld of %lld chains lagged far behind and "
                "went on from where another was; that alone is no reason for doubt. (It would miss "
                "only a wide mode of low density, of which R-hat would not know; mass.rescue: "
                "false leaves chains alone.)\n",
                (long long)count, (long long)em_reader_n_chain(reader));
    else if (count > 0)
        fprintf(out,
                "Rescued: in warmup chains that others had left behind took the place of one "
                "of them, %lld time%s, which is much for %lld chains. R-hat knows nothing of where "
                "they came from; if that may have been a wide mode of low density, run with "
                "mass.rescue: false.\n",
                (long long)count, count == 1 ? "" : "s", (long long)em_reader_n_chain(reader));
}

static em_status advise_on_thinning(em_reader *reader, FILE *out)
{
    char *unlike = NULL;
    const em_status status = em_thinned_unlike(reader, &unlike);

    if (unlike)
        fprintf(out,
                "Thinned unlike: %s; means and quantiles are good, and ESS, which takes all chains "
                "as alike, is rough.\n",
                unlike);
    em_release(&unlike);
    return status;
}

static bool has_statistics(em_reader *reader, const char *group)
{
    return group && (em_reader_has(reader, group, "diverging") ||
                     em_reader_has(reader, group, "reached_max_treedepth") ||
                     em_reader_has(reader, group, "energy") || em_reader_has(reader, group, "lp"));
}

static void advise_on_optimiser(em_reader *reader, FILE *out)
{
    char *name = NULL;

    if (em_reader_text(reader, "optimiser", &name))
        fprintf(out,
                "No sample: %s is an optimiser, so that these numbers are of points on its way and "
                "not of the posterior; a sampler is wanted for that (emass list samplers).\n",
                name);
    em_release(&name);
}

em_status em_advise(em_reader *reader, const char *stats, const em_table *table,
                    const em_advice_columns *columns, FILE *out)
{
    const em_reader *incomplete = find_incomplete(reader);
    const bool several = em_reader_next(reader) != NULL;
    em_status status = advise_on_thinning(reader, out);

    if (incomplete)
        fprintf(out,
                "Incomplete: the run that wrote %s did not reach its end; emass run --resume goes "
                "on from its last checkpoint.\n",
                several ? em_reader_path(incomplete) : "this file");
    advise_on_optimiser(reader, out);
    advise_on_rescue(reader, out);
    advise_on_moves(reader, out);
    if (!status && has_statistics(reader, stats))
        status = advise_on_statistics(reader, stats, out);
    if (!status)
        advise_on_rows(table, columns, limits_of(reader),
                       em_superchains_of(reader) ? "Nested R-hat" : "R-hat", out);
    return status ? status : advise_on_apart(reader, stats, table, columns, out);
}
