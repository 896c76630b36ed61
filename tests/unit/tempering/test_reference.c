/* Reference laws (tempering/reference.h): a mixture of normal laws, its density and its draws. */
#include "emass/random.h"
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

int main(void)
{
    Suite *suite = suite_create("reference");
    TCase *tests = tcase_create("mixtures");

    tcase_add_test(tests, the_density_is_the_sum_of_its_parts);
    tcase_add_test(tests, draws_have_its_law);
    suite_add_tcase(suite, tests);
    return run_suite(suite, CK_FORK);
}
