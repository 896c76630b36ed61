/*
 * Poisson factor analysis with a gamma process (EQUATIONS 23). Counts of word v in document j are
 *
 *     x_vj ~ Poisson(sum_k phi_vk theta_kj),  theta_kj ~ Gamma(r_k, scale p_j / (1 - p_j)),
 *     p_j ~ Beta(a0, b0),  r a gamma process (topics/gamma_process.h)
 *
 * with phi as parameters (topics/topic_parameters.h). A document's theta and p are integrated out:
 * given how many of its words n_kj each topic has,
 *
 *     p(n_j | r) ~ B(a0 + n_j, b0 + R) / B(a0, b0) prod_k Gamma(r_k + n_kj) / Gamma(r_k),
 *
 * R = sum_k r_k, so that the topics of its words have the law of topics/lda_local.h with prior r,
 * and for each document
 *
 *     d / dr_k = psi(r_k + n_kj) - psi(r_k) + psi(b0 + R) - psi(a0 + n_j + b0 + R).
 *
 * Four blocks of parameters, each of which may have a sampler of its own: phi, E, T and hyper
 * (alpha, gamma, c), the last three as logarithms.
 */
#include "base/memory.h"
#include "emass/model/metric.h"
#include "math/special.h"
#include "model/construct/construct.h"
#include "topics/gamma_process.h"
#include "topics/lda_tokens.h"
#include "topics/topic_model.h"

#include <math.h>
#include <string.h>

typedef struct pfa_options {
    em_poisson_options poisson;
    int64_t rounds;
    double hyper_shape, hyper_rate;
} pfa_options;

static const em_field fields[] = {
    EM_POISSON_FIELDS("number of topics: atoms of the gamma process"),
    EM_INT(pfa_options, rounds, .minimum = 1, .maximum = 1e6, .fallback = "1",
           .doc = "rounds of the gamma process, with equal numbers of topics"),
    EM_REAL(pfa_options, hyper_shape, .minimum = 1e-6, .maximum = 1e6, .fallback = "1",
            .doc = "shape of the gamma priors of alpha, gamma and c"),
    EM_REAL(pfa_options, hyper_rate, .minimum = 1e-6, .maximum = 1e6, .fallback = "1",
            .doc = "rate of the gamma priors of alpha, gamma and c"),
    {0}};

enum { PHI, E, T, HYPER, N_BLOCK };

typedef struct pfa {
    em_topic_model base;
    const pfa_options *options;
    em_gamma_process process;
    em_parameters block[N_BLOCK];
    double *slope, *metric; /* [2 n_topic + 3] and [4][2 n_topic + 3] room */
} pfa;

/* ---------------------------------------------------------------- the density */

static void add_prior(em_topic_model *base, const double *theta, double *density, double *gradient)
{
    em_gamma_process_add_prior(&((pfa *)base)->process, theta + base->topics.n, density,
                               gradient + base->topics.n);
}

static void add_log_prior(em_topic_model *base, const double *theta, double *density)
{
    pfa *self = (pfa *)base;

    em_gamma_process_add_prior(&self->process, theta + base->topics.n, density, self->slope);
}

static bool set_weights(em_topic_model *base, const double *theta)
{
    return em_gamma_process_weights(&((pfa *)base)->process, theta + base->topics.n, base->weight);
}

/* Adds the density of the lengths of documents given R, which is the same in all `keep` sweeps, and
 * its derivative by every r_k. */
static void add_lengths(const pfa *self, const em_rows *rows, double *density, double *slope)
{
    const double a0 = self->options->poisson.a0, b0 = self->options->poisson.b0;
    double R = 0, none, sum = 0, derivative = 0;

    for (int64_t k = 0; k < self->process.n; k++)
        R += self->base.weight[k];
    none = lgamma(a0 + b0) - lgamma(a0) - lgamma(b0) + lgamma(b0 + R) - lgamma(R);
    for (int64_t i = 0; i < rows->count; i++) {
        const double n = (double)em_local_length(self->base.local, em_row(rows, i));
        sum += em_topic_in_units(none + lgamma(R + n) + lgamma(a0 + n) - lgamma(a0 + n + b0 + R));
        derivative += em_topic_in_units(em_digamma(b0 + R) - em_digamma(a0 + n + b0 + R));
    }
    *density += sum * (double)self->base.options->local.keep;
    *slope += derivative;
}

