/* All models: what every one of them promises, then the densities of each. */
#include "base/fault.h"
#include "math/linalg.h"
#include "math/rng.h"
#include "model_setup.h"

#include <check.h>
#include <math.h>
#include <unistd.h>

/* The tables that the models of this file read are written into a folder of their own. */
static char csv[64], libsvm[64], column[64], matrix[64];

enum { N_ROW = 150, N_FEATURE = 11, MAX_DIM = 32, MAX_STRIDE = 40, MAX_CHAIN = 19 };

static double normal(int64_t i, int64_t j)
{
    const em_stream stream = {7, (uint64_t)i, 0, EM_RNG_TEST};
    double out[MAX_STRIDE] __attribute__((aligned(64)));

    em_normals(&stream, MAX_STRIDE, out);
    return out[j];
}

static double feature(int64_t i, int64_t j)
{
    return round(100 * normal(i, j)) / 100;
}

static bool is_there(int64_t i, int64_t j)
{
    return (i + 3 * j) % 10 == 0;
}

static double label(int64_t i)
{
    return normal(i, N_FEATURE) > 0;
}

static void write_tables(void)
{
    FILE *dense = fopen(csv, "w"), *sparse = fopen(libsvm, "w"), *x = fopen(column, "w");

    for (int64_t i = 0; i < N_ROW; i++) {
        fprintf(sparse, "%g", label(i));
        for (int64_t j = 0; j < N_FEATURE; j++) {
            fprintf(dense, "%.2f,", feature(i, j));
            if (is_there(i, j))
                fprintf(sparse, " %d:%.2f", (int)j + 1, feature(i, j));
        }
        fprintf(dense, "%g\n", label(i));
        fprintf(sparse, "\n");
        fprintf(x, "%.2f\n", feature(i, 0));
    }
    fclose(dense);
    fclose(sparse);
    fclose(x);
}

static void write_matrix(const char *text)
{
    FILE *file = fopen(matrix, "w");

    fputs(text, file);
    fclose(file);
}

typedef struct model_case {
    const char *name;
    setting settings[6];
    double radius; /* of the positions where it is tested */
} model_case;

static const model_case cases[] = {
    {"eight_schools", {{NULL, NULL}}, 1},
    {"gaussian", {{"dim", "13"}, {"condition", "100"}, {"rotation", "true"}}, 2},
    {"gaussian", {{"dim", "1"}}, 2},
    {"normal_wishart", {{"n", "300"}}, 1},
    {"normal_wishart", {{"data", column}}, 1},
    {"linear", {{"data", csv}, {"sigma", "0.7"}, {"prior_scale", "3"}}, 1},
    {"linear", {{"data", libsvm}, {"sigma", "2"}}, 1},
    {"logistic", {{"data", csv}}, 1},
    {"logistic", {{"data", libsvm}}, 1},
    {"logistic", {{"data", csv}, {"standardise", "true"}, {"intercept", "false"}}, 1},
    {"logistic", {{"intercept", "false"}, {"n", "64"}}, 1},
    {"double_well", {{NULL, NULL}}, 2},
    {"double_well_tilted", {{NULL, NULL}}, 2},
    {"banana", {{NULL, NULL}}, 2},
    {"linear", {{"data", csv}, {"sigma", "unknown"}}, 1},
    {"linear", {{"data", libsvm}, {"sigma", "unknown"}, {"sigma_scale", "0.3"}}, 1},
    {"linear", {{"data", csv}, {"noise", "student_t"}}, 1},
    {"linear", {{"data", csv}, {"noise", "student_t"}, {"sigma", "unknown"}}, 1},
    {"linear", {{"data", libsvm}, {"noise", "student_t"}, {"sigma", "unknown"}, {"nu", "3"}}, 1},
    {"poisson", {{"data", csv}}, 1},
    {"poisson", {{"data", libsvm}}, 1},
    {"negative_binomial", {{"data", csv}}, 1},
    {"negative_binomial", {{"data", libsvm}}, 1},
    {"negative_binomial", {{"data", csv}, {"phi", "1.5"}}, 1},
};

