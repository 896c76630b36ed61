/*
 * What mixed second derivatives prove of priors, at positions of another law than the posterior,
 * and with data that are not normal: the members of a log scale, their precisions and their means.
 * Twins in which nothing is to be proved must stay without a prior.
 */
#include "adaptation/noncentring/noncentring_search.h"
#include "math/rng.h"
#include "support/tap.h"

#include <math.h>

enum { N_DRAW = 300, V = 0, W = 1, MU = 2, SLOPE = 3, FIRST = 4, N = 12, DIM = FIRST + N };

/* x_(FIRST + i) ~ N(sum_j coefficient_j x_location_j, scale^2 / precision) */
typedef struct member {
    int scale, location[2];
    double precision, coefficient[2];
} member;

typedef struct hierarchy {
    double degree; /* of the log scales; 0: the scales are 1 */
    em_scale_form form;
    bool has_squares, varies, has_two, is_nested;
    member of[N];
    int64_t evaluations;
} hierarchy;

typedef enum kind {
    ABOUT_A_MEAN,
    ABOUT_ZERO,
    BOUNDED,
    SOFTPLUS,
    LOG_VARIANCE,
    LOG_PRECISION,
    UNEQUAL,
    REGRESSION,
    WALK,
    NESTED,
    AUTOREGRESSION, /* whose coefficient is x_SLOPE */
    TWO_SCALES,     /* e^(x_V + x_W) */
    NESTED_SCALES,  /* x_V ~ N(0, e^(2 x_W)) */
    N_PROVED,
    CONSTANT_SCALE = N_PROVED,
    NONLINEAR_MEAN,
    N_KIND
} kind;

static hierarchy hierarchy_of(kind what)
{
    hierarchy h = {.degree = 1,
                   .form = what == BOUNDED    ? EM_SCALE_LOGISTIC
                           : what == SOFTPLUS ? EM_SCALE_SOFTPLUS
                                              : EM_SCALE_EXP};

    h.degree = what == LOG_VARIANCE     ? 0.5
               : what == LOG_PRECISION  ? -0.5
               : what == CONSTANT_SCALE ? 0
                                        : 1;
    h.has_squares = what == NONLINEAR_MEAN;
    h.varies = what == AUTOREGRESSION;
    h.has_two = what == TWO_SCALES;
    h.is_nested = what == NESTED_SCALES;
    for (int i = 0; i < N; i++) {
        member *m = &h.of[i];
        *m = (member){V, {MU, -1}, 1, {1, 0}};
        if (what == ABOUT_ZERO)
            m->location[0] = -1;
        if (what == UNEQUAL)
            m->precision = exp(0.3 * i - 1);
        if (what == REGRESSION) {
            m->location[1] = SLOPE;
            m->coefficient[1] = sin(i + 0.5);
        }
        if ((what == WALK || what == AUTOREGRESSION) && i > 0)
            m->location[0] = FIRST + i - 1;
        else if (what == AUTOREGRESSION)
            m->location[0] = -1;
        if (what == NESTED && i >= 3) {
            m->scale = W;
            m->location[0] = FIRST + i % 3;
        }
    }
    return h;
}

static double factor_of(const hierarchy *h, double x)
{
    return h->form == EM_SCALE_LOGISTIC   ? pow(1 + exp(-x), 2)
           : h->form == EM_SCALE_SOFTPLUS ? pow(log1p(exp(x)), -2)
                                          : exp(-2 * h->degree * x);
}

