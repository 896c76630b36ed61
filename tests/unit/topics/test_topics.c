/* The random numbers and inner loops of topic models: the same on any instruction set and any
 * number of shards. */
#include "base/memory.h"
#include "math/rng.h"
#include "math/simd/simd.h"
#include "math/special.h"
#include "support/lda_chain.h"
#include "support/tap.h"

#include <check.h>
#include <math.h>
#include <string.h>

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

/* ---------------------------------------------------------------- the same, however it is done */

/* Tokens of a run drawn by two sets of loops. */
static void draw_run(const em_token_kernels *kernels, bool sparse, const lda_chain *h,
                     uint16_t *topic)
{
    enum { N = 2000, DOCUMENTS = 50 };
    static uint16_t place[N], state[N];
    static em_token_entry entry[N];
    static uint32_t bits[N];
    const em_stream stream = {.seed = 5, .purpose = EM_RNG_TEST};
    const int64_t stride = h->shape.stride, n_topic = h->shape.n_topic;
    em_topic_list list[DOCUMENTS];
    float *tokens, *room, *alpha, *groups;
    uint16_t *keys;

    ck_assert_int_eq(em_allocate(DOCUMENTS * stride, sizeof *tokens, &tokens), EM_OK);
    ck_assert_int_eq(em_allocate(DOCUMENTS * stride, sizeof *keys, &keys), EM_OK);
    ck_assert_int_eq(em_allocate(em_token_workspace(n_topic), sizeof *room, &room), EM_OK);
    ck_assert_int_eq(em_allocate(stride, sizeof *alpha, &alpha), EM_OK);
    ck_assert_int_eq(em_allocate(em_topic_groups(n_topic), sizeof *groups, &groups), EM_OK);
    for (int d = 0; d < DOCUMENTS; d++)
        list[d] = (em_topic_list){0, (int32_t)stride, keys + d * stride, tokens + d * stride};
    for (int64_t i = 0; i < DOCUMENTS * stride; i++)
        keys[i] = (uint16_t)n_topic;
    for (int i = 0; i < N; i++) {
        entry[i] = (em_token_entry){(uint32_t)(N - 1 - i), (uint16_t)(i % DOCUMENTS), 1};
        bits[i] = (uint32_t)em_uniform_below(&stream, (uint64_t)i, UINT32_MAX);
        topic[i] = (uint16_t)(i % 3 ? (uint64_t)n_topic
                                    : em_uniform_below(&stream, (uint64_t)(i + N),
                                                       (uint64_t)(n_topic < 20 ? n_topic : 20)));
        em_topic_list *of = &list[entry[i].document];
        state[entry[i].slot] = topic[i];
        place[entry[i].slot] = EM_NO_PLACE;
        if (topic[i] < n_topic && !sparse)
            tokens[entry[i].document * stride + topic[i]] += 1;
        for (int32_t j = 0; topic[i] < n_topic && sparse; j++)
            if (j == of->n || of->topic[j] == topic[i]) {
                of->n += j == of->n;
                of->topic[j] = topic[i];
                of->count[j] += 1;
                place[entry[i].slot] = (uint16_t)j;
                break;
            }
    }
    for (int64_t k = 0; k < n_topic; k++)
        alpha[k] = 0.1F;
    em_token_run run = {.n = N, .entry = entry, .bits = bits, .topic = state, .drawn = topic};
    run.n_topic = n_topic;
    run.stride = stride;
    run.phi = h->phi;
    run.alpha = alpha;
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
    lda_chain h;

    make_corpus((sizes){4, 3, 5}, 0, 1, &corpus);
    make_lda_chain(&corpus, n_topics[_i], -1, &h);
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
    release_lda_chain(&h);
    release_corpus(&corpus);
}
END_TEST

/* Entries are by word and then by document, slots in the order of a document's words; a count that
 * one entry cannot hold is divided. */
START_TEST(entries_are_sorted_by_word)
{
    static const int32_t word[2][2] = {{0, 2}, {2, 0}}, count[2][2] = {{3, 70000}, {2, 0}};
    static const em_token_entry expected[] = {
        {0, 0, 3}, {3, 0, 65535}, {65538, 0, 4465}, {70004, 1, 2}};
    const em_document document[] = {{2, word[0], count[0]}, {1, word[1], count[1]}};
    em_token_entry entry[4];
    int64_t start[5];

    ck_assert_int_le(4, em_most_entries(3, 70005));
    ck_assert_int_eq(em_sort_entries(3, 2, document, start, entry), 2);
    ck_assert_int_eq(start[1], 1);
    ck_assert_int_eq(start[2], 1);
    ck_assert_int_eq(start[3], 4);
    ck_assert_mem_eq(entry, expected, sizeof expected);
}
END_TEST

/* Topics, counts and sums do not depend on how documents are distributed. */
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
            lda_chain h;
            make_corpus(of, shard, n_shard, &corpus);
            make_lda_chain(&corpus, N_TOPIC, sparse, &h);
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
            em_tokens_count(h.tokens, &h.topics, &sweep);
            for (int i = 0; i < V * ROW; i++)
                counted[which][i] += h.count[i];
            ck_assert_int_le(h.tokens->n_all, MOST_TOKENS);
            em_tokens_copy(h.tokens, &h.topics, false, 0, h.tokens->n_token,
                           ordered[which] + h.tokens->first_token);
            for (int i = 0; i < N_TOPIC + EM_LDA_SLOPES; i++)
                sums[which][i] += h.sums[i];
            release_lda_chain(&h);
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
            lda_chain h;
            make_corpus(of, shard, n_shard, &corpus);
            make_lda_chain(&corpus, 70, -1, &h);
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
            release_lda_chain(&h);
            release_corpus(&corpus);
        }
    ck_assert_mem_eq(ordered[0], ordered[1], sizeof ordered[0]);
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
    tcase_add_test(tests, entries_are_sorted_by_word);
    tcase_add_loop_test(tests, shards_draw_the_same_topics, 0, 2);
    tcase_add_test(tests, saved_topics_go_to_other_shards);
    suite_add_tcase(suite, tests);
    return run_suite(suite, CK_FORK);
}
