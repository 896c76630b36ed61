/*
 * A run, step by step: made from a config, advanced, read, destroyed. It belongs to a context
 * (emass/emass.h), whose ranks make the Collective calls together.
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

/* What to do about the output file, and those beside it. */
typedef enum em_run_mode {
    EM_RUN_NO_FILE,   /* write none, nor checkpoints: draws go to the sink alone */
    EM_RUN_NEW,       /* one that is there already is an error */
    EM_RUN_OVERWRITE, /* replace it */
    EM_RUN_RESUME     /* go on from its checkpoint, else replace it; never replace a finished one */
} em_run_mode;

/* What is asked for. Texts and mode are rank 0's for all; sink and progress are each rank's own.
 * All of it is copied. */
typedef struct em_run_request {
    const char *config; /* REQUIRED: the text of a config (YAML, see emass list) */
    const char *path;   /* what messages call it, and where its relative paths start; a file that
                           the config does not name is called after it. NULL: "config" */
    int64_t n_override;
    const char *const *override; /* [n_override] "key.path=value", in place of what the text says */
    em_run_mode mode;
    bool same_kernels; /* fail where a rank, or the run that is resumed, has or had another
                          processor or library that computes; false: a warning */
    em_sink sink;      /* the draws of this rank's chains go there too, whatever the mode */
    /* Receives the progress: about every second if an iteration takes no longer, at adaptation
       updates, at planned points and at the end; NULL: not called. Local. */
    void (*progress)(void *to, const em_report *report);
    void *progress_to;
} em_run_request;

/*
 * Parses the config, reads the data, takes hold of the output, and places the chains or restores
 * them: all that comes before the first iteration. Collective. Errors, the same on all ranks:
 * EM_ECONFIG, EM_EDATA, EM_EUSAGE (also: the file exists) for what the host has to put right;
 * EM_EIO, EM_EMEMORY, EM_EMODEL. *out is then NULL; after one of the first three no file has been
 * made or changed.
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

/* Writes what was drawn and saves the state, on the disk on return. Collective. Errors: EM_EIO;
 * EM_EUSAGE where no file is written. */
EM_API em_status em_run_save(em_run *run);

/* How far it is and what has come of it; valid until the next call about this run. Local. */
EM_API const em_report *em_run_report(em_run *run);

/* The config with every default filled in, and the path of the output, "" where none is written;
 * both until the run is destroyed. Local. */
EM_API const char *em_run_config(const em_run *run);
EM_API const char *em_run_file(const em_run *run);

/* Frees all of it; NULL-safe. A run that has not finished leaves its file marked incomplete. The
 * error message stays what it was. Collective. */
EM_API void em_run_destroy(em_run **run);

EM_END_C
