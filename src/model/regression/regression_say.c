/* The priors of a regression, in words and numbers. */
#include "model/regression/regression_prior.h"

#include "base/memory.h"

#include <math.h>
#include <stdio.h>

enum { MOST_LINES = 20 }; /* of coefficients, one each */

static em_status add_line(em_regression *self, double count, char *text)
{
    em_status status = EM_EMEMORY;

    if (text)
        status = em_reallocate(self->n_line + 1, sizeof *self->prior_line, &self->prior_line);
    if (!status)
        status = em_reallocate(self->n_line + 1, sizeof *self->prior_count, &self->prior_count);
    if (status) {
        em_release(&text);
        return status;
    }
    self->prior_line[self->n_line] = text;
    self->prior_count[self->n_line++] = count;
    return EM_OK;
}

/* Writes a prior, as NAME[ of what] ~ normal(0, 2.5). */
static em_status say(em_regression *self, const char *name, const char *of, const em_prior *prior)
{
    char text[EM_PRIOR_BYTES], *line = NULL;

    em_prior_print(prior, text);
    em_status status = em_format_text(&line, "%s%s ~ %s", name, of, text);
    return status ? status : add_line(self, 1, line);
}

static em_status say_rest(em_regression *self, int64_t first)
{
    const int64_t n = self->design->n_column - first;
    double least = INFINITY, most = 0;
    char *line = NULL;

    for (int64_t j = first; j < self->design->n_column; j++) {
        least = fmin(least, self->prior[j].scale);
        most = fmax(most, self->prior[j].scale);
    }
    em_status status =
        em_format_text(&line, "and %lld more coefficients, with priors of scales from %.4g to %.4g",
                       (long long)n, least, most);
    return status ? status : add_line(self, (double)n, line);
}

static em_status say_coefficients(em_regression *self)
{
    const int64_t n = self->design->n_column, first = self->intercept;
    em_status status = EM_OK;

    if (first > 0)
        status = say(self, self->design->name[0],
                     n > 1 ? " (where predictors are at their means)" : "", &self->prior[0]);
    for (int64_t j = first; !status && j < n && j < first + MOST_LINES; j++)
        status = say(self, self->design->name[j], "", &self->prior[j]);
    return status || n <= first + MOST_LINES ? status : say_rest(self, first + MOST_LINES);
}

static em_status say_variance(em_regression *self)
{
    const int64_t n = self->design->n_column;
    char *line = NULL;
    em_status status = em_format_text(&line, "each of %lld coefficients%s%s ~ normal(0, %.4g)",
                                      (long long)n, self->intercept ? ", the intercept too," : "",
                                      self->standardised ? " of standardised columns" : "",
                                      sqrt(self->prior_variance));

    return status ? status : add_line(self, (double)n, line);
}

/* The numbers that the file stores for each coefficient, in units of the reported beta. */
static em_status find_arrays(em_regression *self)
{
    const int64_t n = self->design->n_column;
    em_status status = em_own_all(&self->memory, EM_ARRAY(self->prior_location, n),
                                  EM_ARRAY(self->prior_sd, n), EM_ARRAY(self->prior_df, n));

    for (int64_t j = 0; !status && j < n; j++) {
        const em_prior *prior = self->prior ? &self->prior[j] : NULL;
        const double unit = prior && self->standardised ? self->sd[j] : 1;
        self->prior_location[j] = prior ? unit * prior->location : 0;
        self->prior_sd[j] = prior ? unit * prior->scale : sqrt(self->prior_variance);
        self->prior_df[j] = prior ? em_prior_degrees_of_freedom(prior) : INFINITY;
    }
    return status;
}

em_status em_regression_say_priors(em_regression *self)
{
    em_status status = self->prior ? say_coefficients(self) : say_variance(self);

    for (int k = 0; !status && k < self->n_unknown; k++)
        status = say(self, self->unknown[k]->name, "", &self->unknown[k]->prior);
    if (self->identity && self->n_shape == 1 && self->n_unknown == 0 && !self->design->weight) {
        self->known_sigma[0] = self->unit;
        self->known_sigma[1] = (double)self->design->rows.total;
    }
    return status ? status : find_arrays(self);
}

void em_regression_describe(const em_model *model, FILE *out)
{
    const em_regression *self = (const em_regression *)model;

    for (int64_t i = 0; i < self->n_line; i++)
        fprintf(out, "# prior      %s\n", self->prior_line[i]);
}

em_variable em_per_coefficient(const em_regression *self, const char *name)
{
    return (em_variable){.name = name,
                         .n_axes = 1,
                         .shape = {self->design->n_column},
                         .axis = {"coefficient"},
                         .label = {(const char *const *)self->design->name}};
}

static em_datum datum_of(const em_regression *self, const char *name, const double *value)
{
    return (em_datum){"constant_data", em_per_coefficient(self, name), value};
}

int em_regression_prior_data(em_regression *self, em_datum datum[EM_PRIOR_ARRAYS])
{
    int n = 0;

    datum[n++] = (em_datum){"constant_data",
                            {.name = "prior_count",
                             .storage = EM_STORE_INT,
                             .n_axes = 1,
                             .shape = {self->n_line},
                             .axis = {"prior"},
                             .label = {(const char *const *)self->prior_line}},
                            self->prior_count};
    datum[n++] = datum_of(self, "prior_location", self->prior_location);
    datum[n++] = datum_of(self, "prior_scale", self->prior_sd);
    datum[n++] = datum_of(self, "prior_df", self->prior_df);
    if (self->prior && self->intercept && !self->standardised)
        datum[n++] = datum_of(self, "predictor_mean", self->mean);
    if (self->known_sigma[1] > 0)
        datum[n++] = (em_datum){
            "constant_data", {.name = "known_sigma", .n_axes = 1, .shape = {2}}, self->known_sigma};
    return n;
}
