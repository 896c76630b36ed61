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

/* With n_layer, size and sd set, makes the room. Errors: EM_EMEMORY. */
em_status em_belief_network_create(em_belief_network *network);
void em_belief_network_destroy(em_belief_network *network);

/* Adds the log prior and its gradient. */
void em_belief_network_add_prior(const em_belief_network *network, const double *theta,
                                 double *log_density, double *gradient);

/* Draws all units but those of layer 1 anew, each given all others: unit [n_unit], layer by layer,
 * from uniforms `first`, ... of the stream. */
void em_belief_network_sweep(em_belief_network *network, const double *theta,
                             const em_stream *stream, uint64_t first, uint8_t *unit);

/* logit [n_1] of the units of layer 1, given the others. */
void em_belief_network_logits(const em_belief_network *network, const double *theta,
                              const uint8_t *unit, double *logit);

/* The log probability of all units, and its derivatives added to `sum` [n_parameter], in numbers of
 * `unit_of_sum`, of which both are integers. */
double em_belief_network_add(em_belief_network *network, const double *theta, const uint8_t *unit,
                             double unit_of_sum, double *sum);
