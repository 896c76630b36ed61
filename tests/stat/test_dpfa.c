/*
 * Deep Poisson factor analysis. Its gradients, which are estimates, against derivatives of the
 * marginal likelihood in which the units of the network and the topics of all tokens are summed
 * over one by one. And Geweke's joint test: parameters from the prior and data given these, then a
 * while of Langevin dynamics of the model given the data, must leave the parameters with the law of
 * the prior. Twins, of another prior of documents, must be found out by both.
 */
#include "../model_setup.h"
#include "math/rng.h"
#include "par/world.h"
#include "tap.h"

#include <check.h>
#include <math.h>
#include <unistd.h>

enum { N_WORD = 3, N_TOPIC = 2, N_DOCUMENT = 4, MOST = 400 };
/* Two units above the two topics; r, then w, c and b of the network. */
enum { N_UP = 2, N_PHI = N_WORD * N_TOPIC, N_NETWORK = N_TOPIC * (N_UP + 1) + N_UP };
enum { DIM = N_PHI + N_TOPIC + N_NETWORK, STRIDE = 16 };

/* Largest of some dozens of deviations in standard errors: beyond it by chance once in 1e4. */
#define BOUND 5.0

typedef struct documents {
    int n[N_DOCUMENT];
    int word[N_DOCUMENT][MOST];
} documents;

static char folder[] = "/tmp/emass-dpfa-XXXXXX";
static char path[64];
static em_grid *grid;

static void write_corpus(const documents *data)
{
    FILE *file = fopen(path, "w");

    ck_assert_ptr_nonnull(file);
    for (int d = 0; d < N_DOCUMENT; d++) {
        int count[N_WORD] = {0}, n = 0;
        for (int j = 0; j < data->n[d]; j++)
            n += count[data->word[d][j]]++ == 0;
        fprintf(file, "%d", n);
        for (int v = 0; v < N_WORD; v++)
            if (count[v] > 0)
                fprintf(file, " %d:%d", v, count[v]);
        fprintf(file, "\n");
    }
    fclose(file);
}

static void open_dpfa(bool natural, const char *discard, const char *keep, setup *s)
{
    char vocabulary[64];
    const setting settings[] = {{"data", path},
                                {"vocabulary", vocabulary},
                                {"topics", "2"},
                                {"hidden", "[2]"},
                                {"weight_sd", "0.8"},
                                {"beta", "0.4"},
                                {"prior_sd", "0.7"},
                                {"a0", "3"},
                                {"b0", "4"},
                                {"shape", "5"},
                                {"rate", "4"},
                                {"parameters", natural ? "expanded_natural" : "expanded_mean"},
                                {"local_discard", discard},
                                {"local_sweeps", keep},
                                {NULL, NULL}};

    snprintf(vocabulary, sizeof vocabulary, "%s/words", folder);
    ck_assert_msg(try_setup("dpfa", settings, 0, 1, s) == EM_OK, "%s", em_error_text());
}

/* ---------------------------------------------------------------- the exact density */

typedef struct target {
    bool natural;
    double a0, b0;
    const documents *data;
} target;

static void laws(const target *t, const double *theta, double phi[N_TOPIC][N_WORD])
{
    for (int k = 0; k < N_TOPIC; k++) {
        double sum = 0;
        for (int v = 0; v < N_WORD; v++) {
            const double x = theta[v * N_TOPIC + k];
            sum += phi[k][v] = t->natural ? exp(x) : x;
        }
        for (int v = 0; v < N_WORD; v++)
            phi[k][v] /= sum;
    }
}

static void weights(const double *theta, double r[N_TOPIC])
{
    for (int k = 0; k < N_TOPIC; k++)
        r[k] = exp(theta[N_PHI + k]) + 1e-4;
}

static double bernoulli(double logit, int unit)
{
    return 1 / (1 + exp(unit ? -logit : logit));
}

/* Of units: bits 0, 1 of the lowest layer, bits 2, 3 of the one above. */
static double unit_probability(const double *theta, int unit)
{
    const double *w = theta + N_PHI + N_TOPIC, *c = w + N_TOPIC * N_UP, *b = c + N_TOPIC;
    double p = 1;

    for (int i = 0; i < N_UP; i++)
        p *= bernoulli(b[i], unit >> (N_TOPIC + i) & 1);
    for (int k = 0; k < N_TOPIC; k++) {
        double logit = c[k];
        for (int i = 0; i < N_UP; i++)
            logit += (unit >> (N_TOPIC + i) & 1) * w[k * N_UP + i];
        p *= bernoulli(logit, unit >> k & 1);
    }
    return p;
}

