/*
 * Functions that are compiled once for each vector width; the processor runs the widest one that it
 * supports. For loops of arithmetic alone, which give the same bits at any width. Such functions
 * are static: the symbol that selects one is visible outside the library on some systems and
 * missing on others.
 */
#pragma once

#ifdef __x86_64__
#define EM_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define EM_CLONES
#endif
