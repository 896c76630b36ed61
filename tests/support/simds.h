/* The instruction sets that a test loops over; some may not run on this processor. */
#ifndef TESTS_SUPPORT_SIMDS_H
#define TESTS_SUPPORT_SIMDS_H

#include "math/simd/simd.h"
#include "support/tap.h"

static inline int n_simd(void)
{
    int n = 0;

    while (em_simds[n])
        n++;
    return n;
}

/* Runs the test once for each instruction set, which is em_simds[_i]. */
#define add_simd_test(tcase, test) tcase_add_loop_test(tcase, test, 0, n_simd())

#endif
