/*
 * What is watched while a run goes on: the draws so far, in memory, and their convergence at
 * planned points. Stop decisions rest on draws and iterations alone, never on the clock or the
 * file.
 */
#ifndef EM_RUN_CONVERGENCE_CONVERGENCE_MONITOR_H
#define EM_RUN_CONVERGENCE_CONVERGENCE_MONITOR_H

#include "diagnostics/modes.h"
#include "emass/report.h"
#include "par/grid.h"
#include "run/config/run_plan.h"

typedef struct em_monitor em_monitor;

/* Where the chains of a run start: at a point of their own each, or in superchains of as many. */
typedef struct em_starts {
    int64_t n_chain, n_superchain; /* 0: none */
} em_starts;

em_starts em_monitor_starts(const em_run_options *run); /* Local. */

/* Watches what `watch` says; the shards of a group share the numbers out. Memory is taken up as
 * draws come. Of superchains, where n_superchain > 0, R-hat is the nested one. `grid` and `stop`
 * outlive it. Collective. Errors: EM_EMEMORY, agreed. */
em_status em_monitor_create(const em_grid *grid, const em_stop_options *stop, const em_watch *watch,
                            int64_t n_superchain, em_monitor **out);
void em_monitor_destroy(em_monitor **monitor);

/* Keeps draw `draw` of local chain `chain` if it is one of those; `value` has the full width.
 * Local. */
void em_monitor_keep(em_monitor *monitor, int64_t chain, int64_t draw, const double *value);

/* The same of the number of its visit, where `watch` has visits (diagnostics/visits.h). Local. */
void em_monitor_keep_visit(em_monitor *monitor, int64_t chain, int64_t draw, double visit);

/*
 * Computes the convergence of the first `n_draw` draws, of those that are watched. `thorough`: of
 * all numbers. Else of the parameters and, where there is a stop rule and they meet it, of the
 * other numbers; and a rank stops at the first one that misses the thresholds, beginning with the
 * one that did so last time. Whether the rule is met is then the same; r_hat and ess are those of
 * the numbers looked at. Numbers with the same draws are looked at once. Collective. Errors:
 * EM_EMEMORY, agreed.
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

/* The thresholds in force: those of the stop rule, or of diagnostics/limits.h. Local. */
double em_monitor_r_hat_limit(const em_stop_options *stop);
double em_monitor_ess_limit(const em_stop_options *stop, em_starts starts);

#endif
