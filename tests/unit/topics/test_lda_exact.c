/* Latent Dirichlet allocation against enumeration: the Gibbs sweep, the word distributions, the
 * hyperparameters, and documents that are folded in. */
#include "base/memory.h"
#include "math/special.h"
#include "support/lda_chain.h"
#include "support/tap.h"
#include "topics/lda_fold_in.h"
#include "topics/lda_tokens.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- against enumeration */

enum { SMALL_K = 2, SMALL_V = 3, SMALL_D = 3, SMALL_TOKENS = 10, BATCHES = 40, PER_BATCH = 1500 };

/* Three documents of ten tokens in all, in the order that em_tokens lays them. */
static void make_small(em_corpus *corpus)
{
    static const int32_t word[] = {0, 1, 2, 1, 2, 0, 2}, count[] = {2, 1, 1, 2, 1, 1, 2};
    static const int64_t start[] = {0, 3, 5, 7};

    make_corpus((sizes){SMALL_D, SMALL_V, 8}, 0, 1, corpus);
    memcpy(corpus->word, word, sizeof word);
    memcpy(corpus->count, count, sizeof count);
    memcpy(corpus->start, start, sizeof start);
    corpus->n_token = SMALL_TOKENS;
    corpus->n_local = SMALL_D;
}

/* The document of each token, and its word. */
static int document_of[SMALL_TOKENS];

/* The index among all topics of the token of a document in a slot. */
static int token_at(const lda_chain *h, int document, uint32_t slot)
{
    int64_t at = slot;

    for (int d = 0; d < document; d++)
        at -= em_padded_length(h->tokens->length[d]) - h->tokens->length[d];
    return (int)at;
}

static void words_of(const lda_chain *h, int *word)
{
    ck_assert_int_eq(h->tokens->n_block, 1);
    em_block_view view;
    ck_assert_int_eq(em_block_open(h->tokens, 0, &h->topics, &view), EM_OK);
    for (int64_t r = 0; r < view.block->n_run; r++)
        for (uint32_t e = view.run_entry[r]; e < view.run_entry[r + 1]; e++)
            for (uint32_t j = 0; j < view.entry[e].count; j++) {
                const int i = token_at(h, view.entry[e].document, view.entry[e].slot + j);
                word[i] = view.run_word[r];
                document_of[i] = view.entry[e].document;
            }
}

/* log p(z, w) with phi fixed (the documents' weights integrated out), or with both integrated. */
static double log_joint(const lda_chain *h, const int *word, double beta, int z)
{
    double document[SMALL_D][SMALL_K] = {{0}}, topic[SMALL_K][SMALL_V] = {{0}}, sum = 0;

    for (int i = 0; i < SMALL_TOKENS; i++) {
        const int k = z >> i & 1;
        document[document_of[i]][k]++;
        topic[k][word[i]]++;
        if (beta == 0)
            sum += log(h->phi[word[i] * h->shape.stride + k]);
    }
    for (int d = 0; d < SMALL_D; d++)
        for (int k = 0; k < SMALL_K; k++)
            sum += lgamma(h->alpha[k] + document[d][k]);
    for (int k = 0; beta > 0 && k < SMALL_K; k++) {
        double n = 0;
        for (int v = 0; v < SMALL_V; v++) {
            sum += lgamma(beta + topic[k][v]);
            n += topic[k][v];
        }
        sum -= lgamma(SMALL_V * beta + n);
    }
    return sum;
}

/* What is compared: topics of single tokens, and whether pairs of tokens share theirs. */
enum { N_FEATURE = SMALL_TOKENS + SMALL_TOKENS * (SMALL_TOKENS - 1) / 2 };

static void features_of(int z, double weight, double *out)
{
    int n = 0;

    for (int i = 0; i < SMALL_TOKENS; i++) {
        out[n++] += weight * (z >> i & 1);
        for (int j = 0; j < i; j++)
            out[n++] += weight * ((z >> i & 1) == (z >> j & 1));
    }
}

static void enumerate(const lda_chain *h, const int *word, double beta, double *out)
{
    double total = 0;

    memset(out, 0, N_FEATURE * sizeof *out);
    for (int z = 0; z < 1 << SMALL_TOKENS; z++)
        total += exp(log_joint(h, word, beta, z));
    for (int z = 0; z < 1 << SMALL_TOKENS; z++)
        features_of(z, exp(log_joint(h, word, beta, z)) / total, out);
}

