/* Kernels for AVX-512F: eight doubles in a vector, 32 registers. */
#include "math/simd/simd.h"

#ifdef EM_SIMD_X86
#pragma GCC target("avx512f,bmi")
#include <immintrin.h>
#include <sleef.h>

#include "math/simd/simd_x86.inc"

#define TABLE em_simd_avx512
#define NAME  "avx512"
enum { LANES = 8, ACCUMULATORS = 16 };

typedef double real __attribute__((vector_size(64), may_alias));
typedef uint64_t word __attribute__((vector_size(64), may_alias));
typedef Sleef___m512d_2 real_pair;
typedef float single __attribute__((vector_size(64), may_alias));

#define splat(x)              _mm512_set1_pd(x)
#define fused(a, b, c)        _mm512_fmadd_pd(a, b, c)
#define root(a)               _mm512_sqrt_pd(a)
#define product_of_low(a, b)  ((word)_mm512_mul_epu32((__m512i)(a), (__m512i)(b)))
#define logarithm(a)          Sleef_finz_logd8_u35avx512f(a)
#define exponential(a)        Sleef_finz_expd8_u10avx512f(a)
#define sine_cosine_pi(a)     Sleef_finz_sincospid8_u35avx512f(a)

#define single_splat(x)       _mm512_set1_ps(x)
#define single_fused(a, b, c) _mm512_fmadd_ps(a, b, c)
#define single_root(a)        _mm512_sqrt_ps(a)
#define floats_at(a, ...)                                                                          \
    _mm512_cvtps_pd(_mm512_castps512_ps256(__builtin_shuffle(a, (words_32){__VA_ARGS__})))
#define low_of(a)             floats_at(a, 0, 2, 4, 6, 8, 10, 12, 14)
#define high_of(a)            floats_at(a, 1, 3, 5, 7, 9, 11, 13, 15)

#define is_any(mask)          (_mm512_test_epi64_mask((__m512i)(mask), (__m512i)(mask)) != 0)
#define interleave_low(a, b)  __builtin_shuffle(a, b, (word){0, 8, 1, 9, 2, 10, 3, 11})
#define interleave_high(a, b) __builtin_shuffle(a, b, (word){4, 12, 5, 13, 6, 14, 7, 15})
#define fold_1(a, b)                                                                               \
    (__builtin_shuffle(a, b, (word){0, 9, 2, 11, 4, 13, 6, 15}) +                                  \
     __builtin_shuffle(a, b, (word){1, 8, 3, 10, 5, 12, 7, 14}))
#define fold_2(a, b)                                                                               \
    (__builtin_shuffle(a, b, (word){0, 1, 10, 11, 4, 5, 14, 15}) +                                 \
     __builtin_shuffle(a, b, (word){2, 3, 8, 9, 6, 7, 12, 13}))
#define fold_4(a, b)                                                                               \
    (__builtin_shuffle(a, b, (word){0, 1, 2, 3, 12, 13, 14, 15}) +                                 \
     __builtin_shuffle(a, b, (word){4, 5, 6, 7, 8, 9, 10, 11}))

#include "math/simd/simd_kernels.inc"
#endif
