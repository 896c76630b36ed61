/*
 * Regressions: densities beside ones written down from the textbook, log likelihoods that are
 * distributions, responses drawn anew, metrics, exposures and bad data.
 */
#include "emass/model/metric.h"
#include "math/rng.h"
#include "support/model_setup.h"
#include "support/tap.h"
#include "support/test_files.h"

#include <check.h>
#include <math.h>

enum { N_ROW = 150, N_FEATURE = 3, STRIDE = 8, N_BETA = 1 + N_FEATURE };

static test_path csv, libsvm, bad;

static double number(int64_t i, int64_t j)
{
    return em_uniform(&(em_stream){5, (uint64_t)i, 0, EM_RNG_TEST}, (uint64_t)j);
}

static double feature(int64_t i, int64_t j)
{
    return round(100 * (2 * number(i, j) - 1)) / 100;
}

static double exposure(int64_t i)
{
    return round(100 * (0.1 + 5 * number(i, 10))) / 100;
}

static double count(int64_t i)
{
    return floor(30 * pow(number(i, 11), 4));
}

/* The exposure stands between the features, the response first. */
static void write_tables(void)
{
    FILE *dense = fopen(csv, "w"), *sparse = fopen(libsvm, "w");

    fprintf(dense, "y,a,days,b,c\n");
    for (int64_t i = 0; i < N_ROW; i++) {
        fprintf(dense, "%g,%.2f,%.2f,%.2f,%.2f\n", count(i), feature(i, 0), exposure(i),
                feature(i, 1), feature(i, 2));
        fprintf(sparse, "%g 1:%.2f 2:%.2f", count(i), feature(i, 0), exposure(i));
        if (i % 2)
            fprintf(sparse, " 3:%.2f", feature(i, 1));
        fprintf(sparse, " 30:%.2f\n", feature(i, 2));
    }
    fclose(dense);
    fclose(sparse);
}

/* A model, its options, and what follows the coefficients in theta. */
typedef struct regression {
    const char *name;
    setting settings[8];
    const char *shape[2];
} regression;

#define DATA                                                                                       \
    {"data", csv}, {"response", "y"},                                                              \
    {                                                                                              \
        "prior_scale", "10"                                                                        \
    }

static const regression regressions[] = {
    {"linear", {DATA, {"sigma", "1.5"}}, {NULL, NULL}},
    {"linear", {DATA, {"sigma", "unknown"}}, {"sigma", NULL}},
    {"linear", {DATA, {"noise", "student_t"}, {"sigma", "2"}, {"nu", "3"}}, {NULL, NULL}},
    {"linear", {DATA, {"noise", "student_t"}, {"sigma", "unknown"}}, {"sigma", "nu"}},
    {"poisson", {DATA, {"exposure", "days"}}, {NULL, NULL}},
    {"negative_binomial", {DATA, {"exposure", "days"}, {"phi", "0.7"}}, {NULL, NULL}},
    {"negative_binomial", {DATA, {"exposure", "days"}}, {"phi", NULL}},
};

enum { N_REGRESSION = sizeof regressions / sizeof *regressions, WITH_EXPOSURE = 4 };

static setup make(const regression *r, const setting *more)
{
    setting settings[12];
    int n = 0;
    setup s;

    for (const setting *from = r->settings; from->name; from++)
        settings[n++] = *from;
    for (; more && more->name; more++)
        settings[n++] = *more;
    settings[n] = (setting){NULL, NULL};
    ck_assert_msg(try_setup(r->name, settings, 0, 1, &s) == EM_OK, "%s", em_error_text());
    return s;
}

static void position(int64_t k, double *theta)
{
    for (int64_t j = 0; j < STRIDE; j++)
        theta[j] = 1.5 * number(1000 + k, j) - 0.75;
}

/* ---- the textbook ---- */

static double eta_of(const regression *r, const double *theta, int64_t i)
{
    const bool exposed = r >= &regressions[WITH_EXPOSURE];
    double sum = theta[0];
    int64_t j = 1;

    sum += feature(i, 0) * theta[j++];
    if (!exposed)
        sum += exposure(i) * theta[j++];
    sum += feature(i, 1) * theta[j] + feature(i, 2) * theta[j + 1];
    return exposed ? sum + log(exposure(i)) : sum;
}

