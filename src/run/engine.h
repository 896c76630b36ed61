/* Private to the room: a run from inside, and what is done before its loop. */
#ifndef EM_RUN_ENGINE_H
#define EM_RUN_ENGINE_H

#include "exchange/adapt.h"
#include "run/checkpoint.h"
#include "run/driver.h"
#include "run/monitor.h"
#include "run/output.h"
#include "run/place.h"
#include "run/plan.h"
#include "run/tally.h"

/* Everything a run holds on one rank. */
typedef struct em_engine {
    const em_config *config;
    em_place *place;
    em_mass_options mass; /* those of the config; the structure of an earlier run's mass */
    em_grid *grid;
    em_model *model;
    em_posterior *posterior;
    em_sampler *sampler;
    em_block *block;
    em_adapt *adapt;
    em_monitor *monitor;
    em_output *output;
    em_plan plan;
    em_created created;
    em_progress *progress;
    em_report *report;
    em_tally *tally;
    em_findings findings; /* at the end */
    double *unreported;   /* [n_local_chain] draws of sampling whose report failed */
    int64_t done;         /* iterations */
    bool ended;           /* by the stop rule */
    bool watchful;        /* the ranks of a group are compared whenever chains meet */
    double started, last_checkpoint, longest_checkpoint; /* clock, clock, seconds */
} em_engine;

/* Reads the data and fixes the plan, and the time that the output will name. Collective. Errors,
 * agreed: EM_EDATA, EM_ECONFIG, EM_EUSAGE. */
em_status em_engine_load(em_engine *engine);

/* Target, chains, sampler, adaptation and monitor, without positions yet. Collective. */
em_status em_engine_create_chains(em_engine *engine);
void em_engine_destroy_chains(em_engine *engine); /* Collective. */

/* Where the chains begin: for each the first of its tries with a finite density and gradient, or
 * the positions of an earlier run. Collective. Errors, agreed: EM_EMODEL. */
em_status em_engine_start_chains(em_engine *engine);

/* Makes the output anew, empty, at its place; on failure there is none. Collective. */
em_status em_engine_make_output(em_engine *engine);

/* Writes what is buffered and saves the state, on the disk on return. Collective. */
em_status em_engine_save(em_engine *engine);

/* Restores the chains from a checkpoint, and the draws from the file that was there. *resumed
 * false: there is nothing to go on from, and why has been said. Collective. */
em_status em_engine_resume(em_engine *engine, bool *resumed);

#endif
