/* The reports and predictions of regressions from a draw. */
#include "data/shard/shard_assignment.h"
#include "model/regression/regression_prior.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- reports */

static void report_log_likelihood(const em_regression *self, double *out)
{
    double *own = em_shard_clear(&self->design->rows, out);

    for (int64_t i = 0; i < self->design->n_row; i++)
        own[i] = (self->design->weight ? self->design->weight[i] : 1) * self->density[i] +
                 self->constant[i];
}

/* The value that was subtracted from the response. */
static double shift_of(const em_regression *self, int64_t i)
{
    return self->design->origin + (self->design->shift ? self->design->shift[i] : 0);
}

static em_status report_predictive(const em_regression *self, const em_draw *draw,
                                   const double *shape, double *out)
{
    double *own = em_shard_clear(&self->design->rows, out);
    em_status status = EM_OK;

    for (int64_t i = 0; i < self->design->n_row; i++) {
        em_variate v = {draw, (uint64_t)(self->design->rows.first + i) * EM_VARIATES};
        const em_status failed = self->family->draw(&v, self->eta[i], shape, &own[i]);
        own[i] = failed ? NAN : own[i] * self->unit + shift_of(self, i);
        status = failed ? failed : status;
    }
    return status;
}

/* Reports x_j beta_j / sd_j, and adds -mean_j beta_j / sd_j to the intercept. */
static void report_original(const em_regression *self, const double *beta, double *out)
{
    const em_design *design = self->design;
    const double *mean = self->prior ? self->mean : design->centre,
                 *sd = self->prior ? self->sd : design->scale;
    const int64_t shift = self->n_original - design->n_column;

    out[0] = 0;
    for (int64_t j = 0; j < design->n_column; j++) {
        out[j + shift] = beta[j] / sd[j];
        if (j + shift > 0)
            out[0] -= out[j + shift] * mean[j];
    }
}

em_status em_regression_report(em_model *model, const em_draw *draw, const double *theta,
                               double *out)
{
    const em_regression *self = (const em_regression *)model;
    const int64_t n = self->design->n_column, total = self->design->rows.total;
    double shape[EM_GLM_SHAPES];

    em_regression_beta(self, theta, self->beta);
    memcpy(out, self->beta, (size_t)n * sizeof *out);
    for (int k = 0; k < self->n_unknown; k++)
        out[n + k] = exp(theta[n + k]) * em_regression_unit(self, self->unknown[k]);
    out += model->dim;
    if (self->original) {
        report_original(self, self->beta, out);
        out += self->n_original;
    }
    if (!self->eta)
        return EM_OK;
    em_glm_shape(self->glm, theta, shape);
    em_glm_each(self->glm, self->family->link, theta, self->eta, self->density);
    if (self->constant) {
        report_log_likelihood(self, out);
        out += total;
    }
    return self->predicts ? report_predictive(self, draw, shape, out) : EM_OK;
}

em_status em_regression_predict(em_model *model, const em_draw *draw, const double *posterior,
                                double *out)
{
    const em_regression *self = (const em_regression *)model;
    const int64_t n = self->design->n_column;
    double shape[EM_GLM_SHAPES],
        *mean = em_shard_clear(&self->design->rows, out + self->design->rows.total);

    memcpy(self->theta, posterior, (size_t)n * sizeof *posterior);
    for (int64_t k = n; k < model->dim; k++)
        self->theta[k] = log(posterior[k]);
    em_glm_shape(self->glm, self->theta, shape);
    em_glm_predict(self->glm, self->theta, self->eta);
    for (int64_t i = 0; i < self->design->n_row; i++)
        mean[i] = self->family->mean(self->eta[i]) * self->unit + shift_of(self, i);
    return report_predictive(self, draw, shape, out);
}