static double given(const regression *r, const char *name, double otherwise)
{
    for (const setting *s = r->settings; s->name; s++)
        if (strcmp(s->name, name) == 0 && strcmp(s->value, "unknown") != 0)
            return atof(s->value);
    return otherwise;
}

/* Number k of the shape parameters, NaN where there is none. */
static double shape_of(const regression *r, const double *theta, const char *name)
{
    const int n = r < &regressions[WITH_EXPOSURE] ? 5 : N_BETA;

    for (int k = 0; k < 2 && r->shape[k]; k++)
        if (strcmp(r->shape[k], name) == 0)
            return exp(theta[n + k]);
    return given(r, name, NAN);
}

static double log_p(const regression *r, const double *theta, int64_t i, double y)
{
    const double eta = eta_of(r, theta, i), sigma = shape_of(r, theta, "sigma"),
                 nu = shape_of(r, theta, "nu"), phi = shape_of(r, theta, "phi"), mu = exp(eta);

    if (strcmp(r->name, "poisson") == 0)
        return y * eta - mu - lgamma(y + 1);
    if (strcmp(r->name, "negative_binomial") == 0)
        return lgamma(y + phi) - lgamma(phi) - lgamma(y + 1) + y * log(mu / (mu + phi)) +
               phi * log(phi / (mu + phi));
    const double z = (y - eta) / sigma;
    if (isnan(nu))
        return -z * z / 2 - log(sigma) - log(2 * M_PI) / 2;
    return lgamma((nu + 1) / 2) - lgamma(nu / 2) - log(nu * M_PI) / 2 - log(sigma) -
           (nu + 1) / 2 * log1p(z * z / nu);
}

/* With the logarithms' Jacobians. */
static double log_prior(const regression *r, const double *theta, int64_t dim)
{
    const double sigma = shape_of(r, theta, "sigma"), nu = shape_of(r, theta, "nu"),
                 phi = shape_of(r, theta, "phi");
    double sum = 0;
    int n_unknown = (r->shape[0] != NULL) + (r->shape[1] != NULL);

    for (int64_t j = 0; j < dim - n_unknown; j++)
        sum -= theta[j] * theta[j] / (2 * 10);
    for (int k = 0; k < n_unknown; k++)
        sum += strcmp(r->shape[k], "sigma") == 0
                   ? -2 * log(1 + sigma * sigma / (3 * 2.5 * 2.5)) + log(sigma)
               : strcmp(r->shape[k], "nu") == 0 ? log(nu) - 0.1 * nu + log(nu)
                                                : -1.4 * log(phi) - 0.3 / phi + log(phi);
    return sum;
}

/* ---- */

static double expected_density(const regression *r, const double *theta, int64_t dim)
{
    double sum = log_prior(r, theta, dim);

    for (int64_t i = 0; i < N_ROW; i++)
        sum += log_p(r, theta, i, count(i));
    return sum;
}

/* Up to a constant. */
START_TEST(test_density)
{
    const regression *r = &regressions[_i];
    setup s = make(r, NULL);
    _Alignas(64) double a[STRIDE], b[STRIDE];

    position(0, a);
    for (int64_t k = 1; k < 5; k++) {
        position(k, b);
        ck_assert_double_eq_tol(density_at(&s, b) - density_at(&s, a),
                                expected_density(r, b, s.model->dim) -
                                    expected_density(r, a, s.model->dim),
                                1e-11 * fabs(density_at(&s, a)));
    }
    teardown(&s);
}
END_TEST

/* Sparse data, of which the exposure is a column too. */
START_TEST(test_sparse_exposure)
{
    static const setting settings[] = {
        {"data", libsvm}, {"exposure", "x2"}, {"prior_scale", "10"}, {NULL, NULL}};
    _Alignas(64) double theta[40] = {0.1, 0.2}, gradient[40] = {0};
    double found = 0, expected = 0;
    setup s;

    ck_assert_msg(try_setup("poisson", settings, 0, 1, &s) == EM_OK, "%s", em_error_text());
    ck_assert_int_eq(s.model->dim, 30);
    ck_assert_str_eq(s.model->variable[0].label[0][2], "x3");
    theta[2] = 0.3;
    theta[29] = -0.4;
    for (int64_t i = 0; i < N_ROW; i++) {
        const double eta = 0.1 + 0.2 * feature(i, 0) + (i % 2 ? 0.3 * feature(i, 1) : 0) -
                           0.4 * feature(i, 2) + log(exposure(i));
        expected += count(i) * eta - exp(eta);
    }
    s.ops->add_likelihood(s.model, &(em_query){.n_chain = 1,
                                               .stride = 40,
                                               .theta = theta,
                                               .log_density = &found,
                                               .gradient = gradient,
                                               .rows = {.count = N_ROW}});
    ck_assert_double_eq_tol(found, expected, 1e-11 * fabs(expected));
    teardown(&s);
}
END_TEST