enum { EXACT, MEAN_PHI, OTHER_ALPHA, LONGER_JUMPS };

static em_lda_words all_words(const lda_chain *h)
{
    return (em_lda_words){0, h->shape.n_word};
}

static void find_mean(lda_chain *h, double beta)
{
    em_lda_total(&h->shape, all_words(h), h->count, h->total);
    em_lda_mean_phi(&h->shape, all_words(h), beta, h->count, h->total, h->room, h->phi);
}

/* As two shards do. */
static void draw_phi(lda_chain *h, int64_t iteration, double beta)
{
    const em_stream stream = {1, 0, (uint64_t)iteration, EM_RNG_TOPICS};
    const em_lda_words part[] = {{0, 1}, {1, h->shape.n_word}};
    int64_t total[SMALL_K] = {0};

    for (int s = 0; s < 2; s++) {
        em_lda_draw_weights(&h->shape, part[s], &stream, beta,
                            h->count + part[s].first * h->shape.stride, h->room, h->total, h->phi);
        for (int64_t k = 0; k < h->shape.n_topic; k++)
            total[k] += h->total[k];
    }
    for (int s = 0; s < 2; s++)
        em_lda_scale(&h->shape, part[s], total, h->room, h->phi);
}

/* The worst deviation of a run's features from `expected`, in standard errors of batch means. */
static double worst_deviation(lda_chain *h, double beta, int variant, const double *expected)
{
    static double mean[BATCHES][N_FEATURE];
    double worst = 0;
    em_sweep sweep = sweep_of(h, 1, 0);

    memset(mean, 0, sizeof mean);
    em_tokens_start(h->tokens, 1, 0, &h->topics);
    em_tokens_count(h->tokens, &h->topics, &sweep);
    if (variant == OTHER_ALPHA)
        h->alpha[0] *= 1.3;
    for (int64_t i = -100; i < BATCHES * PER_BATCH; i++) {
        sweep.iteration = i + 100;
        if (beta > 0 && variant == MEAN_PHI)
            find_mean(h, beta);
        else if (beta > 0)
            draw_phi(h, sweep.iteration, variant == LONGER_JUMPS ? 1.5 * beta : beta);
        em_tokens_sweep(h->tokens, &sweep, &h->topics);
        int z = 0;
        for (int t = 0; t < SMALL_TOKENS; t++)
            z |= h->topic[t] << t;
        if (i >= 0)
            features_of(z, 1.0 / PER_BATCH, mean[i / PER_BATCH]);
    }
    for (int f = 0; f < N_FEATURE; f++) {
        double sum = 0, square = 0;
        for (int b = 0; b < BATCHES; b++) {
            sum += mean[b][f] / BATCHES;
            square += mean[b][f] * mean[b][f] / BATCHES;
        }
        worst = fmax(worst, fabs(sum - expected[f]) / sqrt((square - sum * sum) / (BATCHES - 1)));
    }
    return worst;
}

/* 55 features of student's t with 39 degrees: 5 is passed once in a thousand runs. */
static double deviation_of(double beta, int variant, int sparse)
{
    em_corpus corpus;
    lda_chain h;
    int word[SMALL_TOKENS];
    double expected[N_FEATURE], worst;

    make_small(&corpus);
    make_lda_chain(&corpus, SMALL_K, sparse, &h);
    h.shape.jumps = sparse > 0;
    words_of(&h, word);
    for (int v = 0; v < SMALL_V; v++)
        for (int k = 0; k < SMALL_K; k++)
            h.phi[v * h.shape.stride + k] = (float)(1 + v * (1 - k)) / (float)(k ? 3 : 6);
    enumerate(&h, word, beta, expected);
    worst = worst_deviation(&h, beta, variant, expected);
    release_lda_chain(&h);
    release_corpus(&corpus);
    return worst;
}

START_TEST(topics_given_phi_are_those_of_enumeration)
{
    ck_assert_double_le(deviation_of(0, EXACT, _i), 5);
    ck_assert_double_gt(deviation_of(0, OTHER_ALPHA, _i), 5);
}
END_TEST

