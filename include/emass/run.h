/*
 * A run: it is created from a config, advanced, and destroyed; its progress can be read at any
 * time. It belongs to a context (emass/emass.h), whose ranks make the Collective calls together.
 */
#pragma once

#include "emass/export.h"
#include "emass/report.h"
#include "emass/sink.h"
#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

EM_BEGIN_C

typedef struct em_context em_context;
typedef struct em_run em_run;

/* What to do with the output file and its checkpoints. */
typedef enum em_run_mode {
    EM_RUN_NO_FILE,   /* write neither; draws go to the sink only */
    EM_RUN_NEW,       /* an existing file is an error */
    EM_RUN_OVERWRITE, /* replace an existing file */
    EM_RUN_RESUME     /* continue from its checkpoint; without one, replace the file unless it is
                         complete */
} em_run_mode;

/* Arguments of em_run_create. The strings and `mode` of rank 0 are used, and the sink and the
 * progress function of each rank. The strings are copied. */
typedef struct em_run_request {
    const char *config; /* REQUIRED: the text of a config (YAML, see emass list) */
    const char *path; /* the config's path in messages; its relative paths start in that folder, and
                         the default name of the output is derived from it. NULL: "config" */
    int64_t n_override;
    const char *const
        *override; /* [n_override] "key.path=value", which replaces a value of the config */
    em_run_mode mode;
    bool same_kernels; /* fail if the ranks, or the run that is resumed, do not have the same
                          processor and numerical libraries; false: a warning */
    em_sink sink;      /* receives the draws of this rank's chains, in any mode */
    /* Receives the progress: about every second if an iteration takes no longer, at adaptation
       updates, at planned points and at the end; NULL: not called. Local. */
    void (*progress)(void *to, const em_report *report);
    void *progress_to;
} em_run_request;

/*
 * Does everything before the first iteration: parses the config, reads the data, locks the output
 * file, and sets the starts of the chains or restores their state. Collective. Errors, the same on
 * all ranks, with *out NULL: EM_ECONFIG, EM_EDATA or EM_EUSAGE (also: the file exists) if an input
 * is wrong, and then no file has been created or changed; EM_EIO, EM_EMEMORY, EM_EMODEL.
 */
EM_API em_status em_run_create(em_context *context, const em_run_request *request, em_run **out);

/*
 * Runs at most `iterations` more of each chain (rank 0's argument counts). After the last iteration
 * the run finishes: it finds the verdict and completes the file. The draws do not depend on how a
 * run is divided into calls. A call on a finished run does nothing. Collective. Errors, the same on
 * all ranks: EM_ESTOPPED when the run was interrupted or stop.max_time is over; a run with a file
 * has then written a checkpoint, and the next call continues it. After any other error the run can
 * only be destroyed; its file stays, marked incomplete, and can be resumed from its last
 * checkpoint.
 */
EM_API em_status em_run_advance(em_run *run, int64_t iterations);

/* Writes the draws so far and a checkpoint; on return both are on the disk. Collective. Errors:
 * EM_EIO; EM_EUSAGE if the run writes no file. */
EM_API em_status em_run_save(em_run *run);

/* The progress and the results of a run; valid until the next call for this run. Local. */
EM_API const em_report *em_run_report(em_run *run);

/* The config with all defaults, and the path of the output ("" if none is written). Both are valid
 * until the run is destroyed. Local. */
EM_API const char *em_run_config(const em_run *run);
EM_API const char *em_run_file(const em_run *run);

/* Destroys a run; NULL-safe. The file of a run that has not finished stays marked incomplete. The
 * error message is not changed. Collective. */
EM_API void em_run_destroy(em_run **run);

EM_END_C
