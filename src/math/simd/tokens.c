#include "math/simd/tokens.h"

#include "math/simd/simd.h"

#include <stddef.h>
#include <string.h>

extern const em_token_kernels em_tokens_portable;

#ifdef EM_SIMD_X86
extern const em_token_kernels em_tokens_avx512, em_tokens_avx2;

const em_token_kernels *const em_token_kernel_list[] = {&em_tokens_avx512, &em_tokens_avx2,
                                                        &em_tokens_portable, NULL};

bool em_token_kernels_run(const em_token_kernels *kernels)
{
    if (kernels == &em_tokens_avx512)
        return __builtin_cpu_supports("avx512f");
    if (kernels == &em_tokens_avx2)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return true;
}
#else
const em_token_kernels *const em_token_kernel_list[] = {&em_tokens_portable, NULL};

bool em_token_kernels_run(const em_token_kernels *kernels)
{
    return kernels == &em_tokens_portable;
}
#endif

const em_token_kernels *em_token_kernels_best(void)
{
    const em_token_kernels *const *kernels = em_token_kernel_list;

    while (strcmp((*kernels)->name, em_simd_best()->name) != 0)
        kernels++;
    return *kernels;
}
