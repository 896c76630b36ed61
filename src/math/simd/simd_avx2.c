/* Kernels for AVX2 with fused multiply-add: four doubles in a vector, 16 registers. */
#include "math/simd/simd.h"

#ifdef EM_SIMD_X86
#pragma GCC target("avx2,fma,bmi")
#include <immintrin.h>
#include <sleef.h>

#include "math/simd/simd_x86.inc"

#define TABLE em_simd_avx2
#define NAME  "avx2"
enum { LANES = 4, ACCUMULATORS = 8 };

typedef double real __attribute__((vector_size(32), may_alias));
typedef uint64_t word __attribute__((vector_size(32), may_alias));
typedef Sleef___m256d_2 real_pair;
typedef float single __attribute__((vector_size(32), may_alias));

#define splat(x)              _mm256_set1_pd(x)
#define fused(a, b, c)        _mm256_fmadd_pd(a, b, c)
#define root(a)               _mm256_sqrt_pd(a)
#define product_of_low(a, b)  ((word)_mm256_mul_epu32((__m256i)(a), (__m256i)(b)))
#define logarithm(a)          Sleef_finz_logd4_u35avx2(a)
#define exponential(a)        Sleef_finz_expd4_u10avx2(a)
#define sine_cosine_pi(a)     Sleef_finz_sincospid4_u35avx2(a)

#define single_splat(x)       _mm256_set1_ps(x)
#define single_fused(a, b, c) _mm256_fmadd_ps(a, b, c)
#define single_root(a)        _mm256_sqrt_ps(a)
#define floats_at(a, ...)                                                                          \
    _mm256_cvtps_pd(_mm256_castps256_ps128(__builtin_shuffle(a, (words_32){__VA_ARGS__})))
#define low_of(a)             floats_at(a, 0, 2, 4, 6)
#define high_of(a)            floats_at(a, 1, 3, 5, 7)

#define is_any(mask)          (!_mm256_testz_si256((__m256i)(mask), (__m256i)(mask)))
#define interleave_low(a, b)  __builtin_shuffle(a, b, (word){0, 4, 1, 5})
#define interleave_high(a, b) __builtin_shuffle(a, b, (word){2, 6, 3, 7})
#define fold_1(a, b)                                                                               \
    (__builtin_shuffle(a, b, (word){0, 5, 2, 7}) + __builtin_shuffle(a, b, (word){1, 4, 3, 6}))
#define fold_2(a, b)                                                                               \
    (__builtin_shuffle(a, b, (word){0, 1, 6, 7}) + __builtin_shuffle(a, b, (word){2, 3, 4, 5}))
#define fold_4(a, b) (a) /* of wider vectors */

#include "math/simd/simd_kernels.inc"
#endif
