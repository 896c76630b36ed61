/* Dense linear algebra: the defining equations, and matrices that have no factors. */
#include "base/fault.h"
#include "base/memory.h"
#include "math/linalg.h"
#include "math/rng.h"
#include "support/tap.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX = 23, PADDING = 4 };

static const double untouched = 1e300;

/* Row-major matrices of order n in rows of n + PADDING, whose padding must survive. */
typedef struct matrix {
    int64_t n, ld;
    double v[MAX * (MAX + PADDING)];
} matrix;

static double *at(matrix *a, int64_t i, int64_t j)
{
    return &a->v[i * a->ld + j];
}

static matrix blank(int64_t n)
{
    matrix a = {.n = n, .ld = n + PADDING};

    for (int64_t i = 0; i < n; i++)
        for (int64_t j = n; j < a.ld; j++)
            *at(&a, i, j) = untouched;
    return a;
}

static void check_padding(matrix *a)
{
    for (int64_t i = 0; i < a->n; i++)
        for (int64_t j = a->n; j < a->ld; j++)
            ck_assert(*at(a, i, j) == untouched);
}

/* G G^T / n + 1, with G standard normal: eigenvalues between 1 and about 5. */
static matrix positive(int64_t n)
{
    matrix a = blank(n);
    double *g;

    ck_assert_int_eq(em_allocate_doubles(em_stride(n * n), &g), EM_OK);
    em_normals(&(em_stream){.seed = 8, .purpose = EM_RNG_TEST}, n * n, g);
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            *at(&a, i, j) = i == j;
            for (int64_t k = 0; k < n; k++)
                *at(&a, i, j) += g[i * n + k] * g[j * n + k] / (double)n;
        }
    em_release(&g);
    return a;
}

static matrix transpose(matrix *a)
{
    matrix t = blank(a->n);

    for (int64_t i = 0; i < a->n; i++)
        for (int64_t j = 0; j < a->n; j++)
            *at(&t, i, j) = *at(a, j, i);
    return t;
}

static matrix product(matrix *a, matrix *b)
{
    matrix c = blank(a->n);

    for (int64_t i = 0; i < a->n; i++)
        for (int64_t j = 0; j < a->n; j++)
            for (int64_t k = 0; k < a->n; k++)
                *at(&c, i, j) += *at(a, i, k) * *at(b, k, j);
    return c;
}

static matrix diagonal(int64_t n, const double *value)
{
    matrix a = blank(n);

    for (int64_t i = 0; i < n; i++)
        *at(&a, i, i) = value ? value[i] : 1;
    return a;
}

/* Equal but for rounding: conditions below 10, entries below 10, at most MAX terms. */
static void check_equal(matrix a, matrix b)
{
    for (int64_t i = 0; i < a.n; i++)
        for (int64_t j = 0; j < a.n; j++)
            ck_assert_double_eq_tol(*at(&a, i, j), *at(&b, i, j), 1e-12);
    check_padding(&a);
}

static void check_symmetric(matrix *a)
{
    for (int64_t i = 0; i < a->n; i++)
        for (int64_t j = 0; j < i; j++)
            ck_assert(*at(a, i, j) == *at(a, j, i));
}

START_TEST(cholesky_factors)
{
    matrix a = positive(_i), l = a, t;

    ck_assert_int_eq(em_cholesky(a.n, l.v, l.ld), EM_OK);
    for (int64_t i = 0; i < a.n; i++)
        for (int64_t j = i + 1; j < a.n; j++)
            ck_assert(*at(&l, i, j) == 0);
    t = transpose(&l);
    check_equal(product(&l, &t), a);
    check_padding(&l);
}
END_TEST

START_TEST(lower_is_inverted)
{
    matrix l = positive(_i), inverse;

    ck_assert_int_eq(em_cholesky(l.n, l.v, l.ld), EM_OK);
    inverse = l;
    ck_assert_int_eq(em_invert_lower(l.n, inverse.v, l.ld), EM_OK);
    check_equal(product(&inverse, &l), diagonal(l.n, NULL));
    for (int64_t i = 0; i < l.n; i++)
        for (int64_t j = i + 1; j < l.n; j++)
            ck_assert(*at(&inverse, i, j) == 0);
    check_padding(&inverse);
}
END_TEST

START_TEST(spd_is_inverted)
{
    matrix a = positive(_i), inverse = a;

    ck_assert_int_eq(em_invert_spd(a.n, inverse.v, a.ld), EM_OK);
    check_equal(product(&a, &inverse), diagonal(a.n, NULL));
    check_symmetric(&inverse);
    check_padding(&inverse);
}
END_TEST

START_TEST(eigenvectors_diagonalise)
{
    matrix a = positive(_i), v = a, t, d;
    double value[MAX];

    ck_assert_int_eq(em_eigen(a.n, v.v, v.ld, value), EM_OK);
    for (int64_t k = 1; k < a.n; k++)
        ck_assert_double_le(value[k - 1], value[k]);
    t = transpose(&v);
    d = diagonal(a.n, value);
    check_equal(product(&v, &t), diagonal(a.n, NULL));
    check_equal(product(&v, &a), product(&d, &v)); /* row k: a v_k = value_k v_k */
    check_padding(&v);
}
END_TEST

