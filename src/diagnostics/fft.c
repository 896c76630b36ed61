/*
 * Radix-2 butterflies; decimation in frequency on the way there and in time on the way back, so
 * that a spectrum is only ever seen in bit-reversed order and nothing needs to be permuted. Blocks
 * that fit the nearest cache go through all stages that stay within a block.
 */
#include "diagnostics/fft.h"

#include "base/clones.h"

#include <math.h>

typedef em_fft_half halves[2];

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
stage_forward(int64_t n, int64_t h, const double *cosine, const double *sine, halves *restrict re,
              halves *restrict im)
{
    for (int64_t first = 0; first < n; first += 2 * h)
        for (int64_t k = 0; k < h; k++) {
            const int64_t a = first + k, b = a + h;
            const double c = cosine[h + k], s = sine[h + k];
            for (int part = 0; part < 2; part++) {
                const em_fft_half x = re[a][part] - re[b][part], y = im[a][part] - im[b][part];
                re[a][part] += re[b][part];
                im[a][part] += im[b][part];
                re[b][part] = x * c + y * s;
                im[b][part] = y * c - x * s;
            }
        }
}

static inline __attribute__((always_inline)) void
stage_backward(int64_t n, int64_t h, const double *cosine, const double *sine, halves *restrict re,
               halves *restrict im)
{
    for (int64_t first = 0; first < n; first += 2 * h)
        for (int64_t k = 0; k < h; k++) {
            const int64_t a = first + k, b = a + h;
            const double c = cosine[h + k], s = sine[h + k];
            for (int part = 0; part < 2; part++) {
                const em_fft_half x = re[b][part] * c - im[b][part] * s,
                                  y = im[b][part] * c + re[b][part] * s;
                re[b][part] = re[a][part] - x;
                im[b][part] = im[a][part] - y;
                re[a][part] += x;
                im[a][part] += y;
            }
        }
}

EM_CLONES static void forward(int64_t length, const double *cosine, const double *sine,
                              halves *restrict re, halves *restrict im)
{
    const int64_t block = length < BLOCK ? length : BLOCK;

    for (int64_t h = length / 2; h >= block; h /= 2)
        stage_forward(length, h, cosine, sine, re, im);
    for (int64_t first = 0; first < length; first += block)
        for (int64_t h = block / 2; h >= 1; h /= 2)
            stage_forward(block, h, cosine, sine, re + first, im + first);
}

EM_CLONES static void backward(int64_t length, const double *cosine, const double *sine,
                               halves *restrict re, halves *restrict im)
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
    forward(length, cosine, sine, (halves *)re, (halves *)im);
}

void em_fft_backward(int64_t length, const double *cosine, const double *sine, em_fft_lanes *re,
                     em_fft_lanes *im)
{
    backward(length, cosine, sine, (halves *)re, (halves *)im);
}
