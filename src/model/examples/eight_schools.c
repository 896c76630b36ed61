/*
 * Eight schools (Rubin 1981), in the non-centred form:
 *     y_j ~ N(theta_j, sigma_j^2), theta_j = mu + tau theta_tilde_j, theta_tilde_j ~ N(0, 1),
 *     mu ~ N(0, 5^2), tau ~ half-Cauchy(0, 5).
 * Unconstrained: (mu, eta = log tau, theta_tilde), with + eta for the Jacobian of tau = e^eta.
 */
#include "base/memory.h"
#include "data/shard/shard_assignment.h"
#include "emass/model/prior.h"
#include "emass/random.h"
#include "model/construct/construct.h"

#include <math.h>
#include <xxhash.h>

typedef struct eight_schools_options {
    em_reals y, sigma;
    em_texts school;
    bool log_likelihood, posterior_predictive;
} eight_schools_options;

static const em_field fields[] = {
    EM_REALS(eight_schools_options, y, .fallback = "[28, 8, -3, 7, -1, 1, 18, 12]",
             .doc = "estimated effect of coaching in each school"),
    EM_REALS(eight_schools_options, sigma, .minimum = 1e-300, .maximum = 1e300,
             .fallback = "[15, 10, 16, 11, 9, 11, 10, 18]",
             .doc = "standard error of each estimate"),
    EM_TEXTS(eight_schools_options, school,
             .fallback = "[Choate, Deerfield, Phillips Andover, Phillips Exeter, Hotchkiss, "
                         "Lawrenceville, \"St. Paul's\", Mt. Hermon]",
             .doc = "names of the schools"),
    EM_BOOL(eight_schools_options, log_likelihood, .fallback = "false",
            .doc = "store the log likelihood of each school, in the group log_likelihood"),
    EM_BOOL(eight_schools_options, posterior_predictive, .fallback = "false",
            .doc = "store effects drawn from the posterior predictive distribution, in the group "
                   "posterior_predictive"),
    {0}};

enum { MU, ETA, THETA_TILDE };       /* positions in theta */
static const double prior_scale = 5; /* of mu and of tau */

typedef struct eight_schools {
    em_model model;
    em_variable variable[6];
    em_datum datum[2];
    em_parameters block[2];
    const double *y, *sigma;
    bool log_likelihood, posterior_predictive; /* reported */
    int64_t n_school;
} eight_schools;

static void destroy(em_model *model)
{
    em_release(&model);
}

static void describe(eight_schools *self, const eight_schools_options *options)
{
    const char *const *label = (const char *const *)options->school.value;
    const em_variable per_school = {
        .n_axes = 1, .shape = {self->n_school}, .axis = {"school"}, .label = {label}};
    static const char *const name[] = {"theta", "theta_tilde", "y", "sigma"};
    em_variable school[4];

    for (int i = 0; i < 4; i++) {
        school[i] = per_school;
        school[i].name = name[i];
    }
    self->variable[0] = (em_variable){.name = "mu"};
    self->variable[1] = (em_variable){.name = "tau"};
    self->variable[2] = school[0];
    self->variable[3] = school[1];
    self->model.n_variable = 4;
    if (self->log_likelihood) {
        self->variable[self->model.n_variable] = school[2];
        self->variable[self->model.n_variable++].group = EM_LOG_LIKELIHOOD;
    }
    if (self->posterior_predictive) {
        self->variable[self->model.n_variable] = school[2];
        self->variable[self->model.n_variable++].group = EM_POSTERIOR_PREDICTIVE;
    }
    self->block[0] = (em_parameters){"hyper", 0, THETA_TILDE, false};
    self->block[1] = (em_parameters){"effects", THETA_TILDE, self->n_school, false};
    self->datum[0] = (em_datum){"observed_data", school[2], options->y.value};
    self->datum[1] = (em_datum){"constant_data", school[3], options->sigma.value};
}

static em_status set_up(em_model *model, const void *untyped, const em_model_context *context)
{
    eight_schools *self = (eight_schools *)model;
    const eight_schools_options *options = untyped;
    const int64_t n = options->y.count;

    if (n < 1 || options->sigma.count != n || options->school.count != n)
        return em_fail(EM_ECONFIG,
                       "model: found %lld y, %lld sigma and %lld school, expected one of each for "
                       "every school",
                       (long long)n, (long long)options->sigma.count,
                       (long long)options->school.count);
    self->y = options->y.value;
    self->sigma = options->sigma.value;
    self->n_school = n;
    self->log_likelihood = options->log_likelihood;
    self->posterior_predictive = options->posterior_predictive;
    self->model =
        (em_model){.ops = context->ops,
                   .dim = THETA_TILDE + n,
                   .n_block = 2,
                   .block = self->block,
                   .rows = em_shard_rows(n, n, context->shard, context->n_shard),
                   .variable = self->variable,
                   .n_datum = 2,
                   .datum = self->datum,
                   .data_hash = XXH64(self->y, (size_t)n * sizeof *self->y,
                                      XXH64(self->sigma, (size_t)n * sizeof *self->sigma, 0))};
    describe(self, options);
    return EM_OK;
}