enum { N_CASE = sizeof cases / sizeof *cases, WITH_UNKNOWN_SIGMA = 14 };

static setup make(const model_case *m, int64_t shard, int64_t n_shard)
{
    setup s;

    ck_assert_msg(try_setup(m->name, m->settings, shard, n_shard, &s) == EM_OK, "%s",
                  em_error_text());
    ck_assert_int_le(s.model->dim, MAX_DIM);
    return s;
}

/* ---- densities of panels ---- */

typedef struct panel {
    int64_t n_chain, stride;
    double theta[MAX_CHAIN * MAX_STRIDE] __attribute__((aligned(64)));
    double gradient[MAX_CHAIN * MAX_STRIDE] __attribute__((aligned(64)));
    double log_density[MAX_CHAIN];
} panel;

static panel random_panel(int64_t n_chain, int64_t dim, int64_t stride, double radius)
{
    panel p = {n_chain, stride, {0}, {0}, {0}};

    for (int64_t c = 0; c < n_chain; c++)
        for (int64_t i = 0; i < dim; i++)
            p.theta[c * stride + i] = radius * normal(1000 + c, i);
    return p;
}

static em_query query_of(panel *p, em_rows rows)
{
    static const int64_t chain[MAX_CHAIN] = {5, 3, 8}; /* which is of no meaning to these models */

    return (em_query){.n_chain = p->n_chain,
                      .stride = p->stride,
                      .chain = chain,
                      .theta = p->theta,
                      .log_density = p->log_density,
                      .gradient = p->gradient,
                      .rows = rows};
}

static void add_prior(const setup *s, panel *p)
{
    const em_query query = query_of(p, (em_rows){.count = 0});

    ck_assert_int_eq(s->ops->add_prior(s->model, &query), EM_OK);
}

/* `rows` NULL: all. */
static void add_likelihood(const setup *s, const em_rows *rows, panel *p)
{
    const em_query query = query_of(p, rows ? *rows : all_rows(s->model));

    if (s->ops->add_likelihood)
        ck_assert_int_eq(s->ops->add_likelihood(s->model, &query), EM_OK);
}

static void evaluate(const setup *s, panel *p)
{
    memset(p->log_density, 0, sizeof p->log_density);
    memset(p->gradient, 0, sizeof p->gradient);
    add_prior(s, p);
    add_likelihood(s, NULL, p);
}

static double density_at(const setup *s, const double *theta)
{
    panel p = {1, em_stride(s->model->dim), {0}, {0}, {0}};

    memcpy(p.theta, theta, (size_t)s->model->dim * sizeof *theta);
    evaluate(s, &p);
    return p.log_density[0];
}

/* ---- what every model promises ---- */

/* Fourth-order central differences: the error is near eps |log p| / h + h^4, about 1e-9 here. */
START_TEST(test_gradient)
{
    const double h = 1e-3;
    setup s = make(&cases[_i], 0, 1);
    panel p = random_panel(5, s.model->dim, em_stride(s.model->dim), cases[_i].radius);

    evaluate(&s, &p);
    for (int64_t c = 0; c < p.n_chain; c++)
        for (int64_t i = 0; i < s.model->dim; i++) {
            double *theta = p.theta + c * p.stride, at = theta[i], f[5];
            for (int k = -2; k <= 2; k++) {
                theta[i] = at + k * h;
                f[k + 2] = density_at(&s, theta);
            }
            theta[i] = at;
            ck_assert_double_eq_tol(p.gradient[c * p.stride + i],
                                    (f[0] - 8 * f[1] + 8 * f[3] - f[4]) / (12 * h),
                                    1e-7 * (1 + fabs(p.log_density[c])));
        }
    teardown(&s);
}
END_TEST

