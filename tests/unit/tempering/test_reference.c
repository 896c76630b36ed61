/* Reference laws (tempering/reference.h): a mixture of normal laws and a law of low rank, their
 * densities and their draws. */
#include "emass/random.h"
#include "math/linalg.h"
#include "support/low_rank_numbers.h"
#include "support/tap.h"
#include "tempering/reference.h"

#include <math.h>

enum { DIM = 2, DRAWS = 20000 };

static const double near[DIM] = {-1, 2}, far[DIM] = {8, 9};                         /* means */
static const double round_law[DIM] = {1, 4}, slanted[DIM * DIM] = {2, 0.5, 0.5, 1}; /* variances */
static const double share = 0.3; /* of the first law */

typedef struct mixture {
    em_reference *part[2], *all;
} mixture;

static mixture create(double first)
{
    mixture m;
    const double log_weight[] = {log(first), log(1 - first)};

    ck_assert(!em_reference_of_covariance(EM_MASS_DIAG, DIM, near, round_law, 1, &m.part[0]));
    ck_assert(!em_reference_of_covariance(EM_MASS_DENSE, DIM, far, slanted, 1, &m.part[1]));
    ck_assert(!em_reference_mixture(DIM, 2, m.part, log_weight, &m.all));
    return m;
}

static void destroy(mixture *m)
{
    em_reference_destroy(&m->all);
    em_reference_destroy(&m->part[0]);
    em_reference_destroy(&m->part[1]);
}

static double density(em_reference *law, double x, double y, double *gradient)
{
    _Alignas(64) const double theta[8] = {x, y};
    double log_density;

    ck_assert(!law->evaluate(law, 0, theta, &log_density, gradient));
    return log_density;
}

/* Between the laws, where both count. */
START_TEST(the_density_is_the_sum_of_its_parts)
{
    mixture m = create(share);
    _Alignas(64) double gradient[8], ignored[8];
    const double h = 1e-5;

    for (double x = -2; x < 10; x += 1.5) {
        const double y = 1 + 0.7 * x, value = density(m.all, x, y, gradient);
        const double sum = share * exp(density(m.part[0], x, y, ignored)) +
                           (1 - share) * exp(density(m.part[1], x, y, ignored));
        ck_assert(fabs(value - log(sum)) < 1e-12 * (1 + fabs(value)));
        const double slope[DIM] = {
            (density(m.all, x + h, y, ignored) - density(m.all, x - h, y, ignored)) / (2 * h),
            (density(m.all, x, y + h, ignored) - density(m.all, x, y - h, ignored)) / (2 * h)};
        for (int i = 0; i < DIM; i++)
            ck_assert(fabs(gradient[i] - slope[i]) < 1e-7 * (1 + fabs(slope[i])));
    }
    destroy(&m);
}
END_TEST

/* z of the share of draws beyond the middle, and of the mean of the first coordinate, whose law is
 * that of a mixture with the weight `first`. */
static void z_scores(mixture *m, double first, double *of_share, double *of_mean)
{
    const double mean = first * near[0] + (1 - first) * far[0];
    const double variance = first * round_law[0] + (1 - first) * slanted[0] +
                            first * (1 - first) * (far[0] - near[0]) * (far[0] - near[0]);
    double beyond = 0, sum = 0;
    _Alignas(64) double theta[8];

    for (int k = 0; k < DRAWS; k++) {
        const em_draw draw = {7, 3, k, EM_DRAW_PRIOR};
        ck_assert(!m->all->draw(m->all, &draw, theta));
        beyond += theta[0] + theta[1] > 9;
        sum += theta[0];
    }
    *of_share = (beyond / DRAWS - (1 - first)) / sqrt(first * (1 - first) / DRAWS);
    *of_mean = (sum / DRAWS - mean) / sqrt(variance / DRAWS);
}

/* Within 4.5 standard errors; a broken twin expects the weights of the laws exchanged. Less than
 * 2e-4 of either law are on the wrong side of the middle, which is 0.02 standard errors. */
START_TEST(draws_have_its_law)
{
    mixture m = create(share);
    double of_share, of_mean;

    z_scores(&m, share, &of_share, &of_mean);
    ck_assert_msg(fabs(of_share) < 4.5 && fabs(of_mean) < 4.5, "z %g, %g", of_share, of_mean);
    z_scores(&m, 1 - share, &of_share, &of_mean);
    ck_assert(fabs(of_share) > 4.5 && fabs(of_mean) > 4.5);
    destroy(&m);
}
END_TEST

