/*
 * What the search for a non-centring map finds in draws and derivatives whose law is known:
 * hierarchies with and without data, nested ones, several log scales, two for one parameter, and
 * nothing in a Gaussian.
 */
#include "adaptation/noncentring/noncentring_search.h"
#include "math/rng.h"
#include "posterior/noncentring.h"
#include "support/tap.h"

#include <math.h>

enum { N_DRAW = 400, V = 0, MU = 1, FIRST = 2, DIM = 6, DATA_DIM = 7 };

/*
 * x_i ~ N(mu, e^(2 v)) with data y_i ~ N(x_i, s_i^2), s_i from 0.1 to 100. In nearly all draws e^v
 * is well above 0.1, so the data of the first member determine it, and its draws do not depend on
 * v. Its derivative does. `precise`: whether the data are there; without them there is no
 * information.
 */
static void draw_with_data(uint64_t seed, int64_t number, bool precise, double *theta, double *g)
{
    static const double y[] = {-0.1, 1.3, 0.3, -6, -15}, spread[] = {0.1, 0.6, 3, 18, 100};
    const em_stream stream = {seed, (uint64_t)number, 0, EM_RNG_TEST};
    _Alignas(64) double z[8];

    em_normals(&stream, DATA_DIM, z);
    const double v = theta[V] = 0.6 + 0.6 * z[V], mu = theta[MU] = z[MU], prior = exp(-2 * v);
    g[V] = -v;
    g[MU] = -mu;
    for (int i = FIRST; i < DATA_DIM; i++) {
        const double s = spread[i - FIRST], data = precise ? 1 / (s * s) : 0;
        const double precision = prior + data,
                     mean = (prior * mu + data * y[i - FIRST]) / precision;
        theta[i] = mean + z[i] / sqrt(precision);
        g[i] = -(theta[i] - mu) * prior - (theta[i] - y[i - FIRST]) * data;
        g[MU] += (theta[i] - mu) * prior;
        g[V] += (theta[i] - mu) * (theta[i] - mu) * prior - 1;
    }
}

START_TEST(the_search_finds_what_data_tell)
{
    static const double centre[] = {-0.1, 1.3, 0.3, -6, -15}, spread[] = {0.1, 0.6, 3, 18, 100};
    static double sample[N_DRAW][2][DATA_DIM];
    const bool precise = _i % 2 == 0;
    em_noncentring_row row[DATA_DIM];
    int64_t n_child = 0;

    for (int64_t n = 0; n < N_DRAW; n++)
        draw_with_data((uint64_t)_i + 1, n, precise, sample[n][0], sample[n][1]);
    const em_samples samples = {N_DRAW, &sample[0][0][0]};
    ck_assert_int_eq(em_noncentring_search(DATA_DIM, &samples, NULL, false, row, &n_child), EM_OK);
    ck_assert_int_ge(n_child, DATA_DIM - FIRST);
    for (int i = FIRST; i < DATA_DIM; i++) {
        const double s = spread[i - FIRST], q = exp(2 * row[i].origin) / (s * s);
        ck_assert(row[i].level > 0 && row[i].scale == V && row[i].location[0] == MU);
        ck_assert(row[i].coefficient[0] == 1 && row[i].location[1] == -1);
        ck_assert_double_eq_tol(row[i].degree, 1, 1e-3);
        ck_assert_double_eq_tol(row[i].information, precise ? q : 0, precise ? 0.01 * q : 1e-6);
        if (precise)
            ck_assert_double_eq_tol(row[i].centre, centre[i - FIRST], 0.01 * s);
    }
}
END_TEST

/*
 * A nested hierarchy, of whose six groups each has four members: s, t ~ N(0, 1), m ~ N(0, 25), u_j
 * ~ N(m, e^(2 s)), w_jk ~ N(u_j, e^(2 t)). The derivatives by u_j depend on both log scales, and
 * show s only in coordinates in which the members are non-centred.
 */
