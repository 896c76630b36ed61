/*
 * Capability `prior`: draws from the prior, for the groups prior and prior_predictive of the output
 * file (output.prior_draws in a config).
 *
 * Example prior:
 *     static const em_variable mu = {.name = "mu"};
 *     static em_status density(const void *options, const double *theta, double *log_p,
 *                              double *gradient)
 *     {
 *         *log_p -= theta[0] * theta[0] / 2 + (theta[0] - 2) * (theta[0] - 2) / 2;
 *         gradient[0] -= 2 * theta[0] - 2;
 *         return EM_OK;
 *     }
 *     static em_status draw(em_model *model, const em_draw *number, double *theta)
 *     {
 *         em_draw_normals(number, 0, 1, theta); // mu ~ normal(0, 1), before y = 2 was seen
 *         return EM_OK;
 *     }
 *     EMASS_PLUGIN({.name = "prior", .n_parameter = 1, .parameter = &mu,
 *                   .log_density_gradient = density,
 *                   .prior = &(const em_model_prior){.draw = draw}});
 */
#pragma once

#include "emass/model.h"

EM_BEGIN_C

typedef struct em_model_prior {
    /* Draws theta [dim] from the prior; em_model_ops.report is called for it afterwards. Random
     * numbers and errors: as em_model_ops.report. Local. */
    em_status (*draw)(em_model *model, const em_draw *draw, double *theta);
    /* OPTIONAL, for the evidence of a tempered run: the logarithms of the normalising constants
     * that the log prior and the log likelihood of all data leave out. theta [dim] is a position
     * with a finite density. Collective over the ranks of a group. */
    em_status (*log_constants)(em_model *model, const double *theta, double *prior,
                               double *likelihood);
    const char *none; /* INSTEAD of draw: the reason why there are no draws, a phrase that follows
                         "model NAME" */
} em_model_prior;

EM_END_C
