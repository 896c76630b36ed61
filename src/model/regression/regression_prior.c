#include "model/regression/regression_prior.h"

#include "base/memory.h"
#include "base/text.h"
#include "base/text/nearest.h"
#include "data/table/column_moments.h"
#include "emass/random.h"
#include "model/regression/collinear.h"
#include "model/regression/prior_options.h"
#include "par/message.h"
#include "par/world.h"

#include <math.h>
#include <string.h>

static const double default_scale = 2.5;

/* A table, and what its config says about priors, while the priors are being set. */
typedef struct finding {
    em_regression *self;
    const em_table *table;
    const em_regression_plan *plan;
    em_prior_options given;
    double mean, sd; /* of the response, and 1 where it has none; 0 and 1 of links */
    int64_t first;   /* coefficient that is none of the intercept's */
} finding;

/* ---------------------------------------------------------------- options */

static em_status read_options(finding *f, const em_regression_options *options)
{
    const char *name[EM_GLM_SHAPES];

    for (int k = 0; k < f->plan->n_shape; k++)
        name[k] = f->plan->shape[k].name;
    if (options->prior && !isnan(options->prior_scale))
        return em_fail(
            EM_ECONFIG,
            "model.prior_scale: found %g together with model.prior, expected one of the two",
            options->prior_scale);
    return em_prior_options_read(options->prior, f->plan->n_shape, name, &f->given);
}

static em_status check_shapes(const finding *f)
{
    for (int k = 0; k < f->plan->n_shape; k++) {
        const em_shape *shape = &f->plan->shape[k];
        if (f->given.shape[k].kind && !isnan(shape->value))
            return em_fail(EM_ECONFIG,
                           "model.prior.%s: found a prior, but model.%s is a fixed number, "
                           "expected model.%s: unknown",
                           shape->name, shape->name, shape->name);
        if (f->given.shape[k].kind && shape->prior_given)
            return em_fail(EM_ECONFIG,
                           "model.prior.%s: found model.%s_scale too, expected one of the two",
                           shape->name, shape->name);
    }
    if (f->given.intercept.kind && f->first == 0)
        return em_fail(EM_ECONFIG,
                       "model.prior.intercept: found a prior, expected a model with an intercept");
    return EM_OK;
}

/* Whether the name, which is not a coefficient, is the name of a level. Then it is a reference
 * level. */
static bool is_reference(const finding *f, const char *name)
{
    const em_features *features = f->self->features;

    for (int64_t i = 0; features && i < features->n_all; i++)
        if (strcmp(features->level[i], name) == 0)
            return true;
    return false;
}

/* Checks that every column with a prior exists. */
static em_status check_names(const finding *f)
{
    const em_table *table = f->table;

    for (int64_t i = 0; i < f->given.n_named; i++) {
        const char *name = f->given.named[i].name;
        em_nearest nearest = em_nearest_start(name);
        int64_t j = 0;
        while (j < table->n_column && strcmp(table->name[j], name) != 0)
            em_nearest_offer(&nearest, table->name[j++]);
        if (j < table->n_column)
            continue;
        if (is_reference(f, name))
            return em_fail(EM_ECONFIG,
                           "model.prior.coefficients: found '%s', the reference level of its "
                           "factor, expected a level with a coefficient",
                           em_excerpt_of(name).text);
        const char *such = nearest.name ? nearest.name : j > 0 ? table->name[0] : NULL;
        return em_fail(
            EM_ECONFIG,
            "model.prior.coefficients: found '%s', expected default or a coefficient%s%s%s",
            em_excerpt_of(name).text,
            nearest.name ? "; did you mean "
            : such       ? " such as "
                         : "",
            such ? em_excerpt_of(such).text : "", nearest.name ? "?" : "");
    }
    return EM_OK;
}

/* ---------------------------------------------------------------- moments */

