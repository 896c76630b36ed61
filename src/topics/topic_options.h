/* The options that all topic models have in common. */
#pragma once

#include "data/corpus/corpus.h"
#include "topics/lda_local.h"
#include "topics/topic_parameters.h"

#include <stdbool.h>
#include <stdint.h>

/* alpha and beta of lda at the start of warmup, and where they are not learned. */
#define EM_LDA_ALPHA 0.1
#define EM_LDA_BETA  0.01

/* How test documents are folded in (topics/lda_held_out.h): by EM from phi alone, or also by the
 * model's Gibbs sampler. */
typedef enum em_topic_fold_in { EM_FOLD_IN_EM, EM_FOLD_IN_GIBBS, EM_FOLD_INS } em_topic_fold_in;

/* First member of the options of a model of topics. */
typedef struct em_topic_options {
    em_corpus_options corpus;
    char *test, *test_scored;    /* files of other corpora of the same words; NULL: none */
    int64_t topics, test_every;  /* number of topics; iterations between scores */
    int fold_in;                 /* em_topic_fold_in */
    int parameters;              /* em_topic_form */
    double fold_in_alpha;        /* of EM; NAN: the model's own */
    double beta;                 /* NAN: learned */
    double prior_mean, prior_sd; /* of the parameters EM_TOPICS_NATURAL */
    bool store_phi;              /* of every draw */
    em_local_options local;
} em_topic_options;

/* The rows of those options in the table of options, without `fold_in`, `parameters` and `beta`,
 * which each model defines: EM_TOPIC_FIELDS for all topic models, EM_TOPIC_PHI_FIELDS for those in
 * which phi is a parameter.
 */
#define EM_TOPIC_FIELDS(what_topics_are, alpha_of_em)                                              \
    EM_CORPUS_FIELDS,                                                                              \
        EM_INT(em_topic_options, topics, .minimum = 1, .maximum = EM_MOST_TOPICS,                  \
               .doc = (what_topics_are)),                                                          \
        EM_PATH(em_topic_options, test, .fallback = "",                                            \
                .doc = "test corpus of the same words, which is scored and not trained on; "       \
                       "absent: none"),                                                            \
        EM_PATH(em_topic_options, test_scored, .fallback = "",                                     \
                .doc = "corpus of the same documents as test, whose tokens are scored, while all " \
                       "of test is folded in; absent: test is split"),                             \
        EM_INT(em_topic_options, test_every, .minimum = 1, .maximum = 1e9, .fallback = "10",       \
               .doc = "iterations between scores of the test documents"),                          \
        EM_REAL(em_topic_options, fold_in_alpha, .minimum = 1e-6, .maximum = 1e3,                  \
                .fallback = (alpha_of_em), .word = "model",                                        \
                .doc = "alpha with which EM folds test documents in; model: the model's own "      \
                       "weight of each topic, alpha of lda and r of pfa and dpfa"),                \
        EM_BOOL(em_topic_options, store_phi, .fallback = "false",                                  \
                .doc = "store phi of every draw, besides its average")
#define EM_TOPIC_PHI_FIELDS                                                                        \
    EM_REAL(                                                                                       \
        em_topic_options, prior_mean, .minimum = -1e3, .maximum = 1e3, .fallback = "0.1",          \
        .doc = "mean of the normal prior of the parameters expanded_natural, which have no beta"), \
        EM_REAL(em_topic_options, prior_sd, .minimum = 1e-6, .maximum = 1e6, .fallback = "1",      \
                .doc = "standard deviation of that normal prior"),                                 \
        EM_LOCAL_FIELDS(em_topic_options, local)

/* First member of the options of a model of Poisson factor analysis: counts of word v in document
 * j ~ Poisson(sum_k phi_vk theta_kj), theta_kj ~ Gamma(., scale p_j / (1 - p_j)), p_j ~ Beta(a0,
 * b0). */
typedef struct em_poisson_options {
    em_topic_options topic;
    double a0, b0;
} em_poisson_options;

/* The rows of those options. */
#define EM_POISSON_FIELDS(what_topics_are)                                                         \
    EM_TOPIC_FIELDS(what_topics_are, "0.1"),                                                       \
        EM_CHOICE(em_topic_options, parameters, .fallback = "expanded_natural",                    \
                  .choices = em_topic_forms,                                                       \
                  .doc = "parameters of phi: expanded_mean for a block of sgrld or sgrhmc, "       \
                         "expanded_natural for the other samplers with minibatches"),              \
        EM_REAL(em_topic_options, beta, .minimum = 1e-6, .maximum = 1e3, .fallback = "0.05",       \
                .doc = "beta of the Dirichlet prior of topics' word distributions, with the "      \
                       "parameters expanded_mean"),                                                \
        EM_TOPIC_PHI_FIELDS,                                                                       \
        EM_REAL(em_poisson_options, a0, .minimum = 1e-6, .maximum = 1e6, .fallback = "1",          \
                .doc = "a0 of the Beta(a0, b0) prior of documents' p"),                            \
        EM_REAL(em_poisson_options, b0, .minimum = 1e-6, .maximum = 1e6, .fallback = "1",          \
                .doc = "b0 of the Beta(a0, b0) prior of documents' p")
