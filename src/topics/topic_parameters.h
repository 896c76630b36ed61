/*
 * The word distributions phi of topics as functions of parameters theta [n_word][n_topic], for
 * samplers with gradients (EQUATIONS 22).
 *
 *     expanded mean      phi_kv = theta_kv / sum_w theta_kw,  theta_kv ~ Gamma(a, 1), above zero
 *     expanded natural   phi_kv = exp theta_kv / sum_w exp theta_kw,  theta_kv ~ N(mean, sd^2)
 *
 * The log likelihood is that of tokens with given topics, sum_kv n_kv log phi_kv, where n_kv tokens
 * of word v have topic k. All Local.
 */
#pragma once

#include "base/memory.h"
#include "emass/model.h"
#include "emass/model/metric.h"
#include "topics/lda_topics.h"

#include <stdbool.h>

typedef enum em_topic_form { EM_TOPICS_MEAN, EM_TOPICS_NATURAL, EM_TOPIC_FORMS } em_topic_form;

extern const char *const em_topic_forms[]; /* their names, and NULL */

typedef struct em_topic_parameters {
    em_topic_form form;
    em_lda_shape shape;
    int64_t n;            /* n_word n_topic */
    double shape_of_mean; /* a of the expanded mean form: beta of the Dirichlet prior */
    double mean, sd;      /* of the expanded natural form */
    double *work, *total; /* work space [em_stride(n)], [n_topic] */
    double *count;        /* [n_topic], see below */
} em_topic_parameters;

/* Allocates the work space; form, shape and priors must be set. Errors: EM_EMEMORY. */
em_status em_topic_parameters_create(em_owner *owner, em_topic_parameters *topics);

/* Writes a random start theta [n]: with the expanded mean form phi is nearly uniform; the expanded
 * natural form is drawn from the prior. */
void em_topic_parameters_start(const em_topic_parameters *topics, const em_draw *draw,
                               double *theta);

/* Computes phi [n_word][stride], without its padding; no element is below 1e-30. Returns false if
 * theta does not define word distributions. */
bool em_topic_parameters_phi(em_topic_parameters *topics, const double *theta, float *phi);

/* Adds the log prior to *log_density, and its gradient to gradient [n], unless they are NULL. */
void em_topic_parameters_add_prior(em_topic_parameters *topics, const double *theta,
                                   double *log_density, double *gradient);

/*
 * Replaces count [n], which has n_kv [n_word][n_topic] summed over `sweeps` sweeps, by the gradient
 * of the mean log likelihood over these sweeps. Returns this log likelihood. Sets topics->count to
 * the mean number of tokens in each topic.
 */
double em_topic_parameters_finish(em_topic_parameters *topics, const double *theta, double sweeps,
                                  double *count);

/*
 * Computes a diagonal metric of the expanded natural form, G_kv = 1 / sd^2 + tokens_k phi_kv
 * (1 - phi_kv): the precision of the prior, and the Fisher information of tokens [n_topic] tokens
 * in each topic. The arrays of `ask` have n elements. Sets topics->count to sum_v weight_kv phi_kv
 * (1 - phi_kv), the derivative of sum_kv weight_kv G_kv with respect to tokens_k.
 */
void em_topic_parameters_diagonal(em_topic_parameters *topics, const double *tokens,
                                  const em_diagonal *ask);
