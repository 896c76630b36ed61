/* Token kernels for AVX-512F: sixteen floats in one register. */
#include "math/simd/simd.h"

#ifdef EM_SIMD_X86
#pragma GCC target("avx512f")
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "math/simd/tokens_x86.inc"

#define TABLE  em_tokens_avx512
#define NAME   "avx512"
#define FOLDED 4

typedef __m512 lanes;

#define load(p)        _mm512_load_ps(p)
#define store(p, a)    _mm512_store_ps(p, a)
#define splat(x)       _mm512_set1_ps(x)
#define add(a, b)      _mm512_add_ps(a, b)
#define mul(a, b)      _mm512_mul_ps(a, b)
#define fused(a, b, c) _mm512_fmadd_ps(a, b, c)
/* a[l] - 1 where key[l] is k, else a[l]. */
#define less_one(a, key, k)                                                                        \
    _mm512_mask_sub_ps(a, _mm512_cmpeq_epi32_mask(_mm512_load_si512(key), _mm512_set1_epi32(k)),   \
                       a, splat(1.0F))
/* A bit mask: bit l is set if p[l] is 0. */
#define zeros(p)          ((unsigned)_mm512_cmp_ps_mask(load(p), splat(0.0F), _CMP_EQ_OQ))
#define count_up_to(a, t) __builtin_popcount(_mm512_cmp_ps_mask(a, splat(t), _CMP_LE_OQ))

static inline lanes gather(const float *p, const uint16_t *k)
{
    const __m512d low = _mm512_castps_pd(_mm512_castps256_ps512(take_eight(p, k)));

    return _mm512_castpd_ps(_mm512_insertf64x4(low, _mm256_castps_pd(take_eight(p, k + 8)), 1));
}

/* Prefix sums a_0, a_0 + a_1, ...: within groups of four, then within each half, then over both
 * halves. */
static inline lanes scan(lanes a)
{
    const __m512i three = _mm512_set_epi32(11, 11, 11, 11, 0, 0, 0, 0, 3, 3, 3, 3, 0, 0, 0, 0);

    a = add(a, _mm512_maskz_permute_ps(0xeeee, a, 0x90));
    a = add(a, _mm512_maskz_permute_ps(0xcccc, a, 0x40));
    a = add(a, _mm512_maskz_permutexvar_ps(0xf0f0, three, a));
    return add(a, _mm512_maskz_permutexvar_ps(0xff00, _mm512_set1_epi32(7), a));
}

#include "math/simd/tokens_kernels.inc"
#endif