START_TEST(spectral_makes_functions)
{
    matrix a = positive(_i), v = a, root = blank(_i), same = blank(_i);
    double value[MAX], f[MAX];

    ck_assert_int_eq(em_eigen(a.n, v.v, v.ld, value), EM_OK);
    ck_assert_int_eq(em_spectral(a.n, v.v, v.ld, value, same.v), EM_OK);
    check_equal(same, a);
    for (int64_t k = 0; k < a.n; k++)
        f[k] = -sqrt(value[k]);
    ck_assert_int_eq(em_spectral(a.n, v.v, v.ld, f, root.v), EM_OK);
    check_symmetric(&root);
    check_equal(product(&root, &root), a);
    check_padding(&root);
}
END_TEST

START_TEST(multiply_is_a_product)
{
    matrix a = positive(_i), b = a, c = blank(_i);

    *at(&b, 0, _i - 1) += 2; /* not symmetric: the order of the factors shows */
    em_multiply(a.n, a.v, b.v, a.ld, c.v);
    check_equal(c, product(&a, &b));
}
END_TEST

START_TEST(what_has_no_factor_is_recoverable)
{
    const double bad[] = {-1, 0, NAN, INFINITY, -INFINITY};
    const int64_t place[][2] = {{0, 0}, {2, 2}, {4, 4}, {4, 0}, {3, 2}};

    for (int b = 0; b < 5; b++)
        for (int p = 0; p < 5; p++) {
            matrix a = diagonal(5, NULL), c;
            const int64_t i = place[p][0], j = place[p][1];
            const double value = i == j || !isfinite(bad[b]) ? bad[b] : 1 - bad[b];
            *at(&a, i, j) = *at(&a, j, i) = value; /* off the diagonal 1 or 2: not positive */
            c = a;
            ck_assert_int_eq(em_cholesky(5, c.v, c.ld), EM_NONFINITE);
            c = a;
            ck_assert_int_eq(em_invert_spd(5, c.v, c.ld), EM_NONFINITE);
        }
}
END_TEST

START_TEST(failures_are_told)
{
    double value[5];
    matrix a = diagonal(5, NULL);

    *at(&a, 3, 3) = 0;
    ck_assert_int_eq(em_invert_lower(5, a.v, a.ld), EM_ENUMERIC);
    ck_assert(strstr(em_error_text(), "order 5"));
    *at(&a, 3, 3) = NAN;
    ck_assert_int_eq(em_eigen(5, a.v, a.ld, value), EM_ENUMERIC);
    ck_assert(strstr(em_error_text(), "not finite"));
}
END_TEST

START_TEST(no_memory_is_told)
{
    double value[5];
    matrix a = diagonal(5, NULL), out = blank(5);

    for (int passage = 1; passage <= 3; passage++) {
        char site[] = "allocate:0:1";
        site[11] = (char)('0' + passage);
        setenv("EMASS_FAULT", site, 1);
        em_fault_start(0);
        ck_assert_int_eq(em_eigen(5, a.v, a.ld, value), passage < 3 ? EM_EMEMORY : EM_OK);
    }
    ck_assert_int_eq(em_spectral(5, a.v, a.ld, value, out.v), EM_EMEMORY);
}
END_TEST

/* Fails without linalg.c's second look where OpenBLAS does not know the processor: there it takes a
 * Prescott. */
START_TEST(products_are_the_processors)
{
#if defined(__x86_64__)
    if (!getenv("OPENBLAS_CORETYPE") && __builtin_cpu_supports("avx2") &&
        __builtin_cpu_supports("fma"))
        ck_assert_str_ne(em_linalg_kernels(), "Prescott");
#endif
    ck_assert_ptr_nonnull(em_linalg_kernels());
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("linalg");
    TCase *orders = tcase_create("orders"), *failures = tcase_create("failures");

    em_linalg_use_threads(1);
    tcase_add_loop_test(orders, cholesky_factors, 1, MAX + 1);
    tcase_add_loop_test(orders, lower_is_inverted, 1, MAX + 1);
    tcase_add_loop_test(orders, spd_is_inverted, 1, MAX + 1);
    tcase_add_loop_test(orders, eigenvectors_diagonalise, 1, MAX + 1);
    tcase_add_loop_test(orders, spectral_makes_functions, 1, MAX + 1);
    tcase_add_loop_test(orders, multiply_is_a_product, 1, MAX + 1);
    tcase_add_test(orders, products_are_the_processors);
    tcase_add_test(failures, what_has_no_factor_is_recoverable);
    tcase_add_test(failures, failures_are_told);
    tcase_add_test(failures, no_memory_is_told);
    suite_add_tcase(suite, orders);
    suite_add_tcase(suite, failures);

    return run_suite(suite, CK_FORK_GETENV);
}
