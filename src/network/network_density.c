/*
 * The posterior of a network (EQUATIONS 25): with f(x; theta) what comes out of it,
 *     log p = sum_i log p(y_i | f(x_i)) / T - sum_l precision_l |theta_l|^2 / 2,
 * T the temperature, 1 unless it is given, and p(y | f) = softmax(f)_y, or N(f, sigma^2), whose
 * derivatives by f are [k = y] - softmax(f)_k and (y - f) / sigma^2. The precisions are known, or
 * t_l = log precision_l has a prior: with precision ~ Gamma(a, rate b), log p(theta_l, t_l) =
 * n_l t_l / 2 - e^t_l |theta_l|^2 / 2 + a t_l - b e^t_l.
 */
#include "base/clones.h"
#include "base/memory.h"
#include "emass/random.h"
#include "math/rng.h"
#include "math/simd/vector.h"
#include "model/regression/prior_law.h"
#include "network/network.h"

#include <math.h>
#include <string.h>

typedef double lanes __attribute__((vector_size(4 * sizeof(double)), aligned(8), may_alias));

/* ---------------------------------------------------------------- the prior */

/* A sum of squares that does not depend on the chunks. Chunks except the last have whole rows of
 * vectors. The vectors of a row are summed separately, so that no addition waits for another. */
enum { ROW = 8 };
typedef struct squares {
    lanes sum[ROW];
    double rest;
} squares;

EM_CLONES static void add_squares(int64_t n, const double *x, squares *to)
{
    lanes sum[ROW];
    int64_t i = 0;

    memcpy(sum, to->sum, sizeof sum);
    for (; i + 4 * ROW <= n; i += 4 * ROW)
        _Pragma("GCC unroll 8") for (int k = 0; k < ROW; k++)
        {
            const lanes at = *((const lanes *)(x + i) + k);
            sum[k] += at * at;
        }
    memcpy(to->sum, sum, sizeof sum);
    for (; i < n; i++)
        to->rest += x[i] * x[i];
}

static double sum_of(const squares *s)
{
    lanes sum = s->sum[0];

    for (int k = 1; k < ROW; k++)
        sum += s->sum[k];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + s->rest;
}

static double square_of(int64_t n, const double *x)
{
    squares s = {.rest = 0};

    add_squares(n, x, &s);
    return sum_of(&s);
}

/* gradient -= precision x */
EM_CLONES static void pull(int64_t n, double precision, const double *restrict x,
                           double *restrict gradient)
{
    for (int64_t i = 0; i < n; i++)
        gradient[i] -= precision * x[i];
}

static double precision_of(const em_network *self, int i, const double *theta)
{
    return self->scale_at < 0 ? self->precision : exp(theta[self->scale_at + i]);
}

/* The log density of the prior of a layer's weights, given |theta_l|^2. If the precision is a
 * parameter, it also has the prior of the log precision, whose gradient alone is added here. */
static double add_layer(const em_network *self, int i, double square, const double *theta,
                        double *gradient)
{
    const em_layer *layer = &self->layers.layer[self->weighted[i]];
    const double precision = precision_of(self, i, theta);
    const double shape = 0.5 * (double)layer->n_weight + self->gamma[0];

    if (self->scale_at < 0)
        return -0.5 * precision * square;
    if (gradient)
        gradient[self->scale_at + i] += shape - precision * (0.5 * square + self->gamma[1]);
    return shape * theta[self->scale_at + i] - precision * (0.5 * square + self->gamma[1]);
}

/* A half Student-t distribution with 3 degrees of freedom. */
static em_prior prior_of_sigma(const em_network *self)
{
    return (em_prior){EM_PRIOR_HALF_STUDENT_T, 3, 0, self->options->sigma_scale};
}

/* Adds the prior of sigma if sigma is a parameter. */
static double add_sigma(const em_network *self, const double *theta, double *gradient)
{
    double slope;

    if (self->sigma_at < 0)
        return 0;
    const double t = theta[self->sigma_at];
    const em_prior prior = prior_of_sigma(self);
    const double density = em_prior_law_of(&prior)->log_density(&prior, exp(t), &slope) + t;
    if (gradient)
        gradient[self->sigma_at] += slope + 1;
    return density;
}

em_status em_network_draw_prior(em_model *model, const em_draw *draw, double *theta)
{
    const em_network *self = (const em_network *)model;
    const em_prior sigma = prior_of_sigma(self);
    em_variate v = {draw, (uint64_t)self->layers.n_weight};

    em_draw_normals(draw, 0, self->layers.n_weight, theta);
    for (int i = 0; i < self->n_weighted; i++) {
        const em_layer *layer = &self->layers.layer[self->weighted[i]];
        const double precision = self->scale_at < 0
                                     ? self->precision
                                     : em_variate_gamma(&v, self->gamma[0]) / self->gamma[1];
        for (int64_t k = 0; k < layer->n_weight; k++)
            theta[layer->first + k] /= sqrt(precision);
        if (self->scale_at >= 0)
            theta[self->scale_at + i] = log(precision);
    }
    if (self->sigma_at >= 0)
        theta[self->sigma_at] = log(em_prior_law_of(&sigma)->draw(&sigma, &v));
    return EM_OK;
}

