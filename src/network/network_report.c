/* The reports of a network. Weights have symmetries: units of a layer can be exchanged, and their
 * signs or scales changed together. So convergence is never judged by weights, but by the test
 * score and the function at some inputs. */
#include "base/memory.h"
#include "emass/data.h"
#include "emass/random.h"
#include "network/network.h"
#include "network/network_score.h"

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

/* A variable with n rows. Each row has a number for each class or, for a function with one output,
 * one number. */
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

/* The monitored variables come first. */
static void lay_variables(em_network *self)
{
    const bool softmax = self->output == EM_OUTPUT_SOFTMAX;

    if (self->test)
        report_scalar(self, "test_nll", false);
    else
        report_scalar(self, "train_nll", false);
    if (self->probe.total > 0)
        report(self, of_class(self, "function", EM_STORE_REAL, "probe", self->probe.total));
    if (self->sigma_at >= 0)
        report_scalar(self, "sigma", false);
    if (self->scale_at >= 0)
        report(self, of_layers(self, "prior_variance"));
    if (self->test)
        report_scalar(self, softmax ? "test_accuracy" : "test_rmse", true);
    if (self->test && self->scored.total > 0)
        report_scalar(self, "train_nll", true);
    if (self->scored.total > 0)
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

static em_variable of_test(const em_network *self, const char *name)
{
    return (em_variable){
        .name = name, .n_axes = 1, .shape = {self->test->rows.total}, .axis = {"observation"}};
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
            of_class(self, "probability", EM_STORE_SINGLE, "observation", self->test->rows.total);
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
            average(self, of_test(self, moment[i]));
        pool(self, of_test(self, "mean"));
        pool(self, of_test(self, "sd"));
        pool(self, (em_variable){.name = "rmse"});
        pool(self, (em_variable){.name = "nll"});
    }
    self->model.average = self->average;
    self->model.pooled = self->pooled;
}

/* Chooses `wanted` observations at most, evenly spaced from the first one on. */
static em_status choose_rows(em_owner *owner, const em_share *own, int64_t wanted,
                             em_network_choice *out)
{
    out->total = wanted < own->total ? wanted : own->total;
    em_status status = em_own_all(owner, EM_ARRAY(out->row, em_least(out->total, own->count)));
    for (int64_t i = 0; !status && i < out->total; i++) {
        const double row = (double)i * (double)own->total / (double)out->total;
        const int64_t here = (int64_t)row - own->first;
        if (here >= own->count)
            break;
        if (here >= 0)
            out->row[out->count++] = here;
        else
            out->first = i + 1;
    }
    return status;
}

static void keep_datum(em_network *self, em_variable variable, const double *value)
{
    self->datum[self->model.n_datum++] = (em_datum){"constant_data", variable, value};
    self->model.datum = self->datum;
}

/* Stores what predictions of new data need: the treatment of inputs, and the number of outputs. */
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

/* Prepares the reports of the test data. The responses of all shards are gathered, because the file
 * stores them. */
static em_status prepare_test(em_network *self)
{
    const em_share *own = &self->test->rows;
    em_status status = em_own_all(&self->memory, EM_ARRAY(self->label, own->total));

    self->n_moment = self->output == EM_OUTPUT_SOFTMAX ? self->n_output : EM_N_MOMENT;
    const int64_t n = own->count * self->n_moment;
    if (!status)
        status = em_own_all(&self->memory, EM_ARRAY(self->predicted, n),
                            EM_ARRAY(self->n_average, self->n_chain),
                            EM_ARRAY(self->mean, self->n_chain * n));
    status = status ? status : choose_rows(&self->memory, own, self->options->probes, &self->probe);
    for (int64_t i = 0; !status && i < own->count; i++)
        self->label[own->first + i] = em_examples_response(self->test, i);
    keep_datum(self, of_test(self, "test_response"), self->label);
    return em_network_gather(self, status, own->total, self->label);
}

/* How many numbers are reported of each probe, which is an input at which the function is
 * monitored. */
static int64_t probe_width(const em_network *self)
{
    return self->output == EM_OUTPUT_SOFTMAX ? self->n_output : 1;
}

