/*
 * Deep Poisson factor analysis (EQUATIONS 24): the topics that a document may have are the lowest
 * layer of a sigmoid belief network (topics/belief_network.h). Counts of word v in document j are
 *
 *     x_vj ~ Poisson(sum_k phi_vk psi_kj h_kj),  psi_kj ~ Gamma(r_k, scale p_j / (1 - p_j)),
 *     p_j ~ Beta(a0, b0),  r_k ~ Gamma(shape, rate),  h_j ~ the network
 *
 * with phi as parameters (topics/topic_parameters.h). For every gradient h, p and the topics of a
 * document's words are drawn by Gibbs, psi integrated out: topics with prior r_k h_k
 * (topics/lda_local.h); p given h and the document's length; h_k is 1 where topic k has words, else
 * with odds of the network times (1 - p)^r_k; then the layers above. Given those, with p integrated
 * out too and R = sum_k r_k h_k,
 *
 *     d / dr_k = h_k [psi(r_k + n_kj) - psi(r_k) + psi(b0 + R) - psi(a0 + n_j + b0 + R)].
 *
 * Three blocks of parameters, each of which may have a sampler of its own: phi, r (as logarithms)
 * and network.
 */
#include "base/memory.h"
#include "emass/random.h"
#include "math/rng.h"
#include "math/special.h"
#include "model/construct/construct.h"
#include "topics/belief_network.h"
#include "topics/lda_tokens.h"
#include "topics/topic_model.h"

#include <math.h>
#include <string.h>

/* This number is added to r, so that every topic can be drawn. */
#define LEAST_WEIGHT 1e-4

/* The spread of log r and of the network's parameters at the starts of chains. */
#define START_SPREAD 0.1

typedef struct dpfa_options {
    em_poisson_options poisson;
    double shape, rate, weight_sd;
    em_reals hidden;
} dpfa_options;

static const em_field fields[] = {
    EM_POISSON_FIELDS("number of topics: units of the lowest layer"),
    EM_REALS(dpfa_options, hidden, .minimum = 1, .maximum = 65536, .fallback = "",
             .doc = "units of each layer of the network above the topics; absent: none"),
    EM_REAL(dpfa_options, weight_sd, .minimum = 1e-6, .maximum = 1e6, .fallback = "1",
            .doc = "standard deviation of the normal prior of the network's parameters"),
    EM_REAL(dpfa_options, shape, .minimum = 1e-6, .maximum = 1e6, .fallback = "1",
            .doc = "shape of the gamma prior of r"),
    EM_REAL(dpfa_options, rate, .minimum = 1e-6, .maximum = 1e6, .fallback = "1",
            .doc = "rate of the gamma prior of r"),
    {0}};

enum { PHI, R, NETWORK, N_BLOCK };

typedef struct dpfa {
    em_topic_model base;
    const dpfa_options *options;
    em_belief_network network;
    em_parameters block[N_BLOCK];
    double *logit; /* [n_topic] room */
    uint8_t *unit; /* [documents at work][n_unit] */
} dpfa;

/* ---------------------------------------------------------------- the density */

static void add_prior(em_topic_model *base, const double *theta, double *density, double *gradient)
{
    const dpfa *self = (const dpfa *)base;
    const em_parameters *r = &self->block[R], *network = &self->block[NETWORK];
    const double shape = self->options->shape, rate = self->options->rate;

    for (int64_t k = r->first; k < r->first + r->count; k++) {
        gradient[k] += shape - rate * exp(theta[k]);
        *density += shape * theta[k] - rate * exp(theta[k]);
    }
    em_belief_network_add_prior(&self->network, theta + network->first, density,
                                gradient + network->first);
}

static void add_log_prior(em_topic_model *base, const double *theta, double *density)
{
    const dpfa *self = (const dpfa *)base;

    for (int64_t k = self->block[R].first; k < self->block[NETWORK].first; k++)
        *density += self->options->shape * theta[k] - self->options->rate * exp(theta[k]);
    for (int64_t i = self->block[NETWORK].first; i < base->model.dim; i++)
        *density -= theta[i] * theta[i] / (2 * self->network.sd * self->network.sd);
}

/* ---- what is kept of a document during its sweeps ---- */

/* The chain at work. */
typedef struct work {
    dpfa *self;
    const double *network; /* its parameters */
    double *slope;         /* [n_topic] sums of derivatives by log r, in units */
    double *network_slope; /* of the network's, likewise */
    double *density;       /* likewise */
} work;

