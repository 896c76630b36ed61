/* The parts of the model `network`: network.c creates it, network_density.c computes its density,
 * network_report.c its reports, network_shards.c sums and scores over shards. */
#pragma once

#include "base/memory.h"
#include "data/reader/examples.h"
#include "emass/model.h"
#include "emass/model/averages.h"
#include "emass/model/latent.h"
#include "emass/model/ranges.h"
#include "network/network_layers.h"
#include "network/network_pass.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum em_network_output { EM_OUTPUT_SOFTMAX, EM_OUTPUT_NORMAL } em_network_output;

typedef struct em_network_options {
    char *data, *labels, *test, *test_labels, *response;
    int header; /* em_table_header */
    int output, activation, precision, blocks;
    int64_t classes, probes, scored;
    char *layers, *prior_scale;
    double temperature, input_scale, sigma, sigma_scale;
    bool standardise, store_weights;
} em_network_options;

/* Averages over the draws of a chain for every test observation: the probabilities of classes or,
 * for a normal output, these quantities. */
enum { EM_MEAN, EM_SQUARE, EM_VARIANCE, EM_DENSITY, EM_N_MOMENT };

/* A selection of `total` observations of all shards. This shard has numbers first .. first + count
 * - 1 of the selection, which are its rows row [count]. */
typedef struct em_network_choice {
    int64_t total, first, count, *row;
} em_network_choice;

enum { EM_NETWORK_VARIABLES = 12, EM_NETWORK_AVERAGES = 6, EM_NETWORK_POOLED = 12 };

/* A survey of the training observations of all shards. */
typedef struct em_network_survey {
    int64_t *of_class;            /* [n_output] their number; NULL: a normal output */
    int64_t n_large, first_large; /* inputs that are large beside the prior; -1: none */
    bool large_response;
} em_network_survey;

typedef struct em_network {
    em_model model;
    em_owner memory; /* of its arrays */
    const em_network_options *options;
    em_examples *train, *test; /* test NULL: none */
    em_inputs train_inputs, test_inputs;
    double *centre, *factor; /* [n_input] */
    em_network_output output;
    em_layers layers;
    int64_t n_output, n_moment;
    /* Parameters: the weights, then log sigma, then the log precisions of the layers' weights. */
    int64_t sigma_at, scale_at, n_scale; /* -1: sigma is known, the prior is */
    double sigma;                        /* if sigma is known */
    double precision;                    /* of the weights' prior, if it is known */
    double gamma[2];                     /* shape and rate of the precisions' prior */
    int n_weighted;                      /* layers with weights */
    int weighted[EM_MOST_LAYERS];        /* [n_weighted] their indices */
    const em_pass_ops *pass_ops;
    em_pass *pass;
    int64_t batch;              /* observations at a time */
    int64_t *row;               /* [batch] */
    double *out;                /* [batch][n_output], padded */
    double *response, *density; /* [batch] */
    const em_shards *shards;    /* NULL: all data are here */
    /* From the last estimate: the factor of its likelihood, the precisions of the layers' priors,
     * and the gradient with respect to parameters that are not weights. */
    double scale, pull[EM_MOST_LAYERS], slope[EM_MOST_LAYERS + 1];
    double *label;            /* responses of the test observations of all shards */
    em_network_choice scored; /* training observations */
    em_network_choice probe;  /* test observations whose predictions are reported */
    int64_t n_told;           /* numbers of a report that shards exchange */
    double *told;             /* [n_told] scores of parts of the test and training data, probes */
    double *predicted;        /* [test->rows.count][n_moment] predictions of the last report */
    int64_t first_chain, n_chain;
    double *n_average; /* [n_chain] draws in the averages */
    double *mean;      /* [n_chain][test->rows.count][n_moment] */
    em_parameters block[EM_MOST_LAYERS + 3];
    const char *layer_name[EM_MOST_LAYERS];
    em_variable variable[EM_NETWORK_VARIABLES], average[EM_NETWORK_AVERAGES],
        pooled[EM_NETWORK_POOLED];
    em_datum datum[4];
    double n_output_kept; /* as a datum */
    char **input_name;    /* [n_input] */
    em_network_survey survey;
} em_network;

