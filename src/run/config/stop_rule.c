#include "run/config/stop_rule.h"

#include "diagnostics/limits.h"

#include <math.h>

double em_r_hat_limit(const em_stop_options *stop)
{
    return isnan(stop->r_hat) ? EM_R_HAT_LIMIT : stop->r_hat;
}

em_starts em_starts_of(const em_run_options *run)
{
    return (em_starts){run->chains, run->superchains > 0 ? run->superchains : 0};
}

bool em_has_stop_rule(const em_stop_options *stop)
{
    return stop->until_done || !isnan(stop->r_hat) || !isnan(stop->ess);
}

/* The limit of ESS is 100 for each starting point, which the chains of a superchain share. If the
 * rule alone ends the run, the limit is at least EM_LEAST_ESS_OF_RULE, which matters with few
 * chains. */
double em_ess_limit(const em_stop_options *stop, em_starts starts)
{
    const int64_t n = starts.n_superchain > 0 ? starts.n_superchain : starts.n_chain;
    const double each = EM_ESS_LIMIT_PER_CHAIN * (double)n;

    if (!isnan(stop->ess))
        return stop->ess;
    return stop->until_done ? fmax(EM_LEAST_ESS_OF_RULE, each) : each;
}
