/*
 * Memory that several processes of a node share: an unnamed file in memory (memfd_create), which
 * the others open through /proc. An MPI window has two disadvantages: freeing it is collective,
 * which a rank that failed alone cannot do, and it may lie in /dev/shm, which is small in
 * containers. Here each rank frees its own mapping, no name remains in a file system, and all pages
 * are allocated before the first write.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The address of the unnamed file for other processes. Device and inode identify it, because
 * process numbers may differ between containers. */
typedef struct em_mapped_place {
    int process, descriptor; /* descriptor -1: there is none */
    uint64_t device, inode;
    int64_t bytes;
} em_mapped_place;

/* Allocates where->bytes bytes, set to zero, and sets the other members of *where. All pages are
 * allocated here, so that no later write can fail. NULL: no memory. Call em_mapped_close once the
 * others have mapped them. The site "data-shared" of base/fault.h fails here. Local. */
void *em_mapped_make(em_mapped_place *where);
void em_mapped_close(const em_mapped_place *where);

/* Maps the memory of another process, for reading or also for writing; NULL: it cannot be mapped,
 * or another file is found there. Local. */
void *em_mapped_find(const em_mapped_place *where, bool writes);

void em_mapped_release(void *memory, int64_t bytes); /* NULL-safe. Local. */

/* What stands before an array that may be in such memory. The array begins EM_ALIGNMENT bytes after
 * it, at the next cache line. */
typedef struct em_mapped_header {
    int64_t n, size; /* elements of the array, and bytes of each */
    int64_t bytes;   /* with the header */
    bool shared;     /* else it was allocated by em_allocate */
} em_mapped_header;

em_mapped_header *em_mapped_header_of(const void *array);

/* Frees the array *(void **)pointer with its header and sets it to NULL; NULL-safe. Local. */
void em_mapped_free(void *pointer);