/* network_density.c: functions of em_model_ops and of its capabilities. */
em_status em_network_add_prior(em_model *model, const em_query *query);
em_status em_network_draw_prior(em_model *model, const em_draw *draw, double *theta);
em_status em_network_add_likelihood(em_model *model, const em_query *query);
em_status em_network_estimate(em_model *model, const em_query *query, double scale,
                              bool with_prior);
em_status em_network_estimate_ranges(em_model *model, const em_query *query, double scale,
                                     bool published);
void em_network_gradient_range(em_model *model, int64_t first, int64_t n, const double *theta,
                               double *gradient);
void em_network_publish(em_model *model, int64_t first, int64_t n, const double *theta);
void em_network_fetch(const em_model *model, int64_t first, int64_t n);
em_status em_network_estimate_part(em_model *model, const em_query *query, double scale,
                                   bool published, const em_range_parts *parts);
void em_network_gradient_of_parts(em_model *model, int64_t first, int64_t n, const double *theta,
                                  const em_range_parts *parts, double *gradient);
void em_network_publish_part(em_model *model, int64_t first, int64_t n, const double *theta,
                             const em_range_parts *parts);
em_status em_network_update(em_model *model, const em_update *update);
double em_network_log_prior(const em_network *self, const double *theta, double *gradient);
double em_network_sigma(const em_network *self, const double *theta);

/*
 * Converts the outputs of n observations in self->out to probabilities of classes, or to means.
 * density [n] gets the log densities of their responses, self->response (NULL: not needed). Local.
 */
void em_network_predict(em_network *self, int64_t n, double sigma, double *density);

/* Computes the outputs of n listed observations with the weights passed to pass_ops->publish, and
 * sets self->out and self->response. Local. */
void em_network_forward(em_network *self, const em_inputs *inputs, int64_t n, const int64_t *row);

/*
 * network_shards.c. Sums x [n] over all shards; gathers x [n], of which each number is set on one
 * shard and 0 on the others. `own` is the status of this rank: if one has failed, all fail.
 * Collective over the ranks of a group.
 */
static inline em_status em_network_sum(const em_network *self, em_status own, int64_t n, int64_t *x)
{
    return self->shards ? self->shards->sum(self->shards->context, own, n, x) : own;
}

em_status em_network_gather(const em_network *self, em_status own, int64_t n, double *x);

/* The number of parts of the observations of all shards. Local. */
static inline int64_t em_network_n_part(const em_share *rows)
{
    return rows->total > 0 ? (rows->total + rows->part - 1) / rows->part : 0;
}

/* Computes the standardisation of the inputs, self->centre and self->factor; a constant input is
 * not changed. The bits are the same on any number of shards. Collective over the ranks of a group.
 * Errors: EM_EMEMORY. */
em_status em_network_find_moments(em_network *self);

/* network_survey.c: counts the observations of classes, and inputs and responses that are large
 * beside the priors. `warns`: a warning for each thing that is unusual. Collective over the ranks
 * of a group. Errors: EM_EMEMORY. */
em_status em_network_make_survey(em_network *self, bool warns);

/* Prints the numbers and the warnings for emass check. Local. */
void em_network_describe_survey(const em_network *self, FILE *out);

/* network_report.c: sets up reported quantities; functions of em_model_ops. Errors: EM_EMEMORY. */
em_status em_network_prepare_reports(em_network *self); /* Collective over the ranks of a group. */
void em_network_prepare_predictions(em_network *self);
em_status em_network_predict_new(em_model *model, const em_draw *draw, const double *posterior,
                                 double *out);
em_status em_network_report(em_model *model, const em_draw *draw, const double *theta, double *out);
void em_network_average(em_model *model, const em_draw *draw, const double *theta);
void em_network_report_averages(em_model *model, int64_t chain, double *out);
void em_network_report_pooled(em_model *model, const double *mean, double *out);
em_status em_network_visit(em_model *model, const em_visitor *visitor);