static bool set_weights(em_topic_model *base, const double *theta)
{
    const dpfa *self = (const dpfa *)base;
    bool finite = true;

    for (int64_t k = 0; k < self->block[R].count; k++) {
        base->weight[k] = exp(theta[self->block[R].first + k]) + LEAST_WEIGHT;
        finite &= isfinite(base->weight[k]) != 0;
    }
    for (int64_t i = 0; i < self->block[NETWORK].count; i++)
        finite &= isfinite(theta[self->block[NETWORK].first + i]) != 0;
    return finite;
}

static double active_weight(const dpfa *self, const uint8_t *unit)
{
    double sum = 0;

    for (int64_t k = 0; k < self->base.topics.shape.n_topic; k++)
        sum += unit[k] ? self->base.weight[k] : 0;
    return sum;
}

static em_stream stream_of(const em_local_document *document, em_purpose purpose)
{
    return (em_stream){document->key, (uint64_t)document->number & 0xffffffff,
                       (uint64_t)document->sweep, purpose};
}

/* Draws log(1 - p), where p ~ Beta(a0 + n, b0 + R). */
static double draw_rest(const dpfa *self, const em_local_document *document, double active)
{
    const em_stream stream = stream_of(document, EM_RNG_TOPICS);
    _Alignas(EM_ALIGNMENT) double gamma[EM_LANES] = {
        self->options->poisson.a0 + (double)document->length, self->options->poisson.b0 + active};

    em_gammas(&stream, 0, 2, gamma, gamma);
    gamma[1] = fmax(gamma[1], 1e-300);
    return log(gamma[1] / (gamma[0] + gamma[1]));
}

/* Draws the units of the lowest layer. A unit is 1 if its topic has words in the document. */
static void draw_lowest(dpfa *self, const double *network, const em_local_document *document,
                        uint8_t *unit)
{
    const em_stream stream = stream_of(document, EM_RNG_EVALUATION);
    const double rest = draw_rest(self, document, active_weight(self, unit));

    em_belief_network_logits(&self->network, network, unit, 0, self->logit);
    for (int64_t k = 0; k < self->base.topics.shape.n_topic; k++) {
        const double u = em_uniform(&stream, (uint64_t)k);
        unit[k] = document->tokens[k] > 0 ||
                  log(u) - log1p(-u) < self->logit[k] + self->base.weight[k] * rest;
    }
}

static void before(void *untyped, const em_local_document *document, float *prior)
{
    const work *at = untyped;
    dpfa *self = at->self;
    const int64_t n_topic = self->base.topics.shape.n_topic, n_unit = self->network.n_unit;
    const em_stream stream = stream_of(document, EM_RNG_EVALUATION);
    uint8_t *unit = self->unit + document->place * n_unit;

    if (document->sweep == 0) {
        for (int64_t i = 0; i < n_unit; i++)
            unit[i] = i < n_topic || em_uniform(&stream, (uint64_t)i) < 0.5;
    } else {
        draw_lowest(self, at->network, document, unit);
        em_belief_network_sweep(&self->network, at->network, &stream, 0, unit);
    }
    for (int64_t k = 0; k < n_topic; k++)
        prior[k] = unit[k] ? (float)self->base.weight[k] : 0;
}

static void after(void *untyped, const em_local_document *document)
{
    const work *at = untyped;
    dpfa *self = at->self;
    const double a0 = self->options->poisson.a0, b0 = self->options->poisson.b0,
                 n = (double)document->length;
    const uint8_t *unit = self->unit + document->place * self->network.n_unit;
    const double active = active_weight(self, unit), sum = a0 + n + b0 + active;
    const double length_slope = em_digamma(b0 + active) - em_digamma(sum);
    double density = lgamma(a0 + b0) - lgamma(a0) - lgamma(b0) + lgamma(a0 + n) +
                     lgamma(b0 + active) - lgamma(sum);

    for (int64_t k = 0; k < self->base.topics.shape.n_topic; k++) {
        const double r = self->base.weight[k], tokens = (double)document->tokens[k];
        double slope = length_slope;
        if (!unit[k])
            continue;
        if (tokens > 0) {
            slope += em_digamma(r + tokens) - em_digamma(r);
            density += lgamma(r + tokens) - lgamma(r);
        }
        at->slope[k] += rint(r * slope / EM_TOPIC_UNIT);
    }
    *at->density += rint(density / EM_TOPIC_UNIT);
    *at->density +=
        em_belief_network_add(&self->network, at->network, unit, EM_TOPIC_UNIT, at->network_slope);
}

