/* The published mass and the estimators, against what they estimate. */
#include "adaptation/mass_window/eigenvalue_clipping.h"
#include "base/memory.h"
#include "mass/estimator.h"
#include "math/linalg.h"
#include "math/rng.h"
#include "support/array_mass.h"
#include "support/tap.h"

#include <math.h>
#include <string.h>

enum { DIM = 4 };

static const double covariance[DIM * DIM] = {4.0, 1.2, 0.0,  0.3, 1.2, 1.0, 0.2, 0.0,
                                             0.0, 0.2, 0.25, 0.1, 0.3, 0.0, 0.1, 9.0};

static void precision(double *out)
{
    memcpy(out, covariance, sizeof covariance);
    ck_assert_int_eq(em_invert_spd(DIM, out, DIM), EM_OK);
}

/* W = M^-1, F F^T = M: checked on unit vectors. */
START_TEST(factor_and_inverse_agree)
{
    em_mass *mass = NULL;
    double second[DIM][DIM] = {{0}}, exact[DIM * DIM];

    ck_assert_int_eq(mass_of_array(EM_MASS_DENSE, DIM, covariance, &mass), EM_OK);
    precision(exact); /* with W = covariance the mass is its inverse */
    for (int j = 0; j < DIM; j++) {
        _Alignas(64) double z[EM_LANES] = {0}, p[EM_LANES];
        z[j] = 1;
        em_mass_momentum((const em_mass *const *)&mass, 1, z, p);
        for (int a = 0; a < DIM; a++)
            for (int b = 0; b < DIM; b++)
                second[a][b] += p[a] * p[b];
    }
    for (int a = 0; a < DIM; a++)
        for (int b = 0; b < DIM; b++)
            ck_assert_double_eq_tol(second[a][b], exact[a * DIM + b], 1e-12);
    em_mass_destroy(&mass);
}
END_TEST

START_TEST(indefinite_is_refused)
{
    double bad[DIM * DIM];
    em_mass *mass = NULL;

    memcpy(bad, covariance, sizeof bad);
    bad[0] = -1;
    ck_assert_int_eq(mass_of_array(EM_MASS_DENSE, DIM, bad, &mass), EM_NONFINITE);
    ck_assert_ptr_null(mass);
    ck_assert_int_eq(mass_of_array(EM_MASS_DIAG, DIM, bad, &mass), EM_NONFINITE);
    bad[0] = NAN;
    ck_assert_int_eq(mass_of_array(EM_MASS_DIAG, DIM, bad, &mass), EM_NONFINITE);
    ck_assert_int_eq(mass_of_array(EM_MASS_DENSE, DIM, bad, &mass), EM_NONFINITE);
}
END_TEST

/*
 * n samples of theta ~ N(mean, covariance) with their gradients -A (theta - mean), and momenta of
 * mass `momentum_mass` (the identity: standard normal). Returns the estimate of the inverse mass.
 */
static em_status estimate(const char *name, em_structure structure, int n, uint64_t seed,
                          double *inverse)
{
    const em_estimator_ops *ops = find_estimator(name);
    const em_mass_form form = em_mass_plain_form(structure, DIM);
    const int64_t size = em_estimator_size(ops, &form);
    double *accumulator = NULL, lower[DIM * DIM], a[DIM * DIM];
    em_mass *identity = NULL;
    em_status status;

    memcpy(lower, covariance, sizeof lower);
    ck_assert_int_eq(em_cholesky(DIM, lower, DIM), EM_OK);
    precision(a);
    ck_assert_int_eq(em_allocate(size, sizeof *accumulator, &accumulator), EM_OK);
    ck_assert_int_eq(em_mass_identity(structure, DIM, &identity), EM_OK);
    for (int k = 0; k < n; k++) {
        const em_stream stream = {seed, (uint64_t)k, 0, EM_RNG_TEST};
        _Alignas(64) double z[2 * EM_LANES], theta[DIM] = {0}, gradient[DIM] = {0};
        em_normals(&stream, 2 * DIM, z);
        for (int i = 0; i < DIM; i++)
            for (int j = 0; j <= i; j++)
                theta[i] += lower[i * DIM + j] * z[j];
        for (int i = 0; i < DIM; i++)
            for (int j = 0; j < DIM; j++)
                gradient[i] -= a[i * DIM + j] * theta[j];
        for (int i = 0; i < DIM; i++)
            theta[i] += 0.5; /* a mean away from the centre */
        em_estimator_observe(ops, &form, &(em_observation){theta, gradient, z + DIM, NULL},
                             accumulator);
    }
    status = em_estimate(ops, &form, identity, accumulator, NULL, inverse);
    em_mass_destroy(&identity);
    em_release(&accumulator);
    return status;
}

