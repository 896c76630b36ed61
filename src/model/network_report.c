/*
 * What comes out of a network. Weights have symmetries (units of a layer change places, their signs
 * or scales go together), so that they are never judged by: what is watched is the test score and
 * the function at some inputs.
 */
#include "base/memory.h"
#include "emass/data.h"
#include "emass/random.h"
#include "model/network.h"
#include "model/network_score.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- set up */

static void report(em_network *self, em_variable variable)
{
    self->variable[self->model.n_variable++] = variable;
}

static void report_scalar(em_network *self, const char *name, bool unwatched)
{
    report(self, (em_variable){.name = name, .unwatched = unwatched});
}

/* Each class has a number; a function of one output is one number. */
static em_variable of_class(const em_network *self, const char *name, em_storage storage,
                            const char *axis, int64_t n)
{
    const bool softmax = self->output == EM_OUTPUT_SOFTMAX;

    return (em_variable){.name = name,
                         .storage = storage,
                         .n_axes = softmax ? 2 : 1,
                         .shape = {n, self->n_output},
                         .axis = {axis, "class"}};
}

static em_variable of_layers(const em_network *self, const char *name)
{
    return (em_variable){.name = name,
                         .n_axes = 1,
                         .shape = {self->n_scale},
                         .axis = {"layer"},
                         .label = {self->layer_name}};
}

/* What convergence is judged by comes first. */
static void lay_variables(em_network *self)
{
    const bool softmax = self->output == EM_OUTPUT_SOFTMAX;

    if (self->test)
        report_scalar(self, "test_nll", false);
    else
        report_scalar(self, "train_nll", false);
    if (self->n_probe > 0)
        report(self, of_class(self, "function", EM_STORE_REAL, "probe", self->n_probe));
    if (self->sigma_at >= 0)
        report_scalar(self, "sigma", false);
    if (self->scale_at >= 0)
        report(self, of_layers(self, "prior_variance"));
    if (self->test)
        report_scalar(self, softmax ? "test_accuracy" : "test_rmse", true);
    if (self->test && self->n_scored > 0)
        report_scalar(self, "train_nll", true);
    if (self->n_scored > 0)
        report_scalar(self, softmax ? "train_accuracy" : "train_rmse", true);
    report_scalar(self, "log_prior", true);
    if (self->options->store_weights)
        report(self, (em_variable){.name = "weights",
                                   .storage = EM_STORE_SINGLE,
                                   .unwatched = true,
                                   .n_axes = 1,
                                   .shape = {self->model.dim},
                                   .axis = {"weight"}});
    self->model.variable = self->variable;
}

static void average(em_network *self, em_variable variable)
{
    self->average[self->model.n_average++] = variable;
}

static void pool(em_network *self, em_variable variable)
{
    self->pooled[self->model.n_pooled++] = variable;
}

static em_variable of_test(const em_network *self, const char *name, em_storage storage)
{
    return (em_variable){.name = name,
                         .storage = storage,
                         .n_axes = 1,
                         .shape = {self->test->count},
                         .axis = {"observation"}};
}

static void lay_averages(em_network *self)
{
    static const char *const score[] = {"accuracy", "nll", "brier", "ece"};
    static const char *const score_of_class[] = {"class_accuracy", "class_nll", "class_brier",
                                                 "class_ece"};
    static const char *const moment[EM_N_MOMENT] = {[EM_MEAN] = "mean",
                                                    [EM_SQUARE] = "mean_square",
                                                    [EM_VARIANCE] = "noise_variance",
                                                    [EM_DENSITY] = "density"};

    if (!self->test)
        return;
    if (self->output == EM_OUTPUT_SOFTMAX) {
        const em_variable p =
            of_class(self, "probability", EM_STORE_SINGLE, "observation", self->test->count);
        average(self, p);
        pool(self, p);
        for (int i = 0; i < 4; i++) {
            average(self, (em_variable){.name = score[i]});
            pool(self, (em_variable){.name = score[i]});
        }
        for (int i = 0; i < 4; i++)
            pool(self, (em_variable){.name = score_of_class[i],
                                     .n_axes = 1,
                                     .shape = {self->n_output},
                                     .axis = {"class"}});
    } else {
        for (int i = 0; i < EM_N_MOMENT; i++)
            average(self, of_test(self, moment[i], EM_STORE_REAL));
        pool(self, of_test(self, "mean", EM_STORE_REAL));
        pool(self, of_test(self, "sd", EM_STORE_REAL));
        pool(self, (em_variable){.name = "rmse"});
        pool(self, (em_variable){.name = "nll"});
    }
    self->model.average = self->average;
    self->model.pooled = self->pooled;
}

