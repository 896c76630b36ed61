/*
 * A pass of some observations through a network, forwards, and back for the gradient, for the
 * weights of one chain: products of matrices, by BLAS, in double or single precision
 * (network_pass.inc). The chains have different weights, so a block of chains takes one pass for
 * each chain. The result depends on the weights and the observations of the pass alone.
 */
#pragma once

#include "data/reader/examples.h"
#include "emass/status.h"
#include "network/network_layers.h"

#include <stdbool.h>
#include <stdint.h>

/* Observations as they go in: (number - centre[j]) * factor[j], or, where `centre` is NULL, times
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
    /* Room for passes of as many observations at a time as `most` says. Errors: EM_EMEMORY. */
    em_status (*create)(const em_layers *layers, int64_t n_input, int64_t most, em_pass **out);
    void (*destroy)(em_pass **pass); /* NULL-safe. */
    /* Bytes that a pass takes. */
    double (*bytes)(const em_layers *layers, int64_t n_input, int64_t most);
    /* From here on weights first .. first + n - 1 are theta [n]; of all of them, in any chunks,
     * before a pass. */
    void (*show)(em_pass *pass, int64_t first, int64_t n, const double *theta);
    /* Fetches into the cache the weights first .. first + n - 1 and their sums. */
    void (*fetch)(const em_pass *pass, int64_t first, int64_t n);
    /* The gradient's sums are those of no observation. */
    void (*begin)(em_pass *pass);
    /* output [n][n_output] of observations row[0 .. n). */
    void (*forward)(em_pass *pass, const em_inputs *inputs, int64_t n, const int64_t *row,
                    double *output);
    /* Adds the derivatives of what has `slope` [n][n_output] by the output of the last pass. */
    void (*backward)(em_pass *pass, int64_t n, const double *slope);
    /* gradient [n_weight] += the sums. */
    void (*end)(em_pass *pass, double *gradient);
    /* gradient [n] = scale times the sums of weights first .. first + n - 1, minus precision theta
     * [n]. */
    void (*blend)(const em_pass *pass, int64_t first, int64_t n, double scale, double precision,
                  const double *theta, double *gradient);
    /* From here on weights are in `weight`, and the gradient's sums are made in `sum`, each with
     * room for a line of 64 bytes beyond; NULL: in its own. */
    void (*lend)(em_pass *pass, void *weight, void *sum);
    /* Sums of no observation become zeros. */
    void (*settle)(em_pass *pass);
    /* As blend, of the sums of n_sum passes, `apart` bytes from one to the next, the first at
     * `sum`, in their order: each that of a shard. */
    void (*blend_sums)(int64_t first, int64_t n, double scale, int64_t n_sum, const void *sum,
                       int64_t apart, double precision, const double *theta, double *gradient);
} em_pass_ops;

extern const em_pass_ops em_pass_double, em_pass_single;

/* Observations at a time that keep a pass within the second cache, or nearly: 256 at most. Local.
 */
int64_t em_pass_batch(const em_layers *layers);