START_TEST(the_search_finds_a_nested_hierarchy)
{
    enum {
        N_MANY = 600,
        S = 0,
        T,
        M,
        GROUP,
        N_GROUP = 6,
        MEMBER = GROUP + N_GROUP,
        N_MEMBER = 4,
        WHOLE = MEMBER + N_GROUP * N_MEMBER
    };
    static double sample[N_MANY][2][WHOLE];
    em_noncentring_row row[WHOLE];
    int64_t n_child = 0;

    for (int64_t n = 0; n < N_MANY; n++) {
        const em_stream stream = {(uint64_t)_i + 1, (uint64_t)n, 0, EM_RNG_TEST};
        _Alignas(64) double z[WHOLE + 7];
        double *x = sample[n][0], *g = sample[n][1];
        em_normals(&stream, WHOLE, z);
        x[S] = z[S];
        x[T] = z[T];
        x[M] = 5 * z[M];
        g[S] = -z[S] - N_GROUP;
        g[T] = -z[T] - N_GROUP * N_MEMBER;
        g[M] = -z[M] / 5;
        for (int i = GROUP; i < WHOLE; i++) {
            const int log_scale = i < MEMBER ? S : T,
                      about = i < MEMBER ? M : GROUP + (i - MEMBER) % N_GROUP;
            x[i] = x[about] + exp(x[log_scale]) * z[i];
            g[i] = -z[i] * exp(-x[log_scale]);
            g[about] -= g[i];
            g[log_scale] += z[i] * z[i];
        }
    }
    const em_samples samples = {N_MANY, &sample[0][0][0]};
    ck_assert_int_eq(em_noncentring_search(WHOLE, &samples, NULL, false, row, &n_child), EM_OK);
    ck_assert_int_eq(n_child, WHOLE - GROUP);
    for (int i = GROUP; i < WHOLE; i++) {
        ck_assert(row[i].level > 0 && row[i].scale == (i < MEMBER ? S : T));
        ck_assert(row[i].location[0] == (i < MEMBER ? M : GROUP + (i - MEMBER) % N_GROUP));
        ck_assert(row[i].coefficient[0] == 1 && row[i].location[1] == -1);
        ck_assert_double_eq_tol(row[i].degree, 1, 0.05);
    }
}
END_TEST

/*
 * x ~ N(0, e^(2 v) S), where S is the covariance of an autoregression. The derivative by x_i has
 * its neighbours, of which the map takes some, so that fits have errors. An error of m or of the
 * data's precision would bound the funnel's neck.
 */
START_TEST(the_search_leaves_out_what_chance_explains)
{
    enum { N_CHILD = 6, WHOLE = N_CHILD + 1 };
    static double sample[N_DRAW][2][WHOLE];
    static const double rho = 0.9;
    em_noncentring_row row[WHOLE];
    int64_t n_child = 0;

    for (int64_t n = 0; n < N_DRAW; n++) {
        const em_stream stream = {(uint64_t)_i + 1, (uint64_t)n, 0, EM_RNG_TEST};
        _Alignas(64) double z[8];
        double *x = sample[n][0], *g = sample[n][1], e[WHOLE + 1] = {0};
        em_normals(&stream, WHOLE, z);
        x[0] = 2 * z[0];
        g[0] = -x[0] / 4 - N_CHILD;
        for (int i = 1; i < WHOLE; i++) {
            e[i] = (i == 1 ? 1 : sqrt(1 - rho * rho)) * z[i];
            x[i] = (i == 1 ? 0 : rho * x[i - 1]) + exp(x[0]) * e[i];
            e[i] /= i == 1 ? 1 : 1 - rho * rho;
            g[0] += z[i] * z[i];
        }
        for (int i = 1; i < WHOLE; i++)
            g[i] = exp(-x[0]) * ((i < WHOLE - 1 ? rho * e[i + 1] : 0) - e[i]);
    }
    const em_samples samples = {N_DRAW, &sample[0][0][0]};
    ck_assert_int_eq(em_noncentring_search(WHOLE, &samples, NULL, false, row, &n_child), EM_OK);
    ck_assert_int_eq(n_child, N_CHILD);
    for (int i = 1; i < WHOLE; i++) {
        ck_assert(row[i].level > 0 && row[i].scale == 0);
        ck_assert_double_eq_tol(row[i].degree, 1, 0.05);
        ck_assert(row[i].information == 0 && fabs(row[i].shift) < 1e-9);
    }
}
END_TEST