/* Evenly spaced: 0, ..., total - 1. */
static em_status choose_rows(int64_t total, int64_t wanted, int64_t *n, int64_t **row)
{
    em_status status;

    *n = wanted < total ? wanted : total;
    status = em_allocate(*n, sizeof **row, row);
    for (int64_t i = 0; !status && i < *n; i++)
        (*row)[i] = (int64_t)((double)i * (double)total / (double)*n);
    return status;
}

static em_status prepare_chains(em_network *self)
{
    const int64_t n = self->test->count * self->n_moment;
    em_status status = em_allocate(self->n_chain, sizeof *self->chain, &self->chain);

    for (int64_t c = 0; !status && c < self->n_chain; c++)
        status = em_allocate(n, sizeof(double), &self->chain[c].average);
    return status ? status : em_allocate(self->n_chain * (n + 1), sizeof *self->rows, &self->rows);
}

static void keep_datum(em_network *self, em_variable variable, const double *value)
{
    self->datum[self->model.n_datum++] = (em_datum){"constant_data", variable, value};
    self->model.datum = self->datum;
}

/* What predictions of new data need: of the inputs, and how many outputs there are. */
static em_status keep_fitted(em_network *self)
{
    const em_examples *e = self->train;
    em_status status = em_allocate(e->n_input, sizeof *self->input_name, &self->input_name);

    for (int64_t j = 0; !status && j < e->n_input; j++)
        status = e->images ? em_format_text(&self->input_name[j], "%" PRId64, j)
                           : em_copy_text(e->table->name[e->column[j]], &self->input_name[j]);
    if (status)
        return status;
    em_variable input = {.name = "input_centre",
                         .n_axes = 1,
                         .shape = {e->n_input},
                         .axis = {"input"},
                         .label = {(const char *const *)self->input_name}};
    keep_datum(self, input, self->centre);
    input.name = "input_factor";
    keep_datum(self, input, self->factor);
    self->n_output_kept = (double)self->n_output;
    keep_datum(self, (em_variable){.name = "n_output"}, &self->n_output_kept);
    return EM_OK;
}

static em_status prepare_test(em_network *self)
{
    const int64_t n = self->test->count;
    em_status status = em_allocate(n, sizeof *self->label, &self->label);

    self->n_moment = self->output == EM_OUTPUT_SOFTMAX ? self->n_output : EM_N_MOMENT;
    if (!status)
        status = em_allocate(n * self->n_moment, sizeof *self->predicted, &self->predicted);
    if (!status)
        status = choose_rows(n, self->options->probes, &self->n_probe, &self->probe);
    for (int64_t i = 0; !status && i < n; i++)
        self->label[i] = em_examples_response(self->test, i);
    keep_datum(self, of_test(self, "test_response", EM_STORE_REAL), self->label);
    return status ? status : prepare_chains(self);
}

em_status em_network_prepare_reports(em_network *self)
{
    const int64_t total = self->train->count;
    const int64_t least = self->test ? 0 : 1; /* something has to be watched */
    const int64_t scored = self->options->scored > least ? self->options->scored : least;
    em_status status = choose_rows(total, scored, &self->n_scored, &self->scored);

    if (!status)
        status = keep_fitted(self);
    if (!status && self->test)
        status = prepare_test(self);
    if (!status) {
        lay_variables(self);
        lay_averages(self);
    }
    return status;
}

void em_network_release_reports(em_network *self)
{
    for (int64_t c = 0; self->chain && c < self->n_chain; c++)
        em_release(&self->chain[c].average);
    em_release(&self->chain);
    for (int64_t j = 0; self->input_name && j < self->train->n_input; j++)
        em_release(&self->input_name[j]);
    em_release(&self->input_name);
    em_release(&self->rows);
    em_release(&self->label);
    em_release(&self->predicted);
    em_release(&self->probe);
    em_release(&self->scored);
}

/* ---------------------------------------------------------------- a draw */

typedef struct tally {
    double n, log_density, right, square;
} tally;

static bool is_right(const em_network *self, int64_t i)
{
    const double *p = self->out + i * self->n_output;
    const int64_t truth = (int64_t)self->response[i];

    for (int64_t k = 0; k < self->n_output; k++)
        if (p[k] > p[truth])
            return false;
    return true;
}

/* What is predicted of n observations in self->out, as averages have it. */
static void keep(const em_network *self, int64_t n, double sigma, double *to)
{
    if (self->output == EM_OUTPUT_SOFTMAX) {
        memcpy(to, self->out, (size_t)(n * self->n_output) * sizeof *to);
        return;
    }
    for (int64_t i = 0; i < n; i++, to += EM_N_MOMENT) {
        to[EM_MEAN] = self->out[i];
        to[EM_SQUARE] = self->out[i] * self->out[i];
        to[EM_VARIANCE] = sigma * sigma;
        to[EM_DENSITY] = exp(self->density[i]) / sqrt(2 * M_PI);
    }
}

