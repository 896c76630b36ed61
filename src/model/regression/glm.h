/*
 * Sums over the observations of a generalised linear model, eta = X beta + offset, for a panel of
 * chains. The design matrix is read once for eight chains; the results of a chain depend only on
 * its theta. theta is beta, then the logarithms of the unknown shape parameters: parameters of the
 * response distribution other than eta (a scale, degrees of freedom, ...).
 */
#pragma once

#include "data/design/design.h"
#include "emass/model.h"

#include <stdint.h>

enum { EM_GLM_CHAINS = 8, EM_GLM_SHAPES = 2 };

/*
 * A tile of observations and the chains of a panel. Rows are [EM_TILE_ROWS]; arrays [n_chain] have
 * one for each chain. After the last observation of the data, the elements of a row are not used.
 */
typedef struct em_glm_tile {
    int64_t n_chain;
    const double *response;       /* a row */
    const double *shape;          /* [n_chain][EM_GLM_SHAPES], in the order of em_glm_create */
    double *eta;                  /* [n_chain] rows */
    double *density;              /* [n_chain] rows */
    double *slope[EM_GLM_SHAPES]; /* [n_chain] rows; NULL: the shape parameter is known */
    double *work[2];              /* [n_chain] rows each */
} em_glm_tile;

/*
 * The link and the distribution of a model. Sets `density` to log p(response | eta, shape) without
 * constant terms, replaces `eta` by the derivative of that by eta, and sets each `slope` to the
 * derivative by the logarithm of a shape parameter. Local.
 */
typedef void em_glm_link(const em_glm_tile *tile);

typedef struct em_glm em_glm;

/* Allocates the work space. `design` outlives it. `shape` [n_shape] are values of the shape
 * parameters; NaN: unknown. Local. Errors: EM_EMEMORY. */
em_status em_glm_create(const em_design *design, int n_shape, const double *shape, em_glm **out);

/*
 * log_density[c] += sum_i log p(y_i | x_i . theta[c]) and gradient[c] += its gradient, over the
 * rows of the query. Rows that are not listed begin at a tile; em_rows.all is not supported. Local.
 */
void em_glm_add(em_glm *glm, em_glm_link *link, const em_query *query);

/* The shape parameters [EM_GLM_SHAPES] at one position. Local. */
void em_glm_shape(const em_glm *glm, const double *theta, double *shape);

/* For one chain: eta [n_row] and the log densities [n_row] without constants of all observations of
 * the shard; without a link eta alone. Local. */
void em_glm_each(em_glm *glm, em_glm_link *link, const double *theta, double *eta, double *density);

/* eta alone. Local. */
static inline void em_glm_predict(em_glm *glm, const double *theta, double *eta)
{
    em_glm_each(glm, NULL, theta, eta, NULL);
}
