/*
 * Sums over the observations of a generalised linear model, eta = X theta, for a panel of chains:
 * the design matrix is streamed once for eight chains, and a chain's numbers depend on its own
 * theta alone.
 */
#ifndef EM_MODEL_GLM_H
#define EM_MODEL_GLM_H

#include "data/design.h"
#include "emass/model.h"

#include <stdint.h>

enum { EM_GLM_CHAINS = 8 };

/*
 * What makes the model: for a tile of EM_TILE_ROWS observations and `n_chain` chains, `density`
 * becomes log p(response[i] | eta[c][i]), and `eta` its derivative by eta[c][i]. All rows are
 * [EM_TILE_ROWS]; where the data end, the numbers are not used. Local.
 */
typedef void em_glm_link(int64_t n_chain, const double *response, double *eta, double *density);

typedef struct em_glm em_glm;

/* Allocates the work space. `design` outlives it. Local. Errors: EM_EMEMORY. */
em_status em_glm_create(const em_design *design, em_glm **out);
void em_glm_destroy(em_glm **glm); /* NULL-safe. */

/*
 * log_density[c] += sum_i log p(y_i | x_i . theta[c]) and gradient[c] += its gradient, over the
 * rows asked for, which begin a tile where they are not listed; never `all`.
 * Local.
 */
void em_glm_add(em_glm *glm, em_glm_link *link, const em_query *query);

/* Adds the log prior N(0, variance I) of `dim` coefficients. Local. */
void em_glm_add_prior(int64_t dim, double variance, const em_query *query);

/* The coefficients as they are reported: beta, with the names of the columns. Local. */
em_variable em_glm_variable(const em_design *design);

#endif
