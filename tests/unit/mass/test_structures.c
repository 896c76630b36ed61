/* Every structure of a mass against dense linear algebra, and what is estimated for each. */
#include "base/memory.h"
#include "mass/estimator.h"
#include "math/linalg.h"
#include "math/rng.h"
#include "support/array_mass.h"
#include "support/low_rank_numbers.h"
#include "support/tap.h"

#include <math.h>
#include <string.h>

enum { DIM = 21, RANK = 3, MOST_NUMBER = 600 };

static const em_part parts[] = {
    {0, 5, EM_MASS_DENSE}, {5, 1, EM_MASS_DIAG}, {6, 12, EM_MASS_DENSE}, {18, 3, EM_MASS_DIAG}};

static const em_mass_form forms[] = {
    {.ops = &em_mass_diag, .dim = DIM},
    {.ops = &em_mass_dense, .dim = DIM},
    {.ops = &em_mass_block_diagonal, .dim = DIM, .n_part = 4, .part = parts},
    {.ops = &em_mass_low_rank, .dim = DIM, .most_rank = RANK + 2},
};
enum { N_FORM = sizeof forms / sizeof *forms };

/* A positive definite matrix of order n: A A^T / n + I / 2. */
static void some_matrix(int64_t n, uint64_t seed, double *out)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            out[i * n + j] = i == j ? 0.5 : 0;
            for (int64_t k = 0; k < n; k++)
                out[i * n + j] +=
                    some_normal(seed, i * n + k) * some_normal(seed, j * n + k) / (double)n;
        }
}

/* A mass of each form, its numbers, and its W. */
static em_mass *some_mass(const em_mass_form *form, uint64_t seed, double *number, double *w)
{
    em_mass *mass = NULL;

    ck_assert_int_le(form->ops->size(form), MOST_NUMBER);
    memset(w, 0, DIM * DIM * sizeof *w);
    if (form->most_rank > 0)
        some_low_rank(seed, DIM, RANK, form->most_rank, number, w);
    for (int64_t i = 0, at = 0; form->most_rank == 0 && i < em_form_n_part(form); i++) {
        const em_part part = em_form_part(form, i);
        const int64_t n = part.count;
        double own[DIM * DIM];
        some_matrix(n, seed + (uint64_t)i, own);
        for (int64_t j = 0; j < n * n; j++)
            if (part.structure == EM_MASS_DENSE || j % (n + 1) == 0) {
                number[at++] = own[j];
                w[(part.first + j / n) * DIM + part.first + j % n] = own[j];
            }
    }
    ck_assert_int_eq(em_mass_of(form, number, &mass), EM_OK);
    return mass;
}

/* The matrix of a map: columns are where unit vectors go. A panel of more rows than any structure
 * takes at a time. */
static void matrix_of(const em_mass *mass, em_map map, double *out)
{
    const em_mass *masses[DIM];
    _Alignas(64) double x[DIM * 24] = {0}, y[DIM * 24];

    ck_assert_int_eq(mass->stride, 24);
    for (int j = 0; j < DIM; j++) {
        masses[j] = mass;
        x[j * 24 + j] = 1;
    }
    em_mass_apply(masses, map, DIM, x, y);
    for (int i = 0; i < DIM; i++)
        for (int j = 0; j < DIM; j++)
            out[i * DIM + j] = y[j * 24 + i];
    for (int j = 0; j < DIM; j++)
        for (int i = DIM; i < 24; i++)
            ck_assert_double_eq(y[j * 24 + i], 0);
}

static double distance(const double *a, const double *b)
{
    double most = 0;

    for (int i = 0; i < DIM * DIM; i++)
        most = fmax(most, fabs(a[i] - b[i]));
    return most;
}

static void multiply(bool transposes, const double *a, const double *b, double *out)
{
    for (int i = 0; i < DIM; i++)
        for (int j = 0; j < DIM; j++) {
            out[i * DIM + j] = 0;
            for (int k = 0; k < DIM; k++)
                out[i * DIM + j] += a[i * DIM + k] * b[transposes ? j * DIM + k : k * DIM + j];
        }
}

