/*
 * A feed-forward network, dense or convolutional, with a normal prior on its weights: a classifier,
 * or a regression with normal noise (Neal 1996; EQUATIONS 25).
 */
#include "network/network.h"

#include "base/text.h"
#include "base/text/json.h"
#include "data/table/table_options.h"
#include "emass/model/minibatch.h"
#include "emass/model/prediction.h"
#include "emass/model/prior.h"
#include "emass/random.h"
#include "math/linalg.h"
#include "model/construct/construct.h"
#include "par/message.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const outputs[] = {"softmax", "normal", NULL};
static const char *const precisions[] = {"double", "single", NULL};
enum { PRECISION_DOUBLE, PRECISION_SINGLE };
static const char *const block_choices[] = {"layers", "weights", NULL};
enum { BLOCKS_LAYERS, BLOCKS_WEIGHTS };

static const em_field fields[] = {
    EM_PATH(em_network_options, data,
            .doc = "images and labels, IDX, plain or .gz: the file of images, a folder with both "
                   "files, or the common beginning of both names; or a table, as for other models"),
    EM_PATH(em_network_options, labels, .fallback = "",
            .doc = "file of the labels of the images; absent: the file in the same folder with the "
                   "corresponding name"),
    EM_PATH(em_network_options, test, .fallback = "",
            .doc =
                "test observations, which are predicted but not used for training; absent: none"),
    EM_PATH(em_network_options, test_labels, .fallback = "",
            .doc = "file of the labels of the test images; absent: as for labels"),
    EM_TEXT(em_network_options, response, .fallback = "",
            .doc = "response column of a table, by name or number from 1; absent: the last"),
    EM_CHOICE(em_network_options, header, .fallback = "auto", .choices = em_table_header_names,
              .doc = "whether the first line of a table names the columns, as for other models"),
    EM_JSON(
        em_network_options, layers,
        .doc =
            "list of {dense: units}, {convolution: channels, kernel: side, padding: valid or same} "
            "and {pool: side}, each with an optional activation; the output layer is added"),
    EM_CHOICE(em_network_options, activation, .fallback = "relu", .choices = em_activation_names,
              .doc = "default activation of the layers"),
    EM_CHOICE(em_network_options, output, .fallback = "softmax", .choices = outputs,
              .doc = "softmax: the response is a class, 0, 1, ...; normal: a number, with normal "
                     "noise"),
    EM_INT(em_network_options, classes, .minimum = 2, .maximum = 10000, .fallback = "auto",
           .word = "auto", .doc = "number of classes of a softmax; auto: from the largest label"),
    EM_JSON(em_network_options, prior_scale, .fallback = "1",
            .doc = "variance of the normal prior of weights and biases; {gamma: [shape, rate]}: "
                   "each layer has its own variance, which is learned; its inverse has that prior"),
    EM_REAL(em_network_options, sigma, .minimum = 1e-300, .maximum = 1e300, .fallback = "unknown",
            .word = "unknown", .doc = "standard deviation of the noise of a normal output"),
    EM_REAL(
        em_network_options, sigma_scale, .minimum = 1e-300, .maximum = 1e300, .fallback = "2.5",
        .doc =
            "scale of the prior of an unknown sigma, a half Student-t with 3 degrees of freedom"),
    EM_REAL(em_network_options, temperature, .minimum = 1e-6, .maximum = 1e6, .fallback = "1",
            .doc = "the likelihood is raised to the power 1 / temperature: below 1 the posterior "
                   "is cold, and predictions are more certain (Wenzel et al. 2020)"),
    EM_REAL(em_network_options, input_scale, .minimum = 1e-300, .maximum = 1e300,
            .fallback = "auto", .word = "auto",
            .doc = "inputs are divided by it; auto: 255 for images of bytes, 1 for tables"),
    EM_BOOL(
        em_network_options, standardise, .fallback = "false",
        .doc =
            "transform inputs of tables to mean 0 and standard deviation 1 on the training data"),
    EM_CHOICE(em_network_options, precision, .fallback = "double", .choices = precisions,
              .doc = "precision of matrix products and of the noise of stochastic samplers; "
                     "single: 32 bits, twice as fast, gradients accurate to about 1e-5"),
    EM_CHOICE(em_network_options, blocks, .fallback = "layers", .choices = block_choices,
              .doc = "blocks that a list of samplers may name: layer1, layer2, ..., output; or "
                     "weights, all of them; then sigma and scales, where they are learned"),
    EM_INT(em_network_options, probes, .maximum = 1e6, .fallback = "5",
           .doc = "number of test observations, evenly spaced, at which the function is reported "
                  "and monitored"),
    EM_INT(em_network_options, scored, .maximum = 1e12, .fallback = "10000",
           .doc =
               "number of training observations, evenly spaced, for the training score of a draw"),
    EM_BOOL(em_network_options, store_weights, .fallback = "false",
            .doc = "store the parameters of every draw, in 32 bits, which emass predict needs "
                   "(run.thin stores fewer draws)"),
    {0}};

