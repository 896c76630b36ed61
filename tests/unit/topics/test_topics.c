/* Topics of tokens: the inner loops, the sweep against enumeration, the laws of words. */
#include "base/memory.h"
#include "math/rng.h"
#include "math/simd/simd.h"
#include "math/special.h"
#include "topics/lda_fold_in.h"
#include "topics/lda_tokens.h"
#include "topics/lda_topics.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/tap.h"

/* ---------------------------------------------------------------- random numbers */

/* Mean, variance and E log of each shape, in standard errors; the twin has the shape of its
 * neighbour. */
START_TEST(gammas_have_their_moments)
{
    static const double shapes[] = {0.02, 0.3, 0.999, 1, 2.5, 40, 1000};
    enum { N = 40000, N_SHAPE = sizeof shapes / sizeof *shapes };
    const double a = shapes[_i], wrong = a * 1.05;
    const em_stream stream = {.seed = 7, .purpose = EM_RNG_TEST, .iteration = (uint64_t)_i};
    double *x, mean = 0, square = 0, log_mean = 0, log_square = 0;

    ck_assert_int_eq(em_allocate(N, sizeof *x, &x), EM_OK);
    for (int i = 0; i < N; i++)
        x[i] = a;
    em_gammas(&stream, 0, N, x, x);
    for (int i = 0; i < N; i++) {
        const double y = x[i] > 0 ? log(x[i]) : -700;
        mean += x[i] / N;
        square += x[i] * x[i] / N;
        log_mean += y / N;
        log_square += y * y / N;
    }
    const double error = sqrt(a / N), log_error = sqrt((log_square - log_mean * log_mean) / N);
    ck_assert_double_le(fabs(mean - a), 5 * error);
    ck_assert_double_le(fabs(log_mean - em_digamma(a)), 5 * log_error);
    /* Var x^2 = a (a + 1) (4 a + 6) */
    ck_assert_double_le(fabs(square - a * (a + 1)), 5 * sqrt(a * (a + 1) * (4 * a + 6) / N));
    ck_assert(fabs(log_mean - em_digamma(wrong)) > 5 * log_error || a > 500 || a < 0.1);
    em_release(&x);
}
END_TEST

START_TEST(instruction_sets_agree)
{
    enum { N = 4096 };
    static double shape[N] __attribute__((aligned(64))), x[2][N] __attribute__((aligned(64)));
    static uint64_t block[N] __attribute__((aligned(64)));
    static uint32_t bits[2][4 * N] __attribute__((aligned(64)));
    static float gap[2][N] __attribute__((aligned(64))), size[2][N] __attribute__((aligned(64)));
    const em_philox start = {.key = 3, .low = 5, .high = (uint64_t)EM_RNG_TEST << 16};

    for (int i = 0; i < N; i++) {
        shape[i] = i % 5 ? 0.01 * i : i % 2 ? 0 : 0.01;
        block[i] = (uint64_t)i * 77777 << i % 20;
    }
    for (int s = 0; em_simds[s]; s++) {
        const bool exact = s + 1 < 3 && em_simds[s + 1];
        if (!em_simd_runs(em_simds[s]))
            continue;
        em_simds[s]->gammas(start, N, shape, x[0]);
        em_simds[s]->item_bits(start, N, block, bits[0]);
        em_simd_best()->gammas(start, N, shape, x[1]);
        em_simd_best()->item_bits(start, N, block, bits[1]);
        ck_assert_mem_eq(bits[0], bits[1], sizeof bits[0]);
        em_simds[s]->jumps(N, bits[0], gap[0], size[0]);
        em_simd_best()->jumps(N, bits[0], gap[1], size[1]);
        for (int i = 0; i < N; i++) {
            ck_assert_float_le(fabsf(gap[0][i] - gap[1][i]), exact ? 0 : 1e-5F * gap[1][i]);
            ck_assert_float_le(fabsf(size[0][i] - size[1][i]), exact ? 0 : 1e-5F * size[1][i]);
            ck_assert(shape[i] > 0 || x[0][i] == 0);
            ck_assert_double_le(fabs(x[0][i] - x[1][i]), exact ? 0 : 1e-9 * x[1][i]);
        }
    }
}
END_TEST

