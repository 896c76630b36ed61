/*
 * The heat bath of stochastic-gradient kernels: p <- E p + N(0, A - b V), where A is a mass or a
 * friction and V the covariance of the gradient noise that the bath need not supply. All Local.
 */
#pragma once

#include "sampler/kernel/sampler.h"

/* A and V in the one frame that makes both diagonal: A = sum_k y_k y_k^T, V = sum_k v_k y_k y_k^T.
 * The root of A - b V is then known for every b, and its projection on the positive semidefinite
 * matrices is to leave out the terms that would be negative. */
typedef struct em_bath {
    em_structure structure;
    int64_t dim, stride;
    double *basis; /* diag: y_ii [stride]; dense: rows y_k [dim][stride] */
    double *value; /* v_k [stride]; NULL: V is zero, or fixed */
    double share;  /* largest v_k, or b v_k where b is fixed: V is too large where A < b V */
    em_structure decay_structure;
    double *decay; /* diag: E_ii [stride]; dense: the transpose of E [dim][stride]; NULL: none */
    bool same_basis, same_value, same_decay; /* diag: of one number */
} em_bath;

/* An array of one structure as one of another: a diagonal spreads over a dense matrix. */
void em_spread(em_structure from, em_structure to, int64_t dim, const double *x, double *out);

/* The frame itself, of arrays of em_mass_size elements: y (rows y_k) and value [dim]. V NULL: zero.
 * Errors: EM_NONFINITE where A is not positive definite; EM_EMEMORY, EM_ENUMERIC. */
em_status em_frame(em_structure structure, int64_t dim, const double *A, const double *V, double *y,
                   double *value);

/* The bath N(0, A - b V), without decay. Errors as em_frame. */
em_status em_bath_create(em_structure structure, int64_t dim, const double *A, const double *V,
                         em_bath **out);
void em_bath_destroy(em_bath **bath);

/* The bath N(0, M - b V) of a mass and an estimate of V, which may be NULL. */
em_status em_bath_of_mass(const em_mass *mass, const em_noise *noise, em_bath **out);

/* Gives the bath a decay: E_ii [dim], or the transpose of E [dim][dim]. Errors: EM_EMEMORY. */
em_status em_bath_set_decay(em_bath *bath, em_structure structure, const double *decay);

/* Whether baths work element by element; true where there are none. */
bool em_bath_is_diag(em_bath *const *bath, int64_t n_chain);

/* Columns first .. first + count - 1, whole lines but for the last ones, of a bath that is
 * diagonal: for em_bath_noise, em_bath_decay and em_bath_kick. It borrows them. */
em_bath em_bath_coordinates(const em_bath *bath, int64_t first, int64_t count);

/* Makes N(0, A - b V) for this b the only law that the bath has. */
void em_bath_fix(em_bath *bath, double b);

/* out[c] ~ N(0, A - b eps[c] V) from the standard normals z[c], which it may overwrite. */
void em_bath_noise(em_bath *const *bath, int64_t n_chain, double b, const double *eps, double *z,
                   double *out);

/* The largest share of A that b eps[c] V is, over all chains; 0 where there are no baths yet. */
double em_bath_share(em_bath *const *bath, int64_t n_chain, double b, const double *eps);

/* x[c] <- E x[c]; `work` is room for a panel. */
void em_bath_decay(em_bath *const *bath, int64_t n_chain, double *x, double *work);

/* x[c] <- E x[c] + fraction eps[c] g[c] + N(0, A - b V), of baths whose b is fixed, from the
 * standard normals z[c]; `work` is room for a panel. Where all is diagonal it is one loop. */
void em_bath_kick(em_bath *const *bath, int64_t n_chain, double fraction, const double *eps,
                  const double *g, double *z, double *work, double *x);

/* What the bath of a chain is made from; the versions tell later whether it still is. */
typedef struct em_bath_key {
    const em_mass *mass;
    const em_noise *noise; /* NULL: V is zero */
    uint64_t mass_version, noise_version;
    double step_size;
} em_bath_key;

/* The baths of a block of chains; neighbours with the same key share one. */
typedef struct em_baths {
    int64_t n_chain;
    bool of_any_step; /* they are the same for all step sizes, which may then differ from one
                         iteration to the next at no cost */
    em_bath **bath;   /* [n_chain] */
    em_bath_key *key; /* [n_chain] */
} em_baths;

/* Makes one bath; `self` is what em_baths_update was given. */
typedef em_status em_bath_maker(const void *self, const em_bath_key *key, em_bath **out);

em_status em_baths_create(int64_t n_chain, em_baths *out);
void em_baths_destroy(em_baths *baths);

/* Makes the baths anew where the context differs from what they were made from; a step in between
 * allocates nothing. `corrects` false: V is taken as zero. Errors: those of the maker, but that
 * EM_NONFINITE becomes EM_EMODEL. */
em_status em_baths_update(em_baths *baths, const em_step_context *context, bool corrects,
                          em_bath_maker *make, const void *self);