/* The bits of a chain are its own: alone, in company, at another place, with another stride. */
START_TEST(test_chains_are_independent)
{
    static const int64_t all[N_ROW] = {3, 1, 4};
    setup s = make(&cases[_i], 0, 1);
    const em_rows batch = {.count = s.model->rows.count < 100 ? s.model->rows.count : 100,
                           .index = all};
    panel whole = random_panel(MAX_CHAIN, s.model->dim, em_stride(s.model->dim), cases[_i].radius);

    for (int minibatch = 0; minibatch < 2; minibatch++) {
        const em_rows *rows = minibatch ? &batch : NULL;
        memset(whole.gradient, 0, sizeof whole.gradient);
        memset(whole.log_density, 0, sizeof whole.log_density);
        add_prior(&s, &whole);
        add_likelihood(&s, rows, &whole);
        for (int64_t n = 1; n <= 10; n += 3)
            for (int64_t first = 0; first + n <= MAX_CHAIN; first += n) {
                panel part = {n, whole.stride + EM_LANES, {0}, {0}, {0}};
                for (int64_t c = 0; c < n; c++)
                    memcpy(part.theta + c * part.stride, whole.theta + (first + c) * whole.stride,
                           (size_t)s.model->dim * sizeof(double));
                add_prior(&s, &part);
                add_likelihood(&s, rows, &part);
                for (int64_t c = 0; c < n; c++) {
                    ck_assert(part.log_density[c] == whole.log_density[first + c]);
                    for (int64_t i = 0; i < part.stride; i++)
                        ck_assert(part.gradient[c * part.stride + i] ==
                                  (i < s.model->dim ? whole.gradient[(first + c) * whole.stride + i]
                                                    : 0));
                }
            }
    }
    teardown(&s);
}
END_TEST

/* Every summand is rounded at most a few hundred times: 1e-13 of the largest leaves room. */
static void check_same(const panel *a, const panel *b, int64_t dim)
{
    for (int64_t c = 0; c < a->n_chain; c++) {
        double scale = 1 + fabs(a->log_density[c]);
        ck_assert_double_eq_tol(a->log_density[c], b->log_density[c], 1e-12 * scale);
        for (int64_t i = 0; i < dim; i++)
            ck_assert_double_eq_tol(a->gradient[c * a->stride + i], b->gradient[c * b->stride + i],
                                    1e-12 * scale);
    }
}

START_TEST(test_shards_add_up)
{
    setup whole = make(&cases[_i], 0, 1);
    const int64_t dim = whole.model->dim;
    panel a = random_panel(9, dim, em_stride(dim), cases[_i].radius), b = a;
    int64_t n = 0;

    add_likelihood(&whole, NULL, &a);
    for (int64_t shard = 0; shard < 3; shard++) {
        setup part = make(&cases[_i], shard, 3);
        ck_assert_int_eq(part.model->dim, dim);
        ck_assert(part.model->data_hash == whole.model->data_hash);
        n += part.model->rows.count;
        add_likelihood(&part, NULL, &b);
        teardown(&part);
    }
    ck_assert_int_eq(n, whole.model->rows.count);
    check_same(&a, &b, dim);
    teardown(&whole);
}
END_TEST

/* The rows of all minibatches, in any order, make up the whole. */
START_TEST(test_minibatches_add_up)
{
    setup s = make(&cases[_i], 0, 1);
    const int64_t n = s.model->rows.count;
    panel a = random_panel(9, s.model->dim, em_stride(s.model->dim), cases[_i].radius), b = a,
          d = a;
    int64_t *index = calloc((size_t)n + 1, sizeof *index);

    for (int64_t i = 0; i < n; i++)
        index[i] = (7 * i + 3) % n;
    add_likelihood(&s, NULL, &a);
    add_likelihood(&s, &(em_rows){.count = n}, &d);
    for (int64_t i = 0; n % 7 && i < n; i += 67)
        add_likelihood(&s, &(em_rows){.count = n - i < 67 ? n - i : 67, .index = index + i}, &b);
    check_same(&a, &d, s.model->dim);
    if (n % 7)
        check_same(&a, &b, s.model->dim);
    free(index);
    teardown(&s);
}
END_TEST

