/*
 * The ranks that run together, and how they agree. A world is made from a communicator
 * (par/mpi_world.h). Every function uses the world that the calling thread has entered, like the
 * locale of a thread, so that no function needs an argument for it. A thread that has entered no
 * world is a world of one rank.
 */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct em_world em_world;

/* Makes the calling thread enter a world (NULL: a world of one rank) and returns the previous one.
 * Local. */
em_world *em_world_enter(em_world *world);
void em_world_return(em_world *const *before); /* enters it again, at the end of a scope */

/* For the program emass: sets up the process, starts MPI and enters the world of all ranks. A
 * failure on which the ranks cannot agree aborts them. Collective. Errors: EM_EUSAGE if the
 * launcher started several ranks but MPI has one, because the launcher belongs to another MPI than
 * the linked one. */
em_status em_world_start(int *argc, char ***argv);

/* Sets up the process and a world of one rank, without MPI. Local. */
void em_world_start_alone(void);

/* Leaves the world and destroys it; ends MPI if it was started here. Collective. */
void em_world_stop(void);

int em_world_rank(void);      /* Local. */
int em_world_size(void);      /* Local. */
int em_world_node_size(void); /* ranks on this node, this one included. Local. */

/* Agrees on a status: every rank returns the status of the lowest failing rank and has its message,
 * prefixed by "rank N: " unless all ranks have the same. In a world that may be aborted, a rank
 * that fails waits a few seconds for the others. If they do not call em_agree, it prints its
 * message and aborts all ranks, unless they have agreed on this failure before. Ranks that call it
 * from different places in the code are aborted with a message that names both. In other worlds a
 * rank waits for the others without limit; different places are EM_EINTERNAL, now and in every
 * later call. Collective. */
#define em_agree(status) em_agree_at((status), __FILE__, __LINE__)
em_status em_agree_at(em_status status, const char *file, int line);

/* Asks the ranks of a world to stop at the next planned point. The next em_agree passes the request
 * to all ranks. A signal handler on any one rank may call it; em_world_ask does the same in the
 * world that the thread has entered. em_world_resume forgets that this rank was asked. Local. */
void em_world_interrupt(em_world *world);
void em_world_ask(void);
void em_world_resume(void);

/* True when any rank had been interrupted at the last em_agree: the same on all ranks. Local. */
bool em_world_interrupted(void);

/* em_world_tell sets a number of rank 0, from 0 to INT_MAX - 1, that every later em_agree passes to
 * all ranks; on other ranks it has no effect. em_world_told returns the number passed by the last
 * em_agree, the same on all ranks. Local. */
void em_world_tell(int word);
int em_world_told(void); /* at the last em_agree */

/* Writes the ranks whose `mine` is true, as "rank 1, 3, 4, ...", into text [size] on all
 * ranks; "" when there is none. Collective. */
void em_world_list(bool mine, size_t size, char *text);

/* Copies `bytes` bytes of rank 0 to all. Collective. */
void em_broadcast(void *data, size_t bytes);

/* Copies the string of rank 0 to all ranks, where it is newly allocated; *text may be NULL there.
 * `status` is that of making the string; if it is an error on any rank, nothing is copied.
 * Collective. Errors, agreed: `status`, EM_EMEMORY. Freed by em_release. */
em_status em_share_text(em_status status, char **text);

/* Prints one line for the user, from rank 0 alone: "warning: ...". Local. */
void em_say(const char *format, ...) EM_PRINTF(1, 2);

/* Keeps all loaded shared objects loaded. Open MPI 4.1 unloads its components in MPI_Finalize while
 * two of its threads still run, which on a busy machine crashes one process in some thousands after
 * its work is done. Call it just before MPI_Finalize. Local. */
void em_keep_loaded(void);