/* psi at 1, 1/2 and 10, and its recurrence. */
START_TEST(digamma)
{
    const double euler = 0.57721566490153286;

    ck_assert_double_le(fabs(em_digamma(1) + euler), 1e-14);
    ck_assert_double_le(fabs(em_digamma(0.5) + euler + 2 * log(2)), 1e-14);
    ck_assert_double_le(fabs(em_digamma(10) - 2.2517525890667211), 1e-14);
    for (double x = 1e-4; x < 1e4; x *= 1.7)
        ck_assert_double_le(fabs(em_digamma(x + 1) - em_digamma(x) - 1 / x),
                            1e-13 * fmax(1 / x, log(x + 3)));
}
END_TEST

/* ---------------------------------------------------------------- corpora made here */

typedef struct sizes {
    int64_t n_document, n_word, most; /* entries of a document */
} sizes;

/* Documents of shard `shard` of `n_shard` of a corpus that is the same whatever the shards. */
static void make_corpus(sizes of, int64_t shard, int64_t n_shard, em_corpus *out)
{
    const em_stream stream = {.seed = 11, .purpose = EM_RNG_TEST};
    int64_t at = 0;

    memset(out, 0, sizeof *out);
    out->n_document = of.n_document;
    out->n_word = of.n_word;
    ck_assert_int_eq(em_allocate(of.n_document + 1, sizeof *out->start, &out->start), EM_OK);
    ck_assert_int_eq(em_allocate(of.n_document * of.most, sizeof *out->word, &out->word), EM_OK);
    ck_assert_int_eq(em_allocate(of.n_document * of.most, sizeof *out->count, &out->count), EM_OK);
    for (int64_t d = 0; d < of.n_document; d++) {
        const bool keeps = d * n_shard / of.n_document == shard;
        const int64_t n =
            (int64_t)em_uniform_below(&stream, (uint64_t)d, (uint64_t)of.most) + (of.most < 9);
        const int64_t before = out->n_token;
        for (int64_t j = 0; j < n; j++) {
            const uint64_t i = (uint64_t)(1000000 + d * of.most + j);
            const int64_t count = 1 + (int64_t)em_uniform_below(&stream, 2 * i, 3);
            out->n_token += count;
            out->word[at] = (int32_t)em_uniform_below(&stream, 2 * i + 1, (uint64_t)of.n_word);
            out->count[at] = (int32_t)count;
            at += keeps;
        }
        if (keeps && out->n_local == 0) {
            out->first_document = d;
            out->first_token = before;
        }
        out->n_local += keeps;
        out->start[out->n_local] = at;
    }
}

static void release_corpus(em_corpus *corpus)
{
    em_release(&corpus->start);
    em_release(&corpus->word);
    em_release(&corpus->count);
}

/* A chain by hand. */
typedef struct hand {
    em_tokens *tokens;
    em_lda_shape shape;
    em_token_topics topics;
    uint16_t *topic; /* the same */
    int32_t *count;
    float *phi;
    double *room, *alpha;
    int64_t *total, *sums;
} hand;

static void make_hand(em_corpus *corpus, int64_t n_topic, int sparse, hand *h)
{
    ck_assert_int_eq(em_tokens_create(corpus, n_topic, sparse, NULL, &h->tokens), EM_OK);
    const int64_t stride = h->tokens->stride, n = corpus->n_word * stride;
    h->shape = (em_lda_shape){corpus->n_word, n_topic, stride, false};
    ck_assert_int_eq(em_tokens_add_chain(h->tokens, &h->topics), EM_OK);
    h->topic = h->topics.held;
    ck_assert_int_eq(em_allocate(n, sizeof *h->count, &h->count), EM_OK);
    ck_assert_int_eq(em_allocate(n, sizeof *h->phi, &h->phi), EM_OK);
    ck_assert_int_eq(em_allocate(stride, sizeof *h->room, &h->room), EM_OK);
    ck_assert_int_eq(em_allocate(n_topic, sizeof *h->alpha, &h->alpha), EM_OK);
    ck_assert_int_eq(em_allocate(n_topic, sizeof *h->total, &h->total), EM_OK);
    ck_assert_int_eq(em_allocate(n_topic + EM_LDA_SLOPES, sizeof *h->sums, &h->sums), EM_OK);
    for (int64_t k = 0; k < n_topic; k++)
        h->alpha[k] = 0.3 + 0.2 * (double)(k % 3);
}

