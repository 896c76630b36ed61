/*
 * Gradients of topic models for kernels of stochastic gradients. They are estimates: their means
 * over many evaluations against derivatives of the marginal likelihood, in which the topics of all
 * tokens are summed over one by one, in standard errors of those means. Twins have the row
 * normaliser left out, as in print (EQUATIONS 22), or another prior: they must be found out.
 */
#include "../model_setup.h"
#include "par/world.h"
#include "tap.h"

#include <check.h>
#include <math.h>
#include <unistd.h>

enum { N_WORD = 4, N_TOPIC = 2, N_DOCUMENT = 3, DIM = N_WORD * N_TOPIC, STRIDE = 8, MOST = 8 };

/* Bound on the largest of DIM deviations in standard errors: beyond it by chance once in 1e4. */
#define BOUND 5.0

static const int documents[N_DOCUMENT][MOST] = {
    {0, 0, 1, 2, -1}, {1, 3, 3, 3, 2, -1}, {0, 1, 1, 1, 3, -1}};

static char folder[] = "/tmp/emass-topics-XXXXXX";
static char path[64];
static em_grid *grid;

static bool write_corpus(void)
{
    FILE *file = NULL;

    if (mkdtemp(folder)) {
        snprintf(path, sizeof path, "%s/train.ldac", folder);
        file = fopen(path, "w");
    }
    if (!file)
        return false;
    for (int d = 0; d < N_DOCUMENT; d++) {
        int count[N_WORD] = {0}, n = 0;
        for (const int *w = documents[d]; *w >= 0; w++)
            n += count[*w]++ == 0;
        fprintf(file, "%d", n);
        for (int v = 0; v < N_WORD; v++)
            if (count[v] > 0)
                fprintf(file, " %d:%d", v, count[v]);
        fprintf(file, "\n");
    }
    return fclose(file) == 0;
}

/* ---------------------------------------------------------------- the exact density */

typedef struct target {
    bool natural, unnormalised;
    double alpha[N_TOPIC];
} target;

/* Row k of the laws of words. */
static void laws(const target *t, const double *theta, double phi[N_TOPIC][N_WORD])
{
    for (int k = 0; k < N_TOPIC; k++) {
        double sum = 0;
        for (int v = 0; v < N_WORD; v++) {
            const double x = theta[v * N_TOPIC + k];
            sum += phi[k][v] = t->natural ? exp(x) : x;
        }
        for (int v = 0; v < N_WORD; v++)
            phi[k][v] /= t->unnormalised ? 1 : sum;
    }
}

/* log sum_z prod_k Gamma(alpha_k + n_k) / Gamma(alpha_k) prod_j phi_{z_j, w_j} */
static double log_document(const target *t, double phi[N_TOPIC][N_WORD], const int *word)
{
    double sum = 0;
    int n = 0;

    while (word[n] >= 0)
        n++;
    for (int z = 0; z < 1 << n; z++) {
        int count[N_TOPIC] = {0};
        double p = 1;
        for (int j = 0; j < n; j++) {
            const int k = z >> j & 1;
            p *= (t->alpha[k] + count[k]++) * phi[k][word[j]];
        }
        sum += p;
    }
    return log(sum);
}

static double log_likelihood(const target *t, const double *theta)
{
    double phi[N_TOPIC][N_WORD], sum = 0;

    laws(t, theta, phi);
    for (int d = 0; d < N_DOCUMENT; d++)
        sum += log_document(t, phi, documents[d]);
    return sum;
}

static double log_prior(const target *t, const double *theta)
{
    double sum = 0;

    for (int i = 0; i < DIM; i++)
        sum += t->natural ? -(theta[i] - 0.1) * (theta[i] - 0.1) / (2 * 0.7 * 0.7)
                          : (0.4 - 1) * log(theta[i]) - theta[i];
    return sum;
}

