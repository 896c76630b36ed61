/*
 * Parameters in the non-centred form: the identity of factor_test.c proves them, whatever the data
 * are, and nothing where it does not hold. The search then finds the conditional law of each, and
 * the map has the right inverse and gradients.
 */
#include "adaptation/noncentring/noncentring_search.h"
#include "math/rng.h"
#include "support/mapped_gradient.h"
#include "support/tap.h"

#include <math.h>
#include <string.h>

/* x_ETA ~ N(-1, 0.5), the other ~ N(0, 1) with data of its own; factors x_i ~ N(0, 1), with data
 * c_i ~ N(e^(a x_ETA) x_i, 1 / q_i), of which the last has none. */
enum { N_DRAW = 400, ETA = 0, OTHER = 1, FIRST = 2, N = 8, DIM = FIRST + N };

typedef enum kind {
    NORMAL,
    LOG_VARIANCE,
    COUNTS,
    N_PROVED,
    STUDENT = N_PROVED, /* the prior of the factors */
    CENTRED,
    IN_ERRORS, /* the scale is that of an error as well */
    N_KIND
} kind;

typedef struct hierarchy {
    kind of;
    int64_t evaluations;
} hierarchy;

static double degree_of(kind of)
{
    return of == LOG_VARIANCE ? 0.5 : 1;
}

static double precision_of(int i)
{
    return i == N - 1 ? 0 : 4 * (i + 1);
}

static double centre_of(int i)
{
    return 0.5 * sin(2.0 * i + 1);
}

static double density_of(kind of, const double *x, double *g)
{
    const double a = degree_of(of), scale = exp(a * x[ETA]);
    double p = -2 * pow(x[ETA] + 1, 2) - 0.5 * pow(x[OTHER], 2) - pow(x[OTHER] - 1, 2);

    g[ETA] = -4 * (x[ETA] + 1);
    g[OTHER] = -x[OTHER] - 2 * (x[OTHER] - 1);
    for (int i = 0; i < N; i++) {
        const double z = x[FIRST + i], effect = of == CENTRED ? z : scale * z;
        const double away = effect - centre_of(i);
        double by_effect = -precision_of(i) * away;
        double by_z = -z;
        if (of == COUNTS) {
            by_effect = precision_of(i) > 0 ? i - exp(effect) : 0;
            p += precision_of(i) > 0 ? i * effect - exp(effect) : 0;
        } else
            p -= 0.5 * precision_of(i) * away * away;
        if (of == STUDENT) {
            by_z = -5 * z / (4 + z * z);
            p -= 2.5 * log1p(z * z / 4);
        } else if (of == CENTRED) {
            by_z = -z / (scale * scale);
            p -= 0.5 * z * z / (scale * scale) + x[ETA];
            g[ETA] += z * z / (scale * scale) - 1;
        } else
            p -= 0.5 * z * z;
        g[FIRST + i] = by_z + by_effect * (of == CENTRED ? 1 : scale);
        g[ETA] += of == CENTRED ? 0 : a * by_effect * effect;
    }
    if (of == IN_ERRORS) {
        p -= 0.5 * exp(-2 * x[ETA]) * pow(x[OTHER] - 2, 2) + x[ETA];
        g[ETA] += exp(-2 * x[ETA]) * pow(x[OTHER] - 2, 2) - 1;
        g[OTHER] -= exp(-2 * x[ETA]) * (x[OTHER] - 2);
    }
    return p;
}

static double density(const double *x, double *g)
{
    return density_of(NORMAL, x, g);
}

static em_status evaluate(void *context, int64_t n, const double *theta, double *gradient)
{
    hierarchy *h = context;

    h->evaluations += n;
    for (int64_t r = 0; r < n; r++)
        density_of(h->of, theta + r * DIM, gradient + r * DIM);
    return EM_OK;
}

/* The mean and the standard deviation of factor i given eta, with normal data. */
static void condition(double eta, int i, double *mean, double *sd)
{
    const double q = precision_of(i) * exp(2 * eta);

    *sd = 1 / sqrt(1 + q);
    *mean = q / (1 + q) * centre_of(i) * exp(-eta);
}

/* Draws of x_ETA from a normal law, which need not be that of the density, and of the factors from
 * their conditional laws with normal data. */
static void draw(kind of, uint64_t seed, double sample[][2][DIM])
{
    for (int64_t n = 0; n < N_DRAW; n++) {
        const em_stream stream = {seed, (uint64_t)n, 0, EM_RNG_TEST};
        double *x = sample[n][0];
        _Alignas(64) double z[DIM];
        em_normals(&stream, DIM, z);
        memcpy(x, z, sizeof z);
        x[ETA] = -1 + 0.4 * z[ETA];
        for (int i = 0; i < N; i++) {
            double mean, sd;
            condition(degree_of(of) * x[ETA], i, &mean, &sd);
            x[FIRST + i] = mean + sd * z[FIRST + i];
        }
        density_of(of, x, sample[n][1]);
    }
}

