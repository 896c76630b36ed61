/* What only models of many topics draw: laws of words by jumps, topics of tokens by the prior. */
#include "base/memory.h"
#include "math/rng.h"
#include "math/simd/tokens.h"

#include <check.h>
#include <math.h>
#include <string.h>

#include "support/tap.h"

/* P(X < x), X ~ Gamma(s, 1): x^s e^-x sum_n x^n / Gamma(s + n + 1), for x of at most about 1. */
static double probability_below(double s, double x)
{
    double term = exp(s * log(x) - x - lgamma(s + 1)), sum = 0;

    for (int n = 1; n < 40; n++) {
        sum += term;
        term *= x / (s + n);
    }
    return sum;
}

/* Sums of the jumps of intervals of the length s have the moments of Gamma(s, 1): mean, variance,
 * and the probabilities of being below 1e-9, 1e-6, 1e-3 and 1, in standard errors. The twin's
 * intervals are a tenth longer. */
START_TEST(jumps_add_to_gammas)
{
    enum { N = 60000, POINTS = 4 };
    static const double shapes[] = {0.01, 0.1, 1}, point[POINTS] = {1e-9, 1e-6, 1e-3, 1};
    static float gap[EM_JUMPS] __attribute__((aligned(64)));
    static float size[EM_JUMPS] __attribute__((aligned(64)));
    const em_stream stream = {.seed = 3, .purpose = EM_RNG_JUMPS, .iteration = (uint64_t)_i};
    const double s = shapes[_i];

    for (int twin = 0; twin < 2; twin++) {
        const double length = twin ? 1.1 * s : s;
        double mean = 0, square = 0, share[POINTS] = {0}, worst = 0, at = 0, sum = 0;
        int64_t n = 0;
        for (uint32_t batch = 0; n < N; batch++) {
            em_gamma_jumps(&stream, (uint32_t)twin, batch, gap, size);
            for (int i = 0; i < EM_JUMPS && n < N; i++) {
                for (at += (double)gap[i]; at >= length && n < N; at -= length, sum = 0, n++) {
                    mean += sum / N;
                    square += sum * sum / N;
                    for (int j = 0; j < POINTS; j++)
                        share[j] += (sum < point[j]) / (double)N;
                }
                sum += (double)size[i];
            }
        }
        worst = fabs(mean - s) / sqrt(s / N);
        worst = fmax(worst, fabs(square - s * (s + 1)) / sqrt(s * (s + 1) * (4 * s + 6) / N));
        for (int j = 0; j < POINTS; j++) {
            const double p = probability_below(s, point[j]);
            if (p * N > 10)
                worst = fmax(worst, fabs(share[j] - p) / sqrt(p * (1 - p) / N));
        }
        ck_assert_msg(twin ? worst > 5 : worst < 5, "shape %g twin %d: %g", s, twin, worst);
    }
}
END_TEST

/* Topics of documents of one token, by lists: k has the probability alpha_k phi_k, whatever its
 * group. Chi-square in its own standard deviations; the twin expects the law of the topic before.
 */
START_TEST(topics_by_the_prior_have_its_law)
{
    enum { N = 50000, MOST = 1100, ROOM = EM_TOPIC_LANES };
    static const int64_t n_topics[] = {64, 200, MOST};
    static uint16_t place[N], topic[N], keys[N * ROOM] __attribute__((aligned(64)));
    static float tokens[N * ROOM] __attribute__((aligned(64)));
    static float phi[MOST + 64] __attribute__((aligned(64)));
    static float alpha[MOST + 64] __attribute__((aligned(64)));
    static em_token_entry entry[N];
    static uint32_t bits[N];
    static em_topic_list list[N];
    const int64_t n_topic = n_topics[_i];
    const em_stream stream = {.seed = 6, .purpose = EM_RNG_TEST};
    double seen[MOST] = {0}, p[MOST], sum = 0, square[2] = {0};
    float *room, *groups;

    memset(phi, 0, sizeof phi);
    memset(tokens, 0, sizeof tokens);
    for (int i = 0; i < N * ROOM; i++)
        keys[i] = (uint16_t)n_topic;
    for (int i = 0; i < N; i++) {
        entry[i] = (em_token_entry){(uint32_t)i, (uint16_t)i, 1};
        place[i] = EM_NO_PLACE;
        bits[i] = (uint32_t)em_uniform_below(&stream, (uint64_t)i, UINT32_MAX);
        list[i] = (em_topic_list){0, ROOM, keys + i * ROOM, tokens + i * ROOM};
    }
    for (int64_t k = 0; k < n_topic; k++) {
        phi[k] = 1 / (float)(1 + k * 7 % 5);
        alpha[k] = 0.1F * (float)(1 + k * 11 % 7);
        p[k] = (double)phi[k] * (double)alpha[k];
        sum += p[k];
    }
    ck_assert_int_eq(em_allocate(em_token_workspace(n_topic), sizeof *room, &room), EM_OK);
    ck_assert_int_eq(em_allocate(em_topic_groups(n_topic), sizeof *groups, &groups), EM_OK);
    em_token_run run = {.n = N, .entry = entry, .bits = bits, .drawn = topic};
    run.n_topic = n_topic;
    run.stride = em_topic_stride(n_topic);
    run.phi = phi;
    run.alpha = alpha;
    run.list = list;
    run.place = place;
    run.room = room;
    run.groups = groups;
    em_token_kernels_best()->sparse(&run);
    for (int i = 0; i < N; i++) {
        ck_assert_int_lt(topic[i], n_topic);
        ck_assert_int_eq(list[i].topic[place[i]], topic[i]);
        seen[topic[i]]++;
    }
    for (int64_t k = 0; k < n_topic; k++)
        for (int twin = 0; twin < 2; twin++) {
            const double expected = N * p[(k + n_topic - twin) % n_topic] / sum;
            square[twin] += (seen[k] - expected) * (seen[k] - expected) / expected;
        }
    const double most = (double)n_topic + 5 * sqrt(2.0 * (double)n_topic);
    ck_assert_double_lt(square[0], most);
    ck_assert_double_gt(square[1], most);
    em_release(&room);
    em_release(&groups);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("many_topics");
    TCase *tests = tcase_create("many_topics");

    tcase_set_timeout(tests, 300);
    tcase_add_loop_test(tests, jumps_add_to_gammas, 0, 3);
    tcase_add_loop_test(tests, topics_by_the_prior_have_its_law, 0, 3);

    suite_add_tcase(suite, tests);
    return run_suite(suite, CK_FORK);
}
