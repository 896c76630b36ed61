/*
 * The ranks that run together, and how they agree. A world is made from a communicator
 * (par/mpi_world.h). Every function here concerns the world that the calling thread has entered, as
 * the locale of a thread does; this keeps an argument out of every signature. A thread that has
 * entered none is alone.
 */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct em_world em_world;

/* Makes the calling thread enter a world (NULL: it is alone) and returns the previous one.
 * Local. */
em_world *em_world_enter(em_world *world);

/* For our own program: sets up the process, starts MPI and enters the world of all ranks; a failure
 * that cannot be agreed on aborts it. Collective. Errors: EM_EUSAGE when the launcher started
 * several ranks and MPI sees one, because the launcher belongs to another MPI than the one
 * linked. */
em_status em_world_start(int *argc, char ***argv);

/* The same for a process without others, and without MPI. Local. */
void em_world_start_alone(void);

/* Leaves and ends it, and MPI where it was started. Collective. */
void em_world_stop(void);

int em_world_rank(void);      /* Local. */
int em_world_size(void);      /* Local. */
int em_world_node_size(void); /* ranks that see the same memory as this one, itself too. Local. */

/* Agrees on a status: every rank returns the status of the lowest failing rank and has its message,
 * prefixed by "rank N: " unless all ranks have the same. Where the world may be aborted, a rank
 * that fails waits a few seconds for the others, then prints its message and aborts them all,
 * unless they have agreed on this failure before. Ranks that come from different places in the code
 * do the same and name both. In other worlds a rank waits until the others come; different places
 * are EM_EINTERNAL, here and at every later agreement. Collective. */
#define em_agree(status) em_agree_at((status), __FILE__, __LINE__)
em_status em_agree_at(em_status status, const char *file, int line);

/* Asks the ranks of a world to stop at the next planned point: every em_agree shares it. May be
 * called by a signal handler, on any one of them. em_world_resume forgets that this rank was asked.
 * Local. */
void em_world_interrupt(em_world *world);
void em_world_resume(void);

/* True when any rank had been interrupted at the last em_agree: the same on all ranks. Local. */
bool em_world_interrupted(void);

/* A word of rank 0 that every em_agree passes to all ranks: from 0 to INT_MAX - 1, repeated from
 * the first call on. Words of other ranks are ignored; em_world_told is the same on all ranks.
 * Local. */
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

/* Prints one line for the user, from rank 0 alone: "warning: ...". Local. */
void em_say(const char *format, ...) EM_PRINTF(1, 2);

/* Keeps all loaded shared objects loaded. Open MPI 4.1 unloads its components in MPI_Finalize while
 * two of its threads still run, which on a busy machine crashes one process in some thousands after
 * its work is done. Call it just before MPI_Finalize. Local. */
void em_keep_loaded(void);
