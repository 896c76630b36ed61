/* Kernels for any processor: pairs of doubles in the vectors of the compiler, and SLEEF's scalar
 * functions. */

#include <math.h>
#include <sleef.h>
#include <string.h>

#define TABLE em_simd_portable
#define NAME  "portable"
enum { LANES = 2, ACCUMULATORS = 8 };

typedef double real __attribute__((vector_size(16), may_alias));
typedef uint64_t word __attribute__((vector_size(16), may_alias));
typedef struct real_pair {
    real x, y;
} real_pair;
typedef float single __attribute__((vector_size(16), may_alias));

#define splat(a)              ((real){a, a})
#define fused(a, b, c)        ((a) * (b) + (c))
#define single_splat(a)       ((single){a, a, a, a})
#define single_fused(a, b, c) ((a) * (b) + (c))
#define product_of_low(a, b)  (((a)&0xffffffff) * ((b)&0xffffffff))
#define low_of(a)             ((real){(a)[0], (a)[2]})
#define high_of(a)            ((real){(a)[1], (a)[3]})
#define is_any(mask)          (((mask)[0] | (mask)[1]) != 0)
#define interleave_low(a, b)  ((word){(a)[0], (b)[0]})
#define interleave_high(a, b) ((word){(a)[1], (b)[1]})
#define fold_1(a, b)          ((real){(a)[0] + (a)[1], (b)[0] + (b)[1]})
#define fold_2(a, b)          (a) /* of wider vectors */
#define fold_4(a, b)          (a)

static inline real root(real a)
{
    return (real){sqrt(a[0]), sqrt(a[1])};
}

static inline real logarithm(real a)
{
    return (real){Sleef_cinz_logd1_u35purec(a[0]), Sleef_cinz_logd1_u35purec(a[1])};
}

static inline real exponential(real a)
{
    return (real){Sleef_cinz_expd1_u10purec(a[0]), Sleef_cinz_expd1_u10purec(a[1])};
}

static inline real_pair sine_cosine_pi(real a)
{
    const Sleef_double_2 p = Sleef_cinz_sincospid1_u35purec(a[0]);
    const Sleef_double_2 q = Sleef_cinz_sincospid1_u35purec(a[1]);
    return (real_pair){{p.x, q.x}, {p.y, q.y}};
}

static inline single single_root(single a)
{
    return (single){sqrtf(a[0]), sqrtf(a[1]), sqrtf(a[2]), sqrtf(a[3])};
}

static inline uint64_t bits_of(const uint8_t *byte)
{
    const uint64_t low = 0x7f7f7f7f7f7f7f7f;
    uint64_t bits = 0;

    for (int j = 0; j < 64; j += 8) {
        uint64_t x;
        memcpy(&x, byte + j, 8);
        x = (((x & low) + low) | x) & ~low;
        bits |= ((x >> 7) * 0x0102040810204080 >> 56) << j;
    }
    return bits;
}

#include "math/simd/simd_kernels.inc"
