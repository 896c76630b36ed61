#include "tempering/ladder.h"

#include "math/special.h"

#include <math.h>
#include <stdbool.h>

em_ladder em_ladder_create(int64_t n_leg, int64_t n)
{
    em_ladder out = {.n_rung = n_leg * (n - 1) + 1, .target = n - 1, .n_leg = n_leg};

    for (int64_t k = 0; k < n; k++) {
        out.beta[k] = (double)k / (double)(n - 1);
        out.beta[out.n_rung - 1 - k] = n_leg > 1 ? out.beta[k] : out.beta[out.n_rung - 1 - k];
    }
    return out;
}

/* The pairs of neighbouring rungs of a leg: *first .. *end - 1. */
static void pairs_of(const em_ladder *ladder, int leg, int64_t *first, int64_t *end)
{
    *first = leg == EM_LEG_A ? 0 : ladder->target;
    *end = leg == EM_LEG_A ? ladder->target : ladder->n_rung - 1;
}

double em_ladder_barrier(const em_ladder *ladder, int leg, const double *rejection)
{
    int64_t first, end;
    double sum = 0;

    pairs_of(ladder, leg, &first, &end);
    for (int64_t k = first; k < end; k++)
        sum += rejection[k];
    return sum;
}

/* The rung that is number i of a leg, counted from its reference. */
static int64_t rung_of(const em_ladder *ladder, int leg, int64_t i)
{
    return leg == EM_LEG_A ? i : ladder->n_rung - 1 - i;
}

static int64_t rungs_of(const em_ladder *ladder, int leg)
{
    return leg == EM_LEG_A ? ladder->target + 1 : ladder->n_rung - ladder->target;
}

/*
 * The barrier between two rungs whose swaps are rejected at this rate. The sum of the rates of many
 * pairs that lie close is the barrier, but one rate cannot exceed 1. If w is normal, with the same
 * variance on both rungs, the rate is 2 Phi(barrier sqrt(pi / 2)) - 1.
 */
static double barrier_of(double rate)
{
    return sqrt(2 / M_PI) * em_normal_quantile((1 + fmin(fmax(rate, 1e-3), 1 - 1e-4)) / 2);
}

/*
 * The beta that divides the barrier between the rungs `low` and `high` in this proportion. Where
 * swaps are rejected often, the barrier is taken to grow with the logarithm of beta: between a
 * broad reference and a narrow posterior, beta of the first rung may have to be 1e-6.
 */
static double beta_between(double low, double high, double barrier, double proportion)
{
    const double growth = low > 0 ? fmin(2 * barrier, log(high / low)) : 2 * barrier;

    return low + (high - low) * expm1(growth * proportion) / expm1(growth);
}

/* Places the beta [n] of a leg, from its reference on. */
static void space(const em_ladder *ladder, int leg, const double *rejection, int64_t n,
                  double *beta)
{
    enum { MOST = EM_MOST_LEG_RUNGS };
    const int64_t m = rungs_of(ladder, leg);
    double far[MOST] = {0};

    for (int64_t i = 1; i < m; i++) {
        const int64_t a = rung_of(ladder, leg, i - 1), b = rung_of(ladder, leg, i);
        far[i] = far[i - 1] + barrier_of(rejection[a < b ? a : b]);
    }
    for (int64_t j = 0, i = 1; j < n; j++) {
        const double at = far[m - 1] * (double)j / (double)(n - 1);
        while (i < m - 1 && far[i] < at)
            i++;
        const double low = ladder->beta[rung_of(ladder, leg, i - 1)];
        const double high = ladder->beta[rung_of(ladder, leg, i)];
        const double barrier = far[i] - far[i - 1];
        beta[j] = beta_between(low, high, barrier, fmin(1, (at - far[i - 1]) / barrier));
    }
    beta[0] = 0;
    beta[n - 1] = 1;
}

static int64_t nearest(const em_ladder *ladder, int leg, double beta)
{
    int64_t best = rung_of(ladder, leg, 0);

    for (int64_t i = 1; i < rungs_of(ladder, leg); i++) {
        const int64_t k = rung_of(ladder, leg, i);
        if (fabs(ladder->beta[k] - beta) < fabs(ladder->beta[best] - beta))
            best = k;
    }
    return best;
}

void em_ladder_respace(const em_ladder *ladder, int64_t n, const double *rejection, em_ladder *out,
                       int64_t *near)
{
    int64_t rungs[EM_MOST_LEGS] = {0};

    for (int leg = 0; leg < ladder->n_leg; leg++) {
        const double wanted = ceil(2 * em_ladder_barrier(ladder, leg, rejection)) + 1;
        rungs[leg] = n > 0 ? n : (int64_t)fmin(fmax(wanted, 3), EM_MOST_LEG_RUNGS);
    }
    *out = (em_ladder){.n_leg = ladder->n_leg, .target = rungs[0] - 1};
    out->n_rung = rungs[0] + (rungs[1] > 0 ? rungs[1] - 1 : 0);
    for (int leg = 0; leg < ladder->n_leg; leg++) {
        double beta[EM_MOST_LEG_RUNGS];
        space(ladder, leg, rejection, rungs[leg], beta);
        for (int64_t i = 0; i < rungs[leg]; i++) {
            const int64_t k = rung_of(out, leg, i);
            out->beta[k] = beta[i];
            near[k] = nearest(ladder, leg, beta[i]);
        }
    }
}