/* Parts of whole tiles, one by one. */
START_TEST(test_parts_add_up)
{
    setup s = make(&cases[_i], 0, 1);
    const em_share share = s.model->rows;
    panel a = random_panel(9, s.model->dim, em_stride(s.model->dim), cases[_i].radius), b = a;

    add_likelihood(&s, NULL, &a);
    for (int64_t i = 0; i < share.count; i += share.part) {
        const int64_t left = share.count - i;
        add_likelihood(&s, &(em_rows){.count = left < share.part ? left : share.part, .first = i},
                       &b);
    }
    if (s.model->n_piece == 0)
        check_same(&a, &b, s.model->dim);
    teardown(&s);
}
END_TEST

/* With X^T X and X^T y as with the rows themselves; not where there are more columns than rows. */
START_TEST(test_linear_by_sums)
{
    static const int with_normal_noise[] = {5, WITH_UNKNOWN_SIGMA};
    const model_case *m = &cases[with_normal_noise[_i]];
    const em_model_context whole = {1, 0, 1, false, find_model("linear")};
    setup rows = make(m, 0, 1), sums = make(m, 0, 1);
    panel a = random_panel(9, rows.model->dim, em_stride(rows.model->dim), 1), b = a;

    sums.ops->destroy(sums.model);
    ck_assert_int_eq(sums.ops->create(sums.options, &whole, &sums.model), EM_OK);
    ck_assert_int_eq(em_model_summarise(sums.model, NULL), EM_OK);
    ck_assert_int_eq(rows.model->n_piece, 0);
    ck_assert_int_eq(sums.model->n_piece, 3);
    add_likelihood(&rows, NULL, &a);
    add_likelihood(&sums, NULL, &b);
    check_same(&a, &b, rows.model->dim);
    teardown(&rows);
    teardown(&sums);
}
END_TEST

START_TEST(test_adds_without_allocating)
{
    setup s = make(&cases[_i], 0, 1);
    panel a = random_panel(9, s.model->dim, em_stride(s.model->dim), cases[_i].radius), b = a;
    int64_t before = em_allocation_count();

    evaluate(&s, &a);
    for (int64_t c = 0; c < b.n_chain; c++) {
        b.log_density[c] = 1;
        for (int64_t i = 0; i < s.model->dim; i++)
            b.gradient[c * b.stride + i] = 2;
    }
    add_prior(&s, &b);
    add_likelihood(&s, NULL, &b);
    ck_assert_int_eq(em_allocation_count(), before);
    for (int64_t c = 0; c < b.n_chain; c++) {
        b.log_density[c] -= 1;
        for (int64_t i = 0; i < s.model->dim; i++)
            b.gradient[c * b.stride + i] -= 2;
    }
    check_same(&a, &b, s.model->dim);
    teardown(&s);
}
END_TEST

static const em_draw first_draw = {.seed = 1};

static int64_t size_of(const em_variable *v)
{
    int64_t size = 1;

    for (int i = 0; i < v->n_axes; i++)
        size *= v->shape[i];
    return size;
}

/* The variables fill exactly what report writes, and have labels where they say so. */
START_TEST(test_variables)
{
    setup s = make(&cases[_i], 0, 1);
    panel p = random_panel(1, s.model->dim, em_stride(s.model->dim), cases[_i].radius);
    double out[3 * MAX_DIM];
    int64_t size = 0;

    for (int i = 0; i < 3 * MAX_DIM; i++)
        out[i] = NAN;
    ck_assert_int_eq(s.ops->report(s.model, &first_draw, p.theta, out), EM_OK);
    for (int64_t v = 0; v < s.model->n_variable; v++) {
        const em_variable *variable = &s.model->variable[v];
        size += size_of(variable);
        ck_assert_int_gt((int64_t)strlen(variable->name), 0);
        for (int a = 0; a < variable->n_axes; a++)
            for (int64_t i = 0; variable->label[a] && i < variable->shape[a]; i++)
                ck_assert_int_gt((int64_t)strlen(variable->label[a][i]), 0);
    }
    for (int64_t i = 0; i < 3 * MAX_DIM; i++)
        ck_assert(isfinite(out[i]) == (i < size));
    teardown(&s);
}
END_TEST