/* ---------------------------------------------------------------- options */

static bool is_positive(double x)
{
    return x >= 1e-300 && x <= 1e300;
}

/* Reads the variance of the prior: 1, or {"gamma": [1, 1]}, which is the JSON that the config's
 * value becomes. */
static em_status read_prior(em_network *self, bool *learned)
{
    const char *text = self->options->prior_scale;
    em_excerpt why;
    json_auto_t *json = em_json_load(text, &why);
    double variance = 1;

    *learned =
        json && json_unpack(json, "{s:[F,F!]!}", "gamma", &self->gamma[0], &self->gamma[1]) == 0;
    const bool good = *learned
                          ? is_positive(self->gamma[0]) && is_positive(self->gamma[1])
                          : json_is_number(json) && is_positive(variance = json_number_value(json));
    self->precision = 1 / variance;
    return good ? EM_OK
                : em_fail(EM_ECONFIG,
                          "model.prior_scale: found %s, expected a variance above 0, or {gamma: "
                          "[shape, rate]}, both above 0",
                          text);
}

static em_status check_options(const em_network_options *o)
{
    const bool softmax = o->output == EM_OUTPUT_SOFTMAX;

    if (o->test_labels && !o->test)
        return em_fail(EM_ECONFIG,
                       "model.test_labels: found a file without model.test, expected both");
    if (softmax && !isnan(o->sigma))
        return em_fail(EM_ECONFIG,
                       "model.sigma: found %g with a softmax, expected it only for a normal output",
                       o->sigma);
    if (!softmax && o->classes != INT64_MIN)
        return em_fail(EM_ECONFIG,
                       "model.classes: found %" PRId64 " with a normal output, "
                       "expected it only for a softmax",
                       o->classes);
    return EM_OK;
}

/* ---------------------------------------------------------------- data */

/* Reads the standardisation of the inputs that the run used. */
static em_status take_fitted(em_network *self, const em_fitted *fitted)
{
    double *const to[] = {self->centre, self->factor};
    static const char *const name[] = {"input_centre", "input_factor"};
    em_status status = EM_OK;

    for (int i = 0; !status && i < 2; i++) {
        const double *value = NULL;
        int64_t n = 0;
        status = fitted->numbers(fitted->context, name[i], &n, &value);
        if (!status && n != self->train->n_input)
            return em_fail(EM_EDATA,
                           "%s: found observations of %" PRId64 " inputs, expected %" PRId64
                           ", as the run had",
                           self->train->path, self->train->n_input, n);
        if (!status)
            memcpy(to[i], value, (size_t)n * sizeof *value);
    }
    return status;
}

/* Sets the inputs. Products skip zeros if two thirds of the numbers in images are 0. All shards do
 * so, or none. Collective. */
static em_status set_inputs(const em_network *self, const em_examples *e, em_inputs *inputs)
{
    int64_t count[2] = {e && e->images ? e->rows.count * e->n_input : 0, 0}; /* numbers, zeros */

    for (int64_t i = 0; i < count[0]; i++)
        count[1] += e->byte[i] == 0;
    const em_status status = em_network_sum(self, EM_OK, 2, count);
    *inputs = (em_inputs){e, self->centre, self->factor, count[0] && 3 * count[1] >= 2 * count[0]};
    return status;
}

static em_status prepare_inputs(em_network *self, const em_fitted *fitted)
{
    const em_examples *e = self->train;
    const double scale = self->options->input_scale;
    em_status status = em_own_all(&self->memory, EM_ARRAY(self->centre, e->n_input),
                                  EM_ARRAY(self->factor, e->n_input));

    status = em_agree_first(status, 0);
    if (status)
        return status;
    if (e->images && self->options->standardise)
        return em_fail(EM_ECONFIG, "model.standardise: found true for images, expected "
                                   "model.input_scale");
    for (int64_t j = 0; j < e->n_input; j++)
        self->factor[j] = 1 / (!isnan(scale) ? scale : e->images ? 255 : 1);
    if (fitted)
        status = take_fitted(self, fitted);
    else if (self->options->standardise)
        status = em_network_find_moments(self);
    status = status ? status : set_inputs(self, self->train, &self->train_inputs);
    return status ? status : set_inputs(self, self->test, &self->test_inputs);
}

