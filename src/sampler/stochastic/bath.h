/*
 * The heat bath of stochastic-gradient kernels: p <- E p + N(0, A - b V), where A is a mass or a
 * friction and V the covariance of the gradient noise that the bath need not supply. All Local.
 */
#pragma once

#include "sampler/kernel/sampler.h"

/* The simultaneous diagonalisation of A and V: A = sum_k y_k y_k^T, V = sum_k v_k y_k y_k^T. It
 * gives the root of A - b V for every b. The projection of A - b V on the positive semidefinite
 * matrices leaves out the terms with 1 - b v_k < 0. */
typedef struct em_bath {
    em_structure structure;
    int64_t dim, stride;
    double *basis; /* diag: y_ii [stride]; dense: rows y_k [dim][stride] */
    double *value; /* v_k [stride]; NULL: V is zero, or b is fixed */
    double share;  /* the largest v_k, or b v_k if b is fixed; V is too large if b v_k > 1 */
    em_structure decay_structure;
    double *decay; /* diag: E_ii [stride]; dense: the transpose of E [dim][stride]; NULL: none */
    bool same_basis, same_value, same_decay; /* diag: all elements are equal */
} em_bath;

/* Converts an array from one structure to another: a diagonal becomes a dense matrix. */
void em_spread(em_structure from, em_structure to, int64_t dim, const double *x, double *out);

/* The simultaneous diagonalisation of arrays A and V of em_mass_size elements: y (rows y_k) and
 * value [dim]. V NULL: zero. Errors: EM_NONFINITE if A is not positive definite; EM_EMEMORY,
 * EM_ENUMERIC. */
em_status em_frame(em_structure structure, int64_t dim, const double *A, const double *V, double *y,
                   double *value);

/* The bytes that a diagonal bath allocates, those of its creation included. Local. */
static inline double em_bath_bytes(int64_t dim)
{
    return em_bytes_of_doubles(2 * dim) + 2 * em_bytes_of_doubles(em_stride(dim));
}

/* The bath N(0, A - b V), without decay. Errors as em_frame. */
em_status em_bath_create(em_structure structure, int64_t dim, const double *A, const double *V,
                         em_bath **out);

/* The bath N(0, M - b V) for a mass and an estimate of V, which may be NULL. */
em_status em_bath_of_mass(const em_mass *mass, const em_noise *noise, em_bath **out);

/* Gives the bath a decay: E_ii [dim], or the transpose of E [dim][dim]. Errors: EM_EMEMORY. */
em_status em_bath_set_decay(em_bath *bath, em_structure structure, const double *decay);

/* Whether all baths are diagonal; true if there are none. */
bool em_bath_is_diag(em_bath *const *bath, int64_t n_chain);

/* The columns first .. first + count - 1 of a diagonal bath, for em_bath_noise, em_bath_decay and
 * em_bath_kick. The result borrows the memory of `bath`. The range begins at a cache line; it ends
 * at one too, unless it ends with the last column. */
em_bath em_bath_coordinates(const em_bath *bath, int64_t first, int64_t count);

/* Fixes b: from now on the bath draws from N(0, A - b V) for this b alone. */
void em_bath_fix(em_bath *bath, double b);

/* Draws out[c] ~ N(0, A - b eps[c] V) from the standard normals z[c], which may be overwritten. */
void em_bath_noise(em_bath *const *bath, int64_t n_chain, double b, const double *eps, double *z,
                   double *out);

/* The largest b eps[c] v_k, over all chains c and directions k; 0 if there are no baths yet. */
double em_bath_share(em_bath *const *bath, int64_t n_chain, double b, const double *eps);

/* x[c] <- E x[c]; `work` is work space of the size of a panel. */
void em_bath_decay(em_bath *const *bath, int64_t n_chain, double *x, double *work);

/* x[c] <- E x[c] + fraction eps[c] g[c] + N(0, A - b V), of baths whose b is fixed, from the
 * standard normals z[c]; `work` is work space of the size of a panel. For diagonal baths this is
 * one loop. */
void em_bath_kick(em_bath *const *bath, int64_t n_chain, double fraction, const double *eps,
                  const double *g, double *z, double *work, double *x);

/* The inputs of the bath of a chain. Their versions tell whether it is still valid. */
typedef struct em_bath_key {
    const em_mass *mass;
    const em_noise *noise; /* NULL: V is zero */
    uint64_t mass_version, noise_version;
    double step_size;
} em_bath_key;

/* Creates one bath; `self` is the argument of em_baths_update. */
typedef em_status em_bath_maker(const void *self, const em_bath_key *key, em_bath **out);

/* The baths of a block of chains; neighbours with the same key share one. */
typedef struct em_baths {
    int64_t n_chain;
    /* The next three members are set by the kernel. */
    em_bath_maker *make;
    bool corrects;    /* false: V is taken as zero */
    bool of_any_step; /* they do not depend on the step size, so a new step size needs no new baths
                       */
    em_bath **bath;   /* [n_chain] */
    em_bath_key *key; /* [n_chain] */
} em_baths;

em_status em_baths_create(em_owner *owner, int64_t n_chain, em_baths *out);
void em_baths_destroy(em_baths *baths);

/* Creates again the baths whose mass, noise or step size in the context has changed; otherwise it
 * allocates nothing. `self` is passed to `make`. Errors: those of `make`, with EM_EMODEL instead of
 * EM_NONFINITE. */
em_status em_baths_update(em_baths *baths, const em_step_context *context, const void *self);
