#include "math/shuffle.h"

em_shuffle em_shuffle_of(const em_stream *stream, int64_t n)
{
    em_shuffle s = {.n = (uint64_t)n};
    int bits = 0;

    while ((s.n - 1) >> bits)
        bits++;
    s.shift = bits / 2;
    s.low = (UINT64_C(1) << s.shift) - 1;
    s.high = (UINT64_C(1) << (bits - s.shift)) - 1;
    for (uint64_t r = 0; r < EM_SHUFFLE_ROUNDS; r++)
        s.key[r] = em_uniform_below(stream, r, UINT64_MAX);
    return s;
}

/* 32 of the bits that splitmix64 makes of x. */
static uint64_t scramble(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x >> 32;
}

int64_t em_shuffle_at(const em_shuffle *s, int64_t place)
{
    uint64_t x = (uint64_t)place;

    do {
        uint64_t low = x & s->low, high = x >> s->shift;
        for (int r = 0; r < EM_SHUFFLE_ROUNDS; r += 2) {
            high ^= scramble(low + s->key[r]) & s->high;
            low ^= scramble(high + s->key[r + 1]) & s->low;
        }
        x = high << s->shift | low;
    } while (x >= s->n);
    return (int64_t)x;
}
