#include "support/sbc_models.h"

#include "math/linalg.h"
#include "support/test_files.h"

#include <check.h>
#include <math.h>
#include <unistd.h>

enum { N_ROW = 20, N_BETA = 3 };

static char folder[64], data[96], init[96], program[96], text[512];

/* ---------------------------------------------------------------- draws from priors and
 * likelihoods
 */

static em_variate *numbers;

static double normal(double mean, double sd)
{
    return mean + sd * em_variate_normal(numbers);
}

static double uniform(void)
{
    return em_variate_uniform(numbers);
}

static double gamma_rate(double shape, double rate)
{
    return em_variate_gamma(numbers, shape) / rate;
}

static double student_t(double nu)
{
    return normal(0, 1) / sqrt(gamma_rate(nu / 2, nu / 2));
}

static double x_of(int i, int j) /* of the table: two features and an exposure */
{
    static const double phase[] = {1.3, 2.9, 4.1};
    return round(100 * (j < 2 ? sin(phase[j] * i + j) : 1.5 + cos(phase[j] * i))) / 100;
}

/* Writes a table of the features and responses: y is drawn at eta. */
static void write_table(const double *beta, bool exposed,
                        double (*draw)(double eta, const double *), const double *shape)
{
    FILE *file = fopen(data, "w");

    fprintf(file, "x1,x2,t,y\n");
    for (int i = 0; i < N_ROW; i++) {
        double eta = beta[0] + beta[1] * x_of(i, 0) + beta[2] * x_of(i, 1);
        eta += exposed ? log(x_of(i, 2)) : beta[3] * x_of(i, 2);
        fprintf(file, "%g,%g,%g,%.17g\n", x_of(i, 0), x_of(i, 1), x_of(i, 2), draw(eta, shape));
    }
    fclose(file);
}

static double draw_normal(double eta, const double *shape)
{
    return normal(eta, shape[0]);
}

static double draw_student_t(double eta, const double *shape)
{
    return eta + shape[0] * student_t(shape[1]);
}

static double draw_bernoulli(double eta, const double *shape)
{
    (void)shape;
    return uniform() < 1 / (1 + exp(-eta));
}

static double draw_poisson(double eta, const double *shape)
{
    (void)shape;
    return em_variate_poisson(numbers, exp(eta));
}

static double draw_negative_binomial(double eta, const double *shape)
{
    return em_variate_poisson(numbers, exp(eta) * gamma_rate(shape[0], shape[0]));
}

static void draw_beta(double variance, int n, double *theta)
{
    for (int j = 0; j < n; j++)
        theta[j] = normal(0, sqrt(variance));
}

static void linear(double *theta)
{
    const double sigma = 0.8;

    draw_beta(2, 4, theta);
    write_table(theta, false, draw_normal, &sigma);
}

static void linear_sigma(double *theta)
{
    const double sigma = 0.5 * fabs(student_t(3));

    draw_beta(2, 4, theta);
    theta[4] = log(sigma);
    write_table(theta, false, draw_normal, &sigma);
}

static void linear_student_t(double *theta)
{
    const double shape[] = {0.5 * fabs(student_t(3)), gamma_rate(2, 0.1)};

    draw_beta(2, 4, theta);
    theta[4] = log(shape[0]);
    theta[5] = log(shape[1]);
    write_table(theta, false, draw_student_t, shape);
}

/* Both labels there must be: that is a condition on the data alone, which leaves ranks uniform. */
static void logistic(double *theta)
{
    FILE *file;
    int ones = 0, n = 0, c, y = 0;

    do {
        draw_beta(1, 4, theta);
        write_table(theta, false, draw_bernoulli, NULL);
        file = fopen(data, "r");
        for (ones = n = 0; (c = getc(file)) != EOF; y = c == '\n' ? y : c)
            if (c == '\n' && n++ > 0)
                ones += y == '1';
        fclose(file);
    } while (ones == 0 || ones == N_ROW);
}

static void poisson(double *theta)
{
    draw_beta(0.5, N_BETA, theta);
    write_table(theta, true, draw_poisson, NULL);
}

/* Where phi is beyond all data, the posterior of its logarithm has a long flat tail: chains of a
 * fixed step do not cross it, but ranks are exact all the same. */
static void negative_binomial(double *theta)
{
    const double phi = 0.3 / gamma_rate(0.4, 1);

    draw_beta(0.5, N_BETA, theta);
    theta[N_BETA] = log(phi);
    write_table(theta, true, draw_negative_binomial, &phi);
}

/* The intercept has been drawn where the features are at their means. */
static void move_intercept(int n, double *theta)
{
    for (int j = 1; j < n; j++)
        for (int i = 0; i < N_ROW; i++)
            theta[0] -= theta[j] * x_of(i, j - 1) / N_ROW;
}