/* Whichever allocation fails in create, the failure is told and nothing leaks (ASan build). */
START_TEST(test_memory_faults)
{
    em_status status = EM_EMEMORY;
    char site[32];
    int n = 0;

    while (status == EM_EMEMORY && ++n < 5000) {
        setup s;
        snprintf(site, sizeof site, "allocate:0:%d", n);
        setenv("EMASS_FAULT", site, 1);
        em_fault_start(0);
        status = try_setup(cases[_i].name, cases[_i].settings, 0, 1, &s);
        teardown(&s);
    }
    ck_assert_int_eq(status, EM_OK);
}
END_TEST

/* ---- the densities, written down a second time on the constrained scale ---- */

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
    ck_assert_int_eq(size_of(&s.model->variable[s.model->n_variable - 1]), n);
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
    setup dense = make(&(model_case){"logistic", {{"data", csv}}, 1}, 0, 1),
          sparse = make(&(model_case){"logistic", {{"data", libsvm}}, 1}, 0, 1);

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
    setup s = make(&cases[1], 0, 1);
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
    check_refused("logistic", size, EM_ECONFIG, "model.n: found 9 beside data");
    check_refused("logistic", rule, EM_ECONFIG, "model.labels: found bernoulli beside data");
    check_refused("normal_wishart", size, EM_ECONFIG, "model.n: found 9 beside data");
    check_refused("eight_schools", y, EM_ECONFIG, "2 y, 8 sigma and 8 school");
}
END_TEST

/* ---- real data ---- */

static void check_data_set(const char *file, const char *positive, int64_t n, int64_t dim,
                           double n_positive)
{
    char path[512];
    const setting settings[] = {
        {"data", path}, {"standardise", "true"}, {"positive", positive}, {NULL, NULL}};
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

/* ---- */

static char folder[] = "/tmp/emass-models-XXXXXX";

static void set_up(void)
{
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(csv, sizeof csv, "%s/csv", folder);
    snprintf(libsvm, sizeof libsvm, "%s/libsvm", folder);
    snprintf(column, sizeof column, "%s/column", folder);
    snprintf(matrix, sizeof matrix, "%s/matrix", folder);
    write_tables();
    write_matrix("1\n");
}

static void tear_down(void)
{
    unlink(csv);
    unlink(libsvm);
    unlink(column);
    unlink(matrix);
    rmdir(folder);
}

static Suite *models_suite(void)
{
    Suite *suite = suite_create("models");
    TCase *every = tcase_create("every model"), *each = tcase_create("each model"),
          *real = tcase_create(getenv("EMASS_DATA") ? "data sets"
                                                    : "data sets # SKIP EMASS_DATA is not set");

    tcase_add_checked_fixture(every, set_up, tear_down);
    tcase_set_timeout(every, 60);
    tcase_add_loop_test(every, test_gradient, 0, N_CASE);
    tcase_add_loop_test(every, test_chains_are_independent, 0, N_CASE);
    tcase_add_loop_test(every, test_shards_add_up, 0, N_CASE);
    tcase_add_loop_test(every, test_parts_add_up, 0, N_CASE);
    tcase_add_loop_test(every, test_linear_by_sums, 0, 2);
    tcase_add_loop_test(every, test_minibatches_add_up, 0, N_CASE);
    tcase_add_loop_test(every, test_adds_without_allocating, 0, N_CASE);
    tcase_add_loop_test(every, test_variables, 0, N_CASE);
    tcase_add_loop_test(every, test_memory_faults, 0, N_CASE);
    suite_add_tcase(suite, every);

    tcase_add_checked_fixture(each, set_up, tear_down);
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
    SRunner *runner = srunner_create(models_suite());
    int failed;

    srunner_set_tap(runner, getenv("EMASS_TAP") ? getenv("EMASS_TAP") : "/dev/null");
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