START_TEST(partially_collapsed_gibbs_is_exact)
{
    ck_assert_double_le(deviation_of(0.5, EXACT, _i), 5);
    ck_assert_double_gt(deviation_of(0.5, MEAN_PHI, _i), 5);
}
END_TEST

/* Of a beta so small that phi is drawn by jumps, where documents keep lists. */
START_TEST(it_is_exact_with_a_small_beta)
{
    ck_assert_double_le(deviation_of(0.02, EXACT, _i), 5);
    ck_assert_double_gt(deviation_of(0.02, LONGER_JUMPS, _i), 5);
}
END_TEST

/* ---------------------------------------------------------------- sums and hyperparameters */

enum { K = 4, DOCUMENTS = 200 };

static double log_words(const lda_chain *h, double beta)
{
    return (double)(em_lda_log_words(&h->shape, all_words(h), beta, h->count) +
                    em_lda_log_total(&h->shape, beta, h->total)) *
           EM_TOPIC_UNIT;
}

/* The sums of lda_tokens.h from the topics of all tokens. */
static void sums_of(const lda_chain *h, int64_t *sums)
{
    em_tokens *tokens = h->tokens;
    em_block_view view;
    static double n[DOCUMENTS][K];
    double all = 0, density = 0, total_slope = 0, slope[K] = {0};

    memset(n, 0, sizeof n);
    for (int64_t b = 0; b < tokens->n_block; b++) {
        ck_assert_int_eq(em_block_open(tokens, b, &h->topics, &view), EM_OK);
        for (int64_t i = 0; i < view.block->n_document; i++) {
            const int64_t d = view.block->first_document + i;
            for (int32_t j = 0; j < tokens->length[d]; j++)
                n[d][*view.topic++]++;
        }
    }
    for (int k = 0; k < K; k++)
        all += h->alpha[k];
    for (int d = 0; d < DOCUMENTS; d++) {
        const double length = tokens->length[d];
        density += lgamma(all) - lgamma(all + length);
        total_slope += em_digamma(all + length) - em_digamma(all);
        for (int k = 0; k < K; k++) {
            density += lgamma(h->alpha[k] + n[d][k]) - lgamma(h->alpha[k]);
            slope[k] += em_digamma(h->alpha[k] + n[d][k]) - em_digamma(h->alpha[k]);
        }
    }
    sums[EM_LDA_DENSITY] = llround(density / EM_TOPIC_UNIT);
    sums[EM_LDA_TOTAL_SLOPE] = llround(total_slope / EM_TOPIC_UNIT);
    for (int k = 0; k < K; k++)
        sums[EM_LDA_SLOPES + k] = llround(slope[k] / EM_TOPIC_UNIT);
}

/* Minka's steps come to rest where the density is highest: a twentieth more or less of any of the
 * hyperparameters, and it is lower. */
START_TEST(hyperparameters_reach_the_maximum)
{
    em_corpus corpus;
    lda_chain h;
    int64_t direct[EM_LDA_SLOPES + K];

    make_corpus((sizes){DOCUMENTS, 30, 80}, 0, 1, &corpus);
    make_lda_chain(&corpus, K, _i, &h);
    for (int64_t i = 0; i < 30 * h.shape.stride; i++)
        h.phi[i] = i % h.shape.stride < K ? (float)(1 + i * i % 13) : 0;
    em_sweep sweep = sweep_of(&h, 1, 0);
    sweep.sums = h.sums;
    ck_assert_int_eq(em_tokens_start(h.tokens, 1, 0, &h.topics), EM_OK);
    em_tokens_sweep(h.tokens, &sweep, &h.topics);
    sums_of(&h, direct);
    for (int i = 0; i < EM_LDA_SLOPES + K; i++) /* each term is rounded */
        ck_assert_int_le(llabs(h.sums[i] - direct[i]), DOCUMENTS * (K + 1));

    for (int step = 0; step < 3000; step++, sums_of(&h, direct))
        em_lda_learn_alpha(K, direct, h.alpha);
    const int64_t top = direct[EM_LDA_DENSITY];
    for (int k = 0; k < 2 * K; k++) {
        const double by = k % 2 ? 1.05 : 1 / 1.05;
        h.alpha[k / 2] *= by;
        sums_of(&h, direct);
        ck_assert_int_lt(direct[EM_LDA_DENSITY], top);
        h.alpha[k / 2] /= by;
    }
    double beta = 0.5;
    em_lda_total(&h.shape, all_words(&h), h.count, h.total);
    for (int step = 0; step < 20000; step++)
        beta = em_lda_learn_beta(&h.shape, h.total,
                                 em_lda_slope(&h.shape, all_words(&h), beta, h.count), beta);
    ck_assert_double_gt(log_words(&h, beta), log_words(&h, beta * 1.05));
    ck_assert_double_gt(log_words(&h, beta), log_words(&h, beta / 1.05));
    release_lda_chain(&h);
    release_corpus(&corpus);
}
END_TEST

