/* The densities of models, written down a second time on the constrained scale. */
#include "support/model_tables.h"

/* A density is known up to a constant: compare its differences from the first of three points. */
static void check_density(const setup *s, double radius, double (*expected)(const double *))
{
    panel p = random_panel(3, s->model->dim, em_stride(s->model->dim), radius);

    evaluate(s, &p);
    for (int64_t c = 1; c < 3; c++)
        ck_assert_double_eq_tol(p.log_density[c] - p.log_density[0],
                                expected(p.theta + c * p.stride) - expected(p.theta),
                                1e-11 * (1 + fabs(p.log_density[c])));
}

static double log_normal(double x, double mean, double sd)
{
    return -log(sd) - (x - mean) * (x - mean) / (2 * sd * sd);
}

static double eight_schools_density(const double *theta)
{
    static const double y[] = {28, 8, -3, 7, -1, 1, 18, 12},
                        sigma[] = {15, 10, 16, 11, 9, 11, 10, 18};
    double mu = theta[0], tau = exp(theta[1]);
    double sum = log_normal(mu, 0, 5) - log(1 + tau * tau / 25) + log(tau); /* d tau / d eta */

    for (int j = 0; j < 8; j++)
        sum += log_normal(theta[2 + j], 0, 1) + log_normal(y[j], mu + tau * theta[2 + j], sigma[j]);
    return sum;
}

START_TEST(test_eight_schools)
{
    setup s = make(&(model_case){"eight_schools", {{NULL, NULL}}, 1}, 0, 1);
    const double theta[] = {1, log(2), 0, 1, 2, 3, 4, 5, 6, 7};
    double out[18];

    check_density(&s, 1, eight_schools_density);
    ck_assert_int_eq(s.ops->report(s.model, &first_draw, theta, out), EM_OK);
    ck_assert_double_eq_tol(out[1], 2, 1e-15);
    ck_assert_double_eq_tol(out[2 + 3], 1 + 2 * 3, 1e-14);
    ck_assert_double_eq(out[10 + 3], 3);
    ck_assert_str_eq(s.model->variable[2].label[0][6], "St. Paul's");
    ck_assert_str_eq(s.model->datum[0].variable.name, "y");
    ck_assert_double_eq(s.model->datum[1].value[7], 18);
    teardown(&s);
}
END_TEST

/* tau ~ Gamma(1/2, rate 1/2) has density tau^(-1/2) e^(-tau/2). */
static double normal_wishart_density(const double *theta)
{
    double tau = exp(theta[1]), sum = -log(tau) / 2 - tau / 2 + log(tau);

    for (int64_t i = 0; i < N_ROW; i++)
        sum += log_normal(feature(i, 0), theta[0], 1 / sqrt(tau));
    return sum;
}

START_TEST(test_normal_wishart)
{
    setup s = make(&(model_case){"normal_wishart", {{"data", column}}, 1}, 0, 1);
    double out[2];

    check_density(&s, 1, normal_wishart_density);
    ck_assert_int_eq(s.ops->report(s.model, &first_draw, (const double[]){0.5, log(3)}, out),
                     EM_OK);
    ck_assert_double_eq(out[0], 0.5);
    ck_assert_double_eq_tol(out[1], 3, 1e-15);
    teardown(&s);
}
END_TEST

static double linear_predictor(const double *theta, int64_t i, bool sparse)
{
    double sum = theta[0];

    for (int64_t j = 0; j < N_FEATURE; j++)
        sum += sparse && !is_there(i, j) ? 0 : feature(i, j) * theta[1 + j];
    return sum;
}

static double linear_density(const double *theta)
{
    double sum = 0;

    for (int64_t j = 0; j <= N_FEATURE; j++)
        sum += log_normal(theta[j], 0, sqrt(3));
    for (int64_t i = 0; i < N_ROW; i++)
        sum += log_normal(label(i), linear_predictor(theta, i, false), 0.7);
    return sum;
}