static void linear_priors(double *theta)
{
    const double sigma = 0.6 * fabs(normal(0, 1));

    theta[0] = normal(1, 0.7);
    theta[1] = normal(0.5, 0.4);
    theta[2] = 0.5 * student_t(4);
    theta[3] = 0.5 * student_t(4);
    theta[4] = log(sigma);
    move_intercept(4, theta);
    write_table(theta, false, draw_normal, &sigma);
}

static void counts_priors(double *theta)
{
    const double phi = gamma_rate(1, 0.5);

    theta[0] = 0.6 * student_t(5);
    theta[1] = normal(0, 0.5);
    theta[2] = normal(0.3, 0.5);
    theta[N_BETA] = log(phi);
    move_intercept(N_BETA, theta);
    write_table(theta, true, draw_negative_binomial, &phi);
}

/* Three inputs, two units of tanh, one output: weights [inputs][units] of a layer, then its biases.
 */
static void network(double *theta)
{
    FILE *file = fopen(data, "w");

    draw_beta(1, 11, theta);
    fprintf(file, "x1,x2,t,y\n");
    for (int i = 0; i < N_ROW; i++) {
        double out = theta[10];
        for (int unit = 0; unit < 2; unit++) {
            double sum = theta[6 + unit];
            for (int j = 0; j < 3; j++)
                sum += x_of(i, j) * theta[2 * j + unit];
            out += tanh(sum) * theta[8 + unit];
        }
        fprintf(file, "%g,%g,%g,%.17g\n", x_of(i, 0), x_of(i, 1), x_of(i, 2), normal(out, 0.5));
    }
    fclose(file);
}

static void eight_schools(double *theta)
{
    static const double sigma[] = {15, 10, 16, 11, 9, 11, 10, 18};
    const double tau = 5 * fabs(student_t(1));

    theta[0] = normal(0, 5);
    theta[1] = log(tau);
    strcpy(text, "[");
    for (int j = 0; j < 8; j++) {
        theta[2 + j] = normal(0, 1);
        snprintf(text + strlen(text), 64, "%s%.17g", j ? ", " : "",
                 normal(theta[0] + tau * theta[2 + j], sigma[j]));
    }
    strcat(text, "]");
}

/* The prior of mu is flat; ranks are those of any mu, as the posterior moves with the data. */
static void normal_wishart(double *theta)
{
    const double tau = gamma_rate(0.5, 0.5);
    FILE *file = fopen(data, "w");

    theta[0] = 0.3;
    theta[1] = log(tau);
    for (int i = 0; i < N_ROW; i++)
        fprintf(file, "%.17g\n", normal(theta[0], 1 / sqrt(tau)));
    fclose(file);
}

/* By rejection from a box: each of these is below 4 at its mode, -U. */
static void reject(int dim, double half_width, double (*U)(const double *), double *theta)
{
    do
        for (int i = 0; i < dim; i++)
            theta[i] = half_width * (2 * uniform() - 1);
    while (log(uniform()) > -U(theta) - 4);
}

static double U_well(const double *x)
{
    return pow(x[0], 4) - 2 * x[0] * x[0];
}

static double U_tilted(const double *x)
{
    return (x[0] + 4) * (x[0] + 1) * (x[0] - 1) * (x[0] - 3) / 14 + 0.5;
}

static double U_banana(const double *x)
{
    return pow(x[0], 4) / 10 + pow(4 * (x[1] + 1.2) - x[0] * x[0], 2) / 2;
}

static void double_well(double *theta)
{
    reject(1, 3, U_well, theta);
}

static void double_well_tilted(double *theta)
{
    reject(1, 7, U_tilted, theta);
}

static void banana(double *theta)
{
    reject(2, 6, U_banana, theta);
}

/* ---------------------------------------------------------------- Stan programs, of four
 * transforms
 */

/* Writes the program; its data and where theta is, as JSON. */
static void write_stan(const char *source, const char *data_json, const char *init_json)
{
    write_file(program, source);
    write_file(data, data_json);
    write_file(init, init_json);
}

static void stan_lower(double *theta)
{
    const double mu = normal(0, 2), sigma = gamma_rate(1, 1);
    char y[400] = "";

    (void)theta;
    for (int i = 0; i < 10; i++)
        snprintf(y + strlen(y), 32, "%s%.17g", i ? "," : "", normal(mu, sigma));
    snprintf(text, sizeof text, "{\"y\": [%s]}", y);
    char start[128];
    snprintf(start, sizeof start, "{\"mu\": %.17g, \"sigma\": %.17g}", mu, sigma);
    write_stan("data { vector[10] y; } parameters { real mu; real<lower=0> sigma; }\n"
               "model { mu ~ normal(0, 2); sigma ~ exponential(1); y ~ normal(mu, sigma); }\n",
               text, start);
}

