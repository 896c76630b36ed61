/*
 * Transforms of parameters with bounds: there and back, the Jacobian against a determinant of
 * differences, its gradient and the gradient that is pulled back against differences.
 */
#include "model/bounds.h"
#include "support/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4 };
static const double step = 1e-5;

static const em_variable parameters[] = {
    {.name = "free", .n_axes = 1, .shape = {2}},
    {.name = "above", .bounds = EM_ABOVE(-1.5)},
    {.name = "below", .n_axes = 1, .shape = {2}, .bounds = EM_BELOW(2)},
    {.name = "within", .bounds = EM_WITHIN(-3, 0.5)},
    {.name = "ordered", .n_axes = 1, .shape = {4}, .bounds = {.constraint = EM_ORDERED}},
    {.name = "simplex", .n_axes = 1, .shape = {4}, .bounds = {.constraint = EM_SIMPLEX}},
};
enum { N_PARAMETER = sizeof parameters / sizeof *parameters };
static const double theta[MOST] = {0.3, -1.2, 0.8, 0.1};

static double determinant(int64_t n, double matrix[MOST][MOST])
{
    double product = 1;

    for (int64_t k = 0; k < n; k++) {
        product *= matrix[k][k];
        for (int64_t i = k + 1; i < n; i++)
            for (int64_t j = n - 1; j >= k; j--)
                matrix[i][j] -= matrix[i][k] / matrix[k][k] * matrix[k][j];
    }
    return product;
}

/* dx_i / dtheta_j into slope[i][j]. */
static void differentiate(const em_variable *p, double slope[MOST][MOST])
{
    for (int64_t j = 0; j < em_bounds_free_size(1, p); j++) {
        double moved[MOST], up[MOST], down[MOST];
        memcpy(moved, theta, sizeof moved);
        moved[j] = theta[j] + step;
        em_bounds_constrain(1, p, moved, up);
        moved[j] = theta[j] - step;
        em_bounds_constrain(1, p, moved, down);
        for (int64_t i = 0; i < em_bounds_size(1, p); i++)
            slope[i][j] = (up[i] - down[i]) / (2 * step);
    }
}

START_TEST(there_and_back)
{
    const em_variable *p = &parameters[_i];
    double x[MOST], back[MOST];

    em_bounds_constrain(1, p, theta, x);
    em_bounds_free(1, p, x, back);
    for (int64_t k = 0; k < em_bounds_free_size(1, p); k++)
        ck_assert_double_eq_tol(back[k], theta[k], 1e-12);
    ck_assert(p->bounds.constraint != EM_LOWER || x[0] > -1.5);
    ck_assert(p->bounds.constraint != EM_UPPER || (x[0] < 2 && x[1] < 2));
    ck_assert(p->bounds.constraint != EM_BETWEEN || (x[0] > -3 && x[0] < 0.5));
    ck_assert(p->bounds.constraint != EM_ORDERED || (x[0] < x[1] && x[1] < x[2] && x[2] < x[3]));
    if (p->bounds.constraint == EM_SIMPLEX)
        ck_assert_double_eq_tol(x[0] + x[1] + x[2] + x[3], 1, 1e-15);
}
END_TEST

START_TEST(jacobian_is_the_determinant)
{
    const em_variable *p = &parameters[_i];
    const int64_t n = em_bounds_free_size(1, p);
    double slope[MOST][MOST], gradient[MOST] = {0}, none[MOST];

    differentiate(p, slope);
    const double found = em_bounds_add_jacobian(1, p, theta, gradient);
    ck_assert_double_eq_tol(found, log(fabs(determinant(n, slope))), 1e-8);
    for (int64_t j = 0; j < n; j++) {
        double moved[MOST];
        memcpy(moved, theta, sizeof moved);
        moved[j] = theta[j] + step;
        const double up = em_bounds_add_jacobian(1, p, moved, none);
        moved[j] = theta[j] - step;
        const double down = em_bounds_add_jacobian(1, p, moved, none);
        ck_assert_double_eq_tol(gradient[j], (up - down) / (2 * step), 1e-8);
    }
}
END_TEST

START_TEST(gradients_are_pulled_back)
{
    const em_variable *p = &parameters[_i];
    const double by_x[MOST] = {1.5, -0.4, 2.2, 0.9};
    double slope[MOST][MOST], x[MOST], gradient[MOST] = {0};

    differentiate(p, slope);
    em_bounds_constrain(1, p, theta, x);
    em_bounds_pull_back(1, p, theta, x, by_x, gradient);
    for (int64_t j = 0; j < em_bounds_free_size(1, p); j++) {
        double expected = 0;
        for (int64_t i = 0; i < em_bounds_size(1, p); i++)
            expected += by_x[i] * slope[i][j];
        ck_assert_double_eq_tol(gradient[j], expected, 1e-8);
    }
}
END_TEST

START_TEST(distances)
{
    ck_assert(isinf(em_bounds_distance(N_PARAMETER, parameters, 1, 0)));
    ck_assert_double_eq(em_bounds_distance(N_PARAMETER, parameters, 2, -1), 0.5);
    ck_assert_double_eq(em_bounds_distance(N_PARAMETER, parameters, 4, -1), 3);
    ck_assert_double_eq(em_bounds_distance(N_PARAMETER, parameters, 5, 0), 0.5);
    ck_assert(isinf(em_bounds_distance(N_PARAMETER, parameters, 6, 0)));
    ck_assert_int_eq(em_bounds_size(N_PARAMETER, parameters), 14);
    ck_assert_int_eq(em_bounds_free_size(N_PARAMETER, parameters), 13);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("bounds");

    tcase_add_loop_test(tests, there_and_back, 0, N_PARAMETER);
    tcase_add_loop_test(tests, jacobian_is_the_determinant, 0, N_PARAMETER);
    tcase_add_loop_test(tests, gradients_are_pulled_back, 0, N_PARAMETER);
    tcase_add_test(tests, distances);
    return run_case(tests, CK_FORK);
}