static double document_given(const target *t, double phi[N_TOPIC][N_WORD], const double *r, int d,
                             int unit)
{
    const int n = t->data->n[d];
    double sum = 0, R = 0;

    for (int k = 0; k < N_TOPIC; k++)
        R += (unit >> k & 1) * r[k];
    for (int z = 0; z < 1 << n; z++) {
        int count[N_TOPIC] = {0};
        double p = 1;
        for (int j = 0; j < n; j++) {
            const int k = z >> j & 1;
            p *= (unit >> k & 1) * (r[k] + count[k]++) * phi[k][t->data->word[d][j]];
        }
        sum += p;
    }
    return sum * exp(lgamma(t->a0 + n) + lgamma(t->b0 + R) - lgamma(t->a0 + n + t->b0 + R));
}

static double log_posterior(const target *t, const double *theta)
{
    double phi[N_TOPIC][N_WORD], r[N_TOPIC], sum = 0;

    laws(t, theta, phi);
    weights(theta, r);
    for (int d = 0; d < N_DOCUMENT; d++) {
        double p = 0;
        for (int unit = 0; unit < 1 << (N_TOPIC + N_UP); unit++)
            p += unit_probability(theta, unit) * document_given(t, phi, r, d, unit);
        sum += log(p);
    }
    for (int i = 0; i < N_PHI; i++)
        sum += t->natural ? -(theta[i] - 0.1) * (theta[i] - 0.1) / (2 * 0.7 * 0.7)
                          : (0.4 - 1) * log(theta[i]) - theta[i];
    for (int k = 0; k < N_TOPIC; k++)
        sum += 5 * theta[N_PHI + k] - 4 * exp(theta[N_PHI + k]);
    for (int i = N_PHI + N_TOPIC; i < DIM; i++)
        sum -= theta[i] * theta[i] / (2 * 0.8 * 0.8);
    return sum;
}

static void exact_gradient(const target *t, const double *theta, double *gradient)
{
    const double h = 1e-5;

    for (int i = 0; i < DIM; i++) {
        double x[DIM];
        memcpy(x, theta, sizeof x);
        x[i] = theta[i] + h;
        const double up = log_posterior(t, x);
        x[i] = theta[i] - h;
        gradient[i] = (up - log_posterior(t, x)) / (2 * h);
    }
}

static em_query query_at(const double *theta, double *density, double *gradient, int evaluation)
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

/* The largest deviation of the mean of `n` estimates from `exact`, in standard errors; those that
 * are not estimates must be equal. */
static double worst_z(em_posterior *posterior, int64_t minibatch, const double *theta,
                      const double *exact, int n)
{
    const em_minibatch batch = {minibatch, false};
    _Alignas(64) double gradient[STRIDE], x[STRIDE] = {0};
    double density, mean[DIM] = {0}, square[DIM] = {0}, worst = 0;

    memcpy(x, theta, DIM * sizeof *x);
    for (int e = 0; e < n; e++) {
        const em_query query = query_at(x, &density, gradient, e);
        ck_assert_int_eq(em_posterior_estimate(posterior, &batch, &query), EM_OK);
        ck_assert(isfinite(density));
        for (int i = 0; i < DIM; i++) {
            mean[i] += gradient[i] / n;
            square[i] += gradient[i] * gradient[i] / n;
        }
    }
    for (int i = 0; i < DIM; i++) {
        const double error = sqrt(fmax(square[i] - mean[i] * mean[i], 0) / n);
        worst = fmax(worst, fabs(mean[i] - exact[i]) / (error + 1e-6));
    }
    return worst;
}

static const double somewhere[DIM] = {0.4,  2.1, 1.3, 0.2,  0.9, 1.6, 0.3,  -0.4,
                                      -0.6, 0.5, 0.9, -1.1, 0.4, 0.2, -0.3, 0.6};

START_TEST(gradients_by_enumeration)
{
    static const documents data = {{5, 3, 0, 4}, {{0, 0, 1, 2, 0}, {1, 1, 2}, {0}, {2, 2, 2, 0}}};
    const target t = {_i == 1, 3, 4, &data}, twin = {_i == 1, 3, 2, &data};
    double exact[DIM], wrong[DIM];
    em_posterior *posterior = NULL;
    setup s;

    write_corpus(&data);
    open_dpfa(t.natural, "15", "5", &s);
    exact_gradient(&t, somewhere, exact);
    exact_gradient(&twin, somewhere, wrong);
    ck_assert_int_eq(em_posterior_create(s.model, grid, 1, &posterior), EM_OK);
    ck_assert_double_le(worst_z(posterior, 4, somewhere, exact, 2000), BOUND);
    ck_assert_double_le(worst_z(posterior, 2, somewhere, exact, 2000), BOUND);
    ck_assert_double_gt(worst_z(posterior, 4, somewhere, wrong, 2000), BOUND);
    em_posterior_destroy(&posterior);
    teardown(&s);
}
END_TEST

