/*
 * Minibatches by epoch: every row is in one of them, once, in an order of the epoch's and the
 * chain's own, however rows are distributed over shards; and estimates are unbiased, the last
 * minibatch's too, which is smaller.
 */
#include "base/memory.h"
#include "par/grid.h"
#include "par/world.h"
#include "posterior/posterior.h"
#include "support/everywhere.h"
#include "support/on_grid.h"

#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <string.h>

enum { N_ROW = 37, PART = 5, SIZE = 8, N_BATCH = 5, N_CHAIN = 2, N_EPOCH = 10 };

/* Row i adds i + 1 to the gradient; which rows were asked for is written down. */
typedef struct rows_model {
    em_model base;
    int64_t place[N_CHAIN][N_ROW]; /* the position in its minibatch + 1; 0: not in it */
} rows_model;

static em_status rows_add_prior(em_model *base, const em_query *query)
{
    (void)base, (void)query;
    return EM_OK;
}

static em_status rows_add_likelihood(em_model *base, const em_query *query)
{
    rows_model *model = (rows_model *)base;

    for (int64_t c = 0; c < query->n_chain; c++)
        for (int64_t r = 0; r < query->rows.count; r++) {
            const int64_t row = base->rows.first + em_row(&query->rows, r);
            query->gradient[c * query->stride] += (double)(row + 1);
            model->place[query->chain[c]][row] += r + 1;
        }
    return EM_OK;
}

static const em_model_ops rows_ops = {
    .name = "rows", .add_prior = rows_add_prior, .add_likelihood = rows_add_likelihood};

typedef struct bench {
    em_grid *grid;
    rows_model model;
    em_posterior *posterior;
    double gradient[N_CHAIN]; /* of the last minibatch */
} bench;

static void open_bench(bench *b)
{
    enum { N_PART = (N_ROW + PART - 1) / PART };
    const int64_t n = em_world_size();

    memset(b, 0, sizeof *b);
    assert_everywhere(em_grid_create(N_CHAIN, n, &b->grid) == EM_OK, "a grid");
    const int64_t first = em_grid_shard(b->grid) * N_PART / n * PART;
    const int64_t after = (em_grid_shard(b->grid) + 1) * N_PART / n * PART;
    b->model.base = (em_model){.ops = &rows_ops,
                               .dim = 1,
                               .rows = {.total = N_ROW,
                                        .part = PART,
                                        .first = first,
                                        .count = (after < N_ROW ? after : N_ROW) - first}};
    assert_everywhere(em_posterior_create(&b->model.base, b->grid, N_CHAIN, &b->posterior) == EM_OK,
                      "a posterior");
}

static void close_bench(bench *b)
{
    em_posterior_destroy(&b->posterior);
    em_grid_destroy(&b->grid);
}

/* Minibatch `number`: the rows of this shard into b->model.place. */
static void take(bench *b, int64_t number)
{
    enum { STRIDE = 8 };
    static const int64_t chain[N_CHAIN] = {0, 1};
    _Alignas(64) double theta[N_CHAIN * STRIDE] = {0}, gradient[N_CHAIN * STRIDE];
    double log_density[N_CHAIN];
    const em_minibatch minibatch = {.size = SIZE, .by_epoch = true};
    const em_query query = {.n_chain = N_CHAIN,
                            .stride = STRIDE,
                            .chain = chain,
                            .theta = theta,
                            .log_density = log_density,
                            .gradient = gradient,
                            .seed = 11,
                            .evaluation = number};

    memset(b->model.place, 0, sizeof b->model.place);
    ck_assert_int_eq(em_posterior_estimate(b->posterior, &minibatch, &query), EM_OK);
    for (int64_t c = 0; c < N_CHAIN; c++)
        b->gradient[c] = gradient[c * STRIDE];
}

static void gather_places(bench *b)
{
    MPI_Allreduce(MPI_IN_PLACE, b->model.place, N_CHAIN * N_ROW, MPI_INT64_T, MPI_SUM,
                  MPI_COMM_WORLD);
}

START_TEST(every_row_is_in_an_epoch_once)
{
    int64_t seen[N_CHAIN][N_ROW], first[N_CHAIN][N_ROW];
    bool same[N_EPOCH] = {false}, apart = false;
    bench b;

    open_bench(&b);
    for (int64_t epoch = 0; epoch < N_EPOCH; epoch++) {
        memset(seen, 0, sizeof seen);
        for (int64_t k = 0; k < N_BATCH; k++) {
            take(&b, epoch * N_BATCH + k);
            gather_places(&b);
            int64_t count = 0;
            for (int64_t row = 0; row < N_ROW; row++) {
                for (int64_t c = 0; c < N_CHAIN; c++)
                    seen[c][row] += b.model.place[c][row] > 0;
                count += b.model.place[0][row] > 0;
                apart |= (b.model.place[0][row] > 0) != (b.model.place[1][row] > 0);
            }
            ck_assert_int_eq(count, k < N_BATCH - 1 ? SIZE : N_ROW - (N_BATCH - 1) * SIZE);
            if (k == 0 && epoch == 0)
                memcpy(first, b.model.place, sizeof first);
            if (k == 0)
                same[epoch] = memcmp(first, b.model.place, sizeof first) == 0;
        }
        for (int64_t c = 0; c < N_CHAIN; c++)
            for (int64_t row = 0; row < N_ROW; row++)
                ck_assert_int_eq(seen[c][row], 1);
    }
    ck_assert(apart); /* chains have orders of their own */
    for (int64_t epoch = 1; epoch < N_EPOCH; epoch++)
        ck_assert(!same[epoch]);
    close_bench(&b);
}
END_TEST

/*
 * The mean over epochs of the k-th estimate is sum_i (i + 1), within 4.5 standard errors of a
 * sample of n of N rows, sqrt(N^2 / n (1 - n / N) S^2 / epochs); without the smaller last
 * minibatch's own weight, 37 / 8 for 37 / 5, its mean would be 0.6 of that.
 */
START_TEST(estimates_are_unbiased)
{
    enum { N = 300 };
    const double truth = N_ROW * (N_ROW + 1) / 2.0, spread = N_ROW * (N_ROW + 1) / 12.0;
    bench b;

    open_bench(&b);
    for (int64_t k = 0; k < N_BATCH; k += N_BATCH - 1) {
        const double n = k == 0 ? SIZE : N_ROW - (N_BATCH - 1) * SIZE;
        double mean = 0;
        for (int64_t epoch = 0; epoch < N; epoch++) {
            take(&b, epoch * N_BATCH + k);
            mean += (b.gradient[0] + b.gradient[1]) / (2 * N);
        }
        const double error = sqrt(N_ROW * N_ROW / n * (1 - n / N_ROW) * spread / (2 * N));
        ck_assert_double_lt(fabs(mean - truth), 4.5 * error);
        ck_assert_double_gt(fabs(n / SIZE * mean - truth) + (k == 0 ? truth : 0), 4.5 * error);
    }
    close_bench(&b);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *tests = tcase_create("minibatches");

    tcase_add_test(tests, every_row_is_in_an_epoch_once);
    tcase_add_test(tests, estimates_are_unbiased);
    return run_case_on_ranks(tests, argc, argv);
}