/* W = `w`; M W = I; L L^T = M; L^-1 L = I; L^-T is its transpose. */
START_TEST(maps_are_those_of_the_matrix)
{
    const em_mass_form *form = &forms[_i % N_FORM];
    double number[MOST_NUMBER], w[DIM * DIM], m[DIM * DIM], map[EM_N_MAP][DIM * DIM], x[DIM * DIM];
    double one[DIM * DIM] = {0}, whole[DIM * DIM];
    em_mass *mass = some_mass(form, (uint64_t)_i, number, w);

    for (int i = 0; i < DIM; i++)
        one[i * (DIM + 1)] = 1;
    memcpy(m, w, sizeof w);
    ck_assert_int_eq(em_invert_spd(DIM, m, DIM), EM_OK);
    for (int k = 0; k < EM_N_MAP; k++)
        matrix_of(mass, (em_map)k, map[k]);
    ck_assert_double_lt(distance(map[EM_MAP_VELOCITY], w), 1e-12);
    ck_assert_double_lt(distance(map[EM_MAP_SOLVE], m), 1e-9);
    multiply(true, map[EM_MAP_MOMENTUM], map[EM_MAP_MOMENTUM], x);
    ck_assert_double_lt(distance(x, m), 1e-9);
    multiply(false, map[EM_MAP_WHITEN], map[EM_MAP_MOMENTUM], x);
    ck_assert_double_lt(distance(x, one), 1e-10);
    multiply(true, one, map[EM_MAP_WHITEN], x);
    ck_assert_double_lt(distance(map[EM_MAP_UNWHITEN], x), 1e-12);
    ck_assert_int_eq(em_mass_matrix(mass, EM_MAP_VELOCITY, EM_MASS_DENSE, whole), EM_OK);
    ck_assert_double_lt(distance(whole, w), 1e-12);
    ck_assert_int_eq(em_mass_matrix(mass, EM_MAP_SOLVE, EM_MASS_DENSE, whole), EM_OK);
    ck_assert_double_lt(distance(whole, m), 1e-9);
    em_mass_destroy(&mass);
}
END_TEST

START_TEST(determinant_and_range_are_those_of_the_matrix)
{
    const em_mass_form *form = &forms[_i % N_FORM];
    double number[MOST_NUMBER], w[DIM * DIM], value[DIM], sum = 0, smallest, largest;
    em_mass *mass = some_mass(form, (uint64_t)_i, number, w);

    ck_assert_int_eq(em_eigen(DIM, w, DIM, value), EM_OK);
    for (int i = 0; i < DIM; i++)
        sum += log(value[i]);
    ck_assert_double_eq_tol(mass->ops->log_det(mass), sum, 1e-9);
    ck_assert_int_eq(mass->ops->range(mass, &smallest, &largest), EM_OK);
    ck_assert_double_eq_tol(smallest / value[0], 1, 1e-3);
    ck_assert_double_eq_tol(largest / value[DIM - 1], 1, 1e-3);
    em_mass_destroy(&mass);
}
END_TEST

/* Without its directions a mass of low rank is another one, by every measure above. */
START_TEST(twin_without_directions_differs)
{
    const em_mass_form *form = &forms[3];
    double number[MOST_NUMBER], w[DIM * DIM], value[DIM], map[DIM * DIM], sum = 0;
    em_mass *mass = some_mass(form, (uint64_t)_i, number, w);

    em_mass_destroy(&mass);
    for (int k = 0; k < RANK; k++)
        number[DIM + k] = 1;
    ck_assert_int_eq(em_mass_of(form, number, &mass), EM_OK);
    matrix_of(mass, EM_MAP_VELOCITY, map);
    ck_assert_double_gt(distance(map, w), 0.1);
    ck_assert_int_eq(em_eigen(DIM, w, DIM, value), EM_OK);
    for (int i = 0; i < DIM; i++)
        sum += log(value[i]);
    ck_assert_double_gt(fabs(mass->ops->log_det(mass) - sum), 0.1);
    em_mass_destroy(&mass);
}
END_TEST

