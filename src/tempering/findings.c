/* Writes the findings of ladders as text, and judges them for the verdict. */
#include "base/text.h"
#include "tempering/tempering.h"

#include <math.h>
#include <stdio.h>

/* With fewer round trips the weights of modes are unreliable. */
static const double fewest_trips = 10;

/* If draws are farther than this from the mean of the reference, in its standard deviations, there
 * may be other modes as far away that the ladders did not find. */
static const double widest_reach = 2;

/* If more of the swaps of a pair are rejected, hardly any copy gets from one end of its leg to the
 * other. */
static const double highest_rejection = 0.99;

static bool has_second_leg(const em_tempering_findings *found)
{
    return EM_LEG_B < found->ladder.n_leg;
}

/* The difference of the log evidence of both legs; NaN if there is only one leg. */
static double difference(const em_tempering_findings *found)
{
    return has_second_leg(found)
               ? fabs(found->draws.log_evidence[EM_LEG_A] - found->draws.log_evidence[EM_LEG_B])
               : NAN;
}

/* The standard error of the difference of the log evidence. */
static double error_of_difference(const em_tempering_findings *found)
{
    return hypot(found->draws.error[EM_LEG_A], found->draws.error[EM_LEG_B]);
}

static bool legs_disagree(const em_tempering_findings *found)
{
    return has_second_leg(found) && !(difference(found) <= 4 * error_of_difference(found) + 0.1);
}

/* Whether the barrier of the draws is still larger than that of the last round. */
static bool barrier_grows(const em_tempering_findings *found)
{
    const em_tempering_round *last = &found->round[found->n_round - 1];

    for (int leg = 0; leg < found->ladder.n_leg && found->n_round > 1; leg++)
        if (found->draws.barrier[leg] > 1.25 * last->barrier[leg] + 0.5)
            return true;
    return false;
}

/* The pair of rungs whose swaps are rejected most often. */
static int64_t worst_pair(const em_tempering_findings *found)
{
    int64_t worst = 0;

    for (int64_t k = 1; k + 1 < found->ladder.n_rung; k++)
        if (found->rejection[k] > found->rejection[worst])
            worst = k;
    return worst;
}

bool em_tempering_has_failed(const em_tempering_findings *found)
{
    return legs_disagree(found) || found->draws.restarts == 0;
}

/*
 * The approximate number of independent draws for the weight of a mode. A copy chooses its mode
 * anew when it is drawn from a reference. The time that it then spends at the target is random,
 * too, so two visits count as one draw. The ESS of draws does not show that, because neighbouring
 * draws come from different copies.
 */
static double independent_visits(const em_tempering_findings *found)
{
    return found->draws.restarts / 2;
}

static double trips_of_ladder(const em_tempering_findings *found, int64_t n_ladder)
{
    return found->draws.round_trips / (double)n_ladder;
}

static bool has_few_trips(const em_tempering_findings *found, int64_t n_ladder)
{
    return trips_of_ladder(found, n_ladder) < fewest_trips;
}

static bool has_few_visits(const em_tempering_findings *found, double ess_limit)
{
    return independent_visits(found) < ess_limit;
}

bool em_tempering_needs_draws(const em_tempering_findings *found, int64_t n_ladder,
                              double ess_limit)
{
    return legs_disagree(found) || has_few_trips(found, n_ladder) ||
           has_few_visits(found, ess_limit);
}

void em_tempering_warning(const em_tempering_findings *found, int64_t n_ladder, double ess_limit,
                          size_t bytes, char *text)
{
    const int64_t worst = worst_pair(found);

    text[0] = '\0';
    if (legs_disagree(found))
        em_append(bytes, text,
                  "the log evidence of the two legs differs by %.2g (standard error %.2g), ",
                  difference(found), error_of_difference(found));
    if (found->rejection[worst] > highest_rejection)
        em_append(bytes, text,
                  "%.2f %% of the swaps of rungs %lld and %lld are rejected (at most %.0f %% "
                  "expected), ",
                  100 * found->rejection[worst], (long long)worst, (long long)worst + 1,
                  100 * highest_rejection);
    if (found->reach > widest_reach)
        em_append(bytes, text,
                  "the reference is narrower than the draws by a factor of %.2g (raise "
                  "temper.scale), ",
                  found->reach);
    if (has_few_trips(found, n_ladder))
        em_append(bytes, text, "%.1f round trips a ladder (at least %g expected), ",
                  trips_of_ladder(found, n_ladder), fewest_trips);
    if (has_few_visits(found, ess_limit))
        em_append(bytes, text,
                  "weights of modes are estimated from about %.0f independent draws (at least %g "
                  "expected), ",
                  independent_visits(found), ess_limit);
    if (barrier_grows(found))
        em_append(bytes, text, "the communication barrier still grows, ");
}

void em_tempering_describe(const em_tempering_findings *found, int64_t n_ladder, size_t bytes,
                           char *text)
{
    snprintf(text, bytes, "log evidence %.2f (standard error %.2g, reference: %s)",
             found->draws.both, found->draws.both_error, found->is_prior ? "prior" : "normal law");
    if (has_second_leg(found))
        em_append(bytes, text, ", legs differ by %.2g (standard error %.2g)", difference(found),
                  error_of_difference(found));
    em_append(bytes, text, "; %.0f round trips a ladder, %lld rungs, barrier %.1f",
              trips_of_ladder(found, n_ladder), (long long)found->ladder.n_rung,
              found->draws.barrier[EM_LEG_A]);
    if (has_second_leg(found))
        em_append(bytes, text, " and %.1f", found->draws.barrier[EM_LEG_B]);
    if (found->map)
        em_noncentring_tell(found->map, bytes, text);
    if (found->why)
        em_append(bytes, text, "; tempered from iteration %lld on: %s", (long long)found->first,
                  found->why);
}
