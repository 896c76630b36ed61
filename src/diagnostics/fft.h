/*
 * The sum of the autocovariances of many series, by fast Fourier transform. We have our own
 * transform because the C libraries that distributions package are under the GPL (FFTW) or have
 * single precision only (KISS FFT). Zero-padded series need only powers of two. Several series are
 * transformed at once, one in each lane of a vector. Each gets the same bits as alone.
 */
#pragma once

#include <stdint.h>

/* One element of EM_FFT_LANES series; arrays of these come from em_allocate. */
enum { EM_FFT_LANES = 8 };
typedef double em_fft_lanes[EM_FFT_LANES];

/* Half of them, for loops of arithmetic. Where a processor's vectors are shorter than a type, GCC
 * 12 keeps its variables in memory: with AVX2 a transform then took 15 times as long. */
typedef double em_fft_half
    __attribute__((vector_size(EM_FFT_LANES / 2 * sizeof(double)), may_alias));

/* The length of the transform for series of n: the smallest power of two >= 2 n. Local. */
int64_t em_fft_length(int64_t n);

/* Twiddle factors for `length`: cosine[h + k], sine[h + k] of pi k / h for k < h and all powers of
 * two h < length; both arrays are [length]. Local. */
void em_fft_twiddles(int64_t length, double *cosine, double *sine);

/* The transforms of re + i im [length] in place, sum_k x_k exp(-2 pi i k j / length), j in
 * bit-reversed order. Local. */
void em_fft_forward(int64_t length, const double *cosine, const double *sine, em_fft_lanes *re,
                    em_fft_lanes *im);

/* The inverse transforms times `length`, from bit-reversed order, in place. Local. */
void em_fft_backward(int64_t length, const double *cosine, const double *sine, em_fft_lanes *re,
                     em_fft_lanes *im);