static void exact_gradient(const target *t, const double *theta, double *gradient)
{
    const double h = 1e-5;

    for (int i = 0; i < DIM; i++) {
        double x[DIM];
        memcpy(x, theta, sizeof x);
        x[i] = theta[i] + h;
        const double up = log_likelihood(t, x) + log_prior(t, x);
        x[i] = theta[i] - h;
        gradient[i] = (up - log_likelihood(t, x) - log_prior(t, x)) / (2 * h);
    }
}

/* ---------------------------------------------------------------- the estimates */

static void open_lda(bool natural, const char *warm, int64_t shard, int64_t n_shard, setup *s)
{
    const setting settings[] = {{"data", path},
                                {"topics", "2"},
                                {"alpha", "0.3"},
                                {"beta", "0.4"},
                                {"prior_sd", "0.7"},
                                {"parameters", natural ? "expanded_natural" : "expanded_mean"},
                                {"local_discard", *warm == 't' ? "2" : "15"},
                                {"local_sweeps", "5"},
                                {"warm_start", warm},
                                {NULL, NULL}};

    ck_assert_msg(try_setup("lda", settings, shard, n_shard, s) == EM_OK, "%s", em_error_text());
}

/* The largest deviation of the mean of `n` estimates from `exact`, in standard errors. They need
 * not be independent of their neighbours: batches of 50 are. */
static double worst_z(const setup *s, int64_t minibatch, const double *theta, const double *exact,
                      int n)
{
    enum { BATCH = 50 };
    const em_minibatch batch = {minibatch, false};
    const int64_t chain = 0;
    _Alignas(64) double gradient[STRIDE], x[STRIDE] = {0};
    double density, mean[DIM] = {0}, square[DIM] = {0}, part[DIM] = {0}, worst = 0;
    em_posterior *posterior = NULL;

    memcpy(x, theta, DIM * sizeof *x);
    ck_assert_int_eq(em_posterior_create(s->model, grid, 1, &posterior), EM_OK);
    for (int e = 0; e < n; e++) {
        const em_query query = {.n_chain = 1,
                                .stride = STRIDE,
                                .chain = &chain,
                                .theta = x,
                                .log_density = &density,
                                .gradient = gradient,
                                .seed = 3,
                                .evaluation = e};
        ck_assert_int_eq(em_posterior_estimate(posterior, &batch, &query), EM_OK);
        ck_assert(isfinite(density));
        for (int i = 0; i < DIM; i++) {
            part[i] += gradient[i] / BATCH;
            if ((e + 1) % BATCH == 0) {
                mean[i] += part[i] / (n / BATCH);
                square[i] += part[i] * part[i] / (n / BATCH);
                part[i] = 0;
            }
        }
    }
    em_posterior_destroy(&posterior);
    for (int i = 0; i < DIM; i++)
        worst = fmax(worst, fabs(mean[i] - exact[i]) /
                                sqrt((square[i] - mean[i] * mean[i]) / (n / BATCH)));
    return worst;
}

/* Both forms, of all documents and of two of three, and with warm starts. */
START_TEST(lda_by_enumeration)
{
    static const double theta[DIM] = {0.4, 2.1, 1.3, 0.2, 0.9, 1.6, 2.2, 0.5};
    static const char *const warm[] = {"false", "true"};
    const target t = {.natural = _i % 2, .alpha = {0.3, 0.3}};
    target twin = t;
    double exact[DIM], wrong[DIM];
    setup s;

    open_lda(t.natural, warm[_i / 2], 0, 1, &s);
    em_model_ops const *ops = s.model->ops;
    ck_assert_int_eq(ops->place(s.model, &(em_draw){.purpose = EM_DRAW_START}, exact), EM_OK);
    exact_gradient(&t, theta, exact);
    twin.unnormalised = true;
    exact_gradient(&twin, theta, wrong);
    ck_assert_double_le(worst_z(&s, 3, theta, exact, 4000), BOUND);
    ck_assert_double_le(worst_z(&s, 2, theta, exact, 4000), BOUND);
    ck_assert_double_gt(worst_z(&s, 3, theta, wrong, 4000), BOUND);
    twin = (target){.natural = t.natural, .alpha = {0.6, 0.6}};
    exact_gradient(&twin, theta, wrong);
    ck_assert_double_gt(worst_z(&s, 3, theta, wrong, 4000), BOUND);
    teardown(&s);
}
END_TEST

