/*
 * The mass that chains use: an immutable inverse-mass operator W = M^-1, with momenta p ~ N(0, M)
 * and velocities v = W p. With M = L L^T, whitened momenta are r = L^-1 p ~ N(0, I). W is stored in
 * one of several structures; each is one file and one line in mass/list.c. Everything here is
 * Local.
 */
#pragma once

#include "base/memory.h"
#include "emass/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The layout of a symmetric matrix as an array: its diagonal [dim], or all of it, [dim][dim]. */
typedef enum em_structure { EM_MASS_DIAG, EM_MASS_DENSE } em_structure;

/* The size of such an array. */
static inline int64_t em_mass_size(em_structure structure, int64_t dim)
{
    return structure == EM_MASS_DENSE ? dim * dim : dim;
}

/* The linear maps of a mass. */
typedef enum em_map {
    EM_MAP_VELOCITY, /* W p, from momenta */
    EM_MAP_SOLVE,    /* M v, from velocities */
    EM_MAP_MOMENTUM, /* L z, from standard normals */
    EM_MAP_WHITEN,   /* L^-1 x, from momenta and gradients */
    EM_MAP_UNWHITEN, /* L^-T r, from whitened momenta to velocities */
    EM_N_MAP
} em_map;

typedef struct em_mass_ops em_mass_ops;

/* A diagonal block of W: rows and columns first .. first + count - 1, diagonal or dense. */
typedef struct em_part {
    int64_t first, count;
    em_structure structure;
} em_part;

/* The common properties of all masses of a run: the structure of W and its sizes. */
typedef struct em_mass_form {
    const em_mass_ops *ops;
    int64_t dim;
    int64_t n_part; /* block_diagonal; 0: it is one part */
    const em_part *part;
    int64_t most_rank; /* low_rank: directions allocated, at most EM_MASS_MOST_RANK */
} em_mass_form;

enum { EM_MASS_MOST_RANK = 64, EM_MASS_MOST_ARRAYS = 3 };

/* An array within the numbers of a mass, from number `first` on, and its name in files. */
typedef struct em_mass_array {
    const char *name;
    int n_axes;
    int64_t shape[2], first;
} em_mass_array;

/* A mass. The struct of each structure has this as its first member. */
typedef struct em_mass {
    const em_mass_ops *ops;
    int64_t dim, stride;
    uint64_t version; /* a hash of W: masses of equal version are the same operator */
    /* [stride] each, if the maps are elementwise products; else NULL */
    const double *scale[EM_N_MAP];
    double *ones;     /* [stride]; NULL if there are scales */
    bool is_multiple; /* there are scales, and each has equal elements */
    em_owner memory;  /* of its arrays */
} em_mass;

struct em_mass_ops {
    size_t struct_size; /* of its struct, whose first member is an em_mass */
    const char *name;
    const char *doc;        /* one line */
    em_structure structure; /* the least array that holds W */
    /* The number of doubles that define W. In this form W is broadcast and stored in checkpoints.
     */
    int64_t (*size)(const em_mass_form *form);
    /* Describes these numbers as arrays; returns the number of arrays. */
    int (*arrays)(const em_mass_form *form, em_mass_array *out);
    /* Writes the numbers of a diagonal W. */
    void (*spread)(const em_mass_form *form, const double *diagonal, double *number);
    /* Sets a mass, which is zero but for ops, sizes and version. Errors: EM_NONFINITE where W is
     * not positive definite; EM_EMEMORY. */
    em_status (*set_up)(em_mass *mass, const em_mass_form *form, const double *number);
    /* OPTIONAL: releases what `memory` does not own, also after a failure of set_up. */
    void (*release)(em_mass *mass);
    /* The inverse of set_up. */
    void (*write)(const em_mass *mass, const em_mass_form *form, double *number);
    double (*log_det)(const em_mass *mass); /* of W */
    /* OPTIONAL if em_mass.scale is set. Applies a map to panels [n_chain][stride], no aliasing. A
     * row of the result depends on that row of x alone. */
    void (*map)(const em_mass *mass, em_map map, int64_t n_chain, const double *x, double *out);
    /* Writes W (EM_MAP_VELOCITY) or M (EM_MAP_SOLVE), [dim][dim]. Errors: EM_NONFINITE, EM_EMEMORY.
     */
    em_status (*matrix)(const em_mass *mass, em_map map, double *out);
    /* The smallest and the largest eigenvalue of W. Errors: EM_EMEMORY, EM_ENUMERIC. */
    em_status (*range)(const em_mass *mass, double *smallest, double *largest);
};

