/*
 * The published mass: an immutable inverse-mass operator W = M^-1 with momenta p ~ N(0, M) and
 * velocities v = W p. With M = L L^T, whitened momenta are r = L^-1 p ~ N(0, I). Everything here is
 * Local.
 */
#ifndef EM_MASS_MASS_H
#define EM_MASS_MASS_H

#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum em_structure { EM_MASS_DIAG, EM_MASS_DENSE } em_structure;

typedef struct em_mass {
    em_structure structure;
    int64_t dim, stride;
    double *inverse;         /* W: diag [stride]; dense [dim][stride], symmetric */
    double *factor;          /* of M: p_i = sum_j z_j factor[j][i]; diag: its diagonal, [stride] */
    double *root;            /* W = root root^T; diag: its diagonal */
    double *root_transposed; /* the transpose of root; diag: NULL */
    double *ones;            /* dense: [stride]; diag: NULL */
} em_mass;

/* The linear maps of a mass. */
typedef enum em_map {
    EM_MAP_VELOCITY, /* W p, from momenta */
    EM_MAP_MOMENTUM, /* L z, from standard normals */
    EM_MAP_WHITEN,   /* L^-1 x, from momenta and gradients */
    EM_MAP_UNWHITEN  /* L^-T r, from whitened momenta to velocities */
} em_map;

/* W as one array: [dim] (diag) or [dim][dim] (dense). Its number of elements: */
int64_t em_mass_size(em_structure structure, int64_t dim);

/* The identity. Errors: EM_EMEMORY. */
em_status em_mass_identity(em_structure structure, int64_t dim, em_mass **out);

/* From W as one array. EM_NONFINITE when it is not positive definite; EM_EMEMORY. */
em_status em_mass_create(em_structure structure, int64_t dim, const double *inverse, em_mass **out);
void em_mass_destroy(em_mass **mass);

/* Copies W out as one array of em_mass_size elements. */
void em_mass_inverse(const em_mass *mass, double *out);

/*
 * For a panel of chains, each with its own mass pointer (the same one where it is shared):
 * momentum[c] = L z[c] ~ N(0, M) for standard normal z, velocity[c] = W momentum[c]. Panels are
 * [n_chain][stride], no aliasing.
 */
void em_mass_momentum(const em_mass *const *mass, int64_t n_chain, const double *z,
                      double *momentum);
void em_mass_velocity(const em_mass *const *mass, int64_t n_chain, const double *momentum,
                      double *velocity);

/*
 * The same without a pass over memory where the mass is diagonal, for loops that are bound by
 * memory: element i of a chain's product is scale[i] * value[i]. First em_mass_map fills the rows
 * of `panel` whose masses are dense; then em_mass_product is the product for one chain, from its
 * rows of x and panel, which it borrows.
 */
typedef struct em_product {
    const double *scale, *value; /* [stride] */
} em_product;

void em_mass_map(const em_mass *const *mass, em_map map, int64_t n_chain, const double *x,
                 double *panel);
em_product em_mass_product(const em_mass *mass, em_map map, const double *x, const double *panel);

/* kinetic[c] = p^T v / 2 */
void em_kinetic_energy(int64_t n_chain, int64_t dim, int64_t stride, const double *momentum,
                       const double *velocity, double *kinetic);

#endif