/* ---- reports ---- */

static const setting reports[] = {
    {"log_likelihood", "true"}, {"posterior_predictive", "true"}, {NULL, NULL}};

/* Log likelihoods are those of the textbook, constants too. */
START_TEST(test_log_likelihood)
{
    const regression *r = &regressions[_i];
    setup s = make(r, reports);
    const int64_t n = s.model->n_variable, dim = s.model->dim;
    const em_draw draw = {.seed = 1};
    _Alignas(64) double theta[STRIDE], out[STRIDE + 2 * N_ROW];

    ck_assert_str_eq(s.model->variable[n - 2].name, "y");
    ck_assert_int_eq(s.model->variable[n - 2].group, EM_LOG_LIKELIHOOD);
    ck_assert_int_eq(s.model->variable[n - 1].group, EM_POSTERIOR_PREDICTIVE);
    for (int64_t k = 0; k < 3; k++) {
        position(k, theta);
        ck_assert_int_eq(s.ops->report(s.model, &draw, theta, out), EM_OK);
        for (int64_t j = 0; j < dim; j++)
            ck_assert_double_eq_tol(out[j], j < dim - (n - 3) ? theta[j] : exp(theta[j]),
                                    1e-15 * fabs(out[j]));
        for (int64_t i = 0; i < N_ROW; i++)
            ck_assert_double_eq_tol(out[dim + i], log_p(r, theta, i, count(i)),
                                    1e-12 * (1 + fabs(out[dim + i])));
    }
    teardown(&s);
}
END_TEST

/* The probability of a response of at most y, by sums or by the trapezoidal rule in asinh z. */
static double distribution(const regression *r, const double *theta, int64_t i, double y)
{
    const double eta = eta_of(r, theta, i), sigma = shape_of(r, theta, "sigma");
    double sum = 0;

    if (isnan(sigma)) {
        for (double k = 0; k <= y; k++)
            sum += exp(log_p(r, theta, i, k));
        return sum;
    }
    /* of the half between the centre and y */
    const double h = asinh((y - eta) / sigma) / 100;
    for (int k = 0; k <= 100; k++)
        sum += (k == 0 || k == 100 ? 0.5 : 1) * cosh(k * h) *
               exp(log_p(r, theta, i, eta + sinh(k * h) * sigma));
    return 0.5 + sum * h * sigma;
}

/*
 * Where responses are drawn from their distribution F, the numbers F(y - 1) + u (F(y) - F(y - 1))
 * (continuous ones: F(y)) are uniform: sums of them and of their squares are compared with those of
 * uniforms, of variance 1/12 and 4/45, in standard errors. `wrong` draws at another theta.
 */
static double worst_z(const regression *r, bool wrong)
{
    enum { N_DRAW = 60 };
    setup s = make(r, reports);
    const int64_t dim = s.model->dim;
    const double n = N_DRAW * N_ROW;
    double mean = 0, square = 0;

    for (int64_t k = 0; k < N_DRAW; k++) {
        const em_draw draw = {.seed = 3, .iteration = k};
        _Alignas(64) double theta[STRIDE], out[STRIDE + 2 * N_ROW];
        position(k, theta);
        ck_assert_int_eq(s.ops->report(s.model, &draw, theta, out), EM_OK);
        theta[0] += wrong ? 0.2 : 0;
        for (int64_t i = 0; i < N_ROW; i++) {
            const double y = out[dim + N_ROW + i], p = distribution(r, theta, i, y);
            const double below = isnan(shape_of(r, theta, "sigma"))
                                     ? number(k, 20 + i) * exp(log_p(r, theta, i, y))
                                     : 0;
            mean += (p - below - 0.5) / n;
            square += (pow(2 * (p - below) - 1, 2) - 1. / 3) / n;
        }
    }
    teardown(&s);
    return fmax(fabs(mean) / sqrt(1 / 12. / n), fabs(square) / sqrt(4 / 45. / n));
}

