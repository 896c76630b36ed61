/* One run, from a config to a finished file. */
#ifndef EM_RUN_LOOP_DRIVER_H
#define EM_RUN_LOOP_DRIVER_H

#include "emass/run.h"
#include "run/config/config.h"

typedef struct em_engine em_engine;

/* What is asked for besides the config. */
typedef struct em_engine_request {
    em_run_mode mode;
    bool watchful;       /* the ranks of a group are compared whenever chains meet */
    const em_sink *sink; /* draws go there too, and has to be given on all ranks; NULL: nowhere */
    /* Told about every second, at planned points and at the end how far the run is; NULL: nobody.
     */
    void (*progress)(void *to, const em_report *report);
    void *progress_to;
} em_engine_request;

/*
 * Everything before the first iteration: takes hold of the output, reads the data, places the
 * chains or restores them. `config` outlives the engine. Collective. Errors, agreed: EM_ECONFIG,
 * EM_EDATA, EM_EUSAGE (the file exists), and what may happen while running.
 */
em_status em_engine_create(const em_config *config, const em_engine_request *order,
                           em_engine **out);

/*
 * At most `iterations` more of each chain, and after the last one what a run ends with. How a run
 * is cut into calls does not change what it draws. Checkpoints are written at the end, when asked
 * to stop (em_world_interrupt), before the time is over, and every output.checkpoint_every.
 * Collective. Errors, agreed: EM_ESTOPPED after a checkpoint, from where more calls go on; and what
 * may happen while running, after which the file is marked incomplete and every call fails alike.
 */
em_status em_engine_advance(em_engine *engine, int64_t iterations);

/* Writes what is buffered and saves the state, on the disk on return. Collective. Errors, agreed:
 * EM_EIO; EM_EUSAGE where no file is written. */
em_status em_engine_save(em_engine *engine);

/* Local; until the next call. */
const em_report *em_engine_report(em_engine *engine);

/* NULL-safe; the file of a run that has not finished stays, marked incomplete, and the message what
 * it was. Collective. */
void em_engine_destroy(em_engine **engine);

/* All of a run at once. *report is set in any case. Collective. Errors: of the three above. */
em_status em_sample(const em_config *config, const em_engine_request *order, em_report *report);

#endif