static em_status check_test(const em_network *self)
{
    const em_examples *train = self->train, *test = self->test;

    if (test->images == train->images && test->shape[0] == train->shape[0] &&
        test->shape[1] == train->shape[1])
        return EM_OK;
    return em_fail(EM_EDATA,
                   "%s: found test observations of %" PRId64 " x %" PRId64 " numbers%s, expected "
                   "%" PRId64 " x %" PRId64 "%s, as %s has",
                   test->path, test->shape[0], test->shape[1], test->images ? " of an image" : "",
                   train->shape[0], train->shape[1], train->images ? " of an image" : "",
                   train->path);
}

/* Reads the new observations to predict. Collective. */
static em_status read_new(em_network *self, const em_model_context *context)
{
    const em_fitted *fitted = context->fitted;
    em_examples_source source = {
        .path = self->options->data, .header = self->options->header, .unlabelled = true};
    const double *n_output = NULL;
    int64_t n = 0;
    em_status status = fitted->numbers(fitted->context, "n_output", &n, &n_output);

    if (!status)
        status = fitted->labels(fitted->context, "input", &source.n_input, &source.input);
    status = em_agree_first(status, 0);
    if (status)
        return status;
    self->n_output = (int64_t)n_output[0];
    status = em_examples_read(&source, context, &self->train);
    status = status ? status : prepare_inputs(self, fitted);
    return em_agree_first(status, 0);
}

/* Collective. */
static em_status read_data(em_network *self, const em_model_context *context)
{
    const em_network_options *o = self->options;
    const int64_t wanted = o->classes == INT64_MIN ? 0 : o->classes;
    int64_t n_class = 0;
    const em_examples_source train = {o->data, o->labels, o->response, o->header},
                             test = {o->test, o->test_labels, o->response, o->header};
    em_status status = em_examples_read(&train, context, &self->train);

    if (!status && o->test)
        status = em_examples_read(&test, context, &self->test);
    if (!status && o->test)
        status = check_test(self);
    self->n_output = 1;
    if (!status && self->output == EM_OUTPUT_SOFTMAX)
        status = em_examples_classes(self->train, wanted, &n_class);
    if (!status && self->output == EM_OUTPUT_SOFTMAX) {
        self->n_output = n_class > 2 ? n_class : 2;
        status = o->test ? em_examples_classes(self->test, self->n_output, &n_class) : EM_OK;
    }
    status = status ? status : prepare_inputs(self, NULL);
    return em_agree_first(status, 0);
}

/* ---------------------------------------------------------------- parameters */

static void add_block(em_network *self, const char *name, int64_t count)
{
    const int64_t n = self->model.n_block;
    const em_parameters *last = n > 0 ? &self->block[n - 1] : NULL;

    self->block[n] = (em_parameters){name, last ? last->first + last->count : 0, count};
    self->model.n_block++;
}

/* Declares the parameters: the weights of the layers, and the others. */
static void lay_parameters(em_network *self, bool learns_scales)
{
    const bool learns_sigma = self->output == EM_OUTPUT_NORMAL && isnan(self->options->sigma);
    const em_layers *layers = &self->layers;

    for (int l = 0; l < layers->n; l++)
        if (layers->layer[l].n_weight > 0) {
            self->layer_name[self->n_weighted] = layers->layer[l].name;
            self->weighted[self->n_weighted++] = l;
        }
    for (int i = 0; self->options->blocks == BLOCKS_LAYERS && i < self->n_weighted; i++)
        add_block(self, self->layer_name[i], layers->layer[self->weighted[i]].n_weight);
    if (self->options->blocks == BLOCKS_WEIGHTS)
        add_block(self, "weights", layers->n_weight);
    self->sigma = self->options->sigma;
    self->sigma_at = learns_sigma ? layers->n_weight : -1;
    if (learns_sigma)
        add_block(self, "sigma", 1);
    self->n_scale = learns_scales ? self->n_weighted : 0;
    self->scale_at = learns_scales ? layers->n_weight + learns_sigma : -1;
    if (learns_scales)
        add_block(self, "scales", self->n_scale);
    self->model.block = self->block;
    self->model.dim = layers->n_weight + learns_sigma + self->n_scale;
    self->model.update_of = learns_scales ? "scales" : "none of its blocks";
}

