/* The limits of R-hat and ESS: those that the section `stop` gives, or else those of a verdict
 * (diagnostics/limits.h). All Local. */
#pragma once

#include "run/config/config.h"

/* The starts of chains: each chain has its own, or the chains of a superchain share one. */
typedef struct em_starts {
    int64_t n_chain, n_superchain; /* 0: none */
} em_starts;

em_starts em_starts_of(const em_run_options *run);

/* Whether a check may end the run. */
bool em_has_stop_rule(const em_stop_options *stop);

double em_r_hat_limit(const em_stop_options *stop);
double em_ess_limit(const em_stop_options *stop, em_starts starts);