/* ---------------------------------------------------------------- new documents */

enum { FOLD_K = 3, FOLD_TOKENS = 4 };

/* E (alpha_k + n_k) / (A + n) over all topics of the tokens of words 0, 0, 1, 2. */
static void weights_by_enumeration(const float *phi, const double *alpha, double *out)
{
    static const int word[FOLD_TOKENS] = {0, 0, 1, 2};
    const int64_t stride = em_topic_stride(FOLD_K);
    double all = FOLD_TOKENS, total = 0;

    for (int k = 0; k < FOLD_K; k++)
        all += alpha[k];
    memset(out, 0, FOLD_K * sizeof *out);
    for (int code = 0; code < 81; code++) {
        double p = 1, n[FOLD_K] = {0};
        for (int i = 0, left = code; i < FOLD_TOKENS; i++, left /= FOLD_K) {
            const int k = left % FOLD_K;
            p *= (alpha[k] + n[k]) * (double)phi[word[i] * stride + k];
            n[k]++;
        }
        total += p;
        for (int k = 0; k < FOLD_K; k++)
            out[k] += p * (alpha[k] + n[k]) / all;
    }
    for (int k = 0; k < FOLD_K; k++)
        out[k] /= total;
}

/* Weights of many documents of the same words, which have numbers of their own, in standard errors;
 * the twin has another alpha. */
START_TEST(new_documents_are_folded_in)
{
    em_owner memory = {NULL};
    enum { N = 4000 };
    static const double alpha[FOLD_K] = {0.3, 0.5, 0.2}, other[FOLD_K] = {0.5, 0.5, 0.2};
    static float phi[3 * EM_TOPIC_LANES] __attribute__((aligned(64)));
    static const float value[3][FOLD_K] = {
        {0.7F, 0.1F, 0.3F}, {0.1F, 0.6F, 0.3F}, {0.2F, 0.3F, 0.4F}};
    static const float count[] = {2, 1, 1};
    const em_stream stream = em_fold_in_stream(5, 1, 9);
    double exact[FOLD_K], twin[FOLD_K], sum[FOLD_K] = {0}, square[FOLD_K] = {0};
    float mixture[FOLD_K];
    em_fold_in *f = NULL;
    bool twin_fails = false;

    for (int v = 0; v < 3; v++)
        memcpy(phi + v * em_topic_stride(FOLD_K), value[v], sizeof value[v]);
    weights_by_enumeration(phi, alpha, exact);
    weights_by_enumeration(phi, other, twin);
    ck_assert_int_eq(em_fold_in_create(&memory, FOLD_K, FOLD_TOKENS, &f), EM_OK);
    for (int d = 0; d < N; d++) {
        const em_folded document = {.number = d, .n = 3, .count = count, .phi = phi};
        em_fold_in_gibbs(f, &stream, &document, alpha, mixture);
        ck_assert_double_le(fabs(mixture[0] + mixture[1] + mixture[2] - 1.0), 1e-6);
        for (int k = 0; k < FOLD_K; k++) {
            sum[k] += (double)mixture[k] / N;
            square[k] += (double)mixture[k] * (double)mixture[k] / N;
        }
    }
    for (int k = 0; k < FOLD_K; k++) {
        const double error = sqrt((square[k] - sum[k] * sum[k]) / N);
        ck_assert_double_le(fabs(sum[k] - exact[k]), 4 * error);
        twin_fails |= fabs(sum[k] - twin[k]) > 4 * error;
    }
    ck_assert(twin_fails);
    em_release_owned(&memory);
}
END_TEST

enum { FOLD_WORDS = 6 }; /* vector loops take four words at a time, and then those left */

