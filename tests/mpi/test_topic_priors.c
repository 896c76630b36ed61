/* The learned priors of lda become common to all chains, whatever the ranks that have them. */
#include "par/world.h"
#include "support/everywhere.h"
#include "support/on_grid.h"
#include "topics/lda_topics.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { K = 3, STRIDE = 5, MOST = 3 };

/* Rank r has r % 3 chains, so that some have none; the first one has two. */
static int chains_of(int rank)
{
    return rank == 0 ? 2 : rank % 3;
}

static int first_of(int rank)
{
    int first = 0;

    for (int r = 0; r < rank; r++)
        first += chains_of(r);
    return first;
}

/* The i-th largest topic of a chain has this number there. */
static int number_of(int chain, int i)
{
    return (i + chain) % K;
}

static double log_alpha(int chain, int i)
{
    return -1.5 * i + 0.25 * chain;
}

static double log_beta(int chain)
{
    return -4 + 0.5 * chain;
}

static void fill(int chain, int64_t *tokens, double *theta)
{
    static const int64_t size[K] = {700, 50, 8};

    for (int i = 0; i < K; i++) {
        tokens[number_of(chain, i)] = size[i];
        theta[number_of(chain, i)] = log_alpha(chain, i);
    }
    theta[K] = log_beta(chain);
    theta[K + 1] = 77; /* is no parameter */
}

static bool is_near(double x, double y)
{
    return fabs(x - y) < 1e-8;
}

/* With case 0 both are pooled, with 1 alpha alone, with 2 beta alone. A rank that has another shard
 * than the first one passes the same, and is not counted twice. */
START_TEST(topics_of_the_same_size_are_pooled)
{
    const bool alpha = _i != 2, beta = _i != 1;
    const int rank = em_world_rank(), first = first_of(rank), n = chains_of(rank);
    const int all = first_of(em_world_size());
    int64_t tokens[MOST * K] = {0};
    double theta[MOST * STRIDE] = {0};
    const em_lda_learned learned = {.n_topic = K,
                                    .n_chain = n,
                                    .stride = STRIDE,
                                    .alpha = alpha,
                                    .beta = beta,
                                    .is_first = true,
                                    .tokens = tokens};
    const double mean_chain = (all - 1) / 2.0;
    bool right = true;

    for (int c = 0; c < n; c++)
        fill(first + c, tokens + c * K, theta + c * STRIDE);
    assert_everywhere(em_lda_pool_priors(&learned, theta) == EM_OK, "pooled");
    for (int c = 0; c < n; c++) {
        const double *of = theta + c * STRIDE;
        for (int i = 0; i < K; i++)
            right &= is_near(of[number_of(first + c, i)],
                             alpha ? -1.5 * i + 0.25 * mean_chain : log_alpha(first + c, i));
        right &= is_near(of[K], beta ? -4 + 0.5 * mean_chain : log_beta(first + c));
        right &= of[K + 1] == 77;
    }
    assert_everywhere(right, "means over chains");
}
END_TEST

START_TEST(shards_are_counted_once)
{
    const bool is_first = em_world_rank() == 0;
    int64_t tokens[2 * K];
    double theta[2 * STRIDE];
    const em_lda_learned learned = {.n_topic = K,
                                    .n_chain = 2,
                                    .stride = STRIDE,
                                    .alpha = true,
                                    .beta = true,
                                    .is_first = is_first,
                                    .tokens = tokens};

    fill(0, tokens, theta);
    fill(1, tokens + K, theta + STRIDE);
    assert_everywhere(em_lda_pool_priors(&learned, theta) == EM_OK, "pooled");
    assert_everywhere(is_near(theta[0], 0.125) && is_near(theta[STRIDE + 1], 0.125) &&
                          is_near(theta[K], -3.75),
                      "means over chains of all shards");
}
END_TEST

int main(int argc, char **argv)
{
    TCase *tests = tcase_create("topic_priors");

    tcase_add_loop_test(tests, topics_of_the_same_size_are_pooled, 0, 3);
    tcase_add_test(tests, shards_are_counted_once);
    return run_case_on_ranks(tests, argc, argv);
}
