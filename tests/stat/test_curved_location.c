/*
 * Parameters whose location is a quadratic function of others: the search finds the location from
 * draws and gradients exactly, in a chain of bent densities too, and finds none where the identity
 * of curve_fit.h does not hold.
 */
#include "adaptation/noncentring/curve_fit.h"
#include "math/rng.h"
#include "support/mapped_gradient.h"
#include "support/tap.h"

#include <math.h>
#include <string.h>

/* x_0 ~ N(1, 4); x_1 ~ N(3 + 0.5 x_0^2, 0.01); x_2 ~ N(x_0 - x_1^2 / 5 + (x_0 + 1)^2, 0.04);
 * x_3 ~ N(0, 1) + x_0, which is not curved. */
enum { DIM = 4, N_DRAW = 300 };

static const double sd[DIM] = {2, 0.1, 0.2, 1};

typedef struct draws {
    double of[N_DRAW][2][DIM];
} draws;

static void locate(const double *x, double *location)
{
    location[0] = 1;
    location[1] = 3 + 0.5 * x[0] * x[0];
    location[2] = x[0] - 0.2 * x[1] * x[1] + (x[0] + 1) * (x[0] + 1);
    location[3] = x[0];
}

/* The gradient at x, where e are the derivatives of the normal laws by their variates. */
static void differentiate(const double *x, const double *e, double *g)
{
    memcpy(g, e, DIM * sizeof *g);
    g[0] -= e[1] * x[0] + e[2] * (1 + 2 * (x[0] + 1)) + e[3];
    g[1] -= e[2] * -0.4 * x[1];
}

/* With a noise of this share in the derivatives. */
static void draw(uint64_t seed, double noise, draws *out)
{
    for (int64_t n = 0; n < N_DRAW; n++) {
        const em_stream stream = {seed, (uint64_t)n, 0, EM_RNG_TEST};
        double *x = out->of[n][0], *g = out->of[n][1], location[DIM], e[DIM];
        _Alignas(64) double z[8];
        em_normals(&stream, 8, z);
        for (int i = 0; i < DIM; i++) {
            locate(x, location);
            x[i] = location[i] + sd[i] * z[i];
        }
        for (int i = 0; i < DIM; i++)
            e[i] = -z[i] / sd[i];
        differentiate(x, e, g);
        for (int i = 0; i < DIM; i++)
            g[i] *= 1 + noise * z[4 + i];
    }
}

static void search(uint64_t seed, double noise, em_noncentring_row *row)
{
    static draws drawn;
    const em_samples samples = {N_DRAW, &drawn.of[0][0][0]};

    draw(seed, noise, &drawn);
    memset(row, 0, DIM * sizeof *row);
    ck_assert_int_eq(em_curve_fit(DIM, &samples, NULL, row), EM_OK);
}

START_TEST(curved_locations_are_found)
{
    em_noncentring_row row[DIM];
    em_noncentring map;

    search((uint64_t)_i + 1, 0, row);
    ck_assert(row[0].level == 0 && row[3].level == 0);
    ck_assert(row[1].level == 1 && row[2].level == 2);
    ck_assert_int_eq(em_noncentring_create(DIM, &map), EM_OK);
    ck_assert_int_eq(em_noncentring_set(&map, row), EM_OK);
    ck_assert_int_eq((int)em_noncentring_count(&map).curved, 2);
    for (int n = -3; n <= 3; n++) { /* where no draw has been, too */
        double z[DIM] = {0}, location[DIM];
        z[0] = 10 * n;
        em_noncentring_to_model(&map, z, NULL);
        locate(z, location);
        for (int i = 1; i < 3; i++)
            ck_assert_double_eq_tol(z[i], location[i], 1e-6 * (1 + fabs(location[i])));
    }
    em_noncentring_release(&map);
}
END_TEST

