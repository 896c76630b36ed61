/* What every model promises: gradients, sums over shards and minibatches, chains that do not know
 * of one another, no memory but its own. */
#include "base/fault.h"
#include "model/model.h"
#include "support/model_tables.h"

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
    {"linear",
     {{"data", csv},
      {"weights", "x12"},
      {"response", "x1"},
      {"offset", "x3"},
      {"standardise", "true"},
      {"prior", "{\"coefficients\": {\"x2\": {\"normal\": [3, 2]}, \"default\": "
                "{\"student_t\": [4, -1, 2]}}, \"sigma\": {\"half_normal\": 2}}"}},
     1},
    {"linear",
     {{"data", libsvm},
      {"offset", "x3"},
      {"prior", "{\"intercept\": {\"cauchy\": [1, 2]}, \"coefficients\": {\"normal\": [1, 3]}, "
                "\"sigma\": {\"half_cauchy\": 2}, \"autoscale\": true}"}},
     1},
    {"logistic",
     {{"data", libsvm}, {"prior", "{\"coefficients\": {\"cauchy\": [0, 0.5]}}"}, {"offset", "x2"}},
     1},
    {"poisson", {{"data", csv}, {"response", "x12"}, {"intercept", "false"}, {"offset", "x2"}}, 1},
    {"negative_binomial",
     {{"data", csv}, {"prior", "{\"phi\": {\"inverse_gamma\": [0.4, 0.3]}}"}},
     1},
};

enum { N_CASE = sizeof cases / sizeof *cases, WITH_UNKNOWN_SIGMA = 14 };

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
    if (s.model->n_chunk == 0)
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
    ck_assert_int_eq(rows.model->n_chunk, 0);
    ck_assert_int_eq(sums.model->n_chunk, 3);
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

/* The variables fill exactly what report writes, and have labels where they say so. */
START_TEST(test_variables)
{
    setup s = make(&cases[_i], 0, 1);
    panel p = random_panel(1, s.model->dim, em_stride(s.model->dim), cases[_i].radius);
    double out[3 * MAX_DIM];
    int64_t size = 0;

    for (int i = 0; i < 3 * MAX_DIM; i++)
        out[i] = NAN;
    ck_assert_int_eq(em_model_report(s.model, &first_draw, p.theta, out), EM_OK);
    for (int64_t v = 0; v < s.model->n_variable; v++) {
        const em_variable *variable = &s.model->variable[v];
        size += em_variable_size(variable);
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

static Suite *models_suite(void)
{
    Suite *suite = suite_create("models");
    TCase *every = tcase_create("every model");

    tcase_add_checked_fixture(every, make_tables, remove_tables);
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
    return suite;
}

int main(void)
{
    return run_suite(models_suite(), CK_FORK_GETENV);
}