double em_network_log_prior(const em_network *self, const double *theta, double *gradient)
{
    double sum = 0;

    for (int i = 0; i < self->n_weighted; i++) {
        const em_layer *layer = &self->layers.layer[self->weighted[i]];
        const double square = square_of(layer->n_weight, theta + layer->first);
        sum += add_layer(self, i, square, theta, gradient);
        if (gradient)
            pull(layer->n_weight, precision_of(self, i, theta), theta + layer->first,
                 gradient + layer->first);
    }
    return sum + add_sigma(self, theta, gradient);
}

em_status em_network_add_prior(em_model *model, const em_query *query)
{
    for (int64_t c = 0; c < query->n_chain; c++)
        query->log_density[c] +=
            em_network_log_prior((const em_network *)model, query->theta + c * query->stride,
                                 query->gradient + c * query->stride);
    return EM_OK;
}

/* ---------------------------------------------------------------- the likelihood */

double em_network_sigma(const em_network *self, const double *theta)
{
    return self->sigma_at < 0 ? self->sigma : exp(theta[self->sigma_at]);
}

/* Replaces out [n][n_class] by exp(out - the largest of the row). The sums of the rows become their
 * scales. */
static void softmax(em_network *self, int64_t n, double *density)
{
    const int64_t k = self->n_output;
    double *out = self->out;

    for (int64_t i = 0; i < n; i++, out += k) {
        double largest = out[0];
        for (int64_t j = 1; j < k; j++)
            largest = out[j] > largest ? out[j] : largest;
        for (int64_t j = 0; j < k; j++)
            out[j] -= largest;
        if (density)
            density[i] = out[(int64_t)self->response[i]];
    }
    for (int64_t i = n * k; i < em_stride(n * k); i++)
        self->out[i] = 0;
    em_exp(em_stride(n * k), self->out, self->out);
    out = self->out;
    for (int64_t i = 0; i < n; i++, out += k) {
        double sum = 0;
        for (int64_t j = 0; j < k; j++)
            sum += out[j];
        for (int64_t j = 0; j < k; j++)
            out[j] /= sum;
        if (density)
            density[i] -= log(sum);
    }
}

void em_network_predict(em_network *self, int64_t n, double sigma, double *density)
{
    if (self->output == EM_OUTPUT_SOFTMAX) {
        softmax(self, n, density);
        return;
    }
    for (int64_t i = 0; density && i < n; i++) {
        const double z = (self->response[i] - self->out[i]) / sigma;
        density[i] = -0.5 * z * z - log(sigma);
    }
}

/* Replaces self->out by the derivative with respect to the outputs of `power` times the log
 * densities. Returns the derivative of their sum with respect to log sigma. */
static double take_derivatives(em_network *self, int64_t n, double sigma, double power)
{
    double by_log_sigma = 0;

    for (int64_t i = 0; i < n && self->output == EM_OUTPUT_SOFTMAX; i++) {
        double *out = self->out + i * self->n_output;
        for (int64_t j = 0; j < self->n_output; j++)
            out[j] = -power * out[j];
        out[(int64_t)self->response[i]] += power;
    }
    for (int64_t i = 0; i < n && self->output == EM_OUTPUT_NORMAL; i++) {
        const double z = (self->response[i] - self->out[i]) / sigma;
        self->out[i] = power * z / sigma;
        by_log_sigma += z * z - 1;
    }
    return power * by_log_sigma;
}

void em_network_forward(em_network *self, const em_inputs *inputs, int64_t n, const int64_t *row)
{
    self->pass_ops->forward(self->pass, inputs, n, row, self->out);
    for (int64_t i = 0; i < n; i++)
        self->response[i] = em_examples_response(inputs->examples, row[i]);
}

/* The number of observations to process at a time: as many as fit, in few steps of equal size. */
static int64_t steps_of(const em_network *self, int64_t count)
{
    const int64_t n_step = (count + self->batch - 1) / self->batch;

    return n_step > 0 ? (count + n_step - 1) / n_step : 1;
}

/* Computes for the rows, with the weights in the pass, the log likelihood to its power and its
 * derivatives. Derivatives by weights stay in the pass. */