/* The steps of EM once more, with one of the terms of each step after the other. */
static void weights_by_em(const double phi[FOLD_WORDS][FOLD_K], const double *count,
                          const double *alpha, double *out)
{
    double weight[FOLD_K] = {0}, n = 0;

    for (int v = 0; v < FOLD_WORDS; v++)
        n += count[v];
    for (int k = 0; k < FOLD_K; k++)
        weight[k] = alpha[k] + n / FOLD_K;
    for (int step = 0; step < EM_FOLD_IN_STEPS; step++) {
        memcpy(out, alpha, FOLD_K * sizeof *out);
        for (int v = 0; v < FOLD_WORDS; v++) {
            double sum = 0;
            for (int k = 0; k < FOLD_K; k++)
                sum += phi[v][k] * weight[k];
            for (int k = 0; k < FOLD_K; k++)
                out[k] += count[v] * phi[v][k] * weight[k] / sum;
        }
        memcpy(weight, out, sizeof weight);
    }
}

/* Every topic has an alpha of its own; the twin has the alphas of two topics exchanged. */
START_TEST(em_has_alpha_of_each_topic)
{
    static const double alpha[FOLD_K] = {0.9, 0.02, 0.3}, exchanged[FOLD_K] = {0.02, 0.9, 0.3};
    static const double phi[FOLD_WORDS][FOLD_K] = {{0.7, 0.1, 0.3}, {0.1, 0.6, 0.3},
                                                   {0.2, 0.3, 0.4}, {0.3, 0.3, 0.1},
                                                   {0.2, 0.1, 0.6}, {0.5, 0.2, 0.2}};
    static const double count[] = {2, 1, 5, 3, 1, 4};
    static float padded[FOLD_WORDS * EM_TOPIC_LANES] __attribute__((aligned(64)));
    static float mixture[EM_FOLD_IN_ROOM * EM_TOPIC_LANES] __attribute__((aligned(64)));
    static float prior[EM_TOPIC_LANES] __attribute__((aligned(64)));
    const int64_t stride = em_topic_stride(FOLD_K);
    float tokens[FOLD_WORDS];
    const em_folded document = {.n = FOLD_WORDS, .count = tokens, .phi = padded};
    double exact[FOLD_K], twin[FOLD_K], far = 0;

    for (int v = 0; v < FOLD_WORDS; v++)
        for (int k = 0; k < FOLD_K; k++)
            padded[v * stride + k] = (float)phi[v][k];
    for (int v = 0; v < FOLD_WORDS; v++)
        tokens[v] = (float)count[v];
    for (int k = 0; k < FOLD_K; k++)
        prior[k] = (float)alpha[k];
    weights_by_em(phi, count, alpha, exact);
    weights_by_em(phi, count, exchanged, twin);
    em_fold_in_em(FOLD_K, &document, alpha, mixture);
    for (int k = 0; k < FOLD_K; k++) {
        ck_assert_double_eq_tol((double)mixture[k], exact[k], 1e-4);
        far = fmax(far, fabs((double)mixture[k] - twin[k]));
    }
    ck_assert_double_ge(far, 0.1);
    for (int s = 0; em_token_kernel_list[s]; s++)
        if (em_token_kernels_run(em_token_kernel_list[s])) {
            em_token_kernel_list[s]->fold_in(FOLD_WORDS, padded, tokens, FOLD_K, stride, prior,
                                             EM_FOLD_IN_STEPS, mixture);
            for (int k = 0; k < FOLD_K; k++)
                ck_assert_double_eq_tol((double)mixture[k], exact[k], 1e-4);
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lda_exact");
    TCase *tests = tcase_create("lda_exact");

    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, topics_given_phi_are_those_of_enumeration, 0, 2);
    tcase_add_loop_test(tests, partially_collapsed_gibbs_is_exact, 0, 2);
    tcase_add_loop_test(tests, it_is_exact_with_a_small_beta, 0, 2);
    tcase_add_loop_test(tests, hyperparameters_reach_the_maximum, 0, 2);
    tcase_add_test(tests, new_documents_are_folded_in);
    tcase_add_test(tests, em_has_alpha_of_each_topic);
    suite_add_tcase(suite, tests);
    return run_suite(suite, CK_FORK);
}