/* Of n observations, `row` [n] or all; weights as of pass_ops->begin. `predicted` may be NULL. */
static tally score(em_network *self, const em_inputs *inputs, int64_t n, const int64_t *row,
                   double sigma, double *predicted)
{
    const double constant = self->output == EM_OUTPUT_SOFTMAX ? 0 : 0.5 * log(2 * M_PI);
    tally sum = {.n = (double)n};

    for (int64_t first = 0; first < n; first += self->batch) {
        const int64_t count = n - first < self->batch ? n - first : self->batch;
        for (int64_t i = 0; i < count; i++)
            self->row[i] = row ? row[first + i] : first + i;
        em_network_forward(self, inputs, count, self->row);
        em_network_predict(self, count, sigma, self->density);
        if (predicted)
            keep(self, count, sigma, predicted + first * self->n_moment);
        for (int64_t i = 0; i < count; i++) {
            const double miss = self->response[i] - self->out[i * self->n_output];
            sum.log_density += self->density[i] - constant;
            sum.right += self->output == EM_OUTPUT_SOFTMAX && is_right(self, i);
            sum.square += miss * miss;
        }
    }
    return sum;
}

static double nll(const tally *t)
{
    return -t->log_density / t->n;
}

/* The share of right ones, or the root of the mean square error. */
static double quality(const em_network *self, const tally *t)
{
    return self->output == EM_OUTPUT_SOFTMAX ? t->right / t->n : sqrt(t->square / t->n);
}

static double *report_probes(const em_network *self, double *out)
{
    const int64_t width = self->output == EM_OUTPUT_SOFTMAX ? self->n_output : 1;

    for (int64_t i = 0; i < self->n_probe; i++, out += width)
        memcpy(out, self->predicted + self->probe[i] * self->n_moment, (size_t)width * sizeof *out);
    return out;
}

/* In the order of lay_variables. */
em_status em_network_report(em_model *model, const em_draw *draw, const double *theta, double *out)
{
    em_network *self = (em_network *)model;
    const double sigma = em_network_sigma(self, theta);
    tally test = {0}, train = {0};

    (void)draw;
    self->pass_ops->begin(self->pass, 0, self->layers.n_weight, theta);
    if (self->n_scored > 0)
        train = score(self, &self->train_inputs, self->n_scored, self->scored, sigma, NULL);
    if (self->test)
        test = score(self, &self->test_inputs, self->test->count, NULL, sigma, self->predicted);
    *out++ = nll(self->test ? &test : &train);
    out = report_probes(self, out);
    if (self->sigma_at >= 0)
        *out++ = sigma;
    for (int64_t i = 0; i < self->n_scale; i++)
        *out++ = exp(-theta[self->scale_at + i]);
    if (self->test)
        *out++ = quality(self, &test);
    if (self->test && self->n_scored > 0)
        *out++ = nll(&train);
    if (self->n_scored > 0)
        *out++ = quality(self, &train);
    *out++ = em_network_log_prior(self, theta);
    if (self->options->store_weights)
        memcpy(out, theta, (size_t)model->dim * sizeof *out);
    return EM_OK;
}

/* ---------------------------------------------------------------- averages */

/* What the report of the draw has just predicted. */
void em_network_average(em_model *model, const em_draw *draw, const double *theta)
{
    const em_network *self = (const em_network *)model;
    const int64_t n = self->test ? self->test->count * self->n_moment : 0;

    (void)theta;
    if (n == 0)
        return;
    em_network_chain *chain = &self->chain[draw->chain - self->first_chain];
    const double weight = 1 / (double)++chain->n_average;
    for (int64_t i = 0; i < n; i++)
        chain->average[i] += (self->predicted[i] - chain->average[i]) * weight;
}

static double *put_score(em_score score, int64_t stride, double *out)
{
    out[0] = score.accuracy;
    out[stride] = score.nll;
    out[2 * stride] = score.brier;
    out[3 * stride] = score.ece;
    return out + 1;
}

void em_network_report_averages(em_model *model, int64_t number, double *out)
{
    const em_network *self = (const em_network *)model;
    const int64_t n = self->test->count, k = self->n_moment;
    const double *mean = self->chain[number - self->first_chain].average;

    if (self->output == EM_OUTPUT_SOFTMAX) {
        memcpy(out, mean, (size_t)(n * k) * sizeof *out);
        put_score(em_score_all(n, k, mean, self->label), 1, out + n * k);
        return;
    }
    for (int64_t j = 0; j < k; j++)
        for (int64_t i = 0; i < n; i++)
            *out++ = mean[i * k + j];
}