/* A block that moves alone is told of its own gradient as all of them together are. */
START_TEST(gradients_of_blocks)
{
    static const documents data = {{5, 3, 0, 4}, {{0, 0, 1, 2, 0}, {1, 1, 2}, {0}, {2, 2, 2, 0}}};
    _Alignas(64) double theta[STRIDE] = {0}, all[STRIDE], own[STRIDE], x[STRIDE];
    const em_minibatch batch = {3, false};
    em_posterior *whole = NULL, *part = NULL;
    double density;
    setup s;

    memcpy(theta, somewhere, sizeof somewhere);
    write_corpus(&data);
    open_dpfa(_i == 1, "2", "2", &s);
    ck_assert_int_eq(em_posterior_create(s.model, grid, 1, &whole), EM_OK);
    em_query query = query_at(theta, &density, all, 9);
    ck_assert_int_eq(em_posterior_estimate(whole, &batch, &query), EM_OK);
    for (int64_t b = 0; b < s.model->n_block; b++) {
        const em_parameters *block = &s.model->block[b];
        ck_assert_int_eq(em_posterior_create_part(whole, block, 1, 0, theta, &part), EM_OK);
        memset(x, 0, sizeof x);
        memcpy(x, theta + block->first, (size_t)block->count * sizeof *x);
        query = query_at(x, &density, own, 9);
        query.stride = em_stride(block->count);
        ck_assert_int_eq(em_posterior_estimate(part, &batch, &query), EM_OK);
        for (int64_t i = 0; i < block->count; i++)
            ck_assert(own[i] == all[block->first + i]);
        em_posterior_destroy(&part);
    }
    em_posterior_destroy(&whole);
    teardown(&s);
}
END_TEST

/* ---------------------------------------------------------------- the joint test */

static double gamma_variate(const em_stream *stream, uint64_t index, double shape)
{
    _Alignas(64) double x[8] = {shape};

    em_gammas(stream, 8 * index, 1, x, x);
    return x[0];
}

/* From the prior. */
static void draw_parameters(const em_stream *stream, double *theta)
{
    _Alignas(64) double z[STRIDE];

    em_normals(stream, STRIDE, z);
    for (int i = 0; i < N_PHI; i++)
        theta[i] = 0.1 + 0.7 * z[i];
    for (uint64_t k = 0; k < N_TOPIC; k++)
        theta[N_PHI + k] = log(gamma_variate(stream, 1000 + k, 5) / 4);
    for (int i = N_PHI + N_TOPIC; i < DIM; i++)
        theta[i] = 0.8 * z[i];
}

/* From the law of the network. */
static int draw_units(const em_stream *stream, const double *theta, uint64_t index)
{
    double u = em_uniform(stream, index);
    int unit = 0;

    while (unit < (1 << (N_TOPIC + N_UP)) - 1 && (u -= unit_probability(theta, unit)) > 0)
        unit++;
    return unit;
}

/* x_vj ~ Poisson(sum_k phi_vk theta_kj): a Poisson process of words, one after the other. */
static void draw_documents(const em_stream *stream, const double *theta, double a0, double b0,
                           documents *data)
{
    const target t = {.natural = true};
    double phi[N_TOPIC][N_WORD], r[N_TOPIC];

    laws(&t, theta, phi);
    weights(theta, r);
    for (uint64_t d = 0; d < N_DOCUMENT; d++) {
        const double a = gamma_variate(stream, 2000 + 10 * d, a0);
        const double odds = a / gamma_variate(stream, 2001 + 10 * d, b0);
        const int unit = draw_units(stream, theta, 90000 + d);
        double theta_of[N_TOPIC], rate = 0, time = 0;
        for (uint64_t k = 0; k < N_TOPIC; k++)
            rate += theta_of[k] =
                (unit >> k & 1) * odds * gamma_variate(stream, 2002 + 10 * d + k, r[k]);
        data->n[d] = 0;
        for (uint64_t j = 0; data->n[d] < MOST; j++) {
            const uint64_t at = 100000 + 10000 * d + 4 * j;
            double u = em_uniform(stream, at + 1) * rate;
            int k = 0, v = 0;
            time -= log(em_uniform(stream, at)) / rate;
            if (!(time < 1))
                break;
            k = u > theta_of[0];
            u = em_uniform(stream, at + 2);
            while (v < N_WORD - 1 && (u -= phi[k][v]) > 0)
                v++;
            data->word[d][data->n[d]++] = v;
        }
    }
}

