/* Token kernels for AVX2 with fused multiply-add: sixteen floats in two registers. */
#include "math/simd/simd.h"

#ifdef EM_SIMD_X86
#pragma GCC target("avx2,fma")
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "math/simd/tokens_x86.inc"

#define TABLE  em_tokens_avx2
#define NAME   "avx2"
#define FOLDED 4

typedef struct lanes {
    __m256 low, high;
} lanes;

#define INTEGERS(p) _mm256_load_si256((const __m256i *)(p))

static inline lanes load(const float *p)
{
    return (lanes){_mm256_load_ps(p), _mm256_load_ps(p + 8)};
}

static inline void store(float *p, lanes a)
{
    _mm256_store_ps(p, a.low);
    _mm256_store_ps(p + 8, a.high);
}

static inline lanes splat(float x)
{
    return (lanes){_mm256_set1_ps(x), _mm256_set1_ps(x)};
}

static inline lanes add(lanes a, lanes b)
{
    return (lanes){_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}

static inline lanes mul(lanes a, lanes b)
{
    return (lanes){_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}

static inline lanes fused(lanes a, lanes b, lanes c)
{
    return (lanes){_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}

static inline lanes gather(const float *p, const uint16_t *k)
{
    return (lanes){take_eight(p, k), take_eight(p, k + 8)};
}

static inline __m256 equal(const int32_t *key, int32_t k)
{
    return _mm256_castsi256_ps(_mm256_cmpeq_epi32(INTEGERS(key), _mm256_set1_epi32(k)));
}

static inline lanes less_one(lanes a, const int32_t *key, int32_t k)
{
    const __m256 one = _mm256_set1_ps(1.0F);

    return (lanes){_mm256_sub_ps(a.low, _mm256_and_ps(equal(key, k), one)),
                   _mm256_sub_ps(a.high, _mm256_and_ps(equal(key + 8, k), one))};
}

static inline unsigned zeros(const float *p)
{
    const lanes a = load(p);
    const __m256 zero = _mm256_setzero_ps();

    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a.low, zero, _CMP_EQ_OQ)) |
           (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a.high, zero, _CMP_EQ_OQ)) << 8;
}

static inline int count_up_to(lanes a, float t)
{
    const __m256 limit = _mm256_set1_ps(t);

    return __builtin_popcount(
        (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a.low, limit, _CMP_LE_OQ)) |
        (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a.high, limit, _CMP_LE_OQ)) << 8);
}

/* Prefix sums of one half of a vector. Lanes are shifted within groups of four, and the sum of the
 * lower group is added to the upper group. */
static inline __m256 scan_half(__m256 a)
{
    const __m256i three = _mm256_set1_epi32(3);

    a = _mm256_add_ps(a, _mm256_castsi256_ps(_mm256_slli_si256(_mm256_castps_si256(a), 4)));
    a = _mm256_add_ps(a, _mm256_castsi256_ps(_mm256_slli_si256(_mm256_castps_si256(a), 8)));
    return _mm256_add_ps(
        a, _mm256_blend_ps(_mm256_setzero_ps(), _mm256_permutevar8x32_ps(a, three), 0xf0));
}

static inline lanes scan(lanes a)
{
    a = (lanes){scan_half(a.low), scan_half(a.high)};
    a.high = _mm256_add_ps(a.high, _mm256_permutevar8x32_ps(a.low, _mm256_set1_epi32(7)));
    return a;
}

#include "math/simd/tokens_kernels.inc"
#endif
