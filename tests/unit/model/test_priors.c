/*
 * Priors of regressions on the scale of the data: densities beside ones written down for the
 * coefficients that are reported, on a table of years near 2010 with predictors of 1e-6 and 1e6,
 * and what model.prior refuses.
 */
#include "math/rng.h"
#include "support/model_setup.h"
#include "support/tap.h"
#include "support/test_files.h"

#include <check.h>
#include <math.h>

enum { N_ROW = 90, N_BETA = 4, MOST = 8 };

static test_path csv;

typedef struct row {
    double y, x[N_BETA - 1], weight, offset;
} row;

static row rows[N_ROW];

static double number(int64_t i, int64_t j)
{
    return em_uniform(&(em_stream){6, (uint64_t)i, 0, EM_RNG_TEST}, (uint64_t)j);
}

/* The response is a price, a count or a label; written with all digits. */
static void write_table(const char *model)
{
    FILE *file = fopen(csv, "w");

    fprintf(file, "y,year,w,tiny,o,huge\n");
    for (int64_t i = 0; i < N_ROW; i++) {
        row *r = &rows[i];
        *r = (row){.x = {floor(2000 + 20 * number(i, 0)), 1e-6 * (number(i, 1) - 0.5),
                         1e6 * (3 + number(i, 2))},
                   .weight = floor(4 * number(i, 3)),
                   .offset = number(i, 4) - 0.5};
        r->y = strcmp(model, "linear") == 0
                   ? floor(3e5 + 900 * (r->x[0] - 2010) + 1e4 * number(i, 5))
               : strcmp(model, "logistic") == 0 ? number(i, 5) < 0.4
                                                : floor(9 * number(i, 5));
        fprintf(file, "%.17g,%.17g,%.17g,%.17g,%.17g,%.17g\n", r->y, r->x[0], r->weight, r->x[1],
                r->offset, r->x[2]);
    }
    fclose(file);
}

/* The priors that are expected: of the intercept and three columns; and of sigma or phi. */
typedef struct priors {
    bool autoscale;
    double df[N_BETA], location[N_BETA], scale[N_BETA]; /* df 0: normal; the scale is given in units
                                                           of the data's where autoscale */
    char shape;                                         /* e(xponential), n(ormal), t, i(nverse) */
    double a, b;
} priors;

typedef struct regression {
    const char *name;
    setting settings[MOST];
    bool weighted, offset, standardised, no_intercept;
    priors expected;
} regression;

#define DATA                                                                                       \
    {"data", csv}, {"response", "y"},                                                              \
    {                                                                                              \
        "columns", "[year, tiny, huge]"                                                            \
    }
#define DEFAULT(shape, rate)                                                                       \
    {                                                                                              \
        true, {0}, {0}, {2.5, 2.5, 2.5, 2.5}, shape, 0, rate                                       \
    }

static const regression regressions[] = {
    {"linear", {DATA}, .expected = DEFAULT('e', 1)},
    {"linear", {DATA, {"standardise", "true"}}, .standardised = true, .expected = DEFAULT('e', 1)},
    {"linear", {DATA, {"intercept", "false"}}, .no_intercept = true, .expected = DEFAULT('e', 1)},
    {"linear",
     {DATA,
      {"weights", "w"},
      {"offset", "o"},
      {"prior",
       "{\"coefficients\": {\"year\": {\"normal\": [900, 50]}, \"default\": {\"student_t\": "
       "[5, 1, 1e4]}}, \"intercept\": {\"cauchy\": [3e5, 1e4]}, \"sigma\": {\"half_normal\": "
       "4000}}"}},
     .weighted = true,
     .offset = true,
     .expected = {false, {1, 0, 5, 5}, {3e5, 900, 1, 1}, {1e4, 50, 1e4, 1e4}, 'n', 0, 4000}},
    {"linear",
     {DATA,
      {"prior", "{\"coefficients\": {\"cauchy\": [0, 0.5]}, \"intercept\": {\"normal\": [3e5, 2]}, "
                "\"sigma\": {\"half_student_t\": [4, 0.7]}, \"autoscale\": true}"}},
     .expected = {true, {0, 1, 1, 1}, {3e5}, {2, 0.5, 0.5, 0.5}, 't', 4, 0.7}},
    {"linear",
     {DATA, {"sigma_scale", "3000"}},
     .expected = {true, {0}, {0}, {2.5, 2.5, 2.5, 2.5}, 'T', 3, 3000}},
    {"logistic", {DATA, {"weights", "w"}}, .weighted = true, .expected = DEFAULT(0, 0)},
    {"poisson", {DATA, {"offset", "o"}}, .offset = true, .expected = DEFAULT(0, 0)},
    {"poisson",
     {DATA, {"prior", "{\"coefficients\": {\"tiny\": {\"normal\": [2, 3]}}}"}},
     .expected = {true, {0}, {0, 0, 2, 0}, {2.5, 2.5, -3, 2.5}, 0, 0, 0}},
    {"negative_binomial", {DATA}, .expected = DEFAULT('e', 1)},
    {"negative_binomial",
     {DATA, {"prior", "{\"phi\": {\"inverse_gamma\": [0.4, 0.3]}}"}},
     .expected = {true, {0}, {0}, {2.5, 2.5, 2.5, 2.5}, 'i', 0.4, 0.3}},
};