double em_swap_log_ratio(double beta, double w, double other_beta, double other_w)
{
    const bool there = isfinite(w), other_there = isfinite(other_w);

    if (there && other_there)
        return (beta - other_beta) * (other_w - w);
    if (!there && !other_there)
        return 0;
    /* the state without a density may only go to the lower beta */
    return (there ? beta > other_beta : other_beta > beta) ? -INFINITY : INFINITY;
}

void em_log_mean_add(double log_term, em_log_mean *of)
{
    const em_log_mean one = {log_term, 1, 1};

    if (log_term == -INFINITY || isnan(log_term))
        of->n++;
    else
        em_log_mean_merge(&one, of);
}

void em_log_mean_merge(const em_log_mean *from, em_log_mean *of)
{
    const double most = of->sum == 0     ? from->most
                        : from->sum == 0 ? of->most
                                         : fmax(of->most, from->most);
    const double a = of->sum == 0 ? 0 : of->sum * exp(of->most - most);
    const double b = from->sum == 0 ? 0 : from->sum * exp(from->most - most);

    *of = (em_log_mean){most, a + b, of->n + from->n};
}

double em_log_mean_value(const em_log_mean *of)
{
    return of->n > 0 ? of->most + log(of->sum / of->n) : NAN;
}

/* The contribution of a unit to a mean of exponentials, relative to that mean. */
static double relative(const em_log_mean *unit, const em_log_mean *all)
{
    if (unit->n == 0 || unit->sum == 0)
        return 0;
    return unit->sum * exp(unit->most - all->most) / unit->n / (all->sum / all->n);
}

/* The standard error of a mean that is 0, ignoring numbers that are 0. Groups of `each` of the n
 * numbers are in order of time, and neighbours in a group may be correlated. */
static double error_of_mean(int64_t n, int64_t each, const double *x)
{
    double used = 0, square = 0, neighbours = 0;

    for (int64_t i = 0; i < n; i++) {
        used += x[i] != 0;
        square += x[i] * x[i];
        neighbours += i % each != 0 ? x[i - 1] * x[i] : 0;
    }
    return used > 1 ? sqrt((square + 2 * fmax(neighbours, 0)) / (used * (used - 1))) : NAN;
}

/* Weights the influences of parts by their numbers of scans. */
static void weigh(int64_t n_unit, int64_t n_pair, int64_t pair, const em_bridge *bridges,
                  double *influence)
{
    double scans = 0, used = 0;

    for (int64_t u = 0; u < n_unit; u++) {
        scans += bridges[u * n_pair + pair].low.n;
        used += bridges[u * n_pair + pair].low.n > 0;
    }
    for (int64_t u = 0; u < n_unit; u++)
        influence[u] *= bridges[u * n_pair + pair].low.n * used / scans;
}

em_log_evidence em_ladder_evidence(const em_ladder *ladder, int leg, int64_t n_unit, int64_t each,
                                   const em_bridge *bridges, double *influence)
{
    const int64_t n_pair = ladder->n_rung - 1;
    em_bridge all[2 * EM_MOST_LEG_RUNGS] = {0};
    double value = 0;
    int64_t first, end;

    pairs_of(ladder, leg, &first, &end);
    for (int64_t u = 0; u < n_unit; u++)
        for (int64_t k = first; k < end; k++) {
            em_log_mean_merge(&bridges[u * n_pair + k].low, &all[k].low);
            em_log_mean_merge(&bridges[u * n_pair + k].high, &all[k].high);
        }
    for (int64_t k = first; k < end; k++)
        value += em_log_mean_value(&all[k].low) - em_log_mean_value(&all[k].high);
    for (int64_t u = 0; u < n_unit && influence; u++) {
        influence[u] = 0;
        for (int64_t k = first; k < end; k++)
            influence[u] += relative(&bridges[u * n_pair + k].low, &all[k].low) -
                            relative(&bridges[u * n_pair + k].high, &all[k].high);
    }
    if (influence)
        weigh(n_unit, n_pair, first, bridges, influence);
    return (em_log_evidence){value, influence ? error_of_mean(n_unit, each, influence) : NAN};
}

em_log_evidence em_ladder_combine(int64_t n_unit, int64_t each,
                                  const em_log_evidence leg[EM_MOST_LEGS],
                                  double *const influence[EM_MOST_LEGS])
{
    double weight[EM_MOST_LEGS], sum = 0;

    for (int i = 0; i < EM_MOST_LEGS; i++) {
        const bool counts = isfinite(leg[i].value) && leg[i].error > 0;
        weight[i] = counts ? 1 / (leg[i].error * leg[i].error) : 0;
        sum += weight[i];
    }
    if (sum == 0)
        return leg[EM_LEG_A];
    for (int64_t u = 0; u < n_unit; u++)
        for (int i = 0; i < EM_MOST_LEGS; i++) {
            const double part = weight[i] > 0 ? weight[i] / sum * influence[i][u] : 0;
            influence[EM_LEG_A][u] = i == 0 ? part : influence[EM_LEG_A][u] + part;
        }
    double value = 0;
    for (int i = 0; i < EM_MOST_LEGS; i++)
        value += weight[i] > 0 ? weight[i] / sum * leg[i].value : 0;
    return (em_log_evidence){value, error_of_mean(n_unit, each, influence[EM_LEG_A])};
}
