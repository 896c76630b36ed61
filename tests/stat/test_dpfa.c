/*
 * Deep Poisson factor analysis. Its gradients, which are estimates, against derivatives of the
 * marginal likelihood in which the units of the network and the topics of all tokens are summed
 * over one by one. And Geweke's joint test: parameters from the prior and data given these, then a
 * while of Langevin dynamics of the model given the data, must leave the parameters with the law of
 * the prior. Twins, of another prior of documents, must be found out by both.
 */
#include "support/factors.h"

/* Two units above the two topics; r, then w, c and b of the network. */
enum { N_UP = 2, N_NETWORK = N_TOPIC * (N_UP + 1) + N_UP };
enum { DIM = N_PHI + N_TOPIC + N_NETWORK };

static void open_dpfa(bool natural, const char *discard, const char *keep, setup *s)
{
    char vocabulary[64];
    const setting settings[] = {{"data", corpus_path},
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

    snprintf(vocabulary, sizeof vocabulary, "%s/words", corpus_folder);
    ck_assert_msg(try_setup("dpfa", settings, 0, 1, s) == EM_OK, "%s", em_error_text());
}

/* ---------------------------------------------------------------- the exact density */

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

/* ---------------------------------------------------------------- the prior */

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

static void draw_rates(const em_stream *stream, const double *theta, double odds, uint64_t d,
                       double rate[N_TOPIC])
{
    const int unit = draw_units(stream, theta, 90000 + d);
    double r[N_TOPIC];

    weights(theta, r);
    for (uint64_t k = 0; k < N_TOPIC; k++)
        rate[k] = (unit >> k & 1) * odds * gamma_variate(stream, 2002 + 10 * d + k, r[k]);
}

/* ---------------------------------------------------------------- tests */

static const double somewhere[DIM] = {0.4,  2.1, 1.3, 0.2,  0.9, 1.6, 0.3,  -0.4,
                                      -0.6, 0.5, 0.9, -1.1, 0.4, 0.2, -0.3, 0.6};

static const factors dpfa = {.dim = DIM,
                             .somewhere = somewhere,
                             .open = open_dpfa,
                             .log_posterior = log_posterior,
                             .draw_parameters = draw_parameters,
                             .draw_rates = draw_rates};

START_TEST(gradients_by_enumeration)
{
    compare_gradients(&dpfa, _i == 1, 2000);
}
END_TEST

START_TEST(gradients_of_blocks)
{
    compare_blocks(&dpfa, _i == 1);
}
END_TEST

START_TEST(joint)
{
    ck_assert_double_le(joint_z(&dpfa, 4, 700, 5), BOUND);
    ck_assert_double_gt(joint_z(&dpfa, 1.5, 700, 6), BOUND);
}
END_TEST

static Suite *dpfa_suite(void)
{
    Suite *suite = suite_create("dpfa");
    TCase *all = tcase_create("all");

    tcase_add_loop_test(all, gradients_by_enumeration, 0, 2);
    tcase_add_loop_test(all, gradients_of_blocks, 0, 2);
    tcase_add_test(all, joint);
    tcase_set_timeout(all, 300);
    suite_add_tcase(suite, all);
    return suite;
}

int main(int argc, char **argv)
{
    return run_factors(&argc, &argv, dpfa_suite);
}
