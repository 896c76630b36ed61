/*
 * Monitors convergence during a run: it keeps the draws so far in memory and checks them at planned
 * points. Stop decisions depend on draws and iterations alone, never on the clock or the file.
 */
#pragma once

#include "diagnostics/diag.h"
#include "diagnostics/modes.h"
#include "emass/report.h"
#include "par/grid.h"
#include "run/config/run_plan.h"
#include "run/config/stop_rule.h"

typedef struct em_monitor em_monitor;

/* Monitors the numbers of `monitored`, which the shards of a group divide among them. Memory is
 * allocated as draws are added. With n_superchain > 0 R-hat is the nested R-hat of superchains.
 * `grid` and `stop` must outlive the monitor. Collective. Errors: EM_EMEMORY, agreed. */
em_status em_monitor_create(const em_grid *grid, const em_stop_options *stop,
                            const em_monitored *monitored, int64_t n_superchain, em_monitor **out);
void em_monitor_destroy(em_monitor **monitor);

/* Keeps draw `draw` of local chain `chain` if it is a monitored one. `value` has the full width.
 * Local. */
void em_monitor_keep(em_monitor *monitor, int64_t chain, int64_t draw, const double *value);

/* Stores the visit number of a draw, if `monitored` has visits (diagnostics/visits.h). Local. */
void em_monitor_keep_visit(em_monitor *monitor, int64_t chain, int64_t draw, double visit);

/*
 * Computes the convergence of the monitored numbers of the first `n_draw` draws. With `thorough` it
 * checks all numbers. Otherwise it checks the parameters first. It checks the other numbers only if
 * there is a stop rule and the parameters meet it; with draws: auto also `may_end` must be true,
 * that is, this check may end the run. Each rank begins with the number that missed the thresholds
 * last time, and stops at the first number that misses them. This does not change whether the rule
 * is met. A thorough check leaves the state of the stop rule as it is. r_hat and ess are those of
 * the checked numbers. Numbers with equal draws are diagnosed once. Collective. Errors: EM_EMEMORY,
 * agreed.
 */
em_status em_monitor_check(em_monitor *monitor, int64_t n_draw, bool thorough, bool may_end,
                           em_convergence *out);

/* The diagnoses of the last check on this rank, some of all numbers. Borrowed. Local. */
em_diagnoses *em_monitor_diagnoses(em_monitor *monitor);

/* Finds the modes that the chains are in, from the monitored numbers of the first `n_draw` draws.
 * *n_growing counts the numbers that grow without bound (diagnostics/growth.h) and whose R-hat is
 * above its limit. Collective. Errors: EM_EMEMORY, agreed. */
em_status em_monitor_find_modes(em_monitor *monitor, int64_t n_draw, em_modes *modes,
                                int64_t *n_growing);

/* The number of consecutive checks that met the thresholds: the state of the stop rule, for
 * checkpoints. Local. */
int64_t em_monitor_times_met(const em_monitor *monitor);
void em_monitor_set_times_met(em_monitor *monitor, int64_t times);

/* Thins the monitored draws: drops every second one of those kept so far. Local. */
void em_monitor_thin(em_monitor *monitor);
