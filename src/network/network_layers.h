/* The layers of a feed-forward network, as described in a config, and the positions of their
 * weights among the parameters. */
#pragma once

#include "emass/status.h"

#include <stdint.h>

typedef enum em_layer_kind { EM_LAYER_DENSE, EM_LAYER_CONVOLUTION, EM_LAYER_POOL } em_layer_kind;

typedef enum em_activation {
    EM_ACTIVATION_RELU,
    EM_ACTIVATION_SIGMOID,
    EM_ACTIVATION_TANH,
    EM_ACTIVATION_NONE /* for pools and the output */
} em_activation;

extern const char *const em_activation_names[]; /* the names in a config; ends with NULL */

/* The shape of the data between layers: row by row, with the channels of each pixel together. */
typedef struct em_extent {
    int64_t height, width, channels;
} em_extent;

static inline int64_t em_extent_size(const em_extent *extent)
{
    return extent->height * extent->width * extent->channels;
}

/*
 * A layer. Its parameters are weights [n_from][n_to], then n_to biases; a pool has none. For a
 * convolution n_from is the number of inputs under its kernel: side x side pixels with all
 * channels.
 */
typedef struct em_layer {
    em_layer_kind kind;
    em_activation activation;
    em_extent in, out;
    int64_t side, pad; /* side of the kernel or pool; zeros added on each side */
    int64_t n_from, n_to;
    int64_t first, n_weight; /* of all parameters: weights and biases */
    char name[24];           /* layer1, layer2, ..., output */
} em_layer;

enum { EM_MOST_LAYERS = 64 };

typedef struct em_layers {
    int n; /* the last one is the output: dense, without activation */
    em_layer layer[EM_MOST_LAYERS];
    int64_t n_weight; /* of all of them */
} em_layers;

/*
 * Reads `json`, the list of mappings of the option model.layers, for inputs of this extent, and
 * adds the output. Local. Errors: EM_ECONFIG, a message that begins with "model.layers[N]:".
 */
em_status em_layers_read(const char *json, em_activation activation, const em_extent *input,
                         int64_t n_output, em_layers *out);