static void gradient_at(const hierarchy *h, const double *x, double *g)
{
    g[V] = -x[V] * (h->is_nested ? exp(-2 * x[W]) : 1);
    g[W] = -x[W] - (h->is_nested ? g[V] * x[V] + 1 : 0);
    g[MU] = -x[MU] / 4;
    g[SLOPE] = -x[SLOPE] / 4;
    for (int i = 0; i < N; i++)
        g[FIRST + i] = i - 10 / (1 + exp(-x[FIRST + i])); /* counts of 10 trials */
    for (int i = 0; i < N; i++) {
        const member *m = &h->of[i];
        const double factor = h->varies ? x[SLOPE] : 1;
        double away = x[FIRST + i];
        for (int j = 0; j < 2 && m->location[j] >= 0; j++)
            away -= factor * m->coefficient[j] *
                    (h->has_squares ? pow(x[m->location[j]], 2) : x[m->location[j]]);
        const double u = x[m->scale] + (h->has_two ? x[W] : 0),
                     force = m->precision * factor_of(h, u) * away;
        g[FIRST + i] -= force;
        for (int j = 0; j < 2 && m->location[j] >= 0; j++) {
            const double by = m->coefficient[j] * force;
            g[m->location[j]] += factor * by * (h->has_squares ? 2 * x[m->location[j]] : 1);
            g[SLOPE] += h->varies ? by * x[m->location[j]] : 0;
        }
        g[W] += h->has_two ? force * away - 1 : 0;
        g[m->scale] +=
            (force * away - 1) * (h->form == EM_SCALE_LOGISTIC   ? 1 / (1 + exp(u))
                                  : h->form == EM_SCALE_SOFTPLUS ? 1 / (1 + exp(-u)) / log1p(exp(u))
                                                                 : h->degree);
    }
}

static em_status evaluate(void *context, int64_t n, const double *theta, double *gradient)
{
    hierarchy *h = context;

    h->evaluations += n;
    for (int64_t r = 0; r < n; r++)
        gradient_at(h, theta + r * DIM, gradient + r * DIM);
    return EM_OK;
}

static void draw(const hierarchy *h, uint64_t seed, double sample[][2][DIM])
{
    for (int64_t n = 0; n < N_DRAW; n++) {
        const em_stream stream = {seed, (uint64_t)n, 0, EM_RNG_TEST};
        _Alignas(64) double z[DIM];
        em_normals(&stream, DIM, z);
        for (int i = 0; i < DIM; i++)
            sample[n][0][i] = i < MU ? 0.6 * z[i] : z[i];
        for (int i = 0; i < N; i++)
            for (int j = 0; j < 2 && h->of[i].location[j] >= 0; j++)
                sample[n][0][FIRST + i] +=
                    h->of[i].coefficient[j] * sample[n][0][h->of[i].location[j]];
        gradient_at(h, sample[n][0], sample[n][1]);
    }
}

/* slope: the mean of x_SLOPE */
static void check_prior(const hierarchy *h, int i, double slope, const em_normal_prior *found)
{
    const member *m = &h->of[i];
    double left[2] = {0, 0};

    ck_assert(found->scale == m->scale || (h->has_two && found->scale == W));
    ck_assert(found->degree == h->degree && found->second_degree == h->has_two);
    ck_assert(!h->has_two || found->second_scale == V + W - found->scale);
    ck_assert(found->form == h->form);
    ck_assert((found->varies != 0) == h->varies);
    ck_assert_double_eq_tol(found->precision / m->precision, 1, 1e-4);
    for (int j = 0; j < EM_MOST_LOCATIONS && found->location[j] >= 0; j++) {
        const int at = found->location[j] == m->location[0] ? 0 : 1;
        ck_assert(found->location[j] == m->location[at]);
        left[at] = found->coefficient[j];
    }
    for (int j = 0; j < 2; j++)
        ck_assert_double_eq_tol(left[j], m->location[j] < 0 ? 0 : slope * m->coefficient[j], 1e-4);
}

