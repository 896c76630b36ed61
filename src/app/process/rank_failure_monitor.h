/*
 * Detects that another rank was killed, for example by the kernel's out-of-memory killer. Some
 * launchers neither end the other ranks nor tell them (srun with MPICH's PMI-2, unless --wait or
 * --kill-on-bad-exit is given); they would wait in MPI for ever. So each rank monitors the next one
 * of its node by a thread that sleeps until the system wakes it. There is no monitor where a node
 * has one rank, or where the ranks of a node cannot see each other's processes.
 */
#pragma once

/* From here on the end of one rank ends all ranks, unless the launcher does within some seconds.
 * Collective. */
void em_rank_failure_monitor_start(void);

/* From here on all may end. Collective, where they watched. */
void em_rank_failure_monitor_stop(void);