/* The log density of x, and its gradient. */
static double density(const double *x, double *g)
{
    double location[DIM], e[DIM], log_density = 0;

    locate(x, location);
    for (int i = 0; i < DIM; i++) {
        const double z = (x[i] - location[i]) / sd[i];
        log_density -= 0.5 * z * z;
        e[i] = -z / sd[i];
    }
    differentiate(x, e, g);
    return log_density;
}

START_TEST(the_map_has_its_inverse_and_its_gradients)
{
    em_noncentring_row row[DIM];
    em_noncentring map;

    search(1, 0, row);
    ck_assert_int_eq(em_noncentring_create(DIM, &map), EM_OK);
    ck_assert_int_eq(em_noncentring_set(&map, row), EM_OK);
    for (int n = 0; n < 20; n++) {
        const em_stream stream = {2, (uint64_t)n, 0, EM_RNG_TEST};
        _Alignas(64) double z[8];
        double x[DIM], back[DIM];
        em_normals(&stream, DIM, z);
        memcpy(x, z, sizeof x);
        ck_assert(em_noncentring_to_model(&map, x, map.at) == 0); /* the determinant is 1 */
        memcpy(back, x, sizeof back);
        ck_assert(em_noncentring_from_model(&map, back, NULL) == 0);
        for (int i = 0; i < DIM; i++)
            ck_assert_double_eq_tol(back[i], z[i], 1e-9);
        check_mapped_gradient(&map, density, z, 1, 1e-4, 1e-8);
    }
    em_noncentring_release(&map);
}
END_TEST

/* The twin: a hundredth of noise is not the identity. */
START_TEST(none_is_found_without_the_identity)
{
    em_noncentring_row row[DIM];

    search((uint64_t)_i + 1, 0.01, row);
    for (int i = 0; i < DIM; i++)
        ck_assert(row[i].level == 0);
}
END_TEST

/* x_0 ~ N(0, 1), x_1 ~ N(bend x_0^2, 1), x_2 ~ N(0.05 x_1^2, 1), so x_2 bends by about a tenth of
 * its standard deviation. Its terms are in the derivative by x_1. Returns the number of rows. */
static int count_of_chain(uint64_t seed, double bend)
{
    enum { N = 3 };
    static double of[N_DRAW][2][N];
    const em_samples samples = {N_DRAW, &of[0][0][0]};
    em_noncentring_row row[N] = {0};
    int count = 0;

    for (int64_t n = 0; n < N_DRAW; n++) {
        const em_stream stream = {seed, (uint64_t)n, 0, EM_RNG_TEST};
        _Alignas(64) double z[8];
        double *x = of[n][0], *g = of[n][1];
        em_normals(&stream, 8, z);
        x[0] = z[0];
        x[1] = bend * x[0] * x[0] + z[1];
        x[2] = 0.05 * x[1] * x[1] + z[2];
        g[0] = -z[0] + 2 * bend * x[0] * z[1];
        g[1] = -z[1] + 0.1 * x[1] * z[2];
        g[2] = -z[2];
    }
    ck_assert_int_eq(em_curve_fit(N, &samples, NULL, row), EM_OK);
    for (int i = 0; i < N; i++)
        count += row[i].level > 0;
    return count;
}

START_TEST(a_slight_bend_does_not_hide_a_larger_one)
{
    ck_assert_int_eq(count_of_chain((uint64_t)_i + 1, 1), 2);
    ck_assert_int_eq(count_of_chain((uint64_t)_i + 1, 0.05), 0); /* all bends are slight */
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("curved_location");

    tcase_add_loop_test(tests, curved_locations_are_found, 0, 20);
    tcase_add_test(tests, the_map_has_its_inverse_and_its_gradients);
    tcase_add_loop_test(tests, a_slight_bend_does_not_hide_a_larger_one, 0, 20);
    tcase_add_loop_test(tests, none_is_found_without_the_identity, 0, 20);
    return run_case(tests, CK_FORK);
}
