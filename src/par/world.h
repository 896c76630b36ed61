/* The ranks of this program, and how they agree. */
#ifndef EM_PAR_WORLD_H
#define EM_PAR_WORLD_H

#include "emass/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Starts MPI. Collective. Errors: EM_EUSAGE when the launcher started several ranks and MPI sees
 * one, that is, when the MPI of the launcher is not the one linked. */
em_status em_world_start(int *argc, char ***argv);

/* Ends MPI. Collective. */
void em_world_stop(void);

int em_world_rank(void); /* Local. */
int em_world_size(void); /* Local. */

/*
 * Agrees on a status: every rank returns the status of the lowest failing rank, and has its
 * message, prefixed by "rank N: " when there are several ranks. A rank that fails waits a few
 * seconds for the others, which may be far from here, then prints its message and aborts them all.
 * Ranks that come from different places in the code abort, naming both. Collective.
 */
#define em_agree(status) em_agree_at((status), __FILE__, __LINE__)
em_status em_agree_at(em_status status, const char *file, int line);

/*
 * From now on SIGTERM, SIGINT, SIGUSR1 and SIGUSR2 only set a flag, which every em_agree shares: a
 * signal to any one rank is seen by all at the same place. A second SIGINT ends the process. Local.
 */
void em_world_catch_signals(void);

/* True when any rank had been signalled at the last em_agree: the same on all ranks. Local. */
bool em_world_interrupted(void);

/*
 * What rank 0 has to say to all rides along with every em_agree: a word of at least 0 and less than
 * INT_MAX, from when it is first told on. The others' word does not matter; em_world_told is the
 * same on all ranks. Local.
 */
void em_world_tell(int word);
int em_world_told(void); /* at the last em_agree */

/* Writes the ranks whose `mine` is true, as "rank 1, 3, 4, ...", into text [size] on all
 * ranks; "" when there is none. Collective. */
void em_world_list(bool mine, size_t size, char *text);

/* Copies `bytes` bytes of rank 0 to all. Collective. */
void em_broadcast(void *data, size_t bytes);

/* Gives every rank rank 0's string, freshly allocated on the others; *text may be NULL there.
 * Collective. Errors: EM_EMEMORY, agreed. Freed by em_release. */
em_status em_broadcast_text(char **text);

/* Prints the message and ends all ranks at once. Local; does not return. */
_Noreturn void em_panic(const char *format, ...) EM_PRINTF(1, 2);

#endif