/* ---------------------------------------------------------------- low rank */

enum { LONG = 13, STRIDE = 16, RANK = 3, MOST = 5, NUMBERS = LONG + MOST * (1 + LONG) };

static const double inflation = 1.2;

/* A law of low rank and its covariance. */
static em_reference *create_low_rank(double *mean, double *covariance)
{
    const em_mass_form form = {.ops = &em_mass_low_rank, .dim = LONG, .most_rank = MOST};
    double number[NUMBERS];
    em_reference *law;

    some_low_rank(5, LONG, RANK, MOST, number, covariance);
    for (int i = 0; i < LONG; i++)
        mean[i] = i - 3;
    ck_assert(!em_reference_of_low_rank(&form, mean, number, inflation, &law));
    for (int i = 0; i < LONG * LONG; i++)
        covariance[i] *= inflation * inflation;
    return law;
}

/* Its density and gradient are those of the dense law of the same covariance; so are they when it
 * is written down and read again. */
START_TEST(low_rank_has_the_density_of_the_dense_law)
{
    double mean[LONG], covariance[LONG * LONG], number[LONG + NUMBERS], variance[LONG];
    em_reference *law = create_low_rank(mean, covariance), *dense, *again;
    const em_reference_form form = em_reference_form_of(law);

    ck_assert(!em_reference_of_covariance(EM_MASS_DENSE, LONG, mean, covariance, 1, &dense));
    ck_assert_int_eq(em_reference_size(&form), LONG + NUMBERS);
    em_reference_write(law, number);
    ck_assert(!em_reference_read(&form, number, &again));
    for (int k = 0; k < 20; k++) {
        _Alignas(64) double theta[STRIDE] = {0}, own[STRIDE], whole[STRIDE], read[STRIDE];
        double log_own, log_whole, log_read;
        for (int i = 0; i < LONG; i++)
            theta[i] = 3 * some_normal(9, k * LONG + i);
        ck_assert(!law->evaluate(law, 0, theta, &log_own, own));
        ck_assert(!dense->evaluate(dense, 0, theta, &log_whole, whole));
        ck_assert(!again->evaluate(again, 0, theta, &log_read, read));
        ck_assert_double_eq(log_own, log_read);
        ck_assert_double_eq_tol(log_own, log_whole, 1e-11 * fabs(log_whole));
        for (int i = 0; i < LONG; i++)
            ck_assert_double_eq_tol(own[i], whole[i], 1e-10 * (1 + fabs(whole[i])));
    }
    em_reference_covariance(law, EM_MASS_DIAG, variance);
    for (int i = 0; i < LONG; i++)
        ck_assert_double_eq_tol(variance[i], covariance[i * (LONG + 1)], 1e-12 * variance[i]);
    em_reference_destroy(&law);
    em_reference_destroy(&dense);
    em_reference_destroy(&again);
}
END_TEST

/* The largest z of the means and second moments of draws, whitened by a covariance. */
static double largest_z(em_reference *law, const double *mean, const double *covariance)
{
    double lower[LONG * LONG], sum[LONG] = {0}, square[LONG * LONG] = {0}, largest = 0;

    for (int i = 0; i < LONG * LONG; i++)
        lower[i] = covariance[i];
    ck_assert(!em_cholesky(LONG, lower, LONG));
    for (int k = 0; k < DRAWS; k++) {
        const em_draw draw = {7, 3, k, EM_DRAW_PRIOR};
        _Alignas(64) double theta[STRIDE] = {0};
        double z[LONG];
        ck_assert(!law->draw(law, &draw, theta));
        for (int i = 0; i < LONG; i++) {
            z[i] = theta[i] - mean[i];
            for (int j = 0; j < i; j++)
                z[i] -= lower[i * LONG + j] * z[j];
            z[i] /= lower[i * (LONG + 1)];
            sum[i] += z[i];
            for (int j = 0; j <= i; j++)
                square[i * LONG + j] += z[i] * z[j] - (i == j);
        }
    }
    for (int i = 0; i < LONG; i++) {
        largest = fmax(largest, fabs(sum[i]) / sqrt(DRAWS));
        for (int j = 0; j <= i; j++)
            largest = fmax(largest, fabs(square[i * LONG + j]) / sqrt(i == j ? 2 * DRAWS : DRAWS));
    }
    return largest;
}