enum { N_REGRESSION = sizeof regressions / sizeof *regressions };

/* ---- written down ---- */

static double moments(int j, double *mean)
{
    double sum = 0, squares = 0;

    for (int i = 0; i < N_ROW; i++)
        sum += (j < 0 ? rows[i].y : rows[i].x[j]) / N_ROW;
    for (int i = 0; i < N_ROW; i++)
        squares += pow((j < 0 ? rows[i].y : rows[i].x[j]) - sum, 2);
    *mean = sum;
    return sqrt(squares / (N_ROW - 1));
}

static double log_p(const regression *r, const row *of, double eta, double shape)
{
    const double y = of->y, mu = exp(eta);

    if (strcmp(r->name, "linear") == 0)
        return -log(shape) - pow((y - eta) / shape, 2) / 2;
    if (strcmp(r->name, "logistic") == 0)
        return y * eta - log1p(mu);
    if (strcmp(r->name, "poisson") == 0)
        return y * eta - mu;
    return lgamma(y + shape) - lgamma(shape) + y * log(mu / (mu + shape)) +
           shape * log(shape / (mu + shape));
}

static double log_prior(const regression *r, double beta[N_BETA], double shape)
{
    const priors *p = &r->expected;
    const bool identity = strcmp(r->name, "linear") == 0;
    double mean_y, sum = 0, unit = moments(-1, &mean_y);

    unit = identity ? unit : 1;
    for (int j = r->no_intercept; j < N_BETA; j++) {
        double mean, sd = j > 0 ? moments(j - 1, &mean) : 1, location = p->location[j];
        const bool is_default = p->autoscale && p->df[j] == 0 && location == 0;
        location = j == 0 && identity && is_default ? mean_y : location;
        const double scale =
            p->scale[j] < 0 ? -p->scale[j] : p->scale[j] * (p->autoscale ? unit / sd : 1);
        const double z = (beta[j] - location) / scale, df = p->df[j];
        sum -= df > 0 ? (df + 1) / 2 * log1p(z * z / df) : z * z / 2;
    }
    const double b = p->autoscale && identity && p->shape != 'T'
                         ? (p->shape == 'e' ? p->b / unit : p->b * unit)
                         : p->b;
    if (p->shape)
        sum += log(shape); /* the Jacobian of its logarithm */
    return p->shape == 'e'   ? sum - b * shape
           : p->shape == 'n' ? sum - pow(shape / b, 2) / 2
           : p->shape == 'i' ? sum - (p->a + 1) * log(shape) - b / shape
           : p->shape        ? sum - (p->a + 1) / 2 * log1p(pow(shape / b, 2) / p->a)
                             : sum;
}