/* What is stored of each observation on request, beside the textbook: log likelihoods of a normal,
 * and draws whose mean square deviation is 1, of n numbers with the standard error sqrt(2 / n). */
static void check_normal_reports(const model_case *m, const double *theta,
                                 double (*observed)(int64_t), double (*mean)(int64_t),
                                 double (*sd)(int64_t), int64_t first, int64_t n)
{
    setup s = make(m, 0, 1);
    double out[400], squares = 0;

    ck_assert_int_eq(s.ops->report(s.model, &first_draw, theta, out), EM_OK);
    ck_assert_int_eq(em_variable_size(&s.model->variable[s.model->n_variable - 1]), n);
    ck_assert_int_eq(s.model->variable[s.model->n_variable - 2].group, EM_LOG_LIKELIHOOD);
    ck_assert_int_eq(s.model->variable[s.model->n_variable - 1].group, EM_POSTERIOR_PREDICTIVE);
    for (int64_t i = 0; i < n; i++) {
        ck_assert_double_eq_tol(out[first + i],
                                log_normal(observed(i), mean(i), sd(i)) - log(2 * M_PI) / 2, 1e-13);
        squares += pow((out[first + n + i] - mean(i)) / sd(i), 2) / (double)n;
    }
    ck_assert_double_lt(fabs(squares - 1) / sqrt(2. / (double)n), 4);
    teardown(&s);
}

static double school_y(int64_t j)
{
    return (const double[]){28, 8, -3, 7, -1, 1, 18, 12}[j];
}

static double school_mean(int64_t j)
{
    return 1 + 2 * (double)j;
}

static double school_sd(int64_t j)
{
    return (const double[]){15, 10, 16, 11, 9, 11, 10, 18}[j];
}

static double column_x(int64_t i)
{
    return feature(i, 0);
}

static double column_mean(int64_t i)
{
    (void)i;
    return 0.5;
}

static double column_sd(int64_t i)
{
    (void)i;
    return 1 / sqrt(3);
}

START_TEST(test_reports_of_observations)
{
    const double schools[] = {1, log(2), 0, 1, 2, 3, 4, 5, 6, 7}, numbers[] = {0.5, log(3)};

    check_normal_reports(
        &(model_case){
            "eight_schools", {{"log_likelihood", "true"}, {"posterior_predictive", "true"}}, 1},
        schools, school_y, school_mean, school_sd, 18, 8);
    check_normal_reports(
        &(model_case){
            "normal_wishart",
            {{"data", column}, {"log_likelihood", "true"}, {"posterior_predictive", "true"}},
            1},
        numbers, column_x, column_mean, column_sd, 2, N_ROW);
}
END_TEST

START_TEST(test_linear)
{
    setup s = make(
        &(model_case){"linear", {{"data", csv}, {"sigma", "0.7"}, {"prior_scale", "3"}}, 1}, 0, 1);

    ck_assert_int_eq(s.model->dim, N_FEATURE + 1);
    check_density(&s, 1, linear_density);
    teardown(&s);
}
END_TEST

static double logistic_density(const double *theta, bool sparse)
{
    double sum = 0;

    for (int64_t j = 0; j <= N_FEATURE; j++)
        sum += log_normal(theta[j], 0, sqrt(10));
    for (int64_t i = 0; i < N_ROW; i++) {
        double p = 1 / (1 + exp(-linear_predictor(theta, i, sparse)));
        sum += log(label(i) == 1 ? p : 1 - p);
    }
    return sum;
}

static double dense_logistic_density(const double *theta)
{
    return logistic_density(theta, false);
}

static double sparse_logistic_density(const double *theta)
{
    return logistic_density(theta, true);
}

