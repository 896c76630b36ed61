/*
 * A sigmoid belief network of binary units (EQUATIONS 24): layer 1 is the lowest, of n_1 units, and
 *
 *     h_k of layer l ~ Bernoulli(sigmoid(w_k . h of layer l + 1 + c_k)),  of the last ~
 *     Bernoulli(sigmoid(b)).
 *
 * Its parameters, w [n_l][n_(l+1)] and c [n_l] of each layer but the last, then b, have the prior
 * N(0, sd^2). All Local.
 */
#pragma once

#include "emass/model.h"
#include "math/rng.h"

enum { EM_MOST_LAYERS = 8 };

typedef struct em_belief_network {
    int n_layer;
    int64_t size[EM_MOST_LAYERS]; /* units of each layer */
    double sd;
    int64_t n_parameter, n_unit;
    double *logit, *with, *without, *room, *prior; /* [em_stride of the widest layer] */
} em_belief_network;

/* Allocates the work space; n_layer, size and sd must be set. Errors: EM_EMEMORY. */
em_status em_belief_network_create(em_belief_network *network);
void em_belief_network_destroy(em_belief_network *network);

/* Adds the log prior and its gradient. */
void em_belief_network_add_prior(const em_belief_network *network, const double *theta,
                                 double *log_density, double *gradient);

/* One Gibbs sweep over the units of all layers above layer 1, each given all others. unit [n_unit]
 * has the units layer by layer. Uses uniforms first, first + 1, ... of the stream. */
void em_belief_network_sweep(em_belief_network *network, const double *theta,
                             const em_stream *stream, uint64_t first, uint8_t *unit);

/* logit [n]: the log odds of the n units of layer l (from 0), given those of the layer above it. */
void em_belief_network_logits(const em_belief_network *network, const double *theta,
                              const uint8_t *unit, int l, double *logit);

/* Returns the log probability of all units, and adds its gradient to sum [n_parameter]. Both are in
 * units of `unit_of_sum`, rounded to integers. */
double em_belief_network_add(em_belief_network *network, const double *theta, const uint8_t *unit,
                             double unit_of_sum, double *sum);