static void release_hand(hand *h)
{
    em_tokens_destroy(&h->tokens);
    em_tokens_release_chain(&h->topics);
    em_release(&h->count);
    em_release(&h->phi);
    em_release(&h->room);
    em_release(&h->alpha);
    em_release(&h->total);
    em_release(&h->sums);
}

static em_sweep sweep_of(hand *h, uint64_t seed, int64_t iteration)
{
    return (em_sweep){.seed = seed,
                      .iteration = iteration,
                      .level = h->tokens->n_level - 1,
                      .alpha = h->alpha,
                      .phi = h->phi,
                      .count = h->count};
}

/* ---------------------------------------------------------------- the same, however it is done */

/* Tokens of a run drawn by two sets of loops. */
static void draw_run(const em_token_kernels *kernels, bool sparse, const hand *h, uint16_t *topic)
{
    enum { N = 2000, DOCUMENTS = 50 };
    static uint16_t document[N], place[N];
    static uint32_t slot[N], bits[N];
    const em_stream stream = {.seed = 5, .purpose = EM_RNG_TEST};
    const int64_t stride = h->shape.stride, n_topic = h->shape.n_topic;
    em_topic_list list[DOCUMENTS];
    float *tokens, *room, *alpha, *groups;
    uint16_t *keys;

    ck_assert_int_eq(em_allocate(DOCUMENTS * stride, sizeof *tokens, &tokens), EM_OK);
    ck_assert_int_eq(em_allocate(DOCUMENTS * stride, sizeof *keys, &keys), EM_OK);
    ck_assert_int_eq(em_allocate(em_token_room(n_topic), sizeof *room, &room), EM_OK);
    ck_assert_int_eq(em_allocate(stride, sizeof *alpha, &alpha), EM_OK);
    ck_assert_int_eq(em_allocate(em_topic_groups(n_topic), sizeof *groups, &groups), EM_OK);
    for (int d = 0; d < DOCUMENTS; d++)
        list[d] = (em_topic_list){0, keys + d * stride, tokens + d * stride};
    for (int64_t i = 0; i < DOCUMENTS * stride; i++)
        keys[i] = (uint16_t)n_topic;
    for (int i = 0; i < N; i++) {
        document[i] = (uint16_t)(i % DOCUMENTS);
        slot[i] = (uint32_t)(N - 1 - i);
        bits[i] = (uint32_t)em_uniform_below(&stream, (uint64_t)i, UINT32_MAX);
        topic[i] = (uint16_t)(i % 3 ? (uint64_t)n_topic
                                    : em_uniform_below(&stream, (uint64_t)(i + N),
                                                       (uint64_t)(n_topic < 20 ? n_topic : 20)));
        if (topic[i] < n_topic && !sparse)
            tokens[document[i] * stride + topic[i]] += 1;
        for (int32_t j = 0; topic[i] < n_topic && sparse; j++)
            if (j == list[document[i]].n || list[document[i]].topic[j] == topic[i]) {
                list[document[i]].n += j == list[document[i]].n;
                list[document[i]].topic[j] = topic[i];
                list[document[i]].count[j] += 1;
                place[slot[i]] = (uint16_t)j;
                break;
            }
    }
    for (int64_t k = 0; k < n_topic; k++)
        alpha[k] = 0.1F;
    em_token_run run = {.n = N, .document = document, .slot = slot, .bits = bits, .topic = topic};
    run.n_topic = n_topic;
    run.stride = stride;
    run.phi = h->phi;
    run.alpha = alpha;
    run.count = h->count;
    run.tokens = tokens;
    run.list = list;
    run.place = place;
    run.room = room;
    run.groups = groups;
    (sparse ? kernels->sparse : kernels->dense)(&run);
    em_release(&tokens);
    em_release(&keys);
    em_release(&room);
    em_release(&alpha);
    em_release(&groups);
}

