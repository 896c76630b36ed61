/*
 * Private to the folder: groups of parameters whose priors are proved (scale_derivative.h). All
 * Local.
 */
#pragma once

#include "adaptation/noncentring/noncentring_fit.h"
#include "adaptation/prior_proofs/scale_derivative.h"

/* The least slope of the derivatives that is due to data, in its standard errors. */
#define EM_LEAST_OF_DATA 4.0

/* Writes the log scales of proved groups to scale [EM_MOST_GROUPS], those first whose members are
 * distributed about members of others; returns their number. */
int em_list_proved_scales(int64_t dim, const em_normal_prior *prior, int64_t *scale);

/* Sets the children of `out` to the members of the group of log scale k that may join it. Returns
 * the degree. */
double em_list_proved_group(const em_group_search *s, const em_normal_prior *prior, int64_t k,
                            em_group_fit *out);

/* Whether chains might miss a neck of the density without this group. The log scale is wide where
 * there is one, and the model has the centred form. */
bool em_has_neck(const em_group_search *s, const em_normal_prior *prior, const em_group_fit *group);

/* Writes the rows of the children to s->conditional, as their priors alone determine them, and
 * marks in s->is_location the locations that are no members of another group. */
void em_write_priors(em_group_search *s, const em_normal_prior *prior, const em_group_fit *group);

/*
 * Adds to s->conditional what data tell about the children; s->map has their rows. The derivatives
 * by the children in its coordinates, without those of the priors, are due to data: to those of the
 * child, and to those of members that are distributed about it. The precision of the data is the
 * slope of a regression on the child and all other coordinates. Factors of which data tell nothing
 * leave the group. Changes s->panel. Errors: EM_EMEMORY; EM_NONFINITE if the Gram matrix is
 * singular.
 */
em_status em_add_data(em_group_search *s, const em_normal_prior *prior, em_group_fit *group);

/* What differences of gradients at some draws tell of the data of a parameter. */
enum { EM_MOST_PROBES = 10 };
typedef struct em_probed {
    double n, sum, square, location; /* of precisions, and of precisions times locations */
} em_probed;

/* Adds the precision by one difference, and its product with the location; one that is not finite
 * is left out. */
void em_add_probe(em_probed *data, double precision, double times_location);

/* Sets the precision and the location of the data to their means, if the differences agree that
 * there are data. */
void em_set_probed(const em_probed *data, em_noncentring_row *row);

/*
 * The same with few samples, which are positions: the slope is that of differences of gradients. At
 * each of some positions all children of a level are moved at once, each in one of both directions
 * at random, so that the effects of others cancel on average. Errors: EM_EMEMORY, those of the
 * evaluations.
 */
em_status em_probe_data(em_group_search *s, const em_gradient_function *gradient,
                        const em_normal_prior *prior, em_group_fit *group);