/* Numbers come back as they were; versions are of the numbers; a diagonal spreads. */
START_TEST(numbers_come_back)
{
    const em_mass_form *form = &forms[_i % N_FORM];
    const size_t bytes = (size_t)form->ops->size(form) * sizeof(double);
    double number[MOST_NUMBER], back[MOST_NUMBER], w[DIM * DIM], diagonal[DIM];
    em_mass *mass = some_mass(form, (uint64_t)_i, number, w), *same = NULL, *other = NULL;

    mass->ops->write(mass, form, back);
    ck_assert_mem_eq(number, back, bytes);
    ck_assert_int_eq(em_mass_of(form, back, &same), EM_OK);
    ck_assert(same->version == mass->version);
    for (int i = 0; i < DIM; i++)
        diagonal[i] = 1 + i;
    ck_assert_int_eq(em_mass_of_diagonal(form, diagonal, &other), EM_OK);
    ck_assert(other->version != mass->version);
    matrix_of(other, EM_MAP_VELOCITY, w);
    for (int i = 0; i < DIM * DIM; i++)
        ck_assert_double_eq_tol(w[i], i % (DIM + 1) ? 0 : 1 + i / DIM, 1e-12);
    em_mass_destroy(&mass);
    em_mass_destroy(&same);
    em_mass_destroy(&other);
}
END_TEST

/* What is no mass is refused: not positive, not finite, directions that are not orthonormal. */
START_TEST(others_are_refused)
{
    const em_mass_form *form = &forms[_i % N_FORM];
    double number[MOST_NUMBER], w[DIM * DIM];
    em_mass *mass = some_mass(form, (uint64_t)_i, number, w);
    const double first = number[0];

    em_mass_destroy(&mass);
    number[0] = -1;
    ck_assert_int_eq(em_mass_of(form, number, &mass), EM_NONFINITE);
    ck_assert_ptr_null(mass);
    number[0] = NAN;
    ck_assert_int_eq(em_mass_of(form, number, &mass), EM_NONFINITE);
    number[0] = first;
    if (form->most_rank > 0) {
        number[DIM] = -0.5;
        ck_assert_int_eq(em_mass_of(form, number, &mass), EM_NONFINITE);
        number[DIM] = 30;
        number[DIM + form->most_rank] += 0.1;
        ck_assert_int_eq(em_mass_of(form, number, &mass), EM_NONFINITE);
    }
}
END_TEST

START_TEST(sizes_of_blocks_are_checked)
{
    static const double good[] = {5, 1, 12}, negative[] = {5, -1}, broken[] = {2.5},
                        large[] = {20, 2};
    em_part *part = NULL;
    int64_t n = 0;

    ck_assert_int_eq(em_mass_parts(DIM, 3, good, &n, &part), EM_OK);
    ck_assert_int_eq(n, 4);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(part[i].first, parts[i].first);
        ck_assert_int_eq(part[i].count, parts[i].count);
        ck_assert_int_eq((int)part[i].structure, (int)parts[i].structure);
    }
    em_release(&part);
    const double *const bad[] = {negative, broken, large, good};
    const int64_t count[] = {2, 1, 2, 0};
    for (int i = 0; i < 4; i++) {
        ck_assert_int_eq(em_mass_parts(DIM, count[i], bad[i], &n, &part), EM_EDATA);
        em_release(&part);
    }
}
END_TEST

/* ---- estimates ---- */

/* n samples of N(1, w) and their gradients, for the accumulators and as they are. */
static void take_samples(const em_estimator_ops *ops, const em_mass_form *form, const double *w,
                         int n, uint64_t seed, double *accumulator, em_samples *samples)
{
    double lower[DIM * DIM], precision[DIM * DIM];

    memcpy(lower, w, sizeof lower);
    memcpy(precision, w, sizeof precision);
    ck_assert_int_eq(em_cholesky(DIM, lower, DIM), EM_OK);
    ck_assert_int_eq(em_invert_spd(DIM, precision, DIM), EM_OK);
    samples->n = n;
    ck_assert_int_eq(em_allocate(n * 2 * DIM, sizeof(double), &samples->row), EM_OK);
    for (int k = 0; k < n; k++) {
        const em_stream stream = {seed, (uint64_t)k, 1, EM_RNG_TEST};
        _Alignas(64) double z[24];
        double *x = samples->row + k * 2 * DIM, *g = x + DIM;
        em_normals(&stream, DIM, z);
        for (int i = 0; i < DIM; i++)
            for (int j = 0; j <= i; j++)
                x[i] += lower[i * DIM + j] * z[j];
        for (int i = 0; i < DIM; i++)
            for (int j = 0; j < DIM; j++)
                g[i] -= precision[i * DIM + j] * x[j];
        em_estimator_observe(ops, form, &(em_observation){x, g, z, NULL}, accumulator);
        for (int i = 0; i < DIM; i++)
            x[i] += 1;
    }
}