static double pass_rows(em_network *self, const em_query *one, double *by_log_sigma)
{
    const int64_t count = one->rows.count, most = steps_of(self, count);
    const double sigma = em_network_sigma(self, one->theta), power = 1 / self->options->temperature;
    double *density = one->wanted == EM_WANT_GRADIENT ? NULL : self->density, sum = 0;

    *by_log_sigma = 0;
    for (int64_t first = 0; first < count; first += most) {
        const int64_t n = count - first < most ? count - first : most;
        for (int64_t i = 0; i < n; i++)
            self->row[i] = em_row(&one->rows, first + i);
        em_network_forward(self, &self->train_inputs, n, self->row);
        em_network_predict(self, n, sigma, density);
        for (int64_t i = 0; density && i < n; i++)
            sum += density[i];
        if (one->wanted == EM_WANT_LOG_DENSITY)
            continue;
        *by_log_sigma += take_derivatives(self, n, sigma, power);
        self->pass_ops->backward(self->pass, n, self->out);
    }
    return power * sum;
}

em_status em_network_add_likelihood(em_model *model, const em_query *query)
{
    em_network *self = (em_network *)model;

    for (int64_t c = 0; c < query->n_chain; c++) {
        const em_query one = em_query_panel(query, c, 1);
        double by_log_sigma;
        self->pass_ops->publish(self->pass, 0, self->layers.n_weight, one.theta);
        self->pass_ops->begin(self->pass);
        *one.log_density += pass_rows(self, &one, &by_log_sigma);
        if (self->sigma_at >= 0)
            one.gradient[self->sigma_at] += by_log_sigma;
        self->pass_ops->end(self->pass, one.gradient);
    }
    return EM_OK;
}

void em_network_publish(em_model *model, int64_t first, int64_t n, const double *theta)
{
    em_network *self = (em_network *)model;
    const int64_t left = self->layers.n_weight - first;

    if (left > 0)
        self->pass_ops->publish(self->pass, first, n < left ? n : left, theta);
}

void em_network_fetch(const em_model *model, int64_t first, int64_t n)
{
    const em_network *self = (const em_network *)model;
    const int64_t left = self->layers.n_weight - first;

    if (left > 0)
        self->pass_ops->fetch(self->pass, first, n < left ? n : left);
}

/* Copies the weights of a layer to the pass, unless they are there. Returns the sum of their
 * squares, if wanted. Chunks are small, so that they are in the first-level cache when they are
 * read again. */
static double begin_layer(const em_network *self, const em_layer *layer, const double *theta,
                          bool published, bool squared)
{
    enum { CHUNK = 2048 };
    squares s = {.rest = 0};

    for (int64_t i = 0; i < layer->n_weight && (squared || !published); i += CHUNK) {
        const int64_t n = layer->n_weight - i < CHUNK ? layer->n_weight - i : CHUNK;
        if (squared)
            add_squares(n, theta + layer->first + i, &s);
        if (!published)
            self->pass_ops->publish(self->pass, layer->first + i, n, theta + layer->first + i);
    }
    return sum_of(&s);
}

/* The log density of the prior, from the sums of squares of the weights. Sets the precision by
 * which each layer's weights enter the gradient. */
static double begin_estimate(em_network *self, const em_query *query, bool has_prior,
                             bool published)
{
    const bool squared = has_prior && (query->wanted != EM_WANT_GRADIENT || self->scale_at >= 0);
    const double *theta = query->theta;
    double prior = 0;

    for (int i = 0; i < self->n_weighted; i++) {
        const em_layer *layer = &self->layers.layer[self->weighted[i]];
        const double square = begin_layer(self, layer, theta, published, squared);
        prior += has_prior ? add_layer(self, i, square, theta, query->gradient) : 0;
        self->pull[i] = has_prior ? precision_of(self, i, theta) : 0;
    }
    self->pass_ops->begin(self->pass);
    return prior + (has_prior ? add_sigma(self, theta, query->gradient) : 0);
}

/* The range that parameters first .. first + n - 1 have in common with the weights of weighted
 * layer i: from the number that is returned to *end - 1. It is empty if *end is not greater. */
static int64_t range_in(const em_network *self, int i, int64_t first, int64_t n, int64_t *end)
{
    const em_layer *layer = &self->layers.layer[self->weighted[i]];
    const int64_t ends = layer->first + layer->n_weight;

    *end = first + n < ends ? first + n : ends;
    return first > layer->first ? first : layer->first;
}

void em_network_gradient_range(em_model *model, int64_t first, int64_t n, const double *theta,
                               double *gradient)
{
    const em_network *self = (const em_network *)model;
    const int64_t n_weight = self->layers.n_weight;
    int64_t end;

    for (int64_t i = first > n_weight ? first : n_weight; i < first + n; i++)
        gradient[i - first] = self->slope[i - n_weight];
    for (int i = 0; i < self->n_weighted; i++) {
        const int64_t from = range_in(self, i, first, n, &end);
        if (from < end)
            self->pass_ops->blend(self->pass, from, end - from, self->scale, self->pull[i],
                                  theta + (from - first), gradient + (from - first));
    }
}

