/* The output of a run: an HDF5 file, which is a sink of the draws (emass/sink.h). Collective
 * functions return agreed statuses. */
#pragma once

#include "adaptation/adaptation.h"
#include "emass/sink.h"
#include "par/grid.h"
#include "run/config/config.h"
#include "run/config/run_plan.h"
#include "run/convergence/convergence_monitor.h"
#include "run/output/creation_record.h"

typedef struct em_output em_output;

/* The run whose output is written. All pointers outlive the output. */
typedef struct em_output_run {
    const em_config *config;
    const char *path;       /* of the file */
    const char *checkpoint; /* of the last checkpoint, a copy of which the finished output holds */
    const char *kernels;    /* the compute kernels of a resumed run, as text (processor_record.h);
                               NULL: those of this process */
    em_grid *grid;
    em_model *model;
    const em_plan *plan;
    int64_t done;                  /* iterations before, whose draws em_output_restore copies */
    const em_adapt *const *adapts; /* [config->n_kernel] what warmup has learned, at the end */
    const em_tempering_findings *tempered; /* of a tempered run, at its end */
    em_created created;
} em_output_run;

/* Prepares an output; em_sink.begin then writes the file. Collective. Errors: EM_EMEMORY. */
em_status em_output_create(const em_output_run *run, em_output **out);

/* The group of a finished output with the last checkpoint of the run (io/draws/enclosed.h), or the
 * root attribute with the reason why there is none. */
#define EM_OUTPUT_CHECKPOINT "checkpoint"
#define EM_OUTPUT_LEFT_OUT   "checkpoint_left_out"

/* Attributes of a run with `draws: auto`: the number of iterations per stored draw, and the reason
 * why the run ended. */
#define EM_OUTPUT_THINNING "thinning"
#define EM_OUTPUT_ENDED_BY "ended_by"

/* An attribute with the value 0. Only runs to which tempering cannot be added have it
 * (run/config/compatibility.h). */
#define EM_OUTPUT_CAN_BE_TEMPERED "can_be_tempered"

/*
 * The file as a sink. `begin` writes the file with all its groups, constant data and attributes;
 * after a failure there is no file. `flush` writes the draws taken so far. `finish` truncates the
 * groups to the draws that were made, writes what was learned, the verdict and the last checkpoint,
 * and closes the file. Its statuses are agreed: EM_EIO, EM_EMEMORY.
 */
em_sink em_output_sink(em_output *output);

/* The draws that wait to be written, of all chains of this rank; and drops those after the first
 * `n_taken` of them. Local. */
int64_t em_output_taken(const em_output *output);
void em_output_drop(em_output *output, int64_t n_taken);

/* Forces all written data to the disk. Collective. */
em_status em_output_sync(em_output *output);

/* Whether the file holds the draws of a layout's groups up to `done` iterations, of all chains.
 * Collective. Errors: EM_EIO, EM_EMEMORY. */
em_status em_output_can_restore(const em_layout *layout, const em_grid *grid, const em_plan *plan,
                                const char *path, int64_t done, bool *can);

/* Copies the draws before run.done from another file of the same run, and passes those of sampling
 * to the monitor. Without them the file is not valid. Collective. Errors: EM_EIO, EM_EDATA,
 * EM_EMEMORY. */
em_status em_output_restore(em_output *output, const char *path, em_monitor *monitor);

/* NULL-safe. A file that is not finished stays as it is, with the attribute `complete` 0.
 * Collective. */
void em_output_destroy(em_output **output);
