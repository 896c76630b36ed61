/*
 * Radix-2 butterflies; decimation in frequency on the way there and in time on the way back, so
 * that a spectrum is only ever seen in bit-reversed order and nothing needs to be permuted. Blocks
 * that fit the nearest cache go through all stages that stay within a block.
 */
#include "diagnostics/fft.h"

#include "base/clones.h"

#include <math.h>

typedef em_fft_lanes lanes;

enum { BLOCK = 128 };

int64_t em_fft_length(int64_t n)
{
    int64_t length = 2;

    while (length < 2 * n)
        length *= 2;
    return length;
}

void em_fft_twiddles(int64_t length, double *cosine, double *sine)
{
    for (int64_t h = 1; h < length; h *= 2)
        for (int64_t k = 0; k < h; k++) {
            double angle = M_PI * (double)k / (double)h;

            cosine[h + k] = cos(angle);
            sine[h + k] = sin(angle);
        }
}

/* One stage of `n` elements, whose butterflies are h apart. */
static inline __attribute__((always_inline)) void
stage_forward(int64_t n, int64_t h, const double *cosine, const double *sine, lanes *restrict re,
              lanes *restrict im)
{
    for (int64_t first = 0; first < n; first += 2 * h)
        for (int64_t k = 0; k < h; k++) {
            const int64_t a = first + k, b = a + h;
            const lanes x = re[a] - re[b], y = im[a] - im[b];
            const double c = cosine[h + k], s = sine[h + k];

            re[a] += re[b];
            im[a] += im[b];
            re[b] = x * c + y * s;
            im[b] = y * c - x * s;
        }
}

static inline __attribute__((always_inline)) void
stage_backward(int64_t n, int64_t h, const double *cosine, const double *sine, lanes *restrict re,
               lanes *restrict im)
{
    for (int64_t first = 0; first < n; first += 2 * h)
        for (int64_t k = 0; k < h; k++) {
            const int64_t a = first + k, b = a + h;
            const double c = cosine[h + k], s = sine[h + k];
            const lanes x = re[b] * c - im[b] * s, y = im[b] * c + re[b] * s;

            re[b] = re[a] - x;
            im[b] = im[a] - y;
            re[a] += x;
            im[a] += y;
        }
}

EM_CLONES static void forward(int64_t length, const double *cosine, const double *sine,
                              lanes *restrict re, lanes *restrict im)
{
    const int64_t block = length < BLOCK ? length : BLOCK;

    for (int64_t h = length / 2; h >= block; h /= 2)
        stage_forward(length, h, cosine, sine, re, im);
    for (int64_t first = 0; first < length; first += block)
        for (int64_t h = block / 2; h >= 1; h /= 2)
            stage_forward(block, h, cosine, sine, re + first, im + first);
}

EM_CLONES static void backward(int64_t length, const double *cosine, const double *sine,
                               lanes *restrict re, lanes *restrict im)
{
    const int64_t block = length < BLOCK ? length : BLOCK;

    for (int64_t first = 0; first < length; first += block)
        for (int64_t h = 1; h < block; h *= 2)
            stage_backward(block, h, cosine, sine, re + first, im + first);
    for (int64_t h = block; h < length; h *= 2)
        stage_backward(length, h, cosine, sine, re, im);
}

void em_fft_forward(int64_t length, const double *cosine, const double *sine, em_fft_lanes *re,
                    em_fft_lanes *im)
{
    forward(length, cosine, sine, re, im);
}

void em_fft_backward(int64_t length, const double *cosine, const double *sine, em_fft_lanes *re,
                     em_fft_lanes *im)
{
    backward(length, cosine, sine, re, im);
}