START_TEST(factors_are_proved_where_the_identity_holds)
{
    static double sample[N_DRAW][2][DIM];
    const kind of = (kind)(_i % N_KIND);
    const em_samples samples = {N_DRAW, &sample[0][0][0]};
    hierarchy h = {of, 0};
    const em_gradient_function gradient = {evaluate, &h};
    em_normal_prior prior[DIM] = {{0}};

    draw(of, (uint64_t)(_i / N_KIND) + 1, sample);
    ck_assert_int_eq(em_prove_factors(DIM, &samples, &gradient, prior), EM_OK);
    ck_assert(h.evaluations <= 32);
    for (int i = 0; i < DIM; i++) {
        const bool is_factor = of < N_PROVED && i >= FIRST && precision_of(i - FIRST) > 0;
        if (i == DIM - 1)
            continue; /* has no data, so its coefficient is any */
        ck_assert_msg((prior[i].precision > 0) == is_factor, "kind %d, parameter %d", of, i);
        if (!is_factor)
            continue;
        ck_assert(prior[i].precision == 1 && prior[i].scale == ETA &&
                  prior[i].form == EM_SCALE_OF_FACTOR && prior[i].location[0] == -1);
        ck_assert_double_eq_tol(prior[i].degree, degree_of(of), 1e-6);
    }
}
END_TEST

static void find_map(uint64_t seed, em_noncentring *map)
{
    static double sample[N_DRAW][2][DIM];
    const em_samples samples = {N_DRAW, &sample[0][0][0]};
    hierarchy h = {NORMAL, 0};
    const em_gradient_function gradient = {evaluate, &h};
    em_normal_prior prior[DIM] = {{0}};
    em_noncentring_row row[DIM];
    int64_t n_child;

    draw(NORMAL, seed, sample);
    ck_assert_int_eq(em_prove_factors(DIM, &samples, &gradient, prior), EM_OK);
    ck_assert_int_eq(em_noncentring_search(DIM, &samples, prior, true, row, &n_child), EM_OK);
    ck_assert_int_eq(em_noncentring_create(DIM, map), EM_OK);
    ck_assert_int_eq(em_noncentring_set(map, row), EM_OK);
}

/* With normal data the coordinates are the factors less their conditional means, over their
 * conditional standard deviations, where no draw has been too. */
START_TEST(coordinates_are_those_of_the_conditional_laws)
{
    em_noncentring map;

    find_map((uint64_t)_i + 1, &map);
    ck_assert_int_eq((int)em_noncentring_count(&map).factors, N - 1);
    ck_assert_int_eq((int)em_noncentring_count(&map).scaled, N - 1);
    ck_assert(map.row[DIM - 1].level == 0 && map.row[OTHER].level == 0);
    for (int n = -3; n <= 3; n++) {
        double x[DIM];
        x[ETA] = -1 + n;
        for (int i = 1; i < DIM; i++)
            x[i] = 0.3 * i;
        em_noncentring_from_model(&map, x, NULL);
        for (int i = 0; i < N; i++) {
            double mean, sd;
            condition(x[ETA], i, &mean, &sd);
            const double expected = (0.3 * (FIRST + i) - mean) / sd;
            ck_assert_double_eq_tol(x[FIRST + i], expected, 1e-5 * (1 + fabs(expected)));
        }
    }
    em_noncentring_release(&map);
}
END_TEST

START_TEST(the_map_has_its_inverse_and_its_gradients)
{
    em_noncentring map;

    find_map(1, &map);
    for (int n = 0; n < 20; n++) {
        const em_stream stream = {2, (uint64_t)n, 0, EM_RNG_TEST};
        _Alignas(64) double z[DIM];
        double x[DIM];
        em_normals(&stream, DIM, z);
        memcpy(x, z, sizeof x);
        const double log_determinant = em_noncentring_to_model(&map, x, map.at);
        check_mapped_gradient(&map, density, z, 1, 1e-4, 1e-8);
        ck_assert_double_eq_tol(em_noncentring_from_model(&map, x, NULL), log_determinant, 1e-9);
        for (int i = 0; i < DIM; i++)
            ck_assert_double_eq_tol(x[i], z[i], 1e-9);
    }
    em_noncentring_release(&map);
}
END_TEST

int main(void)
{

    TCase *factor_case = tcase_create("factors of a scale");

    tcase_add_loop_test(factor_case, factors_are_proved_where_the_identity_holds, 0, 5 * N_KIND);
    tcase_add_loop_test(factor_case, coordinates_are_those_of_the_conditional_laws, 0, 10);
    tcase_add_test(factor_case, the_map_has_its_inverse_and_its_gradients);

    return run_case(factor_case, CK_FORK);
}