/* Of the intercept and the coefficients on the original scale, as they are reported. */
static double expected_density(const regression *r, const double *out, double shape)
{
    const double *original = out + r->no_intercept * -1;
    double sum = 0, centred[N_BETA], mean;

    for (int i = 0; i < N_ROW; i++) {
        double eta = r->no_intercept ? 0 : original[0];
        for (int j = 1; j < N_BETA; j++)
            eta += original[j] * rows[i].x[j - 1];
        eta += r->offset ? rows[i].offset : 0;
        sum += (r->weighted ? rows[i].weight : 1) * log_p(r, &rows[i], eta, shape);
    }
    centred[0] = r->no_intercept ? 0 : original[0];
    for (int j = 1; j < N_BETA; j++) {
        moments(j - 1, &mean);
        centred[j] = original[j];
        centred[0] += mean * original[j];
    }
    return sum + log_prior(r, centred, shape);
}

/* ---- */

START_TEST(test_density)
{
    const regression *r = &regressions[_i];
    double first[2] = {0, 0};
    setup s;

    write_table(r->name);
    ck_assert_msg(try_setup(r->name, r->settings, 0, 1, &s) == EM_OK, "%s", em_error_text());
    const int n = N_BETA - r->no_intercept;
    ck_assert_int_eq(s.model->dim, n + (r->expected.shape != 0));
    for (int64_t k = 0; k < 5; k++) {
        _Alignas(64) double theta[MOST], out[2 * MOST];
        for (int64_t j = 0; j < MOST; j++)
            theta[j] = 3 * number(1000 + k, j) - 1.5;
        ck_assert_int_eq(s.ops->report(s.model, &(em_draw){.seed = 1}, theta, out), EM_OK);
        const double found = density_at(&s, theta);
        const double expected =
            expected_density(r, r->standardised ? out + s.model->dim : out, out[n]);
        if (k == 0) {
            first[0] = found;
            first[1] = expected;
        }
        ck_assert_double_eq_tol(found - first[0], expected - first[1],
                                1e-8 * (1 + fabs(found) + fabs(first[0])));
    }
    teardown(&s);
}
END_TEST

/* Starts within a few units of theta are as wide as the priors, whatever the units of the data. */
START_TEST(test_starts_are_dispersed)
{
    const regression *r = &regressions[0];
    _Alignas(64) double theta[MOST] = {0}, out[MOST], twice[MOST];
    double mean, unit;
    setup s;

    write_table(r->name);
    unit = moments(-1, &mean);
    ck_assert_int_eq(try_setup(r->name, r->settings, 0, 1, &s), EM_OK);
    s.ops->report(s.model, &(em_draw){.seed = 1}, theta, out);
    ck_assert_double_eq_tol(out[0], mean, 1e-12 * mean);
    ck_assert_double_eq_tol(out[N_BETA], unit, 1e-12 * unit);
    for (int j = 1; j < N_BETA; j++) {
        memset(theta, 0, sizeof theta);
        theta[j] = 2;
        s.ops->report(s.model, &(em_draw){.seed = 1}, theta, twice);
        ck_assert_double_eq_tol(twice[j], 5 * unit / moments(j - 1, &mean), 1e-10 * fabs(twice[j]));
    }
    teardown(&s);
}
END_TEST