/* Finds the mean and the standard deviation of the response. Collective. */
static em_status find_response(finding *f)
{
    em_table response = {.path = f->table->path,
                         .total = f->table->total,
                         .n_column = 1,
                         .n_row = f->table->n_row,
                         .value = f->table->response};
    EM_SCOPED_BY(em_moments_release) em_moments moments = {0};

    f->mean = 0;
    f->sd = 1;
    if (!f->plan->identity)
        return EM_OK;
    em_status status = em_moments_find(&response, true, &moments);
    if (!status) {
        f->mean = moments.mean[0];
        if (moments.smallest[0] < moments.largest[0])
            f->sd = moments.sd[0];
        else if (response.total > 1)
            em_say("warning: %s: response: all values are equal, so the density is unbounded as an "
                   "estimated scale goes to 0",
                   response.path);
        if (!isfinite(f->sd) || !(f->sd > 0))
            status = em_fail(EM_EDATA,
                             "%s: response: found numbers from %g to %g, expected some that have a "
                             "standard deviation: measure them in another unit",
                             f->table->path, moments.smallest[0], moments.largest[0]);
    }
    return status;
}

/* Whether the response may be a linear combination of columns, so that nothing bounds sigma. */
static bool may_lack_noise(const finding *f, const em_regression_options *options)
{
    return f->plan->identity && isnan(f->plan->shape[0].value) &&
           !options->table.beside[EM_BESIDE_OFFSET];
}

/* Collective. */
static em_status find_moments(finding *f, const em_regression_options *options)
{
    em_regression *self = f->self;
    const int64_t n = f->table->n_column + f->first;
    em_status status = em_own_all(&self->memory, EM_ARRAY(self->mean, n), EM_ARRAY(self->sd, n),
                                  EM_ARRAY(self->prior, n));

    status = em_agree_first(status, 0);
    if (status)
        return status;
    self->sd[0] = 1;
    status = em_design_scaling(f->table, self->mean + f->first, self->sd + f->first);
    status = status ? status : find_response(f);
    if (!status)
        status =
            em_collinear_say(f->table, f->first > 0, self->mean + f->first, self->sd + f->first,
                             f->mean, may_lack_noise(f, options) ? f->sd : NAN);
    if (f->first == 0 && !options->table.standardise)
        memset(self->mean, 0, (size_t)n * sizeof *self->mean);
    return status;
}

/* ---------------------------------------------------------------- priors */

static em_prior prior_of_column(const finding *f, int64_t j)
{
    em_prior prior = f->given.coefficient;

    for (int64_t i = 0; i < f->given.n_named; i++)
        if (strcmp(f->given.named[i].name, f->table->name[j - f->first]) == 0)
            prior = f->given.named[i].prior;
    return prior;
}

static em_prior autoscaled(const finding *f, em_prior prior, double location, double unit)
{
    if (!prior.kind)
        prior = (em_prior){EM_PRIOR_NORMAL, 1, location, default_scale * unit};
    else if (f->given.autoscale)
        em_prior_scale_by(&prior, unit);
    return prior;
}

static void find_coefficients(finding *f)
{
    em_regression *self = f->self;

    if (f->first > 0)
        self->prior[0] = autoscaled(f, f->given.intercept, f->mean, f->sd);
    for (int64_t j = f->first; j < f->table->n_column + f->first; j++)
        self->prior[j] = autoscaled(f, prior_of_column(f, j), 0, f->sd / self->sd[j]);
}

/* Sets the unit of parameters in units of the response: they are sampled in units of its standard
 * deviation. */
static void find_shapes(finding *f)
{
    em_regression *self = f->self;

    for (int k = 0; k < self->n_shape; k++) {
        em_shape *shape = &self->shape[k];
        const em_prior *given = &f->given.shape[k];
        const bool autoscale = given->kind ? f->given.autoscale : !shape->prior_given;
        if (given->kind)
            shape->prior = *given;
        if (shape->of_response && autoscale)
            em_prior_scale_by(&shape->prior, f->sd);
    }
    if (self->unit_is_free)
        self->unit = f->sd;
}

em_status em_regression_find_priors(em_regression *self, const em_table *table,
                                    const em_regression_options *options,
                                    const em_regression_plan *plan)
{
    finding f = {.self = self, .table = table, .plan = plan, .first = self->intercept};
    em_status status = read_options(&f, options);

    self->prior_variance = options->prior_scale;
    status = status ? status : check_shapes(&f);
    status = status ? status : check_names(&f);
    status = em_agree_first(status, 0);
    if (!status && isnan(options->prior_scale)) {
        status = find_moments(&f, options);
        if (!status) {
            find_coefficients(&f);
            find_shapes(&f);
        }
    } else if (!status) {
        for (int k = 0; k < self->n_shape; k++)
            if (!self->shape[k].prior_given)
                self->shape[k].prior = self->shape[k].earlier;
    }
    em_prior_options_release(&f.given);
    return status;
}