/* Of the mean of the chains' averages, laid out as em_network_report_averages has them. */
void em_network_report_pooled(em_model *model, const double *mean, double *out)
{
    const em_network *self = (const em_network *)model;
    const int64_t n = self->test->count, k = self->n_output;
    double square = 0, log_density = 0;

    if (self->output == EM_OUTPUT_SOFTMAX) {
        memcpy(out, mean, (size_t)(n * k) * sizeof *out);
        put_score(em_score_all(n, k, mean, self->label), 1, out + n * k);
        out += n * k + 4;
        for (int64_t j = 0; j < k; j++)
            put_score(em_score_class(n, k, mean, self->label, j), k, out + j);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const double f = mean[EM_MEAN * n + i], miss = self->label[i] - f;
        out[i] = f;
        out[n + i] = sqrt(fmax(mean[EM_SQUARE * n + i] - f * f, 0) + mean[EM_VARIANCE * n + i]);
        square += miss * miss;
        log_density += log(mean[EM_DENSITY * n + i]);
    }
    out[2 * n] = sqrt(square / (double)n);
    out[2 * n + 1] = -log_density / (double)n;
}

/* ---------------------------------------------------------------- checkpoints */

em_status em_network_visit(em_model *model, const em_visitor *visitor)
{
    em_network *self = (em_network *)model;
    const int64_t n = self->test ? self->test->count * self->n_moment : 0;
    em_status status;

    if (n == 0)
        return EM_OK;
    for (int64_t c = 0; c < self->n_chain; c++) {
        double *row = self->rows + c * (n + 1);
        row[0] = (double)self->chain[c].n_average;
        memcpy(row + 1, self->chain[c].average, (size_t)n * sizeof *row);
    }
    status = visitor->chains(visitor->context, "predictions", n + 1, self->rows);
    for (int64_t c = 0; !status && visitor->restores && c < self->n_chain; c++) {
        const double *row = self->rows + c * (n + 1);
        self->chain[c].n_average = (int64_t)row[0];
        memcpy(self->chain[c].average, row + 1, (size_t)n * sizeof *row);
    }
    return status;
}

/* ---------------------------------------------------------------- new data */

/* What is wanted of a draw, and what is made of it: probabilities of the classes, or the mean and a
 * response drawn. */
void em_network_prepare_predictions(em_network *self)
{
    const bool softmax = self->output == EM_OUTPUT_SOFTMAX;
    const int64_t total = self->train->count;
    em_variable made = of_class(self, softmax ? "probability" : "mu",
                                softmax ? EM_STORE_SINGLE : EM_STORE_REAL, "observation", total);

    report(self,
           (em_variable){
               .name = "weights", .n_axes = 1, .shape = {self->model.dim}, .axis = {"weight"}});
    made.group = EM_PREDICTIONS;
    made.dealt = true;
    report(self, made);
    made.name = "y";
    if (!softmax)
        report(self, made);
    self->model.variable = self->variable;
}

em_status em_network_predict_new(em_model *model, const em_draw *draw, const double *posterior,
                                 double *out)
{
    em_network *self = (em_network *)model;
    const em_share *own = &model->rows;
    const int64_t width = self->n_output, n_all = own->total * width;
    const int64_t n_written = self->output == EM_OUTPUT_SOFTMAX ? n_all : 2 * n_all;
    const double sigma = em_network_sigma(self, posterior);

    for (int64_t i = 0; i < n_written; i++)
        out[i] = -0.0;
    self->pass_ops->begin(self->pass, 0, self->layers.n_weight, posterior);
    for (int64_t first = own->first; first < own->first + own->count; first += self->batch) {
        const int64_t left = own->first + own->count - first;
        const int64_t n = left < self->batch ? left : self->batch;
        for (int64_t i = 0; i < n; i++)
            self->row[i] = first + i;
        em_network_forward(self, &self->train_inputs, n, self->row);
        em_network_predict(self, n, sigma, self->density);
        memcpy(out + first * width, self->out, (size_t)(n * width) * sizeof *out);
        if (self->output == EM_OUTPUT_SOFTMAX)
            continue;
        em_draw_normals(draw, (uint64_t)first, n, out + n_all + first);
        for (int64_t i = 0; i < n; i++)
            out[n_all + first + i] = self->out[i] + sigma * out[n_all + first + i];
    }
    return EM_OK;
}