START_TEST(second_derivatives_prove_priors)
{
    static double sample[N_DRAW][2][DIM];
    const kind what = (kind)(_i % N_PROVED);
    hierarchy h = hierarchy_of(what);
    const em_gradient_function gradient = {evaluate, &h};
    em_normal_prior prior[DIM] = {{0}};
    em_noncentring_row row[DIM];
    int64_t n_child = 0;

    double slope = 0;

    draw(&h, (uint64_t)_i + 1, sample);
    for (int n = 0; n < N_DRAW; n++)
        slope += h.varies ? sample[n][0][SLOPE] / N_DRAW : 1.0 / N_DRAW;
    const em_samples samples = {N_DRAW, &sample[0][0][0]};
    ck_assert_int_eq(em_prove_priors(DIM, &samples, &gradient, NULL, prior), EM_OK);
    if (h.is_nested) /* x_V is tested again, without its prior */
        ck_assert_int_eq(em_prove_priors(DIM, &samples, &gradient, NULL, prior), EM_OK);
    ck_assert_int_le(h.evaluations, 30 * DIM);
    for (int i = 0; i < DIM; i++)
        if (i >= FIRST)
            check_prior(&h, i - FIRST, slope, &prior[i]);
        else
            ck_assert((prior[i].precision > 0) == (h.is_nested && i == V));
    if (h.is_nested)
        ck_assert(prior[V].scale == W && fabs(prior[V].precision - 1) < 1e-8);
    ck_assert_int_eq(em_noncentring_search(DIM, &samples, prior, true, row, &n_child), EM_OK);
    ck_assert_int_ge(n_child, N);
    for (int i = FIRST; i < DIM; i++) {
        ck_assert(row[i].level > 0 && row[i].scale == prior[i].scale);
        ck_assert(row[i].form == prior[i].form || row[i].form == EM_SCALE_JOINT);
        for (int j = 0; j < EM_MOST_LOCATIONS; j++)
            ck_assert(row[i].location[j] == prior[i].location[j]);
    }
}
END_TEST

/* The map of proved priors alone, at positions that are no draws. */
START_TEST(a_map_needs_no_draws)
{
    static double sample[N_DRAW][2][DIM];
    hierarchy h = hierarchy_of((kind)(_i % N_PROVED));
    const em_gradient_function gradient = {evaluate, &h};
    em_normal_prior prior[DIM] = {{0}};
    em_noncentring_row row[DIM];
    int64_t n_child = 0;

    draw(&h, (uint64_t)_i + 1, sample);
    const em_samples samples = {N_DRAW, &sample[0][0][0]};
    ck_assert_int_eq(em_noncentring_of_priors(DIM, &samples, prior, row, &n_child), EM_OK);
    ck_assert_int_eq(n_child, 0);
    for (int pass = 0; pass < 2; pass++)
        ck_assert_int_eq(em_prove_priors(DIM, &samples, &gradient, NULL, prior), EM_OK);
    ck_assert_int_eq(em_noncentring_of_priors(DIM, &samples, prior, row, &n_child), EM_OK);
    ck_assert_int_eq(n_child, h.varies ? 0 : N + h.is_nested);
    for (int i = FIRST; i < DIM && !h.varies; i++) {
        ck_assert(row[i].level > 0 && row[i].scale == prior[i].scale);
        ck_assert(row[i].form == prior[i].form && row[i].degree == prior[i].degree);
        for (int j = 0; j < EM_MOST_LOCATIONS; j++)
            ck_assert(row[i].location[j] == prior[i].location[j]);
    }
}
END_TEST

START_TEST(second_derivatives_prove_nothing_else)
{
    static double sample[N_DRAW][2][DIM];
    hierarchy h = hierarchy_of((kind)(N_PROVED + _i % (N_KIND - N_PROVED)));
    const em_gradient_function gradient = {evaluate, &h};
    em_normal_prior prior[DIM] = {{0}};

    draw(&h, (uint64_t)_i + 1, sample);
    const em_samples samples = {N_DRAW, &sample[0][0][0]};
    for (int window = 0; window < 3; window++)
        ck_assert_int_eq(em_prove_priors(DIM, &samples, &gradient, NULL, prior), EM_OK);
    for (int i = 0; i < DIM; i++)
        ck_assert(prior[i].precision == 0);
    const int64_t once = h.evaluations;
    ck_assert_int_eq(em_prove_priors(DIM, &samples, &gradient, NULL, prior), EM_OK);
    ck_assert_int_eq(h.evaluations, once);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("scale_derivative");

    tcase_set_timeout(tests, 100);
    tcase_add_loop_test(tests, second_derivatives_prove_priors, 0, 10 * N_PROVED);
    tcase_add_loop_test(tests, a_map_needs_no_draws, 0, 2 * N_PROVED);
    tcase_add_loop_test(tests, second_derivatives_prove_nothing_else, 0, 30);
    return run_case(tests, CK_FORK);
}