/* ---------------------------------------------------------------- scaling of theta */

em_status em_regression_scaling(const em_regression *self, int64_t n, em_scaling *to)
{
    double *centre = NULL, *scale = NULL;

    *to = (em_scaling){NULL, NULL};
    if (!self->prior)
        return EM_OK;
    em_status status = em_allocate_doubles(n, &centre);
    status = status ? status : em_allocate_doubles(n, &scale);
    for (int64_t j = 0; !status && j < n; j++) {
        centre[j] = self->mean[j];
        scale[j] = 1 / self->prior[j].scale;
    }
    *to = (em_scaling){centre, scale};
    return status;
}

em_status em_regression_centre(em_regression *self, bool identity)
{
    em_design *design = self->design;
    const int64_t first = self->intercept;
    EM_SCOPED double *coefficient = NULL;
    double origin = 0;
    bool any = false;
    em_status status = em_agree_first(em_allocate_doubles(design->n_column, &coefficient), 0);

    for (int64_t j = 0; !status && self->prior && j < design->n_column; j++) {
        coefficient[j] = self->prior[j].location / self->prior[j].scale;
        if (identity && j < first) {
            origin = self->prior[j].location;
            coefficient[j] = 0;
        }
        any |= coefficient[j] != 0;
    }
    if (!status && any)
        status = em_agree_first(em_design_add_offset(design, coefficient), 0);
    if (!status && identity)
        em_design_shift(design, origin);
    return status;
}

void em_regression_beta(const em_regression *self, const double *theta, double *beta)
{
    const int64_t n = self->design->n_column, first = self->intercept;

    if (!self->prior) {
        memcpy(beta, theta, (size_t)n * sizeof *beta);
        return;
    }
    for (int64_t j = 0; j < n; j++)
        beta[j] = self->prior[j].location + self->prior[j].scale * theta[j];
    for (int64_t j = first; j < n; j++)
        if (self->standardised)
            beta[j] *= self->sd[j];
        else if (first > 0)
            beta[0] -= self->mean[j] * beta[j];
}

/* ---------------------------------------------------------------- densities */

/* The log density of the priors of all unknowns of a chain. Its gradient is added. */
static double prior_of_chain(const em_regression *self, const double *theta, double *gradient)
{
    const int64_t n = self->design->n_column;
    double sum = 0, slope;

    for (int64_t j = 0; j < n; j++)
        if (self->prior) {
            sum += em_prior_law_of(&self->prior[j])->log_density(&self->prior[j], theta[j], &slope);
            gradient[j] += slope;
        } else {
            sum -= theta[j] * theta[j] / (2 * self->prior_variance);
            gradient[j] -= theta[j] / self->prior_variance;
        }
    for (int k = 0; k < self->n_unknown; k++) {
        const em_prior *prior = &self->unknown[k]->prior;
        const double value = exp(theta[n + k]) * em_regression_unit(self, self->unknown[k]);
        sum += em_prior_law_of(prior)->log_density(prior, value, &slope) + theta[n + k];
        gradient[n + k] += slope + 1;
    }
    return sum;
}

em_status em_regression_add_prior(em_model *model, const em_query *query)
{
    for (int64_t c = 0; c < query->n_chain; c++)
        query->log_density[c] +=
            prior_of_chain((const em_regression *)model, query->theta + c * query->stride,
                           query->gradient + c * query->stride);
    return EM_OK;
}

em_status em_regression_draw_prior(em_model *model, const em_draw *draw, double *theta)
{
    const em_regression *self = (const em_regression *)model;
    const int64_t n = self->design->n_column;
    em_variate v = {draw, (uint64_t)n};

    em_draw_normals(draw, 0, n, theta);
    for (int64_t j = 0; j < n; j++)
        if (!self->prior)
            theta[j] *= sqrt(self->prior_variance);
        else if (self->prior[j].kind != EM_PRIOR_NORMAL)
            theta[j] = em_prior_law_of(&self->prior[j])->draw(&self->prior[j], &v);
    for (int k = 0; k < self->n_unknown; k++) {
        const em_prior *prior = &self->unknown[k]->prior;
        theta[n + k] = log(em_prior_law_of(prior)->draw(prior, &v) /
                           em_regression_unit(self, self->unknown[k]));
    }
    return EM_OK;
}