START_TEST(test_predictive)
{
    ck_assert_double_lt(worst_z(&regressions[_i], false), 4);
    ck_assert_double_gt(worst_z(&regressions[_i], true), 4);
}
END_TEST

/* A mean beyond all counts: the report says so and goes on. */
START_TEST(test_too_large_to_draw)
{
    setup s = make(&regressions[WITH_EXPOSURE], reports);
    const em_draw draw = {.seed = 1};
    _Alignas(64) double theta[STRIDE] = {100}, out[STRIDE + 2 * N_ROW];

    ck_assert_int_eq(s.ops->report(s.model, &draw, theta, out), EM_NONFINITE);
    ck_assert_ptr_nonnull(strstr(em_error_text(), "too large"));
    ck_assert_double_lt(out[N_BETA], -1e30);
    ck_assert(isnan(out[N_BETA + N_ROW]));
    teardown(&s);
}
END_TEST

/* Every shard reports its own observations, and they add up to the whole. */
START_TEST(test_reports_of_shards)
{
    const regression *r = &regressions[_i];
    const em_draw draw = {.seed = 1};
    _Alignas(64) double theta[STRIDE], whole[STRIDE + 2 * N_ROW], part[STRIDE + 2 * N_ROW],
        sum[2 * N_ROW];
    setup s = make(r, reports);
    const int64_t dim = s.model->dim;

    position(0, theta);
    s.ops->report(s.model, &draw, theta, whole);
    teardown(&s);
    for (int64_t i = 0; i < 2 * N_ROW; i++)
        sum[i] = -0.0;
    for (int64_t shard = 0; shard < 3; shard++) {
        setting settings[12] = {reports[0], reports[1]};
        for (int k = 0; r->settings[k].name; k++)
            settings[2 + k] = r->settings[k];
        ck_assert_int_eq(try_setup(r->name, settings, shard, 3, &s), EM_OK);
        s.ops->report(s.model, &draw, theta, part);
        for (int64_t i = 0; i < 2 * N_ROW; i++)
            sum[i] += part[dim + i];
        teardown(&s);
    }
    ck_assert_mem_eq(sum, whole + dim, sizeof sum);
}
END_TEST

/* ---- metrics ---- */

static em_status metric_at(const setup *s, const double *theta, double *G, double *D)
{
    const int64_t n = s->model->dim;
    const em_rows all = {.count = s->model->rows.count};
    em_status status;

    memset(G, 0, (size_t)(n * n) * sizeof *G);
    memset(D, 0, (size_t)(n * n * n) * sizeof *D);
    status = s->ops->metric->add(s->model, true, NULL, theta, G, D);
    return status ? status : s->ops->metric->add(s->model, false, &all, theta, G, D);
}

/* The mean of (d log p / d parameter)^2 over responses, by sums or the trapezoidal rule. */
static double information_of(const regression *r, double *theta, int64_t i, int parameter)
{
    const bool counts = isnan(shape_of(r, theta, "sigma"));
    const double eta = eta_of(r, theta, i), h = 1e-5, at = theta[parameter];
    const double sigma = counts ? 1 : shape_of(r, theta, "sigma"), mean = exp(eta);
    double sum = 0;

    for (int k = counts ? 0 : -400; k < (counts ? 3000 : 400); k++) {
        const double y = counts ? k : eta + sinh(0.05 * k) * sigma;
        const double p = exp(log_p(r, theta, i, y)),
                     width = counts ? 1 : 0.05 * cosh(0.05 * k) * sigma;
        if (counts && y > mean && p < 1e-18)
            break;
        theta[parameter] = at + h;
        const double up = log_p(r, theta, i, y);
        theta[parameter] = at - h;
        sum += p * width * pow((up - log_p(r, theta, i, y)) / (2 * h), 2);
        theta[parameter] = at;
    }
    return sum;
}

/* Diagonal elements are sums of the information of each observation, which the textbook's density
 * has; derivatives are those of the metric. */