/*
 * With 20000 samples a covariance element has a relative standard error below sqrt(2/20000) = 1 %
 * of the geometric mean of its variances; five of them are allowed.
 */
START_TEST(dense_criteria_find_the_covariance)
{
    static const char *const names[] = {"variance", "gradient", "fisher"};

    for (int k = 0; k < 3; k++) {
        double inverse[DIM * DIM];
        ck_assert_int_eq(estimate(names[k], EM_MASS_DENSE, 20000, (uint64_t)_i, inverse), EM_OK);
        for (int i = 0; i < DIM; i++)
            for (int j = 0; j < DIM; j++)
                ck_assert_double_eq_tol(
                    inverse[i * DIM + j], covariance[i * DIM + j],
                    0.05 * sqrt(covariance[i * DIM + i] * covariance[j * DIM + j]));
    }
}
END_TEST

/* For a Gaussian the gradients are linear in the draws, so fisher is exact but for its I/n. */
START_TEST(fisher_is_exact_for_a_gaussian)
{
    double inverse[DIM * DIM];

    ck_assert_int_eq(estimate("fisher", EM_MASS_DENSE, 400, (uint64_t)_i, inverse), EM_OK);
    for (int i = 0; i < DIM; i++)
        ck_assert_double_eq_tol(inverse[i * DIM + i] / covariance[i * DIM + i], 1, 2e-2);
}
END_TEST

START_TEST(diag_criteria_find_their_diagonals)
{
    double inverse[DIM], a[DIM * DIM];

    precision(a);
    ck_assert_int_eq(estimate("variance", EM_MASS_DIAG, 20000, (uint64_t)_i, inverse), EM_OK);
    for (int i = 0; i < DIM; i++)
        ck_assert_double_eq_tol(inverse[i] / covariance[i * DIM + i], 1, 0.05);
    ck_assert_int_eq(estimate("gradient", EM_MASS_DIAG, 20000, (uint64_t)_i, inverse), EM_OK);
    for (int i = 0; i < DIM; i++)
        ck_assert_double_eq_tol(inverse[i] * a[i * DIM + i], 1, 0.05);
    ck_assert_int_eq(estimate("fisher", EM_MASS_DIAG, 20000, (uint64_t)_i, inverse), EM_OK);
    for (int i = 0; i < DIM; i++)
        ck_assert_double_eq_tol(inverse[i] / sqrt(covariance[i * DIM + i] / a[i * DIM + i]), 1,
                                0.05);
}
END_TEST

/* Momenta of the current mass: the estimate is the current inverse mass, whatever the target is. */
START_TEST(momentum_finds_the_mass_it_has)
{
    double inverse[DIM * DIM];

    ck_assert_int_eq(estimate("momentum", EM_MASS_DENSE, 20000, (uint64_t)_i, inverse), EM_OK);
    for (int i = 0; i < DIM; i++)
        for (int j = 0; j < DIM; j++)
            ck_assert_double_eq_tol(inverse[i * DIM + j], i == j, 0.05);
    ck_assert_int_eq(estimate("momentum", EM_MASS_DIAG, 20000, (uint64_t)_i, inverse), EM_OK);
    for (int i = 0; i < DIM; i++)
        ck_assert_double_eq_tol(inverse[i], 1, 0.05);
}
END_TEST

/* E[C^-1] is biased upward; shrunk and debiased the mean over 400 estimates of 20 samples is not.
 */
START_TEST(momentum_is_debiased)
{
    double mean = 0;

    for (uint64_t k = 0; k < 400; k++) {
        double inverse[DIM * DIM];
        ck_assert_int_eq(estimate("momentum", EM_MASS_DENSE, 20, k, inverse), EM_OK);
        for (int i = 0; i < DIM; i++)
            mean += inverse[i * DIM + i] / DIM / 400;
    }
    /* An inverse of 20 samples without correction has the mean 20/15 = 1.33. */
    ck_assert_double_eq_tol(mean, 1, 0.1);
}
END_TEST

START_TEST(too_few_samples_are_refused)
{
    double inverse[DIM * DIM];

    ck_assert_int_eq(estimate("momentum", EM_MASS_DENSE, DIM + 1, 1, inverse), EM_NONFINITE);
    ck_assert_int_eq(estimate("variance", EM_MASS_DENSE, 2 * DIM - 1, 1, inverse), EM_NONFINITE);
    ck_assert_int_eq(estimate("gradient", EM_MASS_DENSE, 2 * DIM - 1, 1, inverse), EM_NONFINITE);
    ck_assert_int_eq(estimate("fisher", EM_MASS_DENSE, 1, 1, inverse), EM_NONFINITE);
}
END_TEST

/* Unevenness of n samples of two parameters: x1 ~ N(0, exp(x0)) where x0 ~ N(0, spread^2), or, of
 * a spread of 0, a Gaussian. The current mass is the identity. */