/* 4.5 standard errors of 104 moments; a broken twin knows no directions. */
START_TEST(low_rank_draws_have_its_law)
{
    double mean[LONG], covariance[LONG * LONG];
    em_reference *law = create_low_rank(mean, covariance);

    ck_assert_double_lt(largest_z(law, mean, covariance), 4.5);
    for (int i = 0; i < LONG * LONG; i++)
        covariance[i] *= i % (LONG + 1) == 0;
    ck_assert_double_gt(largest_z(law, mean, covariance), 20);
    em_reference_destroy(&law);
}
END_TEST

/* ---------------------------------------------------------------- transformed */

/* x_1 = 0.5 + 0.3 x_0 + e^(0.8 (x_0 + 0.1)) z_1 */
static void set_funnel(em_noncentring *map)
{
    em_noncentring_row row[DIM] = {{.location = {-1, -1, -1, -1}},
                                   {.level = 1,
                                    .scale = 0,
                                    .degree = 0.8,
                                    .origin = -0.1,
                                    .width = 3,
                                    .shift = 0.5,
                                    .location = {0, -1, -1, -1},
                                    .coefficient = {0.3}}};

    ck_assert(!em_noncentring_create(DIM, map));
    ck_assert(!em_noncentring_set(map, row));
}

/* The density of z, its gradient and its draws follow from those of x; so does the mean. The same
 * distribution without the map is the broken twin. */
START_TEST(a_transformed_law_is_that_of_x)
{
    em_noncentring map;
    em_reference *law, *own;
    _Alignas(64) double gradient[8], ignored[8], mean[8];
    const double h = 1e-5;

    set_funnel(&map);
    ck_assert(!em_reference_of_covariance(EM_MASS_DENSE, DIM, near, slanted, 1, &own));
    ck_assert(!em_reference_of_covariance(EM_MASS_DENSE, DIM, near, slanted, 1, &law));
    em_reference_transform(law, &map);
    for (double z = -2; z < 2; z += 0.7) {
        const double x[DIM] = {z, 0.5 + 0.3 * z + exp(0.8 * (z + 0.1)) * (1 - z)};
        const double value = density(law, z, 1 - z, gradient);
        const double of_x = density(own, x[0], x[1], ignored) + 0.8 * (z + 0.1);
        const double slope[DIM] = {
            (density(law, z + h, 1 - z, ignored) - density(law, z - h, 1 - z, ignored)) / (2 * h),
            (density(law, z, 1 - z + h, ignored) - density(law, z, 1 - z - h, ignored)) / (2 * h)};
        ck_assert_double_eq_tol(value, of_x, 1e-12 * (1 + fabs(value)));
        ck_assert_double_gt(fabs(value - density(own, z, 1 - z, ignored)), 1e-3);
        for (int i = 0; i < DIM; i++)
            ck_assert_double_eq_tol(gradient[i], slope[i], 1e-7 * (1 + fabs(slope[i])));
    }
    em_reference_mean(law, mean);
    ck_assert_double_eq_tol(mean[1], (near[1] - 0.5 - 0.3 * near[0]) / exp(0.8 * (near[0] + 0.1)),
                            1e-12);
    for (int k = 0; k < 20; k++) {
        const em_draw draw = {7, 3, k, EM_DRAW_PRIOR};
        _Alignas(64) double z[8] = {0}, x[8] = {0};
        ck_assert(!law->draw(law, &draw, z) && !own->draw(own, &draw, x));
        em_noncentring_to_model(&map, z, NULL);
        ck_assert_double_eq(z[0], x[0]);
        ck_assert_double_eq_tol(z[1], x[1], 1e-12 * (1 + fabs(x[1])));
    }
    em_reference_destroy(&law);
    em_reference_destroy(&own);
    em_noncentring_release(&map);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("reference");

    tcase_add_test(tests, the_density_is_the_sum_of_its_parts);
    tcase_add_test(tests, draws_have_its_law);
    tcase_add_test(tests, low_rank_has_the_density_of_the_dense_law);
    tcase_add_test(tests, low_rank_draws_have_its_law);
    tcase_add_test(tests, a_transformed_law_is_that_of_x);
    return run_case(tests, CK_FORK);
}