static void stan_interval(double *theta)
{
    const double a = gamma_rate(2, 1), p = a / (a + gamma_rate(3, 1));
    int k = 0;
    char start[64];

    (void)theta;
    for (int i = 0; i < 20; i++)
        k += uniform() < p;
    snprintf(text, sizeof text, "{\"k\": %d}", k);
    snprintf(start, sizeof start, "{\"p\": %.17g}", p);
    write_stan("data { int k; } parameters { real<lower=0, upper=1> p; }\n"
               "model { p ~ beta(2, 3); k ~ binomial(20, p); }\n",
               text, start);
}

static void stan_simplex(double *theta)
{
    const double g[] = {gamma_rate(2, 1), gamma_rate(2, 1), gamma_rate(2, 1)};
    const double total = g[0] + g[1] + g[2];
    int k[3] = {0};
    char start[128];

    (void)theta;
    for (int i = 0; i < 15; i++) {
        const double u = uniform() * total;
        k[u < g[0] ? 0 : u < g[0] + g[1] ? 1 : 2]++;
    }
    snprintf(text, sizeof text, "{\"k\": [%d, %d, %d]}", k[0], k[1], k[2]);
    snprintf(start, sizeof start, "{\"s\": [%.17g, %.17g, %.17g]}", g[0] / total, g[1] / total,
             g[2] / total);
    write_stan("data { array[3] int k; } parameters { simplex[3] s; }\n"
               "model { s ~ dirichlet(rep_vector(2, 3)); k ~ multinomial(s); }\n",
               text, start);
}

static void stan_ordered(double *theta)
{
    double c[] = {normal(0, 2), normal(0, 2), normal(0, 2)};
    char start[128];

    (void)theta;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < i; j++)
            if (c[i] < c[j]) {
                const double larger = c[j];
                c[j] = c[i];
                c[i] = larger;
            }
    snprintf(text, sizeof text, "{\"y\": [%.17g, %.17g, %.17g]}", normal(c[0], 1), normal(c[1], 1),
             normal(c[2], 1));
    snprintf(start, sizeof start, "{\"c\": [%.17g, %.17g, %.17g]}", c[0], c[1], c[2]);
    write_stan("data { vector[3] y; } parameters { ordered[3] c; }\n"
               "model { c ~ normal(0, 2); y ~ normal(c, 1); }\n",
               text, start);
}

/* ---------------------------------------------------------------- models */

#define TABLE                                                                                      \
    {                                                                                              \
        "data", data                                                                               \
    }
#define STAN                                                                                       \
    {"program", program}, {"data", data},                                                          \
    {                                                                                              \
        "init", init                                                                               \
    }

const calibrated sbc_models[] = {
    {"linear", linear, {TABLE, {"sigma", "0.8"}, {"prior_scale", "2"}}, 0.1, 0.3},
    {"linear",
     linear_sigma,
     {TABLE, {"sigma", "unknown"}, {"sigma_scale", "0.5"}, {"prior_scale", "2"}},
     0.08,
     0.4},
    {"linear",
     linear_student_t,
     {TABLE,
      {"noise", "student_t"},
      {"sigma", "unknown"},
      {"sigma_scale", "0.5"},
      {"prior_scale", "2"}},
     0.08,
     0.5},
    {"logistic", logistic, {TABLE, {"prior_scale", "1"}}, 0.2, 0.8},
    {"poisson", poisson, {TABLE, {"exposure", "t"}, {"prior_scale", "0.5"}}, 0.1, 0.3},
    {"negative_binomial",
     negative_binomial,
     {TABLE, {"exposure", "t"}, {"prior_scale", "0.5"}},
     0.15,
     0.5},
    {"linear",
     linear_priors,
     {TABLE,
      {"prior",
       "{\"coefficients\": {\"x1\": {\"normal\": [0.5, 0.4]}, \"default\": {\"student_t\": "
       "[4, 0, 0.5]}}, \"intercept\": {\"normal\": [1, 0.7]}, \"sigma\": "
       "{\"half_normal\": 0.6}}"}},
     0.1,
     0.5,
     true},
    {"negative_binomial",
     counts_priors,
     {TABLE,
      {"exposure", "t"},
      {"prior",
       "{\"coefficients\": {\"x2\": {\"normal\": [0.3, 0.5]}, \"default\": {\"normal\": [0, "
       "0.5]}}, \"intercept\": {\"student_t\": [5, 0, 0.6]}, \"phi\": {\"exponential\": 0.5}}"}},
     0.15,
     0.7,
     true},
    {"eight_schools", eight_schools, {{"y", text}}, 0.3, 1},
    {"network",
     network,
     {TABLE,
      {"layers", "[{\"dense\": 2, \"activation\": \"tanh\"}]"},
      {"output", "normal"},
      {"sigma", "0.5"}},
     0.1,
     0.7},
    {"normal_wishart", normal_wishart, {TABLE}, 0.1, 0.5},
    {"gaussian", NULL, {{"dim", "3"}, {"condition", "9"}, {"rotation", "true"}}, 0.3, 1},
    {"double_well", double_well, {{NULL, NULL}}, 0.2, 0.7},
    {"double_well_tilted", double_well_tilted, {{NULL, NULL}}, 0.3, 1.5},
    {"banana", banana, {{NULL, NULL}}, 0.1, 0.8},
    {"stan", stan_lower, {STAN}, 0.1, 0.5},
    {"stan", stan_interval, {STAN}, 0.2, 0.7},
    {"stan", stan_simplex, {STAN}, 0.2, 0.7},
    {"stan", stan_ordered, {STAN}, 0.2, 0.8},
};