START_TEST(loops_of_all_instruction_sets_agree)
{
    static const int64_t n_topics[] = {2, 15, 16, 50, 129, 700, 1500};
    static uint16_t topic[2][2000];
    em_corpus corpus;
    hand h;

    make_corpus((sizes){4, 3, 5}, 0, 1, &corpus);
    make_hand(&corpus, n_topics[_i], -1, &h);
    for (int64_t k = 0; k < h.shape.n_topic; k++)
        h.phi[k] = 1 / (float)(3 + k * 7 % 11);
    for (int sparse = 0; sparse < 2; sparse++) {
        draw_run(em_token_kernels_best(), sparse, &h, topic[0]);
        for (int s = 0; em_token_kernel_list[s]; s++)
            if (em_token_kernels_run(em_token_kernel_list[s])) {
                draw_run(em_token_kernel_list[s], sparse, &h, topic[1]);
                int differ = 0;
                for (int i = 0; i < 2000; i++) {
                    ck_assert_int_lt(topic[1][i], h.shape.n_topic);
                    differ += topic[0][i] != topic[1][i];
                }
                /* Without fused multiply-add sums round differently, once in many thousands. */
                ck_assert_int_le(differ, em_token_kernel_list[s + 1] ? 0 : 20);
            }
    }
    release_hand(&h);
    release_corpus(&corpus);
}
END_TEST

/* Topics, counts and sums do not know how documents are dealt. */
START_TEST(shards_draw_the_same_topics)
{
    enum { N_TOPIC = 5, N_DOCUMENT = 300, V = 40, ROW = 16 };
    const int sparse = _i;
    const sizes of = {N_DOCUMENT, V, 30};
    static int32_t count[2][V * ROW];
    enum { MOST_TOKENS = 20000 };
    static uint16_t ordered[2][MOST_TOKENS];
    static int32_t counted[2][V * ROW];
    static int64_t sums[2][N_TOPIC + EM_LDA_SLOPES];

    memset(count, 0, sizeof count);
    memset(sums, 0, sizeof sums);
    memset(counted, 0, sizeof counted);
    memset(ordered, 0, sizeof ordered);
    for (int64_t n_shard = 1; n_shard <= 3; n_shard += 2) {
        const int which = n_shard > 1;
        for (int64_t shard = 0; shard < n_shard; shard++) {
            em_corpus corpus;
            hand h;
            make_corpus(of, shard, n_shard, &corpus);
            make_hand(&corpus, N_TOPIC, sparse, &h);
            for (int64_t v = 0; v < V; v++)
                for (int64_t k = 0; k < N_TOPIC; k++)
                    h.phi[v * ROW + k] = (float)(1 + (v * k) % 7) / 7;
            em_sweep sweep = sweep_of(&h, 3, 0);
            ck_assert_int_eq(em_tokens_start(h.tokens, 3, 0, &h.topics), EM_OK);
            for (sweep.iteration = 0; sweep.iteration < 4; sweep.iteration++) {
                sweep.level = sweep.iteration < 2 ? 0 : h.tokens->n_level - 1;
                sweep.sums = sweep.iteration == 3 ? h.sums : NULL;
                em_tokens_sweep(h.tokens, &sweep, &h.topics);
            }
            for (int i = 0; i < V * ROW; i++)
                count[which][i] += h.count[i];
            memset(h.count, 0, sizeof count[0]);
            em_tokens_count(h.tokens, &h.topics, h.count);
            for (int i = 0; i < V * ROW; i++)
                counted[which][i] += h.count[i];
            ck_assert_int_le(h.tokens->n_all, MOST_TOKENS);
            em_tokens_copy(h.tokens, &h.topics, false, 0, h.tokens->n_token,
                           ordered[which] + h.tokens->first_token);
            for (int i = 0; i < N_TOPIC + EM_LDA_SLOPES; i++)
                sums[which][i] += h.sums[i];
            release_hand(&h);
            release_corpus(&corpus);
        }
    }
    ck_assert_mem_eq(count[0], count[1], sizeof count[0]);
    ck_assert_mem_eq(count[0], counted[0], sizeof count[0]);
    ck_assert_mem_eq(count[0], counted[1], sizeof count[0]);
    ck_assert_mem_eq(ordered[0], ordered[1], sizeof ordered[0]);
    ck_assert_mem_eq(sums[0], sums[1], sizeof sums[0]);
}
END_TEST