/* Computes the estimate except the gradient by weights. */
static void estimate(em_network *self, const em_query *query, double scale, bool with_prior,
                     bool published)
{
    const int64_t n_weight = self->layers.n_weight;
    double *gradient = query->gradient, prior, by_log_sigma;

    memset(gradient + n_weight, 0, (size_t)(query->stride - n_weight) * sizeof *gradient);
    self->scale = scale;
    prior = begin_estimate(self, query, with_prior, published);
    *query->log_density = prior + scale * pass_rows(self, query, &by_log_sigma);
    if (self->sigma_at >= 0)
        gradient[self->sigma_at] += scale * by_log_sigma;
    for (int64_t i = n_weight; i < self->model.dim; i++)
        self->slope[i - n_weight] = gradient[i];
}

em_status em_network_estimate_ranges(em_model *model, const em_query *query, double scale,
                                     bool published)
{
    estimate((em_network *)model, query, scale, true, published);
    return EM_OK;
}

/* Computes the estimate. Weights are read before and after the pass, and their gradient is written
 * once. */
em_status em_network_estimate(em_model *model, const em_query *query, double scale, bool with_prior)
{
    em_network *self = (em_network *)model;

    estimate(self, query, scale, with_prior, false);
    em_network_gradient_range(model, 0, self->layers.n_weight, query->theta, query->gradient);
    return EM_OK;
}

/* ---------------------------------------------------------------- partitioned gradients */

/* Computes the part of this shard. The pass sums the gradient in the memory of this shard's part.
 * Numbers that belong to no weight follow it. */
em_status em_network_estimate_part(em_model *model, const em_query *query, double scale,
                                   bool published, const em_range_parts *parts)
{
    em_network *self = (em_network *)model;

    self->pass_ops->lend(self->pass, published ? parts->published : NULL, query->gradient);
    estimate(self, query, scale, parts->shard == 0, published);
    self->pass_ops->settle(self->pass);
    self->pass_ops->lend(self->pass, NULL, NULL);
    for (int i = 0; i < self->n_weighted; i++)
        self->pull[i] = precision_of(self, i, query->theta);
    return EM_OK;
}

void em_network_gradient_of_parts(em_model *model, int64_t first, int64_t n, const double *theta,
                                  const em_range_parts *parts, double *gradient)
{
    const em_network *self = (const em_network *)model;
    const int64_t n_weight = self->layers.n_weight;
    int64_t end;

    for (int64_t i = first > n_weight ? first : n_weight; i < first + n; i++) {
        gradient[i - first] = 0;
        for (int64_t s = 0; s < parts->n_shard; s++)
            gradient[i - first] += parts->part[s * parts->room + i];
    }
    for (int i = 0; i < self->n_weighted; i++) {
        const int64_t from = range_in(self, i, first, n, &end);
        if (from < end)
            self->pass_ops->blend_sums(from, end - from, self->scale, parts->n_shard, parts->part,
                                       parts->room * (int64_t)sizeof(double), self->pull[i],
                                       theta + (from - first), gradient + (from - first));
    }
}

void em_network_publish_part(em_model *model, int64_t first, int64_t n, const double *theta,
                             const em_range_parts *parts)
{
    em_network *self = (em_network *)model;

    self->pass_ops->lend(self->pass, parts->published, NULL);
    em_network_publish(model, first, n, theta);
    self->pass_ops->lend(self->pass, NULL, NULL);
}

/* ---------------------------------------------------------------- precisions, by Gibbs */

/* Draws the precisions. Given the weights of a layer, its precision is Gamma(a + n / 2, b +
 * |theta|^2 / 2). */
em_status em_network_update(em_model *model, const em_update *update)
{
    const em_network *self = (const em_network *)model;
    _Alignas(EM_ALIGNMENT) double gamma[EM_MOST_LAYERS] = {0}, square[EM_MOST_LAYERS];

    for (int64_t c = 0; c < update->n_chain; c++) {
        double *theta = update->theta + c * update->stride;
        const em_stream stream = {update->seed, (uint64_t)update->chain[c],
                                  (uint64_t)update->number, EM_RNG_UPDATE};
        for (int i = 0; i < self->n_scale; i++) {
            const em_layer *layer = &self->layers.layer[self->weighted[i]];
            gamma[i] = self->gamma[0] + 0.5 * (double)layer->n_weight;
            square[i] = square_of(layer->n_weight, theta + layer->first);
        }
        em_gammas(&stream, 0, self->n_scale, gamma, gamma);
        for (int i = 0; i < self->n_scale; i++)
            theta[self->scale_at + i] = log(gamma[i] / (self->gamma[1] + 0.5 * square[i]));
    }
    return EM_OK;
}