/* The sums over the observations of one part that make up the score. */
enum { LOG_DENSITY, RIGHT, SQUARE, N_SCORE };

static int64_t n_score_of(const em_examples *e)
{
    return e ? em_network_n_part(&e->rows) * N_SCORE : 0;
}

em_status em_network_prepare_reports(em_network *self)
{
    const int64_t least = self->test ? 0 : 1; /* something has to be watched */
    const int64_t scored = self->options->scored > least ? self->options->scored : least;
    em_status status = choose_rows(&self->memory, &self->train->rows, scored, &self->scored);

    status = status ? status : keep_fitted(self);
    status = em_network_gather(self, status, 0, NULL);
    if (!status && self->test)
        status = prepare_test(self);
    self->n_told =
        n_score_of(self->test) + n_score_of(self->train) + self->probe.total * probe_width(self);
    status = status ? status : em_own_all(&self->memory, EM_ARRAY(self->told, self->n_told));
    if (!status) {
        lay_variables(self);
        lay_averages(self);
    }
    return status;
}

/* ---------------------------------------------------------------- a draw */

static bool is_right(const em_network *self, int64_t i)
{
    const double *p = self->out + i * self->n_output;
    const int64_t truth = (int64_t)self->response[i];

    for (int64_t k = 0; k < self->n_output; k++)
        if (p[k] > p[truth])
            return false;
    return true;
}

/* Computes the predictions of n observations from self->out, in the form in which they are
 * averaged. */
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

/* Adds the scores of n observations to the sums of a part. The observations are row [n] or, if that
 * is NULL, those from `first` on. The weights are those of pass_ops->publish. `predicted` may be
 * NULL. */
static void score(em_network *self, const em_inputs *inputs, int64_t n, int64_t first,
                  const int64_t *row, double sigma, double *predicted, double *sum)
{
    const double constant = self->output == EM_OUTPUT_SOFTMAX ? 0 : 0.5 * log(2 * M_PI);

    for (int64_t done = 0; done < n; done += self->batch) {
        const int64_t count = n - done < self->batch ? n - done : self->batch;
        for (int64_t i = 0; i < count; i++)
            self->row[i] = row ? row[done + i] : first + done + i;
        em_network_forward(self, inputs, count, self->row);
        em_network_predict(self, count, sigma, self->density);
        if (predicted)
            keep(self, count, sigma, predicted + (first + done) * self->n_moment);
        for (int64_t i = 0; i < count; i++) {
            const double miss = self->response[i] - self->out[i * self->n_output];
            sum[LOG_DENSITY] += self->density[i] - constant;
            sum[RIGHT] += self->output == EM_OUTPUT_SOFTMAX && is_right(self, i);
            sum[SQUARE] += miss * miss;
        }
    }
}

/* Computes the scores of every part of this shard, over all its observations or over the chosen
 * ones, and stores them among the scores of all parts. */
static void score_parts(em_network *self, const em_inputs *inputs, const em_network_choice *chosen,
                        double sigma, double *predicted, double *scores)
{
    const em_share *own = &inputs->examples->rows;
    int64_t k = 0;

    for (int64_t first = 0; first < own->count; first += own->part) {
        const int64_t left = own->count - first, n = left < own->part ? left : own->part, from = k;
        double *sum = scores + (own->first + first) / own->part * N_SCORE;
        while (chosen && k < chosen->count && chosen->row[k] < first + n)
            k++;
        score(self, inputs, chosen ? k - from : n, first, chosen ? chosen->row + from : NULL, sigma,
              predicted, sum);
    }
}

static void sum_parts(const em_examples *e, const double *scores, double *sum)
{
    memset(sum, 0, N_SCORE * sizeof *sum);
    for (int64_t p = 0; e && p < em_network_n_part(&e->rows); p++)
        for (int k = 0; k < N_SCORE; k++)
            sum[k] += scores[p * N_SCORE + k];
}

static double nll(const double *score, int64_t n)
{
    return -score[LOG_DENSITY] / (double)n;
}