/* What one shard saved is restored by three, and saved again. */
START_TEST(saved_topics_go_to_other_shards)
{
    enum { MOST_TOKENS = 3000 };
    const sizes of = {100, 20, 12};
    static uint16_t ordered[2][MOST_TOKENS];

    for (int64_t n_shard = 1; n_shard <= 3; n_shard += 2)
        for (int64_t shard = 0; shard < n_shard; shard++) {
            em_corpus corpus;
            hand h;
            make_corpus(of, shard, n_shard, &corpus);
            make_hand(&corpus, 70, -1, &h);
            uint16_t *first = ordered[0] + h.tokens->first_token;
            ck_assert_int_le(h.tokens->n_all, MOST_TOKENS);
            if (n_shard == 1) {
                ck_assert_int_eq(em_tokens_start(h.tokens, 9, 0, &h.topics), EM_OK);
                em_tokens_copy(h.tokens, &h.topics, false, 0, h.tokens->n_token, first);
            } else {
                em_tokens_copy(h.tokens, &h.topics, true, 0, h.tokens->n_token, first);
                em_tokens_copy(h.tokens, &h.topics, false, 0, h.tokens->n_token,
                               ordered[1] + h.tokens->first_token);
            }
            release_hand(&h);
            release_corpus(&corpus);
        }
    ck_assert_mem_eq(ordered[0], ordered[1], sizeof ordered[0]);
}
END_TEST

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

static void words_of(const hand *h, int *word)
{
    ck_assert_int_eq(h->tokens->n_block, 1);
    em_block_view view;
    ck_assert_int_eq(em_block_open(h->tokens, 0, &h->topics, &view), EM_OK);
    for (int64_t r = 0; r < view.block->n_run; r++)
        for (int64_t i = view.run_start[r]; i < view.run_start[r + 1]; i++) {
            word[i] = view.run_word[r];
            document_of[i] = view.document[i];
        }
}

/* log p(z, w) with phi fixed (the documents' weights integrated out), or with both integrated. */
static double log_joint(const hand *h, const int *word, double beta, int z)
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

static void enumerate(const hand *h, const int *word, double beta, double *out)
{
    double total = 0;

    memset(out, 0, N_FEATURE * sizeof *out);
    for (int z = 0; z < 1 << SMALL_TOKENS; z++)
        total += exp(log_joint(h, word, beta, z));
    for (int z = 0; z < 1 << SMALL_TOKENS; z++)
        features_of(z, exp(log_joint(h, word, beta, z)) / total, out);
}

enum { EXACT, MEAN_PHI, OTHER_ALPHA, LONGER_JUMPS };

static em_lda_words all_words(const hand *h)
{
    return (em_lda_words){0, h->shape.n_word};
}

static void find_mean(hand *h, double beta)
{
    em_lda_total(&h->shape, all_words(h), h->count, h->total);
    em_lda_mean_phi(&h->shape, all_words(h), beta, h->count, h->total, h->room, h->phi);
}

/* As two shards do. */
static void draw_phi(hand *h, int64_t iteration, double beta)
{
    const em_stream stream = {1, 0, (uint64_t)iteration, EM_RNG_TOPICS};
    const em_lda_words part[] = {{0, 1}, {1, h->shape.n_word}};
    int64_t total[SMALL_K] = {0};

    for (int s = 0; s < 2; s++) {
        em_lda_draw_weights(&h->shape, part[s], &stream, beta, h->count, h->room, h->total, h->phi);
        for (int64_t k = 0; k < h->shape.n_topic; k++)
            total[k] += h->total[k];
    }
    for (int s = 0; s < 2; s++)
        em_lda_scale(&h->shape, part[s], total, h->room, h->phi);
}

