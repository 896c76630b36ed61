/*
 * A sigmoid belief network of binary units h (EQUATIONS 24). Layer l has n_l units. Layer 1 is the
 * lowest, whose units are the topics of a document; layer L is the highest:
 *
 *     h_k of layer l < L  ~ Bernoulli(sigmoid(w_k . h + c_k)),  h [n_(l+1)] of layer l + 1,
 *     h_k of layer L      ~ Bernoulli(sigmoid(b_k)).
 *
 * The parameters theta are w [n_l][n_(l+1)] and c [n_l] of layers 1 .. L - 1, then b [n_L]. Their
 * prior is N(0, sd^2). All Local.
 */
#pragma once

#include "base/memory.h"
#include "math/rng.h"

enum { EM_MOST_LAYERS = 8 };

typedef struct em_belief_network {
    int n_layer;
    int64_t size[EM_MOST_LAYERS]; /* units of each layer */
    double sd;                    /* of the prior */
    int64_t n_parameter, n_unit;  /* of all layers */
    /* Work space, [em_stride of the widest layer]: */
    double *logit, *with, *without, *room, *prior;
} em_belief_network;

/* Allocates the work space; n_layer, size and sd must be set. Errors: EM_EMEMORY. */
em_status em_belief_network_create(em_owner *owner, em_belief_network *network);

/* Adds the log prior to *log_density, and its gradient to gradient [n_parameter]. */
void em_belief_network_add_prior(const em_belief_network *network, const double *theta,
                                 double *log_density, double *gradient);

/* One Gibbs sweep over the units of all layers above layer 1, each given all others. unit [n_unit]
 * has the units, 0 or 1, layer by layer from layer 1. Uses the uniform random numbers first,
 * first + 1, ... of the stream. */
void em_belief_network_sweep(em_belief_network *network, const double *theta,
                             const em_stream *stream, uint64_t first, uint8_t *unit);

/* Computes logit [size[l]]: the log odds of the units of layer l + 1, given those of the layer
 * above it, if there is one. */
void em_belief_network_logits(const em_belief_network *network, const double *theta,
                              const uint8_t *unit, int l, double *logit);

/* Returns the log probability of all units given theta, and adds its gradient to sum [n_parameter].
 * Both are in units of `unit_of_sum`, and each term is rounded to an integer. */
double em_belief_network_add(em_belief_network *network, const double *theta, const uint8_t *unit,
                             double unit_of_sum, double *sum);