static em_status prepare_pass(em_network *self, bool exact)
{
    const bool is_single = self->options->precision == PRECISION_SINGLE && !exact;

    self->model.single = is_single;
    self->pass_ops = is_single ? &em_pass_single : &em_pass_double;
    self->batch = em_pass_batch(&self->layers);
    em_status status =
        self->pass_ops->create(&self->layers, self->train->n_input, self->batch, &self->pass);
    return status ? status
                  : em_own_all(&self->memory, EM_ARRAY(self->row, self->batch),
                               EM_ARRAY(self->response, self->batch),
                               EM_ARRAY(self->density, self->batch),
                               EM_ARRAY(self->out, em_stride(self->batch * self->n_output)));
}

static em_status prepare_network(em_network *self, const em_model_context *context)
{
    const em_examples *e = self->train;
    const em_extent input =
        e->images ? (em_extent){e->shape[0], e->shape[1], 1} : (em_extent){1, 1, e->n_input};
    bool learns_scales = false;
    em_status status =
        em_layers_read(self->options->layers, (em_activation)self->options->activation, &input,
                       self->n_output, &self->layers);

    status = status ? status : read_prior(self, &learns_scales);
    if (status)
        return status;
    lay_parameters(self, learns_scales);
    self->model.rows = e->rows;
    self->model.data_hash = e->hash ^ (self->test ? self->test->hash << 7 : 0);
    status = em_agree_first(prepare_pass(self, context->exact), 0);
    if (!status && context->fitted) {
        em_network_prepare_predictions(self);
        return EM_OK;
    }
    status = status ? status : em_network_prepare_reports(self);
    return status ? status : em_network_make_survey(self, !context->exact);
}

/* ---------------------------------------------------------------- the model */

static void destroy(em_model *model)
{
    em_network *self = (em_network *)model;

    if (self->input_name)
        em_release_texts(self->train->n_input, &self->input_name);
    em_release_owner(&self->pass);
    em_examples_destroy(&self->train);
    em_examples_destroy(&self->test);
    em_release_owned(&self->memory);
    em_release(&self);
}

static em_status set_up(em_model *model, const void *options, const em_model_context *context)
{
    em_network *self = (em_network *)model;
    em_status status = check_options(options);

    if (status)
        return status;
    self->options = options;
    self->output = (em_network_output)self->options->output;
    self->shards = context->n_shard > 1 ? context->shards : NULL;
    self->first_chain = context->first_chain;
    self->n_chain = context->n_chain;
    status = context->fitted ? read_new(self, context) : read_data(self, context);
    return status ? status : prepare_network(self, context);
}

/* The standard deviation of a layer's initial weights that keeps the scale of activations: He et
 * al. 2015 for a ReLU, else Glorot & Bengio 2010. */
static double start_scale(const em_layer *layer)
{
    const double places =
        layer->kind == EM_LAYER_CONVOLUTION ? (double)(layer->side * layer->side) : 1;
    const double in = (double)layer->n_from, out = (double)layer->n_to * places;

    return layer->activation == EM_ACTIVATION_RELU ? sqrt(2 / in) : sqrt(2 / (in + out));
}

/* Draws a start: normal weights, biases 0, sigma and precisions 1. */
static em_status draw_start(em_model *model, const em_draw *draw, double *theta)
{
    const em_network *self = (const em_network *)model;

    for (int64_t i = self->layers.n_weight; i < model->dim; i++)
        theta[i] = 0;
    em_draw_normals(draw, 0, self->layers.n_weight, theta);
    for (int i = 0; i < self->n_weighted; i++) {
        const em_layer *layer = &self->layers.layer[self->weighted[i]];
        const int64_t n = layer->n_from * layer->n_to;
        const double scale = start_scale(layer);
        for (int64_t k = 0; k < layer->n_weight; k++)
            theta[layer->first + k] *= k < n ? scale : 0;
    }
    return EM_OK;
}

static void describe_layer(const em_layer *layer, FILE *out)
{
    static const char *const kinds[] = {"dense", "convolution", "pool"};

    fprintf(out,
            "# %-10s %s, %" PRId64 " x %" PRId64 " x %" PRId64 " to %" PRId64 " x %" PRId64
            " x %" PRId64,
            layer->name, kinds[layer->kind], layer->in.height, layer->in.width, layer->in.channels,
            layer->out.height, layer->out.width, layer->out.channels);
    if (layer->n_weight > 0)
        fprintf(out, ": %" PRId64 " weights", layer->n_weight);
    if (layer->activation != EM_ACTIVATION_NONE)
        fprintf(out, ", %s", em_activation_names[layer->activation]);
    fputc('\n', out);
}