START_TEST(test_metric)
{
    const regression *r = &regressions[_i];
    setup s = make(r, NULL);
    const int64_t n = s.model->dim;
    _Alignas(64) double theta[STRIDE];
    double G[64], D[512], up[64], down[64], other[512];
    const int last = (int)n - 1;

    position(7, theta);
    if (_i == 3 || _i == 6) {
        ck_assert_int_eq(metric_at(&s, theta, G, D), EM_ECONFIG);
        ck_assert_ptr_nonnull(strstr(em_error_text(), "only if all parameters"));
        teardown(&s);
        return;
    }
    ck_assert_int_eq(metric_at(&s, theta, G, D), EM_OK);
    for (int j = 0; j <= last; j += last) {
        double sum = j < n - (r->shape[0] != NULL) ? 0.1 : 0;
        if (sum == 0) { /* minus the second derivative of the log prior, by differences */
            const double h = 1e-3, at = theta[j], middle = log_prior(r, theta, n);
            theta[j] = at + h;
            sum = 2 * middle - log_prior(r, theta, n);
            theta[j] = at - h;
            sum = (sum - log_prior(r, theta, n)) / (h * h);
            theta[j] = at;
        }
        for (int64_t i = 0; i < N_ROW; i++)
            sum += information_of(r, theta, i, j);
        ck_assert_double_eq_tol(G[j * n + j] / sum, 1, 1e-5);
    }
    for (int64_t k = 0; k < n; k++) {
        const double h = 1e-4, at = theta[k];
        theta[k] = at + h;
        metric_at(&s, theta, up, other);
        theta[k] = at - h;
        metric_at(&s, theta, down, other);
        theta[k] = at;
        for (int64_t i = 0; i < n; i++)
            for (int64_t j = 0; j <= i; j++)
                ck_assert_double_eq_tol(D[(k * n + i) * n + j],
                                        (up[i * n + j] - down[i * n + j]) / (2 * h),
                                        1e-6 * (1 + fabs(G[i * n + i])));
    }
    teardown(&s);
}
END_TEST

/* ---- what is refused ---- */

START_TEST(test_nu_of_normal_noise)
{
    static const setting settings[] = {{"data", csv}, {"nu", "3"}, {NULL, NULL}};
    setup s;

    check_failed(try_setup("linear", settings, 0, 1, &s), EM_ECONFIG,
                 "model.nu: found 3 for normal noise");
    teardown(&s);
}
END_TEST

START_TEST(test_refused)
{
    static const struct {
        const char *table, *exposure, *message;
    } cases[] = {
        {"1.5,2\n3,-1\n", "", ":2: found response -1, expected a count"},
        {"1.5,2\n3,4\n5,0.5\n", "", ":3: found response 0.5, expected a count"},
        {"1,1e17\n", "", ":1: found response 1e+17, expected a count of at most 2^53"},
        {"1.5,2\n3,nan\n", "", ":2: found 'nan'"},
        {"a,t,y\n1,1,2\n3,0,4\n", "t", ":3: found exposure 0, expected a number above 0"},
        {"a,t,y\n1,1,2\n3,-2,4\n", "2", ":3: found exposure -2, expected a number above 0"},
        {"a,t,y\n1,1,2\n", "u", "found no exposure column 'u'"},
        {"y\n1\n", "y", "found one column for the response and the exposure, expected two"},
    };

    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int m = 0; m < 2; m++) {
            const setting settings[] = {
                {"data", bad}, {"exposure", cases[k].exposure}, {NULL, NULL}};
            setup s;
            write_bytes(bad, cases[k].table, strlen(cases[k].table));
            check_failed(try_setup(m ? "poisson" : "negative_binomial", settings, 0, 1, &s),
                         EM_EDATA, cases[k].message);
            teardown(&s);
        }
}
END_TEST

static void set_up(void)
{
    open_test_folder();
    path_in_folder("csv", csv);
    path_in_folder("libsvm", libsvm);
    path_in_folder("bad", bad);
    write_tables();
}

int main(void)
{
    TCase *all = tcase_create("regression");

    tcase_add_checked_fixture(all, set_up, close_test_folder);
    tcase_set_timeout(all, 60);
    tcase_add_loop_test(all, test_density, 0, N_REGRESSION);
    tcase_add_test(all, test_sparse_exposure);
    tcase_add_loop_test(all, test_log_likelihood, 0, N_REGRESSION);
    tcase_add_loop_test(all, test_predictive, 0, N_REGRESSION);
    tcase_add_test(all, test_too_large_to_draw);
    tcase_add_loop_test(all, test_reports_of_shards, 0, N_REGRESSION);
    tcase_add_loop_test(all, test_metric, 0, N_REGRESSION);
    tcase_add_test(all, test_nu_of_normal_noise);
    tcase_add_test(all, test_refused);
    return run_case(all, CK_FORK_GETENV);
}
