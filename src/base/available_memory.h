/* How much memory this process has, and how much is left for it. */
#ifndef EM_BASE_AVAILABLE_MEMORY_H
#define EM_BASE_AVAILABLE_MEMORY_H

#include <stdbool.h>

/*
 * Bytes that could still be taken up: what the machine says is available, or less where a control
 * group (of a batch job, of a container) leaves less; infinite where nobody tells. Beyond it the
 * system kills whom it likes, without a message. Local.
 */
double em_memory_available(void);

/* Bytes of memory that this process has now; 0 where nobody tells. Local. */
double em_resident_bytes(void);

/* Bytes that em_allocate and its like have given so far, whatever has been released since: what is
 * made in between takes their difference. Local. */
double em_allocated_bytes(void);

/* A limit on the address space, and the one before. */
typedef struct em_memory_bound {
    bool holds;
    unsigned long long before;
} em_memory_bound;

/*
 * For foreign code that takes as much as it likes, and says so where it is not given: until
 * em_memory_unbind this process has no more than `bytes` beside what it has now. Of all its
 * threads, and not for nesting. Local.
 */
em_memory_bound em_memory_bind(double bytes);
void em_memory_unbind(em_memory_bound bound);

#endif
