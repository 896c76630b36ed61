/* Ends a process when the front end that started it ends. */
#pragma once

/*
 * If EMASS_PARENT is the process id of the parent, this process gets SIGTERM when the parent ends,
 * for whatever reason, SIGKILL included: a run then stops with a checkpoint. Writing to a pipe that
 * the parent has left does not end this process. The variable is removed, so that ranks which this
 * process starts do not read it. A front end sets it; without it a process outlives its parent, as
 * under nohup. To be called once, by the one thread of the process, before it starts others. Local.
 */
void em_end_with_parent(void);