START_TEST(test_logistic)
{
    setup dense = make(&(model_case){"logistic", {{"data", csv}, {"prior_scale", "10"}}, 1}, 0, 1),
          sparse =
              make(&(model_case){"logistic", {{"data", libsvm}, {"prior_scale", "10"}}, 1}, 0, 1);

    check_density(&dense, 0.3, dense_logistic_density);
    check_density(&sparse, 0.3, sparse_logistic_density);
    ck_assert_str_eq(dense.model->variable[0].label[0][0], "intercept");
    ck_assert_str_eq(dense.model->variable[0].label[0][N_FEATURE], "x11");
    teardown(&dense);
    teardown(&sparse);
}
END_TEST

/* Logits of a thousand neither overflow nor lose the gradient. */
START_TEST(test_logistic_far_out)
{
    setup s = make(&(model_case){"logistic", {{"data", csv}}, 1}, 0, 1);
    panel p = random_panel(8, s.model->dim, em_stride(s.model->dim), 1000);

    evaluate(&s, &p);
    for (int64_t c = 0; c < 8; c++)
        ck_assert(isfinite(p.log_density[c]) && p.log_density[c] < -1000);
    teardown(&s);
}
END_TEST

/* With the linear rule (1, -1) separates the classes, so that likelihood grows along it for ever;
 * with drawn labels it falls off again. */
START_TEST(test_generated_labels)
{
    static const setting drawn[] = {{"intercept", "false"}, {"labels", "bernoulli"}, {NULL, NULL}},
                         linear[] = {{"intercept", "false"}, {"labels", "linear"}, {NULL, NULL}};
    setup s;
    panel p = {2, EM_LANES, {30, -30, 0, 0, 0, 0, 0, 0, 1, -1}, {0}, {0}};

    ck_assert_int_eq(try_setup("logistic", linear, 0, 1, &s), EM_OK);
    ck_assert_int_eq(s.model->dim, 2);
    ck_assert_int_eq(s.model->rows.count, 2000);
    add_likelihood(&s, NULL, &p);
    ck_assert_double_gt(p.log_density[0], -100);
    ck_assert_double_gt(p.log_density[0], p.log_density[1]);
    teardown(&s);
    p.log_density[0] = p.log_density[1] = 0;
    ck_assert_int_eq(try_setup("logistic", drawn, 0, 1, &s), EM_OK);
    add_likelihood(&s, NULL, &p);
    ck_assert_double_lt(p.log_density[0], p.log_density[1]);
    teardown(&s);
}
END_TEST

/* Eigenvalues evenly spaced in the logarithm from 1 to the condition number, axes turned. */
START_TEST(test_gaussian)
{
    enum { DIM = 13 };
    const model_case gaussian = {
        "gaussian", {{"dim", "13"}, {"condition", "100"}, {"rotation", "true"}}, 2};
    setup s = make(&gaussian, 0, 1);
    double P[DIM * 16], value[DIM];

    ck_assert_int_eq(s.model->n_datum, 2);
    for (int i = 0; i < DIM; i++)
        for (int j = 0; j < DIM; j++)
            P[i * 16 + j] = s.model->datum[1].value[i * DIM + j];
    ck_assert_double_gt(fabs(P[1]), 1e-3);
    ck_assert_int_eq(em_eigen(DIM, P, 16, value), EM_OK);
    for (int i = 0; i < DIM; i++)
        ck_assert_double_eq_tol(value[i] / pow(100, i / 12.), 1, 1e-12);
    teardown(&s);
}
END_TEST

START_TEST(test_gaussian_from_files)
{
    /* The inverse of (2 1; 1 1) is (1 -1; -1 2). */
    static const setting precision[] = {{"precision", matrix}, {NULL, NULL}},
                         covariance[] = {{"covariance", matrix}, {"mean", column}, {NULL, NULL}};
    FILE *file = fopen(column, "w");
    setup s;
    panel p = {1, EM_LANES, {1, 3}, {0}, {0}};

    fputs("1\n1\n", file);
    fclose(file);
    write_matrix("2,1\n1,1\n");
    ck_assert_int_eq(try_setup("gaussian", precision, 0, 1, &s), EM_OK);
    add_prior(&s, &p);
    ck_assert_double_eq_tol(p.log_density[0], -(2 * 1 + 2 * 3 + 9) / 2., 1e-14);
    ck_assert_double_eq_tol(p.gradient[1], -4, 1e-14);
    teardown(&s);
    p.log_density[0] = 0;
    ck_assert_int_eq(try_setup("gaussian", covariance, 0, 1, &s), EM_OK);
    add_prior(&s, &p);
    ck_assert_double_eq_tol(p.log_density[0], -2 * 2 * 2 / 2., 1e-14);
    teardown(&s);
}
END_TEST

