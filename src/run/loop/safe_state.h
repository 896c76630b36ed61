/*
 * The last complete state of a run whose model is a program outside of emass, which may be lost: a
 * copy in the memory of each rank, made before every segment of iterations. If the model is lost
 * within a segment, ranks are at different iterations, and a checkpoint is written from the copy.
 */
#pragma once

#include "run/loop/engine.h"

/* Copies the state, if the model may be lost. Collective. Errors, not agreed: EM_EMEMORY. */
em_status em_safe_state_take(em_engine *engine);

/* Drops the stored evaluations of the iterations so far, once the state of the run is complete.
 * Local. */
void em_safe_state_pass(em_engine *engine);

/* Agrees on the status of a segment. If the model was lost on a rank, the others are asked to stop,
 * and it waits for the end of their segments without a limit. Collective. */
em_status em_safe_state_agree(em_engine *engine, em_status status);

/* If the model was lost (`status`), writes a checkpoint of the copy and adds to the message that
 * there is one. `until`: iterations that were to be done. Collective. Returns `status`, or the
 * error of the checkpoint. */
em_status em_safe_state_save(em_engine *engine, em_status status, int64_t until);
