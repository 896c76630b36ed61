/*
 * Monitors convergence during a run: it keeps the draws so far in memory and checks them at
 * planned points. Stop decisions rest on draws and iterations alone, never on the clock or the
 * file.
 */
#pragma once

#include "diagnostics/modes.h"
#include "emass/report.h"
#include "par/grid.h"
#include "run/config/run_plan.h"
#include "run/config/stop_rule.h"

typedef struct em_monitor em_monitor;

/* Monitors the numbers of `monitored`; the shards of a group share the numbers out. Memory is taken
 * up as draws come. Of superchains, where n_superchain > 0, R-hat is the nested one. `grid` and
 * `stop` outlive it. Collective. Errors: EM_EMEMORY, agreed. */
em_status em_monitor_create(const em_grid *grid, const em_stop_options *stop,
                            const em_monitored *monitored, int64_t n_superchain, em_monitor **out);
void em_monitor_destroy(em_monitor **monitor);

/* Keeps draw `draw` of local chain `chain` if it is one of those; `value` has the full width.
 * Local. */
void em_monitor_keep(em_monitor *monitor, int64_t chain, int64_t draw, const double *value);

/* The same of the number of its visit, where `monitored` has visits (diagnostics/visits.h). Local.
 */
void em_monitor_keep_visit(em_monitor *monitor, int64_t chain, int64_t draw, double visit);

/*
 * Computes the convergence of the first `n_draw` draws, of those that are watched. `thorough`: of
 * all numbers. Else of the parameters and, where there is a stop rule and they meet it, of the
 * other numbers, of draws: auto only at a check that may end the run; and a rank stops at the first
 * one that misses the thresholds, beginning with the one that did so last time. Whether the rule is
 * met is then the same; r_hat and ess are those of the numbers looked at. Numbers with the same
 * draws are looked at once. Collective. Errors: EM_EMEMORY, agreed.
 */
em_status em_monitor_check(em_monitor *monitor, int64_t n_draw, bool thorough, em_convergence *out);

/* The modes that chains are in by the numbers that are watched, of the first `n_draw` draws, and
 * how many of these numbers grow without an end in sight (diagnostics/growth.h) and have an R-hat
 * above its limit. Collective. Errors: EM_EMEMORY, agreed. */
em_status em_monitor_find_modes(em_monitor *monitor, int64_t n_draw, em_modes *modes,
                                int64_t *n_growing);

/* How many times in a row the thresholds held: the state of the stop rule, for checkpoints. Local.
 */
int64_t em_monitor_times_met(const em_monitor *monitor);
void em_monitor_set_times_met(em_monitor *monitor, int64_t times);

/* Thins the draws that are watched: of those kept so far every second stays. Local. */
void em_monitor_thin(em_monitor *monitor);