/* cond(W^-1 S) of an estimate W for the covariance S, once it has been made `n_round` times. */
static double condition(const em_mass_form *form, const double *covariance, int n, int n_round,
                        uint64_t seed)
{
    const em_estimator_ops *ops = find_estimator("fisher");
    double number[MOST_NUMBER], m[DIM * DIM], a[DIM * DIM], lower[DIM * DIM], value[DIM];
    em_mass *mass = NULL;

    ck_assert_int_eq(em_mass_identity_of(form, &mass), EM_OK);
    for (int round = 0; round < n_round; round++) {
        double *accumulator = NULL;
        em_samples samples = {0, NULL};
        ck_assert_int_eq(em_allocate(em_estimator_size(ops, form), sizeof(double), &accumulator),
                         EM_OK);
        take_samples(ops, form, covariance, n, seed + 100 * (uint64_t)round, accumulator, &samples);
        ck_assert_int_eq(em_estimate(ops, form, mass, accumulator, &samples, number), EM_OK);
        em_mass_destroy(&mass);
        ck_assert_int_eq(em_mass_of(form, number, &mass), EM_OK);
        em_release(&accumulator);
        em_release(&samples.row);
    }
    memcpy(lower, covariance, sizeof lower);
    ck_assert_int_eq(em_cholesky(DIM, lower, DIM), EM_OK);
    ck_assert_int_eq(em_mass_matrix(mass, EM_MAP_SOLVE, EM_MASS_DENSE, m), EM_OK);
    multiply(false, m, lower, a);
    for (int i = 0; i < DIM; i++)
        for (int j = 0; j < DIM; j++) {
            m[i * DIM + j] = 0;
            for (int k = 0; k < DIM; k++)
                m[i * DIM + j] += lower[k * DIM + i] * a[k * DIM + j];
        }
    ck_assert_int_eq(em_eigen(DIM, m, DIM, value), EM_OK);
    em_mass_destroy(&mass);
    return value[DIM - 1] / value[0];
}

/* Three directions of variances 30, 4 and 0.05 are found from fewer samples than dimensions, when
 * each estimate begins with the one before; a diagonal finds none of them. */
START_TEST(few_samples_find_directions)
{
    double number[MOST_NUMBER], w[DIM * DIM];
    em_mass *mass = some_mass(&forms[3], (uint64_t)_i, number, w);

    em_mass_destroy(&mass);
    ck_assert_double_gt(condition(&forms[0], w, 15, 5, (uint64_t)_i), 50);
    ck_assert_double_lt(condition(&forms[3], w, 15, 5, (uint64_t)_i), 8);
    ck_assert_double_lt(condition(&forms[1], w, 400, 1, (uint64_t)_i), 3);
}
END_TEST

/* Each block is estimated from its own covariances. */
START_TEST(blocks_are_estimated)
{
    double number[MOST_NUMBER], w[DIM * DIM];
    em_mass *mass = some_mass(&forms[2], (uint64_t)_i, number, w);

    em_mass_destroy(&mass);
    ck_assert_double_lt(condition(&forms[2], w, 400, 1, (uint64_t)_i), 1.5);
    ck_assert_double_gt(condition(&forms[0], w, 400, 1, (uint64_t)_i), 3);
}
END_TEST

int main(void)
{
    TCase *structures = tcase_create("structures"), *estimates = tcase_create("estimates");
    Suite *suite = suite_create("structures");

    tcase_add_loop_test(structures, maps_are_those_of_the_matrix, 0, 3 * N_FORM);
    tcase_add_loop_test(structures, determinant_and_range_are_those_of_the_matrix, 0, 3 * N_FORM);
    tcase_add_loop_test(structures, twin_without_directions_differs, 0, 3);
    tcase_add_loop_test(structures, numbers_come_back, 0, N_FORM);
    tcase_add_loop_test(structures, others_are_refused, 0, N_FORM);
    tcase_add_test(structures, sizes_of_blocks_are_checked);
    tcase_add_loop_test(estimates, few_samples_find_directions, 0, 5);
    tcase_add_loop_test(estimates, blocks_are_estimated, 0, 3);
    suite_add_tcase(suite, structures);
    suite_add_tcase(suite, estimates);
    return run_suite(suite, CK_FORK);
}