START_TEST(test_refused)
{
    static const struct {
        const char *model, *prior, *message;
    } cases[] = {
        {"linear", "{\"coefficient\": {\"normal\": [0, 1]}}", "did you mean coefficients?"},
        {"linear", "{\"coefficients\": {\"norml\": [0, 1]}}", "did you mean normal?"},
        {"linear", "{\"coefficients\": {\"normal\": [0]}}", "normal: [location, scale]"},
        {"linear", "{\"coefficients\": {\"normal\": [0, 1, 2]}}", "normal: [location, scale]"},
        {"linear", "{\"coefficients\": {\"normal\": [0, -1]}}",
         "found -1, expected a positive number (1e-300 to 1e300) for df, scale, rate or shape"},
        {"linear", "{\"coefficients\": {\"normal\": [0, \"nan\"]}}",
         "found nan, expected a number"},
        {"linear", "{\"coefficients\": {\"student_t\": [4, 1]}}",
         "student_t: [degrees of freedom, location, scale]"},
        {"linear", "{\"coefficients\": {\"yaer\": {\"normal\": [0, 1]}}}", "did you mean year?"},
        {"linear", "{\"coefficients\": {\"intercept\": {\"normal\": [0, 1]}}}",
         "model.prior.intercept"},
        {"linear", "{\"coefficients\": {}}", "a distribution"},
        {"linear", "{\"intercept\": {\"normal\": [0, 1]}, \"intercept\": {\"normal\": [0, 2]}}",
         "found duplicate object key"},
        {"linear", "{\"sigma\": {\"normal\": [0, 1]}}", "exponential, half_normal"},
        {"linear", "{\"sigma\": {\"exponential\": 1, \"gamma\": [1, 1]}}", "one distribution"},
        {"linear", "{\"autoscale\": \"perhaps\"}", "true or false"},
        {"linear", "[1]", "a mapping"},
        {"poisson", "{\"sigma\": {\"exponential\": 1}}", "coefficients, intercept, autoscale"},
    };

    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const setting settings[] = {DATA, {"prior", cases[k].prior}, {NULL, NULL}};
        setup s;
        write_table(cases[k].model);
        check_failed(try_setup(cases[k].model, settings, 0, 1, &s), EM_ECONFIG, cases[k].message);
        teardown(&s);
    }
}
END_TEST

/* Options that do not go together, and weights that are none. */
START_TEST(test_refused_beside)
{
    static const char any[] = "{\"sigma\": {\"exponential\": 1}}";
    static const struct {
        setting more[2];
        em_status status;
        const char *message;
    } cases[] = {
        {{{"prior", any}, {"prior_scale", "10"}}, EM_ECONFIG, "found 10 together with model.prior"},
        {{{"prior", any}, {"sigma", "2"}}, EM_ECONFIG, "but model.sigma is a fixed number"},
        {{{"prior", any}, {"sigma_scale", "2"}}, EM_ECONFIG, "model.sigma_scale too"},
        {{{"prior", "{\"intercept\": {\"normal\": [0, 1]}}"}, {"intercept", "false"}},
         EM_ECONFIG,
         "a model with an intercept"},
        {{{"prior", "{\"coefficients\": {\"default\": \"flat\"}}"}, {NULL, NULL}},
         EM_ECONFIG,
         "model.prior.coefficients: found flat, expected a distribution such as"},
        {{{"prior", "{\"coefficients\": {\"year\": \"wide\"}}"}, {NULL, NULL}},
         EM_ECONFIG,
         "found wide, expected a distribution"},
        {{{"prior", "{\"coefficients\": {\"normal\": \"wide\"}}"}, {NULL, NULL}},
         EM_ECONFIG,
         "found wide, expected normal: [location, scale]"},
        {{{"weights", "o"}, {NULL, NULL}}, EM_EDATA, "expected a number of at least 0"},
        {{{"weights", "w"}, {"offset", "w"}},
         EM_EDATA,
         "one column for the offset and the weights"},
        {{{"weights", "ww"}, {NULL, NULL}}, EM_EDATA, "found no weights column 'ww'"},
        {{{"offset", "year"}, {NULL, NULL}}, EM_EDATA, "expected no exposure, offset or weights"},
    };

    write_table("linear");
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const setting settings[] = {DATA, cases[k].more[0], cases[k].more[1], {NULL, NULL}};
        setup s;
        check_failed(try_setup("linear", settings, 0, 1, &s), cases[k].status, cases[k].message);
        teardown(&s);
    }
}
END_TEST

static void set_up(void)
{
    open_test_folder();
    path_in_folder("csv", csv);
}

int main(void)
{
    TCase *all = tcase_create("priors");

    tcase_add_checked_fixture(all, set_up, close_test_folder);
    tcase_set_timeout(all, 60);
    tcase_add_loop_test(all, test_density, 0, N_REGRESSION);
    tcase_add_test(all, test_starts_are_dispersed);
    tcase_add_test(all, test_refused);
    tcase_add_test(all, test_refused_beside);
    return run_case(all, CK_FORK_GETENV);
}