/* All structures, and their names after the name "auto"; both end with NULL. */
extern const em_mass_ops *const em_mass_structures[];
extern const char *const em_structure_names[];
extern const em_mass_ops em_mass_diag, em_mass_dense, em_mass_block_diagonal, em_mass_low_rank;

/* The parts of W, in order. They cover W, and its numbers are the arrays of the parts in order. */
static inline int64_t em_form_n_part(const em_mass_form *form)
{
    return form->n_part > 0 ? form->n_part : 1;
}

em_part em_form_part(const em_mass_form *form, int64_t i);

/* Makes dense parts of the given sizes, in order; the remaining dimensions form a diagonal part.
 * Freed by em_release. Errors: EM_EDATA, without a message, if the sizes are not valid; EM_EMEMORY.
 */
em_status em_mass_parts(int64_t dim, int64_t n_block, const double *size, int64_t *n_part,
                        em_part **part);

/* The identity, or diag(diagonal [dim]). Errors: EM_NONFINITE, EM_EMEMORY. */
em_status em_mass_identity_of(const em_mass_form *form, em_mass **out);
em_status em_mass_of_diagonal(const em_mass_form *form, const double *diagonal, em_mass **out);

/* Creates a mass from its numbers. Errors: EM_NONFINITE if W is not positive definite; EM_EMEMORY.
 */
em_status em_mass_of(const em_mass_form *form, const double *number, em_mass **out);

/* The form of masses of one structure, dense or else diagonal. */
static inline em_mass_form em_mass_plain_form(em_structure structure, int64_t dim)
{
    return (em_mass_form){.ops = structure == EM_MASS_DENSE ? &em_mass_dense : &em_mass_diag,
                          .dim = dim};
}

/* The identity of a structure. */
static inline em_status em_mass_identity(em_structure structure, int64_t dim, em_mass **out)
{
    const em_mass_form form = em_mass_plain_form(structure, dim);

    return em_mass_identity_of(&form, out);
}

void em_mass_destroy(em_mass **mass); /* NULL-safe. */

/* The hash of n numbers that gives versions. */
uint64_t em_version_of(int64_t n, const double *number);

/* The number of directions of a mass of low rank; 0 for others. */
int64_t em_mass_rank(const em_mass *mass);

/* W (EM_MAP_VELOCITY) or M (EM_MAP_SOLVE) as an array; of a mass that is not diagonal
 * EM_MASS_DENSE. Errors: EM_NONFINITE, EM_EMEMORY. */
em_status em_mass_matrix(const em_mass *mass, em_map map, em_structure structure, double *out);

/* The columns first .. first + count - 1 of a mass with scales, for em_mass_apply, em_mass_map and
 * em_mass_product only. The range begins at a cache line; it ends at one too, unless it ends with
 * the last column. The result borrows the memory of `mass`. */
em_mass em_mass_coordinates(const em_mass *mass, int64_t first, int64_t count);

/*
 * out[c] = the map of x[c] for a panel of chains, each with its own mass pointer (the same one
 * where it is shared). Panels are [n_chain][stride], no aliasing.
 */
void em_mass_apply(const em_mass *const *mass, em_map map, int64_t n_chain, const double *x,
                   double *out);

/* out[c] = scale * x[c], element by element, for panels [n][stride] that do not overlap. */
void em_scale_rows(int64_t n, int64_t stride, const double *scale, const double *x, double *out);

/* For a panel of chains: momentum[c] = L z[c] ~ N(0, M) for standard normal z, and velocity[c] = W
 * momentum[c]. */
static inline void em_mass_momentum(const em_mass *const *mass, int64_t n_chain, const double *z,
                                    double *momentum)
{
    em_mass_apply(mass, EM_MAP_MOMENTUM, n_chain, z, momentum);
}

static inline void em_mass_velocity(const em_mass *const *mass, int64_t n_chain,
                                    const double *momentum, double *velocity)
{
    em_mass_apply(mass, EM_MAP_VELOCITY, n_chain, momentum, velocity);
}

/* em_mass_apply for loops that are bound by memory, without a pass over memory if the mass is
 * diagonal. Element i of a chain's product is scale[i] * value[i]. First em_mass_map fills the rows
 * of `panel` whose masses are not diagonal. Then em_mass_product returns the product of one chain,
 * from its rows of x and panel, which it borrows. */
typedef struct em_product {
    const double *scale, *value; /* [stride] */
} em_product;

void em_mass_map(const em_mass *const *mass, em_map map, int64_t n_chain, const double *x,
                 double *panel);
em_product em_mass_product(const em_mass *mass, em_map map, const double *x, const double *panel);

/* kinetic[c] = p^T v / 2 */
void em_kinetic_energy(int64_t n_chain, int64_t dim, int64_t stride, const double *momentum,
                       const double *velocity, double *kinetic);
