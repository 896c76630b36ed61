/* Functions that are compiled once for each width of vectors, of which a processor takes its
 * widest: for loops that are arithmetic alone, whose results are the same bits in all of them. They
 * are static: what chooses among them is seen from outside the library, or not found, elsewhere. */
#ifndef EM_BASE_CLONES_H
#define EM_BASE_CLONES_H

#ifdef __x86_64__
#define EM_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define EM_CLONES
#endif

#endif
