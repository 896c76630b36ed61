/*
 * Gradients of topic models for kernels of stochastic gradients. They are estimates: their means
 * over many evaluations against derivatives of the marginal likelihood, in which the topics of all
 * tokens are summed over one by one, in standard errors of those means. Twins have the row
 * normaliser left out, as in print (EQUATIONS 22), or another prior: they must be found out.
 *
 * And the law that a kernel leaves with those estimates, against the posterior of a small corpus.
 * Twins follow minibatches as if they were all data, or know no correction of their metric.
 */
#include "emass/model/counts.h"
#include "sampler/riemannian/metric_langevin.h"
#include "support/kernel_bench.h"
#include "support/model_setup.h"
#include "support/on_grid.h"

#include <check.h>
#include <math.h>
#include <unistd.h>

enum { N_WORD = 4, N_TOPIC = 2, N_DOCUMENT = 3, DIM = N_WORD * N_TOPIC, STRIDE = 8, MOST = 8 };

/* Bound on the largest of DIM deviations in standard errors: beyond it by chance once in 1e4. */
#define BOUND 5.0

static const int documents[N_DOCUMENT][MOST] = {
    {0, 0, 1, 2, -1}, {1, 3, 3, 3, 2, -1}, {0, 1, 1, 1, 3, -1}};

/* Of which the first word is most, unlike what the prior expects. */
static const int uneven[N_DOCUMENT][MOST] = {
    {0, 0, 0, 0, 1, -1}, {0, 0, 1, 0, 3, -1}, {2, 0, 0, 0, 0, -1}};

static char folder[] = "/tmp/emass-topics-XXXXXX";
static char path[64], uneven_path[64];
static em_grid *grid;

static bool write_corpus(const char *to, const int document[N_DOCUMENT][MOST])
{
    FILE *file = fopen(to, "w");

    if (!file)
        return false;
    for (int d = 0; d < N_DOCUMENT; d++) {
        int count[N_WORD] = {0}, n = 0;
        for (const int *w = document[d]; *w >= 0; w++)
            n += count[*w]++ == 0;
        fprintf(file, "%d", n);
        for (int v = 0; v < N_WORD; v++)
            if (count[v] > 0)
                fprintf(file, " %d:%d", v, count[v]);
        fprintf(file, "\n");
    }
    return fclose(file) == 0;
}