/* Sums of the slopes are stored where the gradient of E will be, and sums of the lengths where that
 * of T will be. */
static em_status sample(em_topic_model *base, const double *theta, double *gradient,
                        em_local_query *query, em_local_sums *sums)
{
    pfa *self = (pfa *)base;

    (void)theta;
    sums->slope = gradient + self->block[E].first;
    const em_status status = em_local_sample(base->local, query, sums);
    add_lengths(self, &query->rows, sums->density, &gradient[self->block[T].first]);
    return status;
}

/* Converts the sums in the places of E and T to derivatives by r, and then to those by E and T. */
static void finish(em_topic_model *base, const double *theta, double *gradient)
{
    pfa *self = (pfa *)base;
    const int64_t n = self->process.n;
    const double sweeps = (double)self->base.options->local.keep;
    double *own = gradient + self->block[E].first;

    set_weights(base, theta);
    for (int64_t k = 0; k < n; k++)
        self->slope[k] = EM_TOPIC_UNIT * (own[k] / (sweeps * base->weight[k]) + own[n]);
    memset(own, 0, (size_t)(n + 1) * sizeof *own);
    em_gamma_process_add_slope(&self->process, theta + self->block[E].first, self->slope, own);
}

/* ---------------------------------------------------------------- a metric */

/* The index at which a block begins in the arrays of a query; -1: the query is not about this
 * block. */
static int64_t offset_of(const em_diagonal *ask, const em_parameters *block)
{
    return !ask->block ? block->first : ask->block->first == block->first ? 0 : -1;
}

static const double *theta_of(const em_diagonal *ask, const em_parameters *block)
{
    const int64_t place = offset_of(ask, block);

    return place < 0 ? ask->held + block->first : ask->theta + place;
}

/* Computes the diagonal for E, T and hyper. Those of them that are not asked about have weight 0.
 */
static void ask_process(pfa *self, const em_diagonal *ask)
{
    const em_corpus *corpus = self->base.corpus;
    const em_gamma_documents documents = {(double)corpus->n_document,
                                          (double)corpus->n_token / (double)corpus->n_document};
    const int64_t n = em_gamma_process_size(&self->process), first = self->block[E].first;
    double *theta = self->slope, *answer = self->metric, *weight = answer + 3 * n;
    double *const out[] = {ask->metric, ask->own, ask->slope};

    memset(weight, 0, (size_t)n * sizeof *weight);
    for (int b = E; b < N_BLOCK; b++) {
        const em_parameters *block = &self->block[b];
        const size_t bytes = (size_t)block->count * sizeof *theta;
        memcpy(theta + block->first - first, theta_of(ask, block), bytes);
        if (ask->weight && offset_of(ask, block) >= 0)
            memcpy(weight + block->first - first, ask->weight + offset_of(ask, block), bytes);
    }
    const em_diagonal all = {.theta = theta,
                             .metric = answer,
                             .own = answer + n,
                             .slope = answer + 2 * n,
                             .weight = weight};
    em_gamma_process_diagonal(&self->process, documents, &all);
    for (int b = E; b < N_BLOCK; b++)
        for (int i = 0; i < 3; i++)
            if (out[i] && offset_of(ask, &self->block[b]) >= 0)
                memcpy(out[i] + offset_of(ask, &self->block[b]),
                       answer + i * n + self->block[b].first - first,
                       (size_t)self->block[b].count * sizeof *answer);
}

/* Computes the diagonal for phi. Topic k has the share r_k / R of the tokens. */
static void ask_topics(pfa *self, const em_diagonal *ask)
{
    const double tokens = (double)self->base.corpus->n_token;
    const int64_t n = self->process.n;
    double *r = self->base.weight, *by_r = self->base.topics.count, R = 0, mean = 0;

    memcpy(self->slope, theta_of(ask, &self->block[E]), (size_t)n * sizeof *r);
    memcpy(self->slope + n, theta_of(ask, &self->block[T]), (size_t)n * sizeof *r);
    em_gamma_process_weights(&self->process, self->slope, r);
    for (int64_t k = 0; k < n; k++)
        R += r[k];
    for (int64_t k = 0; k < n; k++)
        r[k] *= tokens / R;
    em_topic_parameters_diagonal(&self->base.topics, r, ask);
    if (ask->block || !ask->slope)
        return;
    for (int64_t k = 0; k < n; k++)
        mean += by_r[k] * r[k] / tokens;
    for (int64_t k = 0; k < n; k++)
        by_r[k] = tokens / R * (by_r[k] - mean);
    em_gamma_process_add_slope(&self->process, self->slope, by_r,
                               ask->slope + self->block[E].first);
}