/* Multiplications and additions for the gradient of one observation: the forward pass, the
 * derivatives by weights, and those by inputs, which the first layer does not need. */
static double flop_of(const em_layers *layers)
{
    double flop = 0;

    for (int l = 0; l < layers->n; l++) {
        const em_layer *layer = &layers->layer[l];
        const double places = layer->kind == EM_LAYER_CONVOLUTION
                                  ? (double)(layer->out.height * layer->out.width)
                                  : 1;
        if (layer->n_weight > 0)
            flop += (l > 0 ? 6 : 4) * places * (double)(layer->n_from * layer->n_to);
    }
    return flop;
}

static void describe_work(const em_network *self, FILE *out)
{
    const double flop = flop_of(&self->layers), least = 5e6;

    fprintf(out, "# work       %.3g MFLOP a gradient, for each observation of a minibatch",
            flop / 1e6);
    if (self->shards)
        fprintf(out, "; shards are not worthwhile below %.0f MFLOP a step, a minibatch of %.0f",
                least / 1e6, ceil(least / flop));
    fputc('\n', out);
}

static void describe(const em_model *model, FILE *out)
{
    const em_network *self = (const em_network *)model;
    const em_pass_ops *ops =
        self->options->precision == PRECISION_SINGLE ? &em_pass_single : &em_pass_double;
    const em_examples *train = self->train, *test = self->test;
    const double averages = test ? (double)(test->rows.count * self->n_moment) : 0;

    for (int l = 0; l < self->layers.n; l++)
        describe_layer(&self->layers.layer[l], out);
    describe_work(self, out);
    fprintf(out,
            "# data       %" PRId64 " observations of %" PRId64 " inputs, %" PRId64
            " test observations; on this shard %" PRId64 " and %" PRId64
            ": %s MB, one copy on a node\n",
            train->rows.total, train->n_input, test ? test->rows.total : 0, train->rows.count,
            test ? test->rows.count : 0,
            em_megabytes(em_examples_bytes(train) + (test ? em_examples_bytes(test) : 0)).text);
    em_network_describe_survey(self, out);
    fprintf(out,
            "# pass       %" PRId64
            " observations at a time in %s precision, by OpenBLAS's products "
            "for %s: %s MB per rank; averages of predictions %s MB per chain\n",
            self->batch, ops->name, em_linalg_kernels(),
            em_megabytes(ops->bytes(&self->layers, train->n_input, self->batch)).text,
            em_megabytes(averages * sizeof(double)).text);
    fprintf(out,
            "# monitored  R-hat and ESS are computed for %s and for the function at some inputs, "
            "not for the weights, which have symmetries\n",
            self->test ? "the test score" : "the training score");
    if (self->options->precision == PRECISION_SINGLE)
        fprintf(out, "# precision  single: gradient and speed below are in double precision\n");
}

const em_model_ops em_model_network = {
    .name = "network",
    .doc = "feed-forward network, dense or convolutional, as a classifier or a regression",
    .source = "Neal 1996; Li, Chen, Carlson & Carin 2016, section 5",
    .options_size = sizeof(em_network_options),
    .fields = fields,
    .create = em_model_build,
    .state = &(const em_construction){sizeof(em_network), set_up},
    .destroy = destroy,
    .add_prior = em_network_add_prior,
    .add_likelihood = em_network_add_likelihood,
    .start = draw_start,
    .report = em_network_report,
    .describe = describe,
    .latent = &(const em_model_latent){.update = em_network_update, .visit = em_network_visit},
    .minibatch = &(const em_model_minibatch){.estimate = em_network_estimate},
    .ranges = &(const em_model_ranges){.estimate = em_network_estimate_ranges,
                                       .gradient = em_network_gradient_range,
                                       .publish = em_network_publish,
                                       .estimate_part = em_network_estimate_part,
                                       .gradient_of_parts = em_network_gradient_of_parts,
                                       .publish_part = em_network_publish_part,
                                       .fetch = em_network_fetch},
    .averages = &(const em_model_averages){.add = em_network_average,
                                           .report = em_network_report_averages,
                                           .report_pooled = em_network_report_pooled},
    .prediction = &(const em_model_prediction){.predict = em_network_predict_new},
    .prior = &(const em_model_prior){.draw = em_network_draw_prior}};