/* What is summed are integers, the same however documents are dealt. */
START_TEST(sums_of_shards)
{
    _Alignas(64) double theta[STRIDE] = {0.4, 2.1, 1.3, 0.2, 0.9, 1.6, 2.2, 0.5};
    double whole[STRIDE + 1] = {0};
    const int64_t chain = 4;

    for (int n_shard = 1; n_shard <= 4; n_shard++) {
        _Alignas(64) double sum[STRIDE] = {0};
        double density = 0;
        for (int shard = 0; shard < n_shard; shard++) {
            setup s;
            open_lda(false, "false", shard, n_shard, &s);
            const em_query query = {.n_chain = 1,
                                    .stride = STRIDE,
                                    .chain = &chain,
                                    .theta = theta,
                                    .log_density = &density,
                                    .gradient = sum,
                                    .seed = 3,
                                    .evaluation = 77,
                                    .rows = {.count = s.model->rows.count}};
            ck_assert_int_eq(s.model->ops->add_likelihood(s.model, &query), EM_OK);
            teardown(&s);
        }
        for (int i = 0; i < DIM; i++)
            ck_assert(sum[i] == floor(sum[i]) && (n_shard == 1 || sum[i] == whole[i]));
        ck_assert(density == floor(density) && (n_shard == 1 || density == whole[STRIDE]));
        memcpy(whole, sum, sizeof sum);
        whole[STRIDE] = density;
    }
}
END_TEST

/* Laws of words that are none: a density that is no number, and no crash. */
START_TEST(positions_that_are_none)
{
    static const double bad[] = {NAN, INFINITY, -1, 0};
    const em_minibatch batch = {2, false};
    const int64_t chain = 0;
    em_posterior *posterior = NULL;
    setup s;

    open_lda(false, "false", 0, 1, &s);
    ck_assert_int_eq(em_posterior_create(s.model, grid, 1, &posterior), EM_OK);
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
        _Alignas(64) double theta[STRIDE] = {0.4, 2.1, 1.3, 0.2, 0.9, 1.6, 2.2, 0.5};
        _Alignas(64) double gradient[STRIDE];
        double density;
        const em_query query = {.n_chain = 1,
                                .stride = STRIDE,
                                .chain = &chain,
                                .theta = theta,
                                .log_density = &density,
                                .gradient = gradient,
                                .evaluation = (int64_t)b};
        theta[3] = bad[b];
        ck_assert_int_eq(em_posterior_estimate(posterior, &batch, &query), EM_OK);
        ck_assert_int_eq(isfinite(density) != 0, bad[b] == 0);
        for (int i = 0; i < DIM; i++)
            ck_assert(bad[b] != 0 || isfinite(gradient[i]));
    }
    em_posterior_destroy(&posterior);
    teardown(&s);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *suite = suite_create("topic_gradients");
    TCase *all = tcase_create("all");

    if (em_world_start(&argc, &argv) || em_grid_create(1, 1, &grid) || !write_corpus())
        return EXIT_FAILURE;
    tcase_add_loop_test(all, lda_by_enumeration, 0, 4);
    tcase_add_test(all, sums_of_shards);
    tcase_add_test(all, positions_that_are_none);
    tcase_set_timeout(all, 300);
    suite_add_tcase(suite, all);
    const int status = run_suite(suite, CK_NOFORK);
    unlink(path);
    rmdir(folder);
    em_grid_destroy(&grid);
    em_world_stop();
    return status;
}
