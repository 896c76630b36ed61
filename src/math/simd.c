#include "math/simd.h"

#include <stddef.h>

extern const em_simd em_simd_portable;

#ifdef EM_SIMD_X86
extern const em_simd em_simd_avx512, em_simd_avx2;

const em_simd *const em_simds[] = {&em_simd_avx512, &em_simd_avx2, &em_simd_portable, NULL};

bool em_simd_runs(const em_simd *simd)
{
    if (simd == &em_simd_avx512)
        return __builtin_cpu_supports("avx512f");
    if (simd == &em_simd_avx2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return true;
}
#else
const em_simd *const em_simds[] = {&em_simd_portable, NULL};

bool em_simd_runs(const em_simd *simd)
{
    return simd == &em_simd_portable;
}
#endif

const em_simd *em_simd_best(void)
{
    const em_simd *const *simd = em_simds;

    while (!em_simd_runs(*simd))
        simd++;
    return *simd;
}
