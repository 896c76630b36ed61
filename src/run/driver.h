/* One run, from a config to a finished file. */
#ifndef EM_RUN_DRIVER_H
#define EM_RUN_DRIVER_H

#include "base/progress.h"
#include "run/config.h"
#include "run/monitor.h"
#include "run/plan.h"

/* Seconds of this rank, by what they were spent on. */
typedef struct em_seconds {
    double total, sampling, exchange, m_step, diagnostics, writing;
    double checkpoint; /* the longest one */
} em_seconds;

/* What to do about an output, or a part of one, that is there already. */
typedef enum em_run_mode {
    EM_RUN_NEW,       /* it is an error */
    EM_RUN_OVERWRITE, /* replace it */
    EM_RUN_VERIFY,    /* replace it, and compare the ranks of a group whenever chains meet */
    EM_RUN_RESUME     /* go on from its checkpoint, else replace it */
} em_run_mode;

typedef struct em_report {
    bool was_finished; /* resume: the output was complete, and nothing was done */
    em_convergence convergence;
    double e_bfmi;     /* the smallest of a chain; NaN: the sampler has no energy */
    bool converged;    /* convergence.met, no divergence, and no E-BFMI below its limit */
    char verdict[512]; /* one sentence, as stored in the file */
    char learned[512]; /* what warmup took and found; "" where there is nothing to say */
    char note[512];    /* what the user should know about the adaptation; "" where nothing */
    int64_t divergences, evaluations; /* of all chains in sampling; (chain, gradient) pairs here */
    int64_t unreported;               /* draws of sampling whose report failed */
    char failure[256];                /* why, the first on this rank; "": none did here */
    em_rejections rejections; /* in sampling, of all chains since the last start; why, the first on
                                 this rank */
    em_seconds seconds;
} em_report;

/*
 * Runs the config on all ranks and writes its output file; progress is told on rank 0. Checkpoints
 * are written at the end, when asked to stop (em_world_interrupt), before the time is over,
 * and every output.checkpoint_every. Collective. Errors, agreed: EM_ECONFIG, EM_EDATA, EM_EUSAGE
 * (the file exists); EM_ESTOPPED after a checkpoint; and what may happen while running: the file is
 * then absent or marked incomplete.
 */
em_status em_run(const em_config *config, em_run_mode mode, em_progress *progress,
                 em_report *report);

#endif
