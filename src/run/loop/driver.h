/* One run, from a config to a finished file. */
#pragma once

#include "base/system/progress.h"
#include "diagnostics/diag.h"
#include "emass/run.h"
#include "run/config/config.h"

typedef struct em_engine em_engine;

/* A run request: what the caller chooses besides the config. */
typedef struct em_engine_request {
    em_run_mode mode;
    bool watchful;       /* compare the ranks of a group at each adaptation update and stop */
    bool same_kernels;   /* an error if compute kernels differ between ranks, or from those before a
                            resume */
    const em_sink *sink; /* receives the draws, too; the same on all ranks; NULL: none */
    /* Called about every second, at planned stops and at the end; NULL: not called. */
    void (*progress)(void *to, const em_report *report);
    void *progress_to;
} em_engine_request;

/*
 * Does everything before the first iteration: locks the output, reads the data, and starts the
 * chains or restores them. `config` must outlive the engine. Collective. Errors, agreed:
 * EM_ECONFIG, EM_EDATA, EM_EUSAGE (the file exists), and those of running.
 */
em_status em_engine_create(const em_config *config, const em_engine_request *request,
                           em_engine **out);

/*
 * Runs at most `iterations` more of each chain; after the last one of the run it finishes the
 * output. The draws do not depend on how a run is divided into calls. Checkpoints are written at
 * the end, on an interrupt (em_world_interrupt), before the time limit, when a server of the model
 * is lost, and every output.checkpoint_every. Collective. Errors, agreed: EM_ESTOPPED after a
 * checkpoint, and another call continues from there; errors of running, after which the file is
 * marked incomplete and every call fails alike.
 */
em_status em_engine_advance(em_engine *engine, int64_t iterations);

/* Writes what is buffered and saves the state, on the disk on return. Collective. Errors, agreed:
 * EM_EIO; EM_EUSAGE where no file is written. */
em_status em_engine_save(em_engine *engine);

/* Local; until the next call. */
const em_report *em_engine_report(em_engine *engine);

/* What the last check of the run diagnosed on this rank, for a summary of its file; NULL: there was
 * no check. Borrowed until the engine is destroyed. Local. */
em_diagnoses *em_engine_diagnoses(const em_engine *engine);

/* The progress in a report, as a record for em_progress_tell. */
em_progress_record em_report_progress(const em_report *report);

enum { EM_NOTE_BYTES = 1024 };

/* The note or warning number `which`, from 0, about a run that has ended: "note: 3 of 700
 * evaluations failed (0.43 %), and were rejections; ...", cut to `size` bytes. Returns false if
 * there are fewer. Local. */
bool em_report_note(const em_report *report, int64_t which, size_t size, char *line);

/* NULL-safe. The file of a run that has not finished stays, marked incomplete. Keeps the error
 * message. Collective. */
void em_engine_destroy(em_engine **engine);

/* Makes a whole run: em_engine_create, the sampling and em_engine_destroy. *report is always set.
 * Collective. Errors: theirs. */
em_status em_sample(const em_config *config, const em_engine_request *request, em_report *report);