/* U of the potentials at points where it is easily known. */
START_TEST(test_potentials)
{
    static const struct {
        const char *name;
        double theta[2], U;
    } points[] = {{"double_well", {2}, 8},
                  {"double_well", {-1}, -1},
                  {"double_well_tilted", {3}, 0.5},
                  {"double_well_tilted", {-4}, 0.5},
                  {"double_well_tilted", {0}, 12. / 14 + 0.5},
                  {"banana", {0, -1.2}, 0},
                  {"banana", {2, -0.2}, 1.6},
                  {"banana", {1, -1.2}, 0.6}};

    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        setup s = make(&(model_case){points[i].name, {{NULL, NULL}}, 1}, 0, 1);
        ck_assert_double_eq_tol(density_at(&s, points[i].theta), -points[i].U, 1e-14);
        teardown(&s);
    }
}
END_TEST

/* The option gives the gradient of a minibatch of one the variance that it names, and leaves the
 * whole gradient alone: 10000 terms of zero sum, whose squares have the mean V / N^2. */
START_TEST(test_gradient_noise)
{
    enum { N = 10000 };
    static const model_case noisy[] = {
        {"double_well", {{"gradient_noise", "4"}, {NULL, NULL}}, 1},
        {"gaussian", {{"gradient_noise", "4"}, {"dim", "1"}, {NULL, NULL}}, 1}};
    const double V = 4;
    setup made = make(&noisy[_i], 0, 1);
    panel p = {1, EM_LANES, {0.3}, {0}, {0}};
    double squares = 0;

    ck_assert_int_eq(made.model->rows.count, N);
    add_likelihood(&made, NULL, &p);
    ck_assert_double_eq_tol(p.gradient[0], 0, 1e-9);
    for (int64_t row = 0; row < N; row++) {
        p.gradient[0] = 0;
        add_likelihood(&made, &(em_rows){.count = 1, .index = &row}, &p);
        squares += p.gradient[0] * p.gradient[0];
    }
    /* N draws of a normal: the standard error of the mean square is sqrt(2 / N) of it. */
    ck_assert_double_eq_tol(squares / N * ((double)N * N) / V, 1, 5 * sqrt(2.0 / N));
    teardown(&made);
}
END_TEST

/* ---- bad input ---- */

static void check_refused(const char *name, const setting *settings, em_status expected,
                          const char *message)
{
    setup s;

    ck_assert_int_eq(try_setup(name, settings, 0, 1, &s), expected);
    ck_assert_ptr_null(s.model);
    ck_assert_msg(strstr(em_error_text(), message) != NULL, "'%s' is not in: %s", message,
                  em_error_text());
    teardown(&s);
}

