/*
 * Memory that several processes of a node see: an unnamed file in memory (memfd_create), which the
 * others open by way of /proc. An MPI window would do as well, but for two things: to free it takes
 * all of its ranks, and a rank that gives up after an error is alone; and it may lie in /dev/shm,
 * which containers keep small. This one is freed by each rank for itself, leaves no name behind
 * however a run ends, and its pages are there before anybody writes.
 */
#ifndef EM_PAR_MAPPED_H
#define EM_PAR_MAPPED_H

#include <stdbool.h>
#include <stdint.h>

/* Where the unnamed file of the one that made it is to be found, and how it is known: what the
 * others are sent, who may count processes otherwise (containers do). */
typedef struct em_mapped_place {
    int process, descriptor; /* descriptor -1: there is none */
    uint64_t device, inode;
    int64_t bytes;
} em_mapped_place;

/* Makes where->bytes zeroed bytes, and says where; the pages are taken up here, so that none is
 * missing when it is written. NULL: there are none. em_mapped_close once the others have found
 * them. The site "data-shared" of base/fault.h fails here. Local. */
void *em_mapped_make(em_mapped_place *where);
void em_mapped_close(const em_mapped_place *where);

/* Those of another process, to be read, or written too; NULL: they are not to be had, or what is
 * found there is another file. Local. */
void *em_mapped_find(const em_mapped_place *where, bool writes);

void em_mapped_release(void *memory, int64_t bytes); /* NULL-safe. Local. */

#endif