/* The share of observations with the right class, or the root mean square error. */
static double quality(const em_network *self, const double *score, int64_t n)
{
    return self->output == EM_OUTPUT_SOFTMAX ? score[RIGHT] / (double)n
                                             : sqrt(score[SQUARE] / (double)n);
}

static void report_probes(const em_network *self, double *out)
{
    const int64_t width = probe_width(self);

    for (int64_t i = 0; i < self->probe.count; i++)
        memcpy(out + (self->probe.first + i) * width,
               self->predicted + self->probe.row[i] * self->n_moment, (size_t)width * sizeof *out);
}

/* Computes the scores and probes of all shards in self->told. Collective over the ranks of a group.
 */
static em_status tell(em_network *self, double sigma, const double *theta)
{
    double *of_train = self->told + n_score_of(self->test);

    memset(self->told, 0, (size_t)self->n_told * sizeof *self->told);
    self->pass_ops->publish(self->pass, 0, self->layers.n_weight, theta);
    if (self->scored.total > 0)
        score_parts(self, &self->train_inputs, &self->scored, sigma, NULL, of_train);
    if (self->test) {
        score_parts(self, &self->test_inputs, NULL, sigma, self->predicted, self->told);
        report_probes(self, of_train + n_score_of(self->train));
    }
    return em_network_gather(self, EM_OK, self->n_told, self->told);
}

/* Reports a draw, in the order of lay_variables. */
em_status em_network_report(em_model *model, const em_draw *draw, const double *theta, double *out)
{
    em_network *self = (em_network *)model;
    const double sigma = em_network_sigma(self, theta);
    const double *of_train = self->told + n_score_of(self->test);
    const int64_t n_test = self->test ? self->test->rows.total : 0, n_train = self->scored.total;
    const int64_t shown = self->probe.total * probe_width(self);
    double test[N_SCORE], train[N_SCORE];
    const em_status status = tell(self, sigma, theta);

    (void)draw;
    if (status)
        return status;
    sum_parts(self->test, self->told, test);
    sum_parts(self->train, of_train, train);
    *out++ = self->test ? nll(test, n_test) : nll(train, n_train);
    memcpy(out, of_train + n_score_of(self->train), (size_t)shown * sizeof *out);
    out += shown;
    if (self->sigma_at >= 0)
        *out++ = sigma;
    for (int64_t i = 0; i < self->n_scale; i++)
        *out++ = exp(-theta[self->scale_at + i]);
    if (self->test)
        *out++ = quality(self, test, n_test);
    if (self->test && n_train > 0)
        *out++ = nll(train, n_train);
    if (n_train > 0)
        *out++ = quality(self, train, n_train);
    *out++ = em_network_log_prior(self, theta, NULL);
    if (self->options->store_weights)
        memcpy(out, theta, (size_t)model->dim * sizeof *out);
    return EM_OK;
}

/* ---------------------------------------------------------------- averages */

/* The averages of a chain over its draws, for the test observations of this shard. */
static double *mean_of(const em_network *self, int64_t chain)
{
    return self->mean + (chain - self->first_chain) * self->test->rows.count * self->n_moment;
}

/* Adds the predictions of the draw that was just reported to the averages. */
void em_network_average(em_model *model, const em_draw *draw, const double *theta)
{
    const em_network *self = (const em_network *)model;

    (void)theta;
    if (!self->test)
        return;
    const int64_t n = self->test->rows.count * self->n_moment;
    const double weight = 1 / ++self->n_average[draw->chain - self->first_chain];
    double *mean = mean_of(self, draw->chain);
    for (int64_t i = 0; i < n; i++)
        mean[i] += (self->predicted[i] - mean[i]) * weight;
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
    const em_share *own = &self->test->rows;
    const int64_t n = own->total, k = self->n_moment;
    const double *mean = mean_of(self, number);

    memset(out, 0, (size_t)(n * k) * sizeof *out);
    if (self->output == EM_OUTPUT_SOFTMAX)
        memcpy(out + own->first * k, mean, (size_t)(own->count * k) * sizeof *out);
    for (int64_t j = 0; self->output == EM_OUTPUT_NORMAL && j < k; j++)
        for (int64_t i = 0; i < own->count; i++)
            out[j * n + own->first + i] = mean[i * k + j];
    (void)em_network_gather(self, EM_OK, n * k, out); /* none fails */
    if (self->output == EM_OUTPUT_SOFTMAX)
        put_score(em_score_of(n, k, out, self->label, EM_ALL_CLASSES), 1, out + n * k);
}

