/*
 * Functions that are compiled once for each vector width; the processor runs the widest one that it
 * supports. For loops of arithmetic alone, which give the same bits at any width. Such functions
 * are static: the symbol that selects one is visible outside the library on some systems and
 * missing on others.
 *
 * Sums in several lanes are arrays with an inner loop over the lanes, or vectors of at most 32
 * bytes. GCC 12 keeps a variable of a wider vector type in memory where the processor has no such
 * registers, and the loop takes about ten times as long.
 */
#pragma once

#include "base/memory.h"

#ifdef __x86_64__
#define EM_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define EM_CLONES
#endif

/* The sum of eight lanes, in one fixed order. Local. */
static inline double em_add_lanes(const double sum[EM_LANES])
{
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}