/* Computes the diagonal of the metric. For phi it exists only in expanded natural form, because no
 * sampler uses it for the other form, which must stay positive. */
static void diagonal(em_model *model, const em_diagonal *ask)
{
    pfa *self = (pfa *)model;

    if (!ask->block || ask->block->first != self->block[PHI].first)
        ask_process(self, ask);
    if (offset_of(ask, &self->block[PHI]) >= 0)
        ask_topics(self, ask);
}

/* ---------------------------------------------------------------- chains */

static void start(const em_topic_model *base, const em_draw *draw, double *theta)
{
    em_gamma_process_start(&((const pfa *)base)->process, draw, (uint64_t)base->topics.n,
                           theta + base->topics.n);
}

/* Reports the hyperparameters. */
static double *report(em_topic_model *base, const double *theta, double *out)
{
    const pfa *self = (const pfa *)base;
    const double *hyper = theta + self->block[HYPER].first;

    for (int i = 0; i < EM_GAMMA_HYPER; i++)
        *out++ = exp(hyper[i]);
    return out;
}

static const em_topic_kind kind = {.add_prior = add_prior,
                                   .add_log_prior = add_log_prior,
                                   .set_weights = set_weights,
                                   .sample = sample,
                                   .finish = finish,
                                   .start = start,
                                   .report = report,
                                   .has_hyper = true};

/* ---------------------------------------------------------------- set up */

static void set_model(pfa *self)
{
    static const char *const hyper[] = {"alpha", "gamma", "c"};
    const int64_t n = self->base.topics.n, n_topic = self->process.n;
    em_model *model = &self->base.model;

    self->block[PHI] = (em_parameters){"phi", 0, n, self->base.topics.form == EM_TOPICS_MEAN};
    self->block[E] = (em_parameters){"E", n, n_topic, false};
    self->block[T] = (em_parameters){"T", n + n_topic, n_topic, false};
    self->block[HYPER] = (em_parameters){"hyper", n + 2 * n_topic, EM_GAMMA_HYPER, false};
    const int64_t dim = n + em_gamma_process_size(&self->process);
    self->base.variable[model->n_variable++] = (em_variable){.name = "hyper",
                                                             .n_axes = 1,
                                                             .shape = {EM_GAMMA_HYPER},
                                                             .axis = {"hyperparameter"},
                                                             .label = {hyper}};
    em_topic_model_declare(&self->base, dim, N_BLOCK, self->block);
}

static em_status set_up(em_model *model, const void *untyped, const em_model_context *context)
{
    pfa *self = (pfa *)model;
    const pfa_options *options = self->options = untyped;
    const int64_t n_topic = options->poisson.topic.topics;
    em_status status = em_topic_model_open(&self->base, &kind, &options->poisson.topic, context);

    self->process =
        (em_gamma_process){n_topic, options->rounds, options->hyper_shape, options->hyper_rate};
    if (!status)
        status = em_own_all(&self->base.memory,
                            EM_ARRAY(self->slope, em_gamma_process_size(&self->process)),
                            EM_ARRAY(self->metric, 4 * em_gamma_process_size(&self->process)));
    if (!status)
        set_model(self);
    return status;
}

const em_model_ops em_model_pfa = {
    .name = "pfa",
    .doc = "Poisson factor analysis with a gamma process: topics of a corpus, and how many",
    .source = "Zhou & Carin 2015; Roychowdhury & Parthasarathy 2017, 4.3",
    .options_size = sizeof(pfa_options),
    .fields = fields,
    .state = &(const em_construction){sizeof(pfa), set_up},
    .metric = &(const em_model_metric){.diagonal = diagonal},
    EM_POISSON_MODEL};
