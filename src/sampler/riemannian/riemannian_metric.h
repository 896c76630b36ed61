/*
 * A metric G(theta) of one chain, in the form that first-order kernels need: a root A of its
 * inverse, A A^T = G^-1, and the divergence term that its change with theta adds to the drift. All
 * Local, but evaluating the model's metric is Collective over the ranks of a group of shards.
 */
#pragma once

#include "sampler/kernel/sampler.h"

extern const char *const em_metric_names[];

typedef struct em_metric_options {
    int kind;            /* em_metric_kind */
    double scale, shift; /* of EM_METRIC_DENSITY: D and C */
} em_metric_options;

/* The rows of those options in the field table of `type`, whose member `member` they are. */
#define EM_METRIC_FIELDS(type, member)                                                             \
    EM_ROW_AS("metric", type, member.kind, EM_FIELD_CHOICE, int, .fallback = "mass",               \
              .choices = em_metric_names,                                                          \
              .doc = "the learned mass, diag(1 / theta), 1 / (D sqrt(|C - log p|)), or the "       \
                     "model's Fisher metric"),                                                     \
        EM_ROW_AS("metric_scale", type, member.scale, EM_FIELD_REAL, double, .minimum = 1e-300,    \
                  .maximum = 1e300, .fallback = "1.5", .doc = "D of the metric density"),          \
        EM_ROW_AS("metric_shift", type, member.shift, EM_FIELD_REAL, double, .minimum = -1e300,    \
                  .maximum = 1e300, .fallback = "1.5",                                             \
                  .doc = "C of the metric density; C - log p must stay away from zero, where the " \
                         "metric is singular")

/* The divergence term in the drift of a kernel. */
typedef enum em_divergence {
    EM_DIVERGENCE_OF_INVERSE, /* sum_j d(G^-1)_ij / dtheta_j */
    EM_DIVERGENCE_OF_ROOT     /* sum_j dA_ji / dtheta_j */
} em_divergence;

typedef struct em_metric {
    em_owner *owner; /* of its memory */
    em_metric_kind kind;
    double scale, shift;
    em_divergence of;
    int64_t dim, stride;
    em_structure structure; /* of the root, at the last position */
    double *root;           /* A: diag [stride]; dense [dim][dim] */
    double *divergence;     /* [stride] */
    double *derivative;     /* [dim][dim][dim]: dG / dtheta_k of the model's metric */
    double *scratch;
    bool placed; /* EM_METRIC_MASS: root belongs to the mass of this version */
    uint64_t version;
    double *log_density, *gradient; /* of all data: [n_chain], [n_chain][stride] */
} em_metric;

/* Whether [dim][dim][dim] numbers can be allocated. Local. Errors: EM_ECONFIG if not. */
em_status em_metric_check_dim(int64_t dim);

/* Creates the metric for blocks of n_chain chains, whose chains are handled one at a time. Errors:
 * EM_EMEMORY. */
em_status em_metric_create(em_owner *owner, const em_metric_options *options, em_divergence of,
                           int64_t n_chain, int64_t dim, em_metric **out);

/* Prepares em_metric_set_position for the positions of a block: evaluates the density of all data
 * there if the metric depends on it. `is_whole`: the block already holds the density of all data.
 * Errors: EM_EMODEL. */
em_status em_metric_evaluate_density(em_metric *metric, const em_step_context *context,
                                     const em_block *block, bool is_whole);

/* Computes root and divergence at the position of chain c. It allocates memory in the first call
 * and when the structure of the mass changes. Errors: EM_NONFINITE if G is not positive definite;
 * those of em_posterior_metric. */
em_status em_metric_set_position(em_metric *metric, const em_step_context *context,
                                 const em_block *block, int64_t c);

/* out = A x, or A^T x; vectors [stride], no aliasing. */
void em_metric_root(const em_metric *metric, const double *x, double *out);
void em_metric_root_transposed(const em_metric *metric, const double *x, double *out);

/* For EM_METRIC_EXPANDED_MEAN, which needs theta > 0: replaces theta by |theta| and reverses the
 * momentum (NULL: none) of the coordinates whose sign changed. */
void em_metric_reflect(const em_metric *metric, double *theta, double *momentum);