_Static_assert(sizeof sbc_models / sizeof *sbc_models == N_SBC_MODEL, "all are in the table");

static void gaussian(const em_model *model, double *theta)
{
    const int64_t n = model->dim;
    double lower[SBC_MOST_DIM * SBC_MOST_DIM], z[SBC_MOST_DIM];

    memcpy(lower, model->datum[1].value, (size_t)(n * n) * sizeof *lower);
    ck_assert_int_eq(em_cholesky(n, lower, n), EM_OK);
    ck_assert_int_eq(em_invert_lower(n, lower, n), EM_OK);
    for (int64_t i = 0; i < n; i++)
        z[i] = normal(0, 1);
    for (int64_t i = 0; i < n; i++) {
        theta[i] = 0;
        for (int64_t j = i; j < n; j++)
            theta[i] += lower[j * n + i] * z[j];
    }
}

/* Where coefficients that are reported stand among theta, of which they are linear functions: the
 * intercept of all of them, any other of its own. */
static void find_theta(const setup *s, double *theta)
{
    const em_draw draw = {.seed = 1};
    const int64_t n = s->model->variable[0].shape[0], dim = s->model->dim;
    double at[SBC_MOST_DIM] = {0}, none[SBC_MOST_DIM], one[SBC_MOST_DIM];

    ck_assert_int_eq(s->ops->report(s->model, &draw, at, none), EM_OK);
    theta[0] -= none[0];
    for (int64_t j = n; j-- > 0;) {
        at[j] = 1;
        s->ops->report(s->model, &draw, at, one);
        at[j] = 0;
        theta[j] = (theta[j] - (j > 0 ? none[j] : 0)) / (one[j] - none[j]);
        theta[0] -= j > 0 ? theta[j] * (one[0] - none[0]) : 0;
    }
    for (int64_t k = n; k < dim; k++)
        theta[k] -= log(none[k]);
}

/* Without minibatches: as runs of exact gradients create them. */
static setup make(const calibrated *m)
{
    setup s = {NULL, NULL, find_model(m->name)};
    const em_model_context context = {1, 0, 1, false, s.ops};

    s.options = calloc(1, s.ops->options_size + 1);
    ck_assert_msg(!set_options(s.ops, m->settings, s.options) &&
                      !s.ops->create(s.options, &context, &s.model) &&
                      !em_model_summarise(s.model, NULL),
                  "%s: %s", m->name, em_error_text());
    ck_assert_int_le(s.model->dim, SBC_MOST_DIM);
    return s;
}

setup sbc_draw(const calibrated *m, em_variate *variate, double *theta)
{
    numbers = variate;
    if (m->simulate)
        m->simulate(theta);
    setup s = make(m);
    if (!m->simulate)
        gaussian(s.model, theta);
    if (s.ops->start && strcmp(m->name, "stan") == 0) /* theta, on the unconstrained scale */
        ck_assert_msg(s.ops->start(s.model, variate->draw, theta) == EM_OK, "%s", em_error_text());
    if (m->reported)
        find_theta(&s, theta);
    return s;
}

bool sbc_open(void)
{
    strcpy(folder, "/tmp/emass-sbc-XXXXXX");
    if (!mkdtemp(folder))
        return false;
    snprintf(data, sizeof data, "%s/data.json", folder);
    snprintf(init, sizeof init, "%s/init.json", folder);
    snprintf(program, sizeof program, "%s/program.stan", folder);
    return true;
}

void sbc_close(void)
{
    unlink(data);
    unlink(init);
    unlink(program);
    rmdir(folder);
}