static em_status add_prior(em_model *model, const em_query *query)
{
    const double variance = prior_scale * prior_scale;

    for (int64_t c = 0; c < query->n_chain; c++) {
        const double *theta = query->theta + c * query->stride;
        double *gradient = query->gradient + c * query->stride;
        double ratio = exp(2 * theta[ETA]) / variance; /* (tau / 5)^2 */
        query->log_density[c] += theta[ETA] - log1p(ratio) - theta[MU] * theta[MU] / (2 * variance);
        gradient[MU] -= theta[MU] / variance;
        gradient[ETA] += 2 / (1 + ratio) - 1; /* 1 - 2 ratio / (1 + ratio), without inf / inf */
        for (int64_t j = THETA_TILDE; j < model->dim; j++) {
            query->log_density[c] -= theta[j] * theta[j] / 2;
            gradient[j] -= theta[j];
        }
    }
    return EM_OK;
}

/* The constants that the log density omits, for mu ~ N(0, 5^2), tau half-Cauchy of scale 5, eight
 * N(0, 1), and y ~ N(theta, sigma^2). */
static em_status log_constants(em_model *model, const double *theta, double *prior,
                               double *likelihood)
{
    const eight_schools *self = (const eight_schools *)model;
    const double n = (double)self->n_school;

    (void)theta;
    *prior = -(n + 1) * log(2 * M_PI) / 2 - log(prior_scale) + log(2 / M_PI) - log(prior_scale);
    *likelihood = -n * log(2 * M_PI) / 2;
    for (int64_t j = 0; j < self->n_school; j++)
        *likelihood -= log(self->sigma[j]);
    return EM_OK;
}

static em_status draw_prior(em_model *model, const em_draw *draw, double *theta)
{
    double u;

    em_draw_normals(draw, 0, model->dim, theta);
    em_draw_uniforms(draw, ETA, 1, &u);
    theta[MU] *= prior_scale;
    theta[ETA] = log(prior_scale * tan(M_PI / 2 * u));
    return EM_OK;
}

static em_status add_likelihood(em_model *model, const em_query *query)
{
    const eight_schools *self = (const eight_schools *)model;

    for (int64_t c = 0; c < query->n_chain; c++) {
        const double *theta = query->theta + c * query->stride;
        const double *theta_tilde = theta + THETA_TILDE, tau = exp(theta[ETA]);
        double *gradient = query->gradient + c * query->stride;
        for (int64_t i = 0; i < query->rows.count; i++) {
            int64_t j = model->rows.first + em_row(&query->rows, i);
            double z = (self->y[j] - theta[MU] - tau * theta_tilde[j]) / self->sigma[j];
            double slope = z / self->sigma[j]; /* of the log density by theta_j */
            query->log_density[c] -= z * z / 2;
            gradient[MU] += slope;
            gradient[ETA] += slope * tau * theta_tilde[j];
            gradient[THETA_TILDE + j] += slope * tau;
        }
    }
    return EM_OK;
}

static void report_observations(const eight_schools *self, const em_draw *draw, const double *theta,
                                double *out)
{
    const int64_t n = self->n_school;

    for (int64_t j = 0; self->log_likelihood && j < n; j++) {
        const double z = (self->y[j] - theta[j]) / self->sigma[j];
        *out++ = -z * z / 2 - log(self->sigma[j]) - log(2 * M_PI) / 2;
    }
    if (!self->posterior_predictive)
        return;
    em_draw_normals(draw, 0, n, out);
    for (int64_t j = 0; j < n; j++)
        out[j] = theta[j] + self->sigma[j] * out[j];
}

/* Reports mu, tau, theta, theta_tilde, and for each observation what is asked for. */
static em_status report(em_model *model, const em_draw *draw, const double *theta, double *out)
{
    const eight_schools *self = (const eight_schools *)model;
    const int64_t n = self->n_school;
    const double *theta_tilde = theta + THETA_TILDE;

    out[0] = theta[MU];
    out[1] = exp(theta[ETA]);
    for (int64_t j = 0; j < n; j++) {
        out[2 + j] = out[0] + out[1] * theta_tilde[j];
        out[2 + n + j] = theta_tilde[j];
    }
    report_observations(self, draw, out + 2, out + 2 + 2 * n);
    return EM_OK;
}

const em_model_ops em_model_eight_schools = {
    .name = "eight_schools",
    .doc = "effects of coaching in eight schools, a hierarchical model in non-centred form",
    .source = "Rubin (1981); Gelman et al., Bayesian Data Analysis, section 5.5",
    .options_size = sizeof(eight_schools_options),
    .fields = fields,
    .create = em_model_build,
    .state = &(const em_construction){sizeof(eight_schools), set_up},
    .destroy = destroy,
    .add_prior = add_prior,
    .report = report,
    .add_likelihood = add_likelihood,
    .prior = &(const em_model_prior){.draw = draw_prior, .log_constants = log_constants}};
