/*
 * Detects that another rank was killed, for example by the kernel's out-of-memory killer. Some
 * launchers neither end nor notify the other ranks, which then wait in MPI for ever: srun with
 * MPICH's PMI-2, unless --wait or --kill-on-bad-exit is given. So each rank monitors the next rank
 * of its node by a thread that sleeps until the system wakes it. There is no monitor on a node with
 * one rank, or where the ranks of a node cannot see each other's processes.
 */
#pragma once

/* Starts the monitor: if one rank ends, all ranks end within some seconds. Collective. */
void em_rank_failure_monitor_start(void);

/* Stops the monitor: from now on ranks may end. Collective where it was started. */
void em_rank_failure_monitor_stop(void);
