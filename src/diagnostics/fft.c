/*
 * Radix-2 butterflies; decimation in frequency on the way there and in time on the way back, so
 * that a spectrum is only ever seen in bit-reversed order and nothing needs to be permuted.
 */
#include "diagnostics/fft.h"

#include <math.h>

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

void em_fft_forward(int64_t length, const double *cosine, const double *sine, double *restrict re,
                    double *restrict im)
{
    for (int64_t h = length / 2; h >= 1; h /= 2)
        for (int64_t first = 0; first < length; first += 2 * h)
            for (int64_t k = 0; k < h; k++) {
                int64_t a = first + k, b = a + h;
                double x = re[a] - re[b], y = im[a] - im[b];
                double c = cosine[h + k], s = sine[h + k];

                re[a] += re[b];
                im[a] += im[b];
                re[b] = x * c + y * s;
                im[b] = y * c - x * s;
            }
}

void em_fft_backward(int64_t length, const double *cosine, const double *sine, double *restrict re,
                     double *restrict im)
{
    for (int64_t h = 1; h < length; h *= 2)
        for (int64_t first = 0; first < length; first += 2 * h)
            for (int64_t k = 0; k < h; k++) {
                int64_t a = first + k, b = a + h;
                double c = cosine[h + k], s = sine[h + k];
                double x = re[b] * c - im[b] * s, y = im[b] * c + re[b] * s;

                re[b] = re[a] - x;
                im[b] = im[a] - y;
                re[a] += x;
                im[a] += y;
            }
}