/* Three funnels whose log scales have a common mean: a ~ N(0, 1), b_j ~ N(a, 1.5), and four x each
 * from N(0, e^(2 b_j)). */
START_TEST(the_search_gives_each_child_its_own_log_scale)
{
    enum { N_SCALE = 3, N_EACH = 4, BEGIN = 1 + N_SCALE, WHOLE = BEGIN + N_SCALE * N_EACH };
    static double sample[N_DRAW][2][WHOLE];
    em_noncentring_row row[WHOLE];
    int64_t n_child = 0;

    for (int64_t n = 0; n < N_DRAW; n++) {
        const em_stream stream = {(uint64_t)_i + 1, (uint64_t)n, 0, EM_RNG_TEST};
        _Alignas(64) double z[WHOLE];
        double *x = sample[n][0], *g = sample[n][1];
        em_normals(&stream, WHOLE, z);
        x[0] = z[0];
        g[0] = -x[0];
        for (int j = 1; j <= N_SCALE; j++) {
            x[j] = x[0] + 1.5 * z[j];
            g[j] = -z[j] / 1.5 - N_EACH;
            g[0] += z[j] / 1.5;
        }
        for (int i = BEGIN; i < WHOLE; i++) {
            const int j = 1 + (i - BEGIN) / N_EACH;
            x[i] = exp(x[j]) * z[i];
            g[i] = -exp(-x[j]) * z[i];
            g[j] += z[i] * z[i];
        }
    }
    const em_samples samples = {N_DRAW, &sample[0][0][0]};
    ck_assert_int_eq(em_noncentring_search(WHOLE, &samples, NULL, false, row, &n_child), EM_OK);
    ck_assert_int_eq(n_child, N_SCALE * N_EACH);
    for (int i = BEGIN; i < WHOLE; i++) {
        ck_assert(row[i].level > 0 && row[i].scale == 1 + (i - BEGIN) / N_EACH);
        ck_assert_double_eq_tol(row[i].degree, 1, 0.02);
    }
}
END_TEST

/* A horseshoe: t ~ N(-1, 1), l_i ~ N(0, 1), b_i ~ N(0, e^(2 t + 2 l_i)). The degrees are exact. */
START_TEST(the_search_finds_a_common_and_an_own_scale)
{
    enum { N_EFFECT = 6, EFFECT = 1 + N_EFFECT, WHOLE = 1 + 2 * N_EFFECT };
    static double sample[N_DRAW][2][WHOLE];
    em_noncentring_row row[WHOLE];
    int64_t n_child = 0;

    for (int64_t n = 0; n < N_DRAW; n++) {
        const em_stream stream = {(uint64_t)_i + 1, (uint64_t)n, 0, EM_RNG_TEST};
        _Alignas(64) double z[WHOLE + 3];
        double *x = sample[n][0], *g = sample[n][1];
        em_normals(&stream, WHOLE, z);
        x[0] = z[0] - 1;
        g[0] = -z[0] - N_EFFECT;
        for (int i = 1; i < EFFECT; i++) {
            const double scale = exp(x[0] + z[i]), of = z[i + N_EFFECT];
            x[i] = z[i];
            g[i] = -z[i] - 1 + of * of;
            x[i + N_EFFECT] = scale * of;
            g[i + N_EFFECT] = -of / scale;
            g[0] += of * of;
        }
    }
    const em_samples samples = {N_DRAW, &sample[0][0][0]};
    ck_assert_int_eq(em_noncentring_search(WHOLE, &samples, NULL, false, row, &n_child), EM_OK);
    ck_assert_int_eq(n_child, N_EFFECT);
    for (int i = EFFECT; i < WHOLE; i++) {
        const bool common_first = row[i].scale == 0;
        ck_assert(row[i].level > 0 && row[i].location[0] == -1 && row[i].shift == 0);
        ck_assert(common_first || row[i].scale == i - N_EFFECT);
        ck_assert(row[i].second_scale == (common_first ? i - N_EFFECT : 0));
        ck_assert_double_eq_tol(row[i].degree, 1, 1e-6);
        ck_assert_double_eq_tol(row[i].second_degree, 1, 1e-6);
    }
}
END_TEST