/* Computes the scores of the mean over chains of their averages, which has the layout of
 * em_network_report_averages. */
void em_network_report_pooled(em_model *model, const double *mean, double *out)
{
    const em_network *self = (const em_network *)model;
    const int64_t n = self->test->rows.total, k = self->n_output;
    double square = 0, log_density = 0;

    if (self->output == EM_OUTPUT_SOFTMAX) {
        memcpy(out, mean, (size_t)(n * k) * sizeof *out);
        put_score(em_score_of(n, k, mean, self->label, EM_ALL_CLASSES), 1, out + n * k);
        out += n * k + 4;
        for (int64_t j = 0; j < k; j++)
            put_score(em_score_of(n, k, mean, self->label, j), k, out + j);
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
    const int64_t k = self->n_moment;

    if (!self->test)
        return EM_OK;
    const em_share *own = &self->test->rows;
    em_status status = visitor->chains(visitor->context, "averaged", 1, self->n_average);
    return status ? status
                  : visitor->sharded(visitor->context, "predictions", EM_NUMBER_DOUBLE,
                                     own->total * k, own->first * k, own->count * k, self->mean);
}

/* ---------------------------------------------------------------- new data */

/* Declares what is needed of a draw and what is predicted from it: probabilities of the classes, or
 * the mean and a drawn response. */
void em_network_prepare_predictions(em_network *self)
{
    const bool softmax = self->output == EM_OUTPUT_SOFTMAX;
    const int64_t total = self->train->rows.total;
    em_variable made = of_class(self, softmax ? "probability" : "mu",
                                softmax ? EM_STORE_SINGLE : EM_STORE_REAL, "observation", total);

    report(self,
           (em_variable){
               .name = "weights", .n_axes = 1, .shape = {self->model.dim}, .axis = {"weight"}});
    made.group = EM_PREDICTIONS;
    made.sharded = true;
    report(self, made);
    made.name = "y";
    if (!softmax)
        report(self, made);
    self->model.variable = self->variable;
}

/* Predicts `count` observations of this shard from `first` on. Results go to their places among all
 * observations. */
static void predict_part(em_network *self, const em_draw *draw, double sigma, int64_t first,
                         int64_t count, double *out)
{
    const em_share *own = &self->model.rows;
    const int64_t width = self->n_output;

    for (int64_t done = 0; done < count; done += self->batch) {
        const int64_t n = count - done < self->batch ? count - done : self->batch;
        const int64_t at = own->first + first + done;
        double *response = out + own->total * width + at;
        for (int64_t i = 0; i < n; i++)
            self->row[i] = first + done + i;
        em_network_forward(self, &self->train_inputs, n, self->row);
        em_network_predict(self, n, sigma, self->density);
        memcpy(out + at * width, self->out, (size_t)(n * width) * sizeof *out);
        if (self->output == EM_OUTPUT_SOFTMAX)
            continue;
        em_draw_normals(draw, (uint64_t)at, n, response);
        for (int64_t i = 0; i < n; i++)
            response[i] = self->out[i] + sigma * response[i];
    }
}

em_status em_network_predict_new(em_model *model, const em_draw *draw, const double *posterior,
                                 double *out)
{
    em_network *self = (em_network *)model;
    const em_share *own = &model->rows;
    const int64_t n_written = own->total * (self->output == EM_OUTPUT_SOFTMAX ? self->n_output : 2);

    for (int64_t i = 0; i < n_written; i++)
        out[i] = -0.0;
    self->pass_ops->publish(self->pass, 0, self->layers.n_weight, posterior);
    for (int64_t first = 0; first < own->count; first += own->part) {
        const int64_t left = own->count - first;
        predict_part(self, draw, em_network_sigma(self, posterior), first,
                     left < own->part ? left : own->part, out);
    }
    return EM_OK;
}