static double unevenness(double spread, int n, uint64_t seed)
{
    const em_estimator_ops *ops = find_estimator("fisher");
    const em_mass_form form = {.ops = &em_mass_dense, .dim = 2};
    double *accumulator = NULL, out = 0;
    em_mass *identity = NULL;

    ck_assert_int_eq(em_allocate(em_estimator_size(ops, &form), sizeof *accumulator, &accumulator),
                     EM_OK);
    for (int k = 0; k < n; k++) {
        const em_stream stream = {seed, (uint64_t)k, 1, EM_RNG_TEST};
        _Alignas(64) double z[EM_LANES];
        em_normals(&stream, 2, z);
        const double x = spread * z[0], y = exp(x / 2) * z[1];
        const double theta[] = {spread > 0 ? x : z[0], y};
        const double slope = 0.5 * (z[1] * z[1] - 1),
                     gradient[] = {spread > 0 ? slope - x / (spread * spread) : -z[0],
                                   -y * exp(-x)};
        em_estimator_observe(ops, &form, &(em_observation){theta, gradient, NULL, NULL},
                             accumulator);
    }
    ck_assert_int_eq(em_mass_identity(EM_MASS_DENSE, 2, &identity), EM_OK);
    ck_assert_int_eq(em_unevenness(ops, &form, identity, accumulator, &out), EM_OK);
    em_mass_destroy(&identity);
    em_release(&accumulator);
    return out;
}

/* One latent number and 8 noisy copies of it, of correlation 0.9999: n samples of MANY parameters
 * with their gradients. */
enum { MANY = 9 };

static void observe_copies(const em_estimator_ops *ops, const em_mass_form *form, int n,
                           uint64_t seed, double *accumulator)
{
    for (int k = 0; k < n; k++) {
        const em_stream stream = {seed, (uint64_t)k, 2, EM_RNG_TEST};
        _Alignas(64) double z[2 * EM_LANES];
        double theta[MANY], gradient[MANY];
        em_normals(&stream, MANY, z);
        theta[0] = z[0];
        gradient[0] = -z[0];
        for (int i = 1; i < MANY; i++) {
            theta[i] = z[0] + 0.01 * z[i];
            gradient[i] = -z[i] / 0.01;
            gradient[0] += z[i] / 0.01;
        }
        em_estimator_observe(ops, form, &(em_observation){theta, gradient, NULL, NULL},
                             accumulator);
    }
}

/* The covariance of the copies, with the noise's variance times `wide`. */
static void covariance_of_copies(double wide, double *out)
{
    for (int i = 0; i < MANY * MANY; i++)
        out[i] = 1 + (i % (MANY + 1) == 0 && i > 0 ? 1e-4 * wide : 0);
}

/* The largest and the smallest eigenvalue of an estimate from 12 samples of the copies, relative
 * to the true covariance; *uneven: their unevenness. */
static void estimate_copies(const double *current, uint64_t seed, double *range, double *uneven)
{
    const em_estimator_ops *ops = find_estimator("fisher");
    const em_mass_form form = {.ops = &em_mass_dense, .dim = MANY};
    double *accumulator = NULL, estimate[MANY * MANY], root[MANY * MANY], work[MANY * MANY],
           value[MANY];
    em_mass *mass = NULL;

    ck_assert_int_eq(em_allocate(em_estimator_size(ops, &form), sizeof *accumulator, &accumulator),
                     EM_OK);
    observe_copies(ops, &form, 12, seed, accumulator);
    ck_assert_int_eq(mass_of_array(EM_MASS_DENSE, MANY, current, &mass), EM_OK);
    ck_assert_int_eq(em_unevenness(ops, &form, mass, accumulator, uneven), EM_OK);
    ck_assert_int_eq(em_estimate(ops, &form, mass, accumulator, NULL, estimate), EM_OK);
    covariance_of_copies(1, root);
    ck_assert_int_eq(em_cholesky(MANY, root, MANY), EM_OK);
    ck_assert_int_eq(em_invert_lower(MANY, root, MANY), EM_OK);
    em_multiply(MANY, root, estimate, MANY, work);
    em_multiply_by_rows(MANY, MANY, MANY, work, root, estimate);
    ck_assert_int_eq(em_eigen(MANY, estimate, MANY, value), EM_OK);
    range[0] = value[0];
    range[1] = value[MANY - 1];
    em_mass_destroy(&mass);
    em_release(&accumulator);
}

/* A current mass that is right but for a factor of two is kept by few samples, and shrinkage does
 * not make them look uneven. With the identity as the current mass both fail. */
