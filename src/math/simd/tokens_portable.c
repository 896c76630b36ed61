/* Token kernels for any processor: arrays of sixteen floats, which the compiler vectorises. */
#include <stdint.h>

#define TABLE  em_tokens_portable
#define NAME   "portable"

#define FOLDED 1 /* more words take more registers than there are */

typedef struct lanes {
    float x[16];
} lanes;

#define EACH(expression)                                                                           \
    lanes out;                                                                                     \
    for (int l = 0; l < 16; l++)                                                                   \
        out.x[l] = (expression);                                                                   \
    return out

static inline lanes load(const float *p)
{
    EACH(p[l]);
}

static inline void store(float *p, lanes a)
{
    for (int l = 0; l < 16; l++)
        p[l] = a.x[l];
}

static inline lanes splat(float x)
{
    EACH(x);
}

static inline lanes add(lanes a, lanes b)
{
    EACH(a.x[l] + b.x[l]);
}

static inline lanes mul(lanes a, lanes b)
{
    EACH(a.x[l] * b.x[l]);
}

static inline lanes fused(lanes a, lanes b, lanes c)
{
    EACH(a.x[l] * b.x[l] + c.x[l]);
}

static inline lanes gather(const float *p, const uint16_t *k)
{
    EACH(p[k[l]]);
}

static inline lanes less_one(lanes a, const int32_t *key, int32_t k)
{
    EACH(a.x[l] - (float)(key[l] == k));
}

static inline unsigned where(const uint16_t *key, int32_t k)
{
    unsigned bits = 0;

    for (int l = 0; l < 16; l++)
        bits |= (unsigned)(key[l] == k) << l;
    return bits;
}

static inline unsigned zeros(const float *p)
{
    unsigned bits = 0;

    for (int l = 0; l < 16; l++)
        bits |= (unsigned)(p[l] == 0) << l;
    return bits;
}

static inline int count_up_to(lanes a, float t)
{
    int n = 0;

    for (int l = 0; l < 16; l++)
        n += a.x[l] <= t;
    return n;
}

static inline int column_up_to(const float *p, int n, int lane, float t)
{
    int count = 0;

    for (int v = 0; v < n; v++)
        count += p[16 * v + lane] <= t;
    return count;
}

static inline lanes scan(lanes a)
{
    for (int by = 1; by < 4; by *= 2)
        for (int l = 15; l > 0; l--)
            a.x[l] += l % 4 >= by ? a.x[l - by] : 0;
    for (int l = 15; l > 0; l--)
        a.x[l] += l % 8 >= 4 ? a.x[l / 4 * 4 - 1] : 0;
    for (int l = 15; l > 7; l--)
        a.x[l] += a.x[7];
    return a;
}

#include "math/simd/tokens_kernels.inc"
