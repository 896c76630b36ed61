/* Private to this folder: the state of a run, and the functions that its loop calls. */
#pragma once

#include "adaptation/adaptation.h"
#include "adaptation/starts/mode_search.h"
#include "base/options/state_copy.h"
#include "run/config/run_plan.h"
#include "run/convergence/chain_statistics.h"
#include "run/convergence/convergence_monitor.h"
#include "run/loop/driver.h"
#include "run/loop/warmup_modes.h"
#include "run/output/output.h"
#include "run/output/recorder.h"
#include "run/transaction/transaction.h"

/* Decisions by rank 0's clock, broadcast at the end of a segment of iterations. */
typedef struct em_timing {
    int64_t pace;     /* iterations in about a second: the longest segment */
    bool over;        /* the time limit is near */
    bool out_of_time; /* stop.end_after is over */
    bool checkpoint;  /* a checkpoint is due */
    bool write;       /* draws were last written a second ago or earlier */
} em_timing;

/* A sampler with its adaptation, for all parameters or a block of them. */
typedef struct em_kernel {
    const em_kernel_options *options;
    const em_parameters *parameters; /* NULL: all */
    em_posterior *posterior;         /* as a function of these, with the others fixed */
    em_sampler *sampler;
    em_block *block;
    em_adapt *adapt;
    double *step_size; /* [n_chain] of this iteration */
    uint64_t seed;     /* no two kernels share a random number */
    em_mass_options
        mass; /* options of the config; with mass.from the structure is that of the earlier mass */
} em_kernel;

/* What ended a run before its last draw: the stop rule or, with draws: auto, a limit on gradients
 * or time, or chains in separate modes. */
typedef enum em_ending {
    EM_GOES_ON,
    EM_ENDED_BY_RULE,
    EM_ENDED_BY_GRADIENTS,
    EM_ENDED_BY_TIME,
    EM_ENDED_BY_MODES
} em_ending;

/* The last complete state of a run whose model may be lost (safe_state.h). */
typedef struct em_safe_state {
    em_state_copy copy;
    int64_t done;    /* iterations */
    int64_t n_taken; /* draws that waited to be written */
    int64_t until;   /* iterations of the segment in which the model was lost; 0: it was not */
} em_safe_state;

/* Everything a run holds on one rank. */
struct em_engine {
    const em_config *config;
    em_engine_request request;
    em_output_transaction *transaction; /* NULL: no file is written */
    em_grid *grid;
    em_shards shards;
    em_model *model;
    em_posterior *posterior;
    em_kernel kernel[EM_MOST_KERNELS]; /* they alternate; a single one shares the engine's posterior
                                          and block */
    int n_kernel;
    const em_block *kernel_block[EM_MOST_KERNELS]; /* their statistics of an iteration */
    em_block *ladder_block[EM_MOST_KERNELS]; /* of several kernels of a tempered run; else NULL */
    const em_adapt *adapts[EM_MOST_KERNELS];
    em_tempering *tempering; /* of a tempered run, which has no kernels of its own; else NULL */
    em_warmup_draws *warmup_draws;  /* for the decision of temper: auto; else NULL */
    int64_t first_tempered;         /* iteration from which the chains are tempered */
    char why_tempered[96];          /* the reason; "": they are not */
    em_tempering_findings tempered; /* at its end */
    em_block *block;                /* the state of the chains, in all parameters */
    em_monitor *monitor;
    em_recorder *recorder;
    em_output *output; /* NULL: no file is written */
    em_plan plan;
    em_created created;
    char *kernels; /* of a resumed run: the compute kernels of all its parts; else NULL */
    em_report report;
    em_chain_statistics *statistics;
    em_findings findings;        /* at the end */
    em_mode_search *mode_search; /* NULL: starts are draws without a search */
    double *unusable_starts;     /* [n_local_chain] draws without a finite density */
    char *failed_evaluations;    /* a list in JSON; NULL: there are none */
    double *unreported;          /* [n_local_chain] draws of sampling whose report failed */
    int64_t done;                /* iterations */
    int64_t first_done;          /* iterations done before this start */
    double *gradients;           /* [n_local_chain] of sampling */
    em_ending ended;
    em_timing timing;
    em_status failure;  /* the error that ended it; EM_OK: none */
    em_safe_state safe; /* of a run whose model may be lost: its last complete state */
    double started, last_checkpoint, longest_checkpoint; /* clock, clock, seconds */
    double last_write;                                   /* clock */
    double spent;      /* seconds of all starts of the run, up to the last checkpoint */
    double even_since; /* clock, from when on iterations take about as long; 0: not yet */
    int64_t even_done; /* iterations done then */
    int64_t n_written; /* stored draws of the phase at the last planned write, at least */
};