START_TEST(few_samples_correct_the_current_mass)
{
    double current[MANY * MANY], range[2], uneven;

    covariance_of_copies(2, current);
    estimate_copies(current, (uint64_t)_i, range, &uneven);
    ck_assert_double_gt(range[0], 0.5);
    ck_assert_double_lt(range[1], 2.5);
    ck_assert_double_lt(uneven, 1.5);
    memset(current, 0, sizeof current);
    for (int i = 0; i < MANY; i++)
        current[i * (MANY + 1)] = 1;
    estimate_copies(current, (uint64_t)_i, range, &uneven);
    ck_assert_double_gt(range[1], 10);
    ck_assert_double_gt(uneven, 3);
}
END_TEST

/* var(x1) var(g1) = exp(spread^2): 1 for a Gaussian, up to chance, and 9.5 for a spread of 1.5. */
START_TEST(unevenness_tells_curvature_that_varies)
{
    static const int n[] = {20, 100, 400};

    for (int i = 0; i < 3; i++)
        ck_assert_double_lt(unevenness(0, n[i], (uint64_t)_i), 1.5);
    ck_assert_double_gt(unevenness(1.5, 400, (uint64_t)_i), 3);
    ck_assert_double_lt(unevenness(0.3, 400, (uint64_t)_i), 1.5);
    ck_assert_double_eq_tol(unevenness(0, 100000, (uint64_t)_i), 1, 0.02);
}
END_TEST

START_TEST(unevenness_may_be_unknown)
{
    double accumulator[64] = {400}, out = 0;
    em_mass *mass = NULL;
    const em_mass_form dense = {.ops = &em_mass_dense, .dim = 2},
                       diag = {.ops = &em_mass_diag, .dim = 2};

    ck_assert_int_eq(em_mass_identity(EM_MASS_DENSE, 2, &mass), EM_OK);
    ck_assert_int_eq(em_unevenness(find_estimator("fisher"), &dense, mass, accumulator, &out),
                     EM_OK);
    ck_assert_double_lt(out, 1); /* draws that never moved */
    out = 0;
    em_mass_destroy(&mass);
    ck_assert_int_eq(em_mass_identity(EM_MASS_DIAG, 2, &mass), EM_OK);
    ck_assert_int_eq(em_unevenness(find_estimator("fisher"), &diag, mass, accumulator, &out),
                     EM_OK);
    ck_assert(isnan(out));
    em_mass_destroy(&mass);
    ck_assert_int_eq(em_mass_identity(EM_MASS_DENSE, 2, &mass), EM_OK);
    out = 0;
    ck_assert_int_eq(em_unevenness(find_estimator("variance"), &dense, mass, accumulator, &out),
                     EM_OK);
    ck_assert(isnan(out));
    em_mass_destroy(&mass);
}
END_TEST

START_TEST(clipping_limits_the_change)
{
    const em_mass_form form = {.ops = &em_mass_dense, .dim = DIM};
    double wild[DIM * DIM] = {0}, current[DIM * DIM] = {0}, smallest, largest;
    em_mass *mass = NULL;

    for (int i = 0; i < DIM; i++) {
        current[i * DIM + i] = 1;
        wild[i * DIM + i] = pow(100, i - 1);
    }
    ck_assert_int_eq(em_clip_eigenvalues(&form, current, wild), EM_OK);
    ck_assert_int_eq(em_mass_of(&form, wild, &mass), EM_OK);
    ck_assert_int_eq(mass->ops->range(mass, &smallest, &largest), EM_OK);
    ck_assert_double_eq_tol(smallest, 0.25, 1e-12);
    ck_assert_double_eq_tol(largest, 4, 1e-12);
    wild[0] = -1;
    ck_assert_int_eq(em_clip_eigenvalues(&form, current, wild), EM_NONFINITE);
    em_mass_destroy(&mass);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("mass");

    tcase_add_test(tests, factor_and_inverse_agree);
    tcase_add_test(tests, indefinite_is_refused);
    tcase_add_loop_test(tests, dense_criteria_find_the_covariance, 0, 4);
    tcase_add_loop_test(tests, fisher_is_exact_for_a_gaussian, 0, 4);
    tcase_add_loop_test(tests, diag_criteria_find_their_diagonals, 0, 4);
    tcase_add_loop_test(tests, momentum_finds_the_mass_it_has, 0, 4);
    tcase_add_test(tests, momentum_is_debiased);
    tcase_add_test(tests, too_few_samples_are_refused);
    tcase_add_loop_test(tests, unevenness_tells_curvature_that_varies, 0, 8);
    tcase_add_test(tests, unevenness_may_be_unknown);
    tcase_add_loop_test(tests, few_samples_correct_the_current_mass, 0, 8);
    tcase_add_test(tests, clipping_limits_the_change);
    return run_case(tests, CK_FORK);
}
