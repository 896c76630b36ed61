/*
 * The limits of convergence diagnostics: one set for the progress line, the verdict of a run, and
 * the advice under a summary. R-hat and ESS: Vehtari et al. 2021; their ESS of 400 for four chains
 * is 100 for each chain. E-BFMI: Betancourt 2016, as in CmdStan's diagnose. Divergences: up to one
 * in EM_DRAWS_PER_DIVERGENCE draws is a warning, more are too many; tempered: one in
 * EM_DRAWS_PER_TEMPERED_DIVERGENCE.
 */
#pragma once

#include "adaptation/starts/draw_mass.h" /* EM_MISSED_LOG_MASS_LIMIT */

#define EM_R_HAT_LIMIT                   1.01
#define EM_ESS_LIMIT_PER_CHAIN           100
#define EM_LEAST_ESS_OF_RULE             400 /* for a run that ends when its limits hold */
#define EM_E_BFMI_LIMIT                  0.3
#define EM_DRAWS_PER_DIVERGENCE          1000
#define EM_DRAWS_PER_TEMPERED_DIVERGENCE 20
#define EM_STILL_DRAWS                   25 /* equal draws in a row; beyond 1000 draws, see diag.c */