/* theta <- theta + eps g + N(0, 2 eps), for a time of 1 */
static void move(const setup *s, const em_stream *stream, double *theta)
{
    enum { STEPS = 50 };
    const double eps = 1.0 / STEPS;
    const em_minibatch batch = {N_DOCUMENT, false};
    em_posterior *posterior = NULL;
    _Alignas(64) double gradient[STRIDE], z[STRIDE];
    double density;

    ck_assert_int_eq(em_posterior_create(s->model, grid, 1, &posterior), EM_OK);
    for (int e = 0; e < STEPS; e++) {
        em_query query = query_at(theta, &density, gradient, e);
        em_stream noise = *stream;
        query.seed = stream->iteration;
        noise.purpose = EM_RNG_NOISE;
        noise.chain = 1 + (uint64_t)e;
        ck_assert_int_eq(em_posterior_estimate(posterior, &batch, &query), EM_OK);
        em_normals(&noise, STRIDE, z);
        for (int i = 0; i < DIM; i++)
            theta[i] += eps * gradient[i] + sqrt(2 * eps) * z[i];
    }
    em_posterior_destroy(&posterior);
}

static bool has_words(const documents *data)
{
    int n = 0;

    for (int d = 0; d < N_DOCUMENT; d++)
        n += data->n[d];
    return n > 0;
}

/* The largest deviation from zero of the mean change of a parameter or of its distance from the
 * prior's middle, in standard errors. */
static double joint_z(double b0, int n, uint64_t seed)
{
    double mean[2 * DIM] = {0}, square[2 * DIM] = {0}, worst = 0;
    documents *data = calloc(1, sizeof *data);

    for (int i = 0; i < n; i++) {
        const em_stream stream = {.seed = seed, .iteration = (uint64_t)i, .purpose = EM_RNG_TEST};
        _Alignas(64) double theta[STRIDE] = {0}, before[STRIDE];
        setup s;
        draw_parameters(&stream, theta);
        draw_documents(&stream, theta, 3, b0, data);
        if (!has_words(data))
            continue; /* no corpus: what is left has the law of the prior given that there are */
        write_corpus(data);
        open_dpfa(true, "3", "4", &s);
        memcpy(before, theta, sizeof before);
        move(&s, &stream, theta);
        teardown(&s);
        for (int k = 0; k < DIM; k++) {
            const double change[2] = {theta[k] - before[k], fabs(theta[k]) - fabs(before[k])};
            for (int f = 0; f < 2; f++) {
                mean[2 * k + f] += change[f] / n;
                square[2 * k + f] += change[f] * change[f] / n;
            }
        }
    }
    free(data);
    for (int k = 0; k < 2 * DIM; k++)
        worst = fmax(worst, fabs(mean[k]) / sqrt((square[k] - mean[k] * mean[k]) / n));
    return worst;
}

START_TEST(joint)
{
    ck_assert_double_le(joint_z(4, 700, 5), BOUND);
    ck_assert_double_gt(joint_z(1.5, 700, 6), BOUND);
}
END_TEST

static bool write_words(void)
{
    char name[64];
    FILE *file = NULL;

    if (mkdtemp(folder)) {
        snprintf(path, sizeof path, "%s/train.ldac", folder);
        snprintf(name, sizeof name, "%s/words", folder);
        file = fopen(name, "w");
    }
    return file && fputs("a\nb\nc\n", file) >= 0 && fclose(file) == 0;
}

static void clean_up(void)
{
    char name[64];

    snprintf(name, sizeof name, "%s/words", folder);
    unlink(name);
    unlink(path);
    rmdir(folder);
}

int main(int argc, char **argv)
{
    Suite *suite = suite_create("dpfa");
    TCase *all = tcase_create("all");

    if (em_world_start(&argc, &argv) || em_grid_create(1, 1, &grid) || !write_words())
        return EXIT_FAILURE;
    tcase_add_loop_test(all, gradients_by_enumeration, 0, 2);
    tcase_add_loop_test(all, gradients_of_blocks, 0, 2);
    tcase_add_test(all, joint);
    tcase_set_timeout(all, 300);
    suite_add_tcase(suite, all);
    const int status = run_suite(suite, CK_NOFORK);
    clean_up();
    em_grid_destroy(&grid);
    em_world_stop();
    return status;
}
