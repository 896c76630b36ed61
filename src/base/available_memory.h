/* The memory of this process, and the memory that is available to it. */
#pragma once

#include <stdbool.h>

/* Bytes that this process may still allocate: what the machine reports as available, or less where
 * a control group (of a batch job or a container) sets a limit; infinite where neither is known.
 * Beyond it the kernel's out-of-memory killer may end any process without a message. Local. */
double em_memory_available(void);

/* Bytes of memory that this process holds now; 0 where that is not known. Local. */
double em_resident_bytes(void);

/* The largest number of bytes of memory that this process has held since its start, or since
 * em_peak_restart if the system supports that; 0 if not known. Local. */
double em_peak_bytes(void);
void em_peak_restart(void);

/* Total bytes that em_allocate and its like have taken, released ones included; and how many of
 * them are the unused rest of the last page of large arrays. The difference of two calls is what
 * was allocated in between. Local. */
double em_allocated_bytes(void);
double em_allocated_rest(void);

/* A limit on the address space, and the one before. */
typedef struct em_memory_bound {
    bool holds;
    unsigned long long before;
} em_memory_bound;

/* Until em_memory_unbind, limits the address space of the process to `bytes` more than it holds
 * now: foreign code then gets an allocation failure, which it can report. Concerns all threads;
 * calls do not nest. Local. */
em_memory_bound em_memory_bind(double bytes);
void em_memory_unbind(em_memory_bound bound);