/* Neal's funnel in 100 dimensions, v ~ N(0, 9), in a few draws of four chains that move slowly, and
 * not at all in two of three iterations. */
START_TEST(the_search_finds_a_funnel_in_correlated_draws)
{
    enum { WIDE = 100, N_FEW = 450, N_OF_CHAIN = 4, MOVES_EVERY = 3 };
    static double sample[N_FEW][2][WIDE];
    static const double kept = 0.9;
    em_noncentring_row row[WIDE];
    double z[WIDE] = {0};
    int64_t n_child = 0;

    for (int64_t n = 0; n < N_FEW; n++) {
        const em_stream stream = {(uint64_t)_i + 1, (uint64_t)n, 0, EM_RNG_TEST};
        const bool begins = n % (N_FEW / N_OF_CHAIN) == 0;
        _Alignas(64) double noise[WIDE + 4];
        em_normals(&stream, WIDE, noise);
        for (int i = 0; i < WIDE && (begins || n % MOVES_EVERY == 0); i++)
            z[i] = begins ? noise[i] : kept * z[i] + sqrt(1 - kept * kept) * noise[i];
        const double v = 3 * z[0];
        sample[n][0][0] = v;
        sample[n][1][0] = -v / 9 - (WIDE - 1) / 2.0;
        for (int i = 1; i < WIDE; i++) {
            sample[n][0][i] = exp(v / 2) * z[i];
            sample[n][1][i] = -exp(-v / 2) * z[i];
            sample[n][1][0] += z[i] * z[i] / 2;
        }
    }
    const em_samples samples = {N_FEW, &sample[0][0][0]};
    ck_assert_int_eq(em_noncentring_search(WIDE, &samples, NULL, false, row, &n_child), EM_OK);
    ck_assert_int_ge(n_child, WIDE - 6);
}
END_TEST

/*
 * A funnel in a funnel, whose priors are proved: v ~ N(0, 1), u ~ N(0, e^(2 v)), x_i ~ N(0, e^(2
 * u)). The scale of x_i varies by more than 10^7, so the covariance of its derivatives is singular
 * in rounding, and so is what is left of them beside the prior. There are no data.
 */