START_TEST(test_refused)
{
    static const struct {
        const char *text, *message;
    } bad[] = {{"2,1\n1,1\n3,3\n", "3 x 2 numbers, expected 3 x 3"},
               {"2,1\n0,1\n", "symmetric"},
               {"1,2\n2,1\n", "positive definite"},
               {"1,2\n2,x\n", ":2: found 'x'"}};
    static const setting precision[] = {{"precision", matrix}, {NULL, NULL}},
                         both[] = {{"precision", matrix}, {"covariance", matrix}, {NULL, NULL}},
                         mean[] = {{"mean", column}, {NULL, NULL}},
                         wide[] = {{"data", csv}, {NULL, NULL}},
                         labels[] = {{"data", csv}, {"response", "x1"}, {NULL, NULL}},
                         y[] = {{"y", "[1, 2]"}, {NULL, NULL}},
                         size[] = {{"data", csv}, {"n", "9"}, {NULL, NULL}},
                         rule[] = {{"data", csv}, {"labels", "bernoulli"}, {NULL, NULL}};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_matrix(bad[i].text);
        check_refused("gaussian", precision, EM_EDATA, bad[i].message);
    }
    check_refused("gaussian", both, EM_ECONFIG, "expected one");
    check_refused("gaussian", mean, EM_EDATA, "150 x 1 numbers, expected 10 x 1");
    check_refused("normal_wishart", wide, EM_EDATA, "12 columns, expected 1");
    check_refused("logistic", labels, EM_EDATA, "labels");
    check_refused("logistic", size, EM_ECONFIG, "model.n: found 9 together with data");
    check_refused("logistic", rule, EM_ECONFIG, "model.labels: found bernoulli together with data");
    check_refused("normal_wishart", size, EM_ECONFIG, "model.n: found 9 together with data");
    check_refused("eight_schools", y, EM_ECONFIG, "2 y, 8 sigma and 8 school");
}
END_TEST

/* ---- real data ---- */

static void check_data_set(const char *file, const char *positive, int64_t n, int64_t dim,
                           double n_positive)
{
    char path[512];
    const setting settings[] = {{"data", path},
                                {"standardise", "true"},
                                {"prior_scale", "10"},
                                {"positive", positive},
                                {NULL, NULL}};
    setup s;
    panel p = {1, em_stride(dim), {0}, {0}, {0}};

    snprintf(path, sizeof path, "%s/%s", getenv("EMASS_DATA"), file);
    ck_assert_msg(try_setup("logistic", settings, 0, 1, &s) == EM_OK, "%s", em_error_text());
    ck_assert_int_eq(s.model->rows.count, n);
    ck_assert_int_eq(s.model->dim, dim);
    /* At 0 every probability is 1/2, and the intercept's gradient is sum_i (y_i - 1/2). */
    evaluate(&s, &p);
    ck_assert_double_eq_tol(p.log_density[0], -(double)n * log(2), 1e-10);
    ck_assert_double_eq_tol(p.gradient[0], n_positive - (double)n / 2, 1e-10);
    teardown(&s);
}

START_TEST(test_real_data)
{
    if (!getenv("EMASS_DATA"))
        return;
    check_data_set("heart/heart.dat", "2", 270, 14, 120);
    check_data_set("australian/australian.dat", "auto", 690, 15, 307);
    check_data_set("australian/australian.libsvm", "auto", 690, 15, 307);
}
END_TEST

static Suite *densities_suite(void)
{
    Suite *suite = suite_create("densities");
    TCase *each = tcase_create("each model"),
          *real = tcase_create(getenv("EMASS_DATA") ? "data sets"
                                                    : "data sets # SKIP EMASS_DATA is not set");

    tcase_add_checked_fixture(each, make_tables, remove_tables);
    tcase_add_test(each, test_eight_schools);
    tcase_add_test(each, test_normal_wishart);
    tcase_add_test(each, test_reports_of_observations);
    tcase_add_test(each, test_linear);
    tcase_add_test(each, test_logistic);
    tcase_add_test(each, test_logistic_far_out);
    tcase_add_test(each, test_generated_labels);
    tcase_add_test(each, test_gaussian);
    tcase_add_test(each, test_gaussian_from_files);
    tcase_add_test(each, test_potentials);
    tcase_add_loop_test(each, test_gradient_noise, 0, 2);
    tcase_add_test(each, test_refused);
    suite_add_tcase(suite, each);

    tcase_add_test(real, test_real_data);
    suite_add_tcase(suite, real);
    return suite;
}

int main(void)
{
    return run_suite(densities_suite(), CK_FORK_GETENV);
}