/* The worst deviation of a run's features from `expected`, in standard errors of batch means. */
static double worst_deviation(hand *h, double beta, int variant, const double *expected)
{
    static double mean[BATCHES][N_FEATURE];
    double worst = 0;
    em_sweep sweep = sweep_of(h, 1, 0);

    memset(mean, 0, sizeof mean);
    em_tokens_start(h->tokens, 1, 0, &h->topics);
    em_tokens_count(h->tokens, &h->topics, h->count);
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
    hand h;
    int word[SMALL_TOKENS];
    double expected[N_FEATURE], worst;

    make_small(&corpus);
    make_hand(&corpus, SMALL_K, sparse, &h);
    h.shape.jumps = sparse > 0;
    words_of(&h, word);
    for (int v = 0; v < SMALL_V; v++)
        for (int k = 0; k < SMALL_K; k++)
            h.phi[v * h.shape.stride + k] = (float)(1 + v * (1 - k)) / (float)(k ? 3 : 6);
    enumerate(&h, word, beta, expected);
    worst = worst_deviation(&h, beta, variant, expected);
    release_hand(&h);
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

static double log_words(const hand *h, double beta)
{
    return (double)em_lda_log_words(&h->shape, all_words(h), beta, h->count) * EM_LDA_UNIT +
           em_lda_log_total(&h->shape, beta, h->total);
}

/* The sums of lda_tokens.h from the topics of all tokens. */
static void sums_of(const hand *h, int64_t *sums)
{
    em_tokens *tokens = h->tokens;
    em_block_view view;
    static double n[DOCUMENTS][K];
    double all = 0, density = 0, total_slope = 0, slope[K] = {0};

    memset(n, 0, sizeof n);
    for (int64_t b = 0; b < tokens->n_block; b++) {
        ck_assert_int_eq(em_block_open(tokens, b, &h->topics, &view), EM_OK);
        for (int64_t i = 0; i < view.block->n_token; i++)
            n[view.block->first_document + view.document[i]][view.topic[i]]++;
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
    sums[EM_LDA_DENSITY] = llround(density / EM_LDA_UNIT);
    sums[EM_LDA_TOTAL_SLOPE] = llround(total_slope / EM_LDA_UNIT);
    for (int k = 0; k < K; k++)
        sums[EM_LDA_SLOPES + k] = llround(slope[k] / EM_LDA_UNIT);
}

/* Minka's steps come to rest where the density is highest: a twentieth more or less of any of the
 * hyperparameters, and it is lower. */
START_TEST(hyperparameters_climb_to_the_top)
{
    em_corpus corpus;
    hand h;
    int64_t direct[EM_LDA_SLOPES + K];

    make_corpus((sizes){DOCUMENTS, 30, 80}, 0, 1, &corpus);
    make_hand(&corpus, K, _i, &h);
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
    release_hand(&h);
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
    ck_assert_int_eq(em_fold_in_create(FOLD_K, FOLD_TOKENS, &f), EM_OK);
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
    em_fold_in_destroy(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("topics");
    TCase *tests = tcase_create("topics");

    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, gammas_have_their_moments, 0, 7);
    tcase_add_test(tests, instruction_sets_agree);
    tcase_add_test(tests, digamma);
    tcase_add_loop_test(tests, loops_of_all_instruction_sets_agree, 0, 7);
    tcase_add_loop_test(tests, shards_draw_the_same_topics, 0, 2);
    tcase_add_test(tests, saved_topics_go_to_other_shards);
    tcase_add_loop_test(tests, topics_given_phi_are_those_of_enumeration, 0, 2);
    tcase_add_loop_test(tests, partially_collapsed_gibbs_is_exact, 0, 2);
    tcase_add_loop_test(tests, it_is_exact_with_a_small_beta, 0, 2);
    tcase_add_loop_test(tests, hyperparameters_climb_to_the_top, 0, 2);
    tcase_add_test(tests, new_documents_are_folded_in);
    suite_add_tcase(suite, tests);
    return run_suite(suite, CK_FORK);
}