START_TEST(the_search_finds_proved_priors_whose_scale_varies_widely)
{
    enum { U = 1, WHOLE = 11 };
    static double sample[N_DRAW][2][WHOLE];
    em_normal_prior prior[WHOLE] = {{0}};
    em_noncentring_row row[WHOLE];
    int64_t n_child = 0;

    for (int64_t n = 0; n < N_DRAW; n++) {
        const em_stream stream = {(uint64_t)_i + 1, (uint64_t)n, 0, EM_RNG_TEST};
        _Alignas(64) double z[WHOLE + 7];
        double *x = sample[n][0], *g = sample[n][1];
        em_normals(&stream, WHOLE, z);
        x[V] = z[V];
        x[U] = exp(x[V]) * z[U];
        g[V] = -z[V] + z[U] * z[U] - 1;
        g[U] = -z[U] * exp(-x[V]) - (WHOLE - 2);
        for (int i = 2; i < WHOLE; i++) {
            x[i] = exp(x[U]) * z[i];
            g[i] = -exp(-2 * x[U]) * x[i];
            g[U] += z[i] * z[i];
        }
    }
    for (int i = U; i < WHOLE; i++)
        prior[i] = (em_normal_prior){
            .precision = 1, .degree = 1, .scale = i == U ? V : U, .location = {-1, -1, -1, -1}};
    const em_samples samples = {N_DRAW, &sample[0][0][0]};
    ck_assert_int_eq(em_noncentring_search(WHOLE, &samples, prior, true, row, &n_child), EM_OK);
    ck_assert_int_eq(n_child, WHOLE - 1);
    for (int i = U; i < WHOLE; i++)
        ck_assert(row[i].scale == prior[i].scale && row[i].information == 0);
}
END_TEST

/* Their covariance is singular. */
START_TEST(the_search_finds_nothing_where_a_parameter_is_constant)
{
    static double sample[N_DRAW][2][DATA_DIM];
    em_noncentring_row row[DATA_DIM];
    int64_t n_child = -1;

    for (int64_t n = 0; n < N_DRAW; n++) {
        draw_with_data(1, n, true, sample[n][0], sample[n][1]);
        sample[n][0][MU] = 1;
    }
    const em_samples samples = {N_DRAW, &sample[0][0][0]};
    ck_assert_int_eq(em_noncentring_search(DATA_DIM, &samples, NULL, false, row, &n_child), EM_OK);
    ck_assert_int_eq(n_child, 0);
}
END_TEST

START_TEST(the_search_finds_nothing_in_a_gaussian)
{
    static double sample[N_DRAW][2][DIM];
    em_noncentring_row row[DIM];
    int64_t n_child = -1;

    for (int64_t n = 0; n < N_DRAW; n++) {
        const em_stream stream = {(uint64_t)_i + 1, (uint64_t)n, 0, EM_RNG_TEST};
        _Alignas(64) double z[8];
        em_normals(&stream, DIM, z);
        for (int i = 0; i < DIM; i++) {
            sample[n][0][i] = z[i] + (i > 0 ? 0.9 * z[i - 1] : 0);
            sample[n][1][i] = 0;
        }
        for (int i = DIM - 1; i >= 0; i--) /* -z by the transposed inverse factor */
            sample[n][1][i] = -z[i] - (i < DIM - 1 ? 0.9 * sample[n][1][i + 1] : 0);
    }
    const em_samples samples = {N_DRAW, &sample[0][0][0]};
    ck_assert_int_eq(em_noncentring_search(DIM, &samples, NULL, false, row, &n_child), EM_OK);
    ck_assert_int_eq(n_child, 0);
}
END_TEST

int main(void)
{
    TCase *search_case = tcase_create("search");

    tcase_add_loop_test(search_case, the_search_finds_what_data_tell, 0, 10);
    tcase_add_loop_test(search_case, the_search_finds_a_nested_hierarchy, 0, 10);
    tcase_add_loop_test(search_case, the_search_leaves_out_what_chance_explains, 0, 10);
    tcase_add_loop_test(search_case, the_search_gives_each_child_its_own_log_scale, 0, 10);
    tcase_add_loop_test(search_case, the_search_finds_a_common_and_an_own_scale, 0, 10);
    tcase_add_loop_test(search_case, the_search_finds_a_funnel_in_correlated_draws, 0, 10);
    tcase_add_loop_test(search_case, the_search_finds_proved_priors_whose_scale_varies_widely, 0,
                        20);
    tcase_add_test(search_case, the_search_finds_nothing_where_a_parameter_is_constant);
    tcase_add_loop_test(search_case, the_search_finds_nothing_in_a_gaussian, 0, 20);
    return run_case(search_case, CK_NOFORK);
}