/* Sums of derivatives are stored where the gradients will be. */
static em_status sample(em_topic_model *base, const double *theta, double *gradient,
                        em_local_query *query, em_local_sums *sums)
{
    dpfa *self = (dpfa *)base;
    work at = {self, theta + self->block[NETWORK].first, gradient + self->block[R].first,
               gradient + self->block[NETWORK].first, sums->density};
    const em_local_each each = {&at, before, after};

    query->alpha = NULL;
    query->each = &each;
    return em_local_sample(base->local, query, sums);
}

/* Converts the sums of derivatives by the other parameters from integer units to numbers. */
static void finish(em_topic_model *base, const double *theta, double *gradient)
{
    const dpfa *self = (const dpfa *)base;
    const double sweeps = (double)self->base.options->local.keep;

    for (int64_t i = self->block[R].first; i < self->base.model.dim; i++)
        gradient[i] *= EM_TOPIC_UNIT / sweeps;
    for (int64_t i = self->block[R].first; i < self->block[NETWORK].first; i++)
        gradient[i] *= exp(theta[i]) / (exp(theta[i]) + LEAST_WEIGHT);
}

/* ---------------------------------------------------------------- chains */

static void start(const em_topic_model *base, const em_draw *draw, double *theta)
{
    const int64_t first = ((const dpfa *)base)->block[R].first;

    em_draw_normals(draw, (uint64_t)first, base->model.dim - first, theta + first);
    for (int64_t i = first; i < base->model.dim; i++)
        theta[i] *= START_SPREAD;
}

static const em_topic_kind kind = {.add_prior = add_prior,
                                   .add_log_prior = add_log_prior,
                                   .set_weights = set_weights,
                                   .sample = sample,
                                   .finish = finish,
                                   .start = start};

/* ---------------------------------------------------------------- set up */

static void set_model(dpfa *self)
{
    const int64_t n = self->base.topics.n, n_topic = self->base.topics.shape.n_topic;

    self->block[PHI] = (em_parameters){"phi", 0, n, self->base.topics.form == EM_TOPICS_MEAN};
    self->block[R] = (em_parameters){"r", n, n_topic, false};
    self->block[NETWORK] =
        (em_parameters){"network", n + n_topic, self->network.n_parameter, false};
    const int64_t dim = n + n_topic + self->network.n_parameter;
    em_topic_model_declare(&self->base, dim, N_BLOCK, self->block);
}

static em_status set_network(dpfa *self)
{
    const em_reals *hidden = &self->options->hidden;
    em_belief_network *network = &self->network;

    if (hidden->count > EM_MOST_LAYERS - 1)
        return em_fail(EM_ECONFIG, "model.hidden: found %lld, expected at most %d",
                       (long long)hidden->count, EM_MOST_LAYERS - 1);
    network->size[network->n_layer++] = self->base.options->topics;
    for (int64_t i = 0; i < hidden->count; i++) {
        const int64_t n = (int64_t)hidden->value[i];
        if ((double)n != hidden->value[i])
            return em_fail(EM_ECONFIG, "model.hidden: found %g, expected integers",
                           hidden->value[i]);
        network->size[network->n_layer++] = n;
    }
    network->sd = self->options->weight_sd;
    return em_belief_network_create(&self->base.memory, network);
}

static em_status set_up(em_model *model, const void *options, const em_model_context *context)
{
    dpfa *self = (dpfa *)model;

    self->options = options;
    em_status status =
        em_topic_model_open(&self->base, &kind, &self->options->poisson.topic, context);
    status = status ? status : set_network(self);
    if (!status)
        status = em_own_all(
            &self->base.memory, EM_ARRAY(self->logit, self->base.topics.shape.n_topic),
            EM_ARRAY(self->unit, em_local_most_documents(self->base.local) * self->network.n_unit));
    if (!status)
        set_model(self);
    return status;
}

const em_model_ops em_model_dpfa = {
    .name = "dpfa",
    .doc = "deep Poisson factor analysis: topics under a sigmoid belief network",
    .source = "Gan et al. 2015; Li et al. 2016, G",
    .options_size = sizeof(dpfa_options),
    .fields = fields,
    .state = &(const em_construction){sizeof(dpfa), set_up},
    EM_POISSON_MODEL};