static bool write_corpora(void)
{
    if (!mkdtemp(folder))
        return false;
    snprintf(path, sizeof path, "%s/train.ldac", folder);
    snprintf(uneven_path, sizeof uneven_path, "%s/uneven.ldac", folder);
    return write_corpus(path, documents) && write_corpus(uneven_path, uneven);
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

static double log_likelihood(const target *t, const double *theta,
                             const int document[N_DOCUMENT][MOST])
{
    double phi[N_TOPIC][N_WORD], log_p = 0;

    laws(t, theta, phi);
    for (int d = 0; d < N_DOCUMENT; d++)
        log_p += log_document(t, phi, document[d]);
    return log_p;
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
        const double up = log_likelihood(t, x, documents) + log_prior(t, x);
        x[i] = theta[i] - h;
        gradient[i] = (up - log_likelihood(t, x, documents) - log_prior(t, x)) / (2 * h);
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

/* Of chain 0. */
static em_query query_at(int64_t evaluation, double *theta, double *density, double *gradient)
{
    static const int64_t chain = 0;

    return (em_query){.n_chain = 1,
                      .stride = STRIDE,
                      .chain = &chain,
                      .theta = theta,
                      .log_density = density,
                      .gradient = gradient,
                      .seed = 3,
                      .evaluation = evaluation};
}

/* The largest deviation of the mean of `n` estimates from `exact`, in standard errors. They need
 * not be independent of their neighbours: batches of 50 are. */
static double worst_z(const setup *s, int64_t minibatch, const double *theta, const double *exact,
                      int n)
{
    enum { BATCH = 50 };
    const em_minibatch batch = {minibatch, false};
    _Alignas(64) double gradient[STRIDE], x[STRIDE] = {0};
    double density, mean[DIM] = {0}, square[DIM] = {0}, part[DIM] = {0}, worst = 0;
    em_posterior *posterior = NULL;

    memcpy(x, theta, DIM * sizeof *x);
    ck_assert_int_eq(em_posterior_create(s->model, grid, 1, &posterior), EM_OK);
    for (int e = 0; e < n; e++) {
        const em_query query = query_at(e, x, &density, gradient);
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
    ck_assert_int_eq(ops->start(s.model, &(em_draw){.purpose = EM_DRAW_START}, exact), EM_OK);
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

/* What is summed are integers, the same however documents are distributed. */
START_TEST(sums_of_shards)
{
    _Alignas(64) double theta[STRIDE] = {0.4, 2.1, 1.3, 0.2, 0.9, 1.6, 2.2, 0.5};
    double whole[STRIDE + 1] = {0};

    for (int n_shard = 1; n_shard <= 4; n_shard++) {
        _Alignas(64) double sum[STRIDE] = {0};
        double density = 0;
        for (int shard = 0; shard < n_shard; shard++) {
            setup s;
            open_lda(false, "false", shard, n_shard, &s);
            em_query query = query_at(77, theta, &density, sum);
            query.rows.count = s.model->rows.count;
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
    em_posterior *posterior = NULL;
    setup s;

    open_lda(false, "false", 0, 1, &s);
    ck_assert_int_eq(em_posterior_create(s.model, grid, 1, &posterior), EM_OK);
    for (size_t b = 0; b < sizeof bad / sizeof *bad; b++) {
        _Alignas(64) double theta[STRIDE] = {0.4, 2.1, 1.3, 0.2, 0.9, 1.6, 2.2, 0.5};
        _Alignas(64) double gradient[STRIDE];
        double density;
        const em_query query = query_at((int64_t)b, theta, &density, gradient);
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

/* ---------------------------------------------------------------- the law of a kernel */

enum { N_PAIR = N_WORD * (N_WORD + 1) / 2, N_MOMENT = 2 * N_WORD + 2 * N_PAIR };
enum { N_TOKEN = 5 * N_DOCUMENT };

static const double law_alpha = 0.7, law_beta = 3;

/* What does not ask which topic is which: means over topics of phi_v, theta_v and phi_v phi_w, and
 * of products of two topics. `pair` [N_WORD][N_WORD] is E phi_kv phi_kw of each topic. */
static void put_moments(double phi[N_TOPIC][N_WORD], double theta[N_TOPIC][N_WORD],
                        double pair[N_TOPIC][N_WORD][N_WORD], double *out)
{
    for (int v = 0; v < N_WORD; v++) {
        *out++ = (phi[0][v] + phi[1][v]) / 2;
        *out++ = (theta[0][v] + theta[1][v]) / 2;
        for (int w = 0; w <= v; w++) {
            *out++ = (pair[0][v][w] + pair[1][v][w]) / 2;
            *out++ = (phi[0][v] * phi[1][w] + phi[1][v] * phi[0][w]) / 2;
        }
    }
}

static void moments_at(bool natural, const double *at, double *out)
{
    const target t = {.natural = natural};
    double phi[N_TOPIC][N_WORD], theta[N_TOPIC][N_WORD], pair[N_TOPIC][N_WORD][N_WORD];

    laws(&t, at, phi);
    for (int k = 0; k < N_TOPIC; k++)
        for (int v = 0; v < N_WORD; v++) {
            theta[k][v] = at[v * N_TOPIC + k];
            for (int w = 0; w < N_WORD; w++)
                pair[k][v][w] = phi[k][v] * phi[k][w];
        }
    put_moments(phi, theta, pair, out);
}

/* x (x + 1) ... (x + n - 1) */
static double rising(double x, int n)
{
    double out = 1;

    for (int i = 0; i < n; i++)
        out *= x + i;
    return out;
}

/* Where every token has its topic, phi_k ~ Dirichlet(beta + n_k), beside a sum of theta_k that
 * knows no data. Returns the probability of topics and words. */
static double moments_given(const int topic[N_TOKEN], double *out)
{
    double phi[N_TOPIC][N_WORD], theta[N_TOPIC][N_WORD], pair[N_TOPIC][N_WORD][N_WORD], p = 1;
    int count[N_TOPIC][N_WORD] = {{0}}, total[N_TOPIC] = {0};

    for (int d = 0; d < N_DOCUMENT; d++) {
        int n[N_TOPIC] = {0};
        for (int j = 0; j < N_TOKEN / N_DOCUMENT; j++) {
            const int k = topic[d * (N_TOKEN / N_DOCUMENT) + j];
            n[k]++;
            total[k]++;
            count[k][uneven[d][j]]++;
        }
        for (int k = 0; k < N_TOPIC; k++)
            p *= rising(law_alpha, n[k]);
    }
    for (int k = 0; k < N_TOPIC; k++) {
        const double A = N_WORD * law_beta + total[k];
        p /= rising(N_WORD * law_beta, total[k]);
        for (int v = 0; v < N_WORD; v++) {
            const double a = law_beta + count[k][v];
            p *= rising(law_beta, count[k][v]);
            phi[k][v] = a / A;
            theta[k][v] = N_WORD * law_beta * phi[k][v];
            for (int w = 0; w < N_WORD; w++)
                pair[k][v][w] = a * (law_beta + count[k][w] + (v == w)) / (A * (A + 1));
        }
    }
    put_moments(phi, theta, pair, out);
    return p;
}

/* Moments of the posterior, and their standard errors. */
typedef struct moments {
    double mean[N_MOMENT], error[N_MOMENT];
} moments;

/* Of the expanded mean: the topics of all tokens are gone through. */
static moments by_enumeration(void)
{
    moments m = {{0}};
    double all = 0;

    for (int z = 0; z < 1 << N_TOKEN; z++) {
        int topic[N_TOKEN];
        double part[N_MOMENT];
        for (int j = 0; j < N_TOKEN; j++)
            topic[j] = z >> j & 1;
        const double p = moments_given(topic, part);
        all += p;
        for (int i = 0; i < N_MOMENT; i++)
            m.mean[i] += p * part[i];
    }
    for (int i = 0; i < N_MOMENT; i++)
        m.mean[i] /= all;
    return m;
}

/* Of the natural form: draws from the prior, with the likelihood of all topics as their weights. */
static moments by_weighting(uint64_t seed)
{
    enum { N = 40000 };
    const target t = {.natural = true, .alpha = {law_alpha, law_alpha}};
    double *weight = calloc(N, sizeof *weight), all = 0;
    double(*part)[N_MOMENT] = calloc(N, sizeof *part);
    moments m = {{0}};

    for (int n = 0; n < N; n++) {
        const em_stream stream = {.seed = seed, .iteration = (uint64_t)n, .purpose = EM_RNG_TEST};
        _Alignas(64) double theta[STRIDE];
        em_normals(&stream, DIM, theta);
        for (int i = 0; i < DIM; i++)
            theta[i] = 0.1 + 0.7 * theta[i];
        all += weight[n] = exp(log_likelihood(&t, theta, uneven));
        moments_at(true, theta, part[n]);
    }
    for (int i = 0; i < N_MOMENT; i++) {
        for (int n = 0; n < N; n++)
            m.mean[i] += weight[n] / all * part[n][i];
        for (int n = 0; n < N; n++)
            m.error[i] += pow(weight[n] / all * (part[n][i] - m.mean[i]), 2);
        m.error[i] = sqrt(m.error[i]);
    }
    free(weight);
    free(part);
    return m;
}

/* The moments that a kernel leaves, after a tenth of the iterations. */
static moments by_kernel(em_model *model, bool natural, const kernel_run *run, int64_t n_draw)
{
    double *x = calloc((size_t)(N_MOMENT * N_CHAIN * n_draw), sizeof *x), now[N_MOMENT];
    const int64_t discarded = n_draw / 10;
    em_diag *diag = NULL;
    kernel_bench b;
    moments m;

    bench_open(model, grid, run, &b);
    for (int64_t c = 0; c < N_CHAIN; c++) {
        const em_draw draw = {.seed = run->seed, .chain = c, .purpose = EM_DRAW_START};
        model->ops->start(model, &draw, b.block->theta + c * STRIDE);
    }
    for (int64_t t = 0; t < discarded + n_draw; t++) {
        const em_step_context context = bench_context(&b, t);
        if (t == 0 && run->ops->refresh)
            run->ops->refresh(b.sampler, &context, b.block);
        ck_assert_int_eq(run->ops->step(b.sampler, &context, b.block), EM_OK);
        for (int64_t c = 0; t >= discarded && c < N_CHAIN; c++) {
            moments_at(natural, b.block->theta + c * STRIDE, now);
            for (int i = 0; i < N_MOMENT; i++)
                x[(i * N_CHAIN + c) * n_draw + t - discarded] = now[i];
        }
    }
    em_diag_create(&diag);
    for (int i = 0; i < N_MOMENT; i++) {
        em_diagnosis d;
        em_diagnose(diag, N_CHAIN, n_draw, x + i * N_CHAIN * n_draw, &d);
        m.mean[i] = d.mean;
        m.error[i] = d.mcse_mean;
    }
    em_diag_destroy(&diag);
    bench_close(&b);
    free(x);
    return m;
}

/* ---- twins ---- */

static const em_model_ops *true_ops;

/* One of three documents counts for itself alone, where it is to stand for three. */
static void finish_without_scale(em_model *model, const em_query *sums)
{
    true_ops->counts->finish(model, sums);
    for (int64_t i = 0; i < sums->n_chain * sums->stride; i++)
        sums->gradient[i] /= N_DOCUMENT;
}

static void move_without_correction(em_metric_langevin *self, em_block *block, int64_t c)
{
    const em_langevin *s = &self->langevin;
    double *theta = block->theta + c * block->stride;

    for (int64_t i = 0; i < block->dim; i++) {
        const double eps = s->eps[c], a = self->metric->root[i];
        theta[i] = fabs(theta[i] + eps * a * a * block->gradient[c * block->stride + i] +
                        sqrt(2 * eps) * a * s->normals[c * block->stride + i]);
    }
}

static em_status step_without_correction(em_sampler *base, const em_step_context *context,
                                         em_block *block)
{
    return em_metric_langevin_step((em_metric_langevin *)base, context, block, NULL,
                                   move_without_correction);
}

/* ---- tests ---- */

typedef struct lda_law {
    bool natural;
    int minibatch;
    const char *sampler;
    double step_size;
} lda_law;

static const lda_law lda_laws[] = {
    {false, 1, "name: sgrld, metric: expanded_mean", 0.05},
    {false, 3, "name: sgrld, metric: expanded_mean", 0.05},
    {true, 1, "name: sgld", 0.04},
};

typedef enum twin { NO_TWIN, WITHOUT_SCALE, WITHOUT_CORRECTION } twin;

/* The moments extrapolated from two step sizes to none: the largest of their deviations from those
 * of the posterior, in standard errors. */
static double lda_law_z(const lda_law *law, twin of, uint64_t seed, int64_t n_draw)
{
    const setting settings[] = {{"data", uneven_path},
                                {"topics", "2"},
                                {"alpha", "0.7"},
                                {"beta", "3"},
                                {"prior_sd", "0.7"},
                                {"parameters", law->natural ? "expanded_natural" : "expanded_mean"},
                                {"local_discard", "8"},
                                {"local_sweeps", "2"},
                                {NULL, NULL}};
    const moments exact = law->natural ? by_weighting(seed) : by_enumeration();
    em_mass *mass = NULL;
    moments m[2];
    double worst = 0;
    setup s;

    ck_assert_msg(try_setup_for(N_CHAIN, "lda", settings, 0, 1, &s) == EM_OK, "%s",
                  em_error_text());
    true_ops = s.model->ops;
    em_model_ops blind = *true_ops;
    const em_model_counts counts = {.finish = finish_without_scale};
    blind.counts = &counts;
    if (of == WITHOUT_SCALE)
        s.model->ops = &blind;
    ck_assert_int_eq(em_mass_identity(EM_MASS_DIAG, DIM, &mass), EM_OK);
    for (int half = 0; half < 2; half++) {
        em_config *config;
        char sampler[128];
        snprintf(sampler, sizeof sampler, "%s, step_size: %g, leapfrog_steps: %d", law->sampler,
                 law->step_size / (1 + half), 4 * (1 + half));
        kernel_run run = configured_with(law->minibatch, sampler, mass, NULL,
                                         2 * seed + (uint64_t)half, &config);
        em_sampler_ops uncorrected = *run.ops;
        uncorrected.step = step_without_correction;
        if (of == WITHOUT_CORRECTION)
            run.ops = &uncorrected;
        m[half] = by_kernel(s.model, law->natural, &run, n_draw);
        em_config_destroy(&config);
    }
    s.model->ops = true_ops;
    for (int i = 0; i < N_MOMENT; i++) {
        const double error = hypot(hypot(2 * m[1].error[i], m[0].error[i]), exact.error[i]);
        const double z = fabs(2 * m[1].mean[i] - m[0].mean[i] - exact.mean[i]) / error;
        worst = z <= worst ? worst : isfinite(z) ? z : INFINITY;
    }
    em_mass_destroy(&mass);
    teardown(&s);
    return worst;
}

START_TEST(kernels_leave_the_law)
{
    ck_assert_double_le(lda_law_z(&lda_laws[_i], NO_TWIN, 1, 800), BOUND);
}
END_TEST

START_TEST(minibatches_that_stand_for_themselves_fail)
{
    ck_assert_double_gt(lda_law_z(&lda_laws[0], WITHOUT_SCALE, 1, 400), BOUND);
    ck_assert_double_gt(lda_law_z(&lda_laws[2], WITHOUT_SCALE, 1, 400), BOUND);
}
END_TEST

START_TEST(a_metric_without_its_correction_fails)
{
    ck_assert_double_gt(lda_law_z(&lda_laws[0], WITHOUT_CORRECTION, 1, 400), BOUND);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *all = tcase_create("topic_gradients");

    if (!write_corpora())
        return EXIT_FAILURE;
    tcase_add_loop_test(all, lda_by_enumeration, 0, 4);
    tcase_add_test(all, sums_of_shards);
    tcase_add_test(all, positions_that_are_none);
    tcase_add_loop_test(all, kernels_leave_the_law, 0, sizeof lda_laws / sizeof *lda_laws);
    tcase_add_test(all, minibatches_that_stand_for_themselves_fail);
    tcase_add_test(all, a_metric_without_its_correction_fails);
    tcase_set_timeout(all, 300);
    const int status = run_case_on_grid(all, argc, argv, 1, &grid);
    unlink(path);
    unlink(uneven_path);
    rmdir(folder);
    return status;
}
