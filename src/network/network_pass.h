/*
 * A forward pass of some observations through a network, and a backward pass for the gradient, with
 * the weights of one chain. Both are matrix products by BLAS, in double or single precision
 * (network_pass.inc). Chains have different weights, so a block of chains needs one pass for each
 * chain. The result depends only on the weights and the observations of the pass.
 */
#pragma once

#include "data/reader/examples.h"
#include "emass/status.h"
#include "network/network_layers.h"

#include <stdbool.h>
#include <stdint.h>

/* The inputs of observations: (x_j - centre[j]) * factor[j] or, if `centre` is NULL, x_j *
 * factor[0]. */
typedef struct em_inputs {
    const em_examples *examples;
    const double *centre, *factor; /* [n_input] */
    bool sparse;                   /* images, most of whose bytes are 0 */
} em_inputs;

typedef struct em_pass em_pass;

/* The functions of one precision. All Local. */
typedef struct em_pass_ops {
    const char *name;
    /* Creates a pass for up to `most` observations at a time. Freed by em_release_owner. Errors:
     * EM_EMEMORY. */
    em_status (*create)(const em_layers *layers, int64_t n_input, int64_t most, em_pass **out);
    /* The memory of a pass in bytes. */
    double (*bytes)(const em_layers *layers, int64_t n_input, int64_t most);
    /* Sets weights first .. first + n - 1 to theta [n]. All weights must be set, in any number of
     * calls, before a pass. */
    void (*publish)(em_pass *pass, int64_t first, int64_t n, const double *theta);
    /* Fetches into the cache the weights first .. first + n - 1 and their sums. */
    void (*fetch)(const em_pass *pass, int64_t first, int64_t n);
    /* Starts the sums of the gradient at zero. */
    void (*begin)(em_pass *pass);
    /* output [n][n_output] of observations row[0 .. n). */
    void (*forward)(em_pass *pass, const em_inputs *inputs, int64_t n, const int64_t *row,
                    double *output);
    /* Backward pass: adds to the sums the gradient of a function whose derivative with respect to
     * the output of the last forward pass is slope [n][n_output]. */
    void (*backward)(em_pass *pass, int64_t n, const double *slope);
    /* gradient [n_weight] += the sums. */
    void (*end)(em_pass *pass, double *gradient);
    /* gradient [n] = scale * (the sums of weights first .. first + n - 1) - precision * theta [n].
     */
    void (*blend)(const em_pass *pass, int64_t first, int64_t n, double scale, double precision,
                  const double *theta, double *gradient);
    /* Makes the pass use `weight` as memory for weights and `sum` for the sums of the gradient,
     * each with 64 further bytes at the end; NULL: its own memory. */
    void (*lend)(em_pass *pass, void *weight, void *sum);
    /* Sets the sums to zero if no observation was added. */
    void (*settle)(em_pass *pass);
    /* Computes what `blend` does from the total of the sums of n_sum passes, one of each shard, in
     * order. These sums begin at `sum` and are `apart` bytes from each other. */
    void (*blend_sums)(int64_t first, int64_t n, double scale, int64_t n_sum, const void *sum,
                       int64_t apart, double precision, const double *theta, double *gradient);
} em_pass_ops;

extern const em_pass_ops em_pass_double, em_pass_single;

/* The number of observations at a time with which a pass about fits into the second-level cache; at
 * most 256. Local. */
int64_t em_pass_batch(const em_layers *layers);