/* Reads the data, and sets the plan of the run, the stored variables, and the creation time.
 * Collective. Errors, agreed: EM_EDATA, EM_ECONFIG, EM_EUSAGE. */
em_status em_engine_load(em_engine *engine);

/* Creates posterior, chains, samplers, adaptation and monitor, without positions. Collective. */
em_status em_engine_create_chains(em_engine *engine);
void em_engine_destroy_chains(em_engine *engine); /* Collective. */

/* Creates the mode search, if the run has one. Local. Errors: EM_EMEMORY. */
em_status em_engine_create_search(em_engine *engine);

/* Runs the mode search of ladders that replace chains, and starts their copies. Collective. Errors,
 * agreed: EM_EMODEL, EM_EMEMORY. */
em_status em_engine_start_ladders(em_engine *engine, const em_tempering_beginning *beginning);

/* Sets the starts of the chains. A start is a draw from the distribution of starts with a finite
 * density and gradient, a point on the ascent from it (adaptation/starts/mode_search.h), or a
 * position of an earlier run. Collective. Errors, agreed: EM_EMODEL. */
em_status em_engine_start_chains(em_engine *engine);

/* The timing after a segment. It is packed into one word and sent with the agreement on errors at
 * the segment's end, because each further collective call is slow where ranks outnumber processors.
 * Local. */
em_timing em_timing_now(const em_engine *engine); /* rank 0's counts */
void em_timing_tell(em_timing timing);
em_timing em_timing_told(void);

/* Adds up a count over all chains. of_chain [n_local_chain] has the counts of this rank's chains.
 * Collective. Errors: EM_EMEMORY, agreed. */
em_status em_count_chains(const em_engine *engine, const double *of_chain, int64_t *out);

/* With draws: auto: enlarges the space for draws, or drops every second draw; at the end of the run
 * it removes unused space. It then saves and rewrites the output. *saved: whether it did.
 * Collective. Errors: agreed. */
em_status em_engine_resize_output(em_engine *engine, bool *saved);

/* A planned check of the draws after `done` iterations: convergence, divergences, and whether the
 * run ends. Collective. Errors: agreed. */
em_status em_engine_check(em_engine *engine, int64_t done);

/* Checks convergence of all variables of all draws, and divergences, for the last line of progress
 * and the verdict. It is no planned check: it neither ends the run nor changes the state of the
 * stop rule, with which a longer run continues. Collective. Errors: agreed. */
em_status em_engine_check_all(em_engine *engine);

/* Writes the verdict and the other findings to the report. Collective. Errors: agreed. */
em_status em_engine_conclude(em_engine *engine);

/* Begins a new output, where the run writes one; on failure there is none. Collective. */
em_status em_engine_begin_output(em_engine *engine);

/* Saves the state and finishes the output, where the run writes one; finishes the sinks.
 * Collective. Errors: agreed. */
em_status em_engine_finish_output(em_engine *engine);

/* Writes draws from the prior to the output, if the config asks for them. Collective. Errors,
 * agreed: EM_EIO, EM_EMEMORY, and fatal ones of the model. */
em_status em_engine_put_prior(em_engine *engine);

/* Passes the state of the run to a visitor. Collective. Errors: agreed. */
em_status em_engine_visit(em_engine *engine, const em_visitor *visitor);

/* Restores the chains from a checkpoint, and the draws from the existing file. *resumed false:
 * there is no valid checkpoint, and a message has said why. Collective. */
em_status em_engine_resume(em_engine *engine, bool *resumed);
