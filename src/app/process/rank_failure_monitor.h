/*
 * A rank that is killed, as for want of memory, is nobody's to notice where the launcher neither
 * ends the others nor tells them (srun with MPICH's PMI-2, unless --wait or --kill-on-bad-exit is
 * given): they wait for it in MPI for ever. Each rank therefore has an eye on the next one of its
 * node: a thread that sleeps until the system wakes it, at no cost. Where there is one rank on a
 * node, or ranks of a node do not see each other's processes, nobody watches.
 */
#ifndef EM_APP_PROCESS_RANK_FAILURE_MONITOR_H
#define EM_APP_PROCESS_RANK_FAILURE_MONITOR_H

/* From here on the end of one rank ends all ranks, unless the launcher does within some seconds.
 * Collective. */
void em_rank_failure_watch(void);

/* From here on all may end. Collective, where they watched. */
void em_rank_failure_part(void);

#endif
