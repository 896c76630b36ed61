/*
 * Log scales of many members, with fewer draws than parameters: identities of gradients prove the
 * priors of members, or that these are factors of a scale, with few gradients. Further ones tell
 * what data determine of each. In twins, of which an identity does not hold, nothing is proved.
 */
#include "adaptation/noncentring/noncentring_search.h"
#include "math/rng.h"
#include "support/tap.h"

#include <math.h>
#include <string.h>

/* x_K ~ N(-1, 0.4), x_MU and x_SLOPE ~ N(0, 1), and members with data c_i ~ N(e_i, 1 / q_i), of
 * which every tenth has none. e_i: x_i, or for factors the product of the scale and x_i. */
enum { N_DRAW = 240, K = 0, MU = 1, SLOPE = 2, FIRST = 3, N = 300, DIM = FIRST + N };

typedef enum kind {
    ABOUT_A_MEAN,
    REGRESSION,
    BOUNDED,
    FACTORS,
    BOUNDED_FACTORS,
    WALK,
    N_PROVED,
    STUDENT = N_PROVED, /* the prior of the members */
    STUDENT_FACTORS,
    IN_ERRORS, /* the scale of factors is that of an error as well */
    N_KIND
} kind;

typedef struct hierarchy {
    kind of;
    int64_t evaluations;
} hierarchy;

static bool are_factors(kind of)
{
    return of == FACTORS || of == BOUNDED_FACTORS || of == STUDENT_FACTORS || of == IN_ERRORS;
}

static bool is_bounded(kind of)
{
    return of == BOUNDED || of == BOUNDED_FACTORS;
}

static bool has_student_prior(kind of)
{
    return of == STUDENT || of == STUDENT_FACTORS;
}

static double precision_of(int i)
{
    return i % 10 == 9 ? 0 : 2 + i % 7;
}

static double centre_of(int i)
{
    return 0.5 * sin(2.0 * i + 1);
}

static double coefficient_of(kind of, int i)
{
    return of == REGRESSION ? cos(i + 0.5) : 0;
}

static double log_scale_of(kind of, const double *x, double *slope)
{
    return em_log_scale(is_bounded(of) ? EM_SCALE_LOGISTIC : EM_SCALE_EXP, x[K], slope);
}

/* The location of member i by its prior. */
static double location_of(kind of, const double *x, int i)
{
    if (are_factors(of))
        return 0;
    return of == WALK && i > 0 ? x[FIRST + i - 1] : x[MU] + coefficient_of(of, i) * x[SLOPE];
}

/* Adds the derivatives of the prior of member i by the member, its location and the scale. */
static void add_prior(kind of, int i, double scale, double slope, const double *x, double *g)
{
    const double r = (x[FIRST + i] - location_of(of, x, i)) / scale;
    const double force = (has_student_prior(of) ? 5 * r / (4 + r * r) : r) / scale;

    g[FIRST + i] -= force;
    if (are_factors(of))
        return;
    g[K] += slope * (force * r * scale - 1);
    g[of == WALK && i > 0 ? FIRST + i - 1 : MU] += force;
    g[SLOPE] += coefficient_of(of, i) * force;
}

static void gradient_at(kind of, const double *x, double *g)
{
    double slope;
    const double scale = exp(log_scale_of(of, x, &slope));

    memset(g, 0, DIM * sizeof *g);
    g[K] = -(x[K] + 1) / 0.16;
    g[MU] = -x[MU];
    g[SLOPE] = -x[SLOPE];
    for (int i = 0; i < N; i++) {
        const double by_x = are_factors(of) ? scale : 1, effect = by_x * x[FIRST + i];
        const double by_effect = -precision_of(i) * (effect - centre_of(i));
        add_prior(of, i, are_factors(of) ? 1 : scale, slope, x, g);
        g[FIRST + i] += by_x * by_effect;
        g[K] += are_factors(of) ? slope * by_effect * effect : 0;
    }
    if (of == IN_ERRORS) {
        g[K] += exp(-2 * x[K]) * pow(x[MU] - 2, 2) - 1;
        g[MU] -= exp(-2 * x[K]) * (x[MU] - 2);
    }
}

static em_status evaluate(void *context, int64_t n, const double *theta, double *gradient)
{
    hierarchy *h = context;

    h->evaluations += n;
    for (int64_t r = 0; r < n; r++)
        gradient_at(h->of, theta + r * DIM, gradient + r * DIM);
    return EM_OK;
}

/* The mean and the standard deviation of member i given the others, with normal data. */
static void condition(kind of, const double *x, int i, double *mean, double *sd)
{
    const double scale = exp(log_scale_of(of, x, NULL)), by_x = are_factors(of) ? scale : 1;
    const double prior = are_factors(of) ? 1 : 1 / (scale * scale);
    const double data = precision_of(i) * by_x * by_x;

    *sd = 1 / sqrt(prior + data);
    *mean = (prior * location_of(of, x, i) + data * centre_of(i) / by_x) / (prior + data);
}

static void draw(kind of, uint64_t seed, double sample[][2][DIM])
{
    for (int64_t n = 0; n < N_DRAW; n++) {
        const em_stream stream = {seed, (uint64_t)n, 0, EM_RNG_TEST};
        double *x = sample[n][0];
        _Alignas(64) double z[DIM];
        em_normals(&stream, DIM, z);
        x[K] = -1 + 0.4 * z[K];
        x[MU] = 0.3 * z[MU];
        x[SLOPE] = 0.3 * z[SLOPE];
        for (int i = 0; i < N; i++) {
            double mean, sd;
            condition(of, x, i, &mean, &sd);
            x[FIRST + i] = mean + sd * z[FIRST + i];
        }
        gradient_at(of, x, sample[n][1]);
    }
}

/* Proves what there is, as warmup does. */
static void prove(hierarchy *h, const em_samples *samples, em_normal_prior *prior)
{
    const em_gradient_function gradient = {evaluate, h};
    int64_t length[DIM] = {1, 1, 1};

    for (int i = FIRST; i < DIM; i++)
        length[i] = N;
    for (int pass = 0; pass < 2; pass++)
        ck_assert_int_eq(em_prove_priors(DIM, samples, &gradient, length, prior), EM_OK);
    ck_assert_int_eq(em_prove_factors(DIM, samples, &gradient, prior), EM_OK);
    ck_assert_int_le(h->evaluations, 100);
}

static void check_prior(kind of, int i, const em_normal_prior *found)
{
    double left = coefficient_of(of, i);

    ck_assert(found->scale == K && found->second_degree == 0 && found->varies == 0);
    ck_assert_double_eq_tol(found->precision, 1, 1e-4);
    ck_assert_double_eq_tol(found->degree, 1, 1e-6);
    ck_assert(found->form == (of == FACTORS           ? EM_SCALE_OF_FACTOR
                              : of == BOUNDED_FACTORS ? EM_SCALE_OF_LOGISTIC_FACTOR
                              : of == BOUNDED         ? EM_SCALE_LOGISTIC
                                                      : EM_SCALE_EXP));
    ck_assert((found->location[0] < 0) == are_factors(of));
    for (int j = 0; j < EM_MOST_LOCATIONS && found->location[j] >= 0; j++) {
        const int of_prior = of == WALK && i > 0 ? FIRST + i - 1 : MU;
        ck_assert(found->location[j] == of_prior || found->location[j] == SLOPE);
        if (found->location[j] == SLOPE)
            left -= found->coefficient[j];
        else
            ck_assert_double_eq_tol(found->coefficient[j], 1, 1e-4);
    }
    ck_assert_double_eq_tol(left, 0, 1e-4);
}

START_TEST(few_gradients_prove_many_members)
{
    static double sample[N_DRAW][2][DIM];
    const kind of = (kind)(_i % N_KIND);
    const em_samples samples = {N_DRAW, &sample[0][0][0]};
    hierarchy h = {of, 0};
    static em_normal_prior prior[DIM];

    draw(of, (uint64_t)(_i / N_KIND) + 1, sample);
    prove(&h, &samples, prior);
    for (int i = 0; i < DIM; i++) {
        /* a factor that has no data is none */
        const bool is_proved =
            of < N_PROVED && i >= FIRST && !(are_factors(of) && precision_of(i - FIRST) == 0);
        ck_assert_msg((prior[i].precision > 0) == is_proved, "kind %d, parameter %d", of, i);
        if (is_proved)
            check_prior(of, i - FIRST, &prior[i]);
    }
}
END_TEST

/* The coordinates are members less their conditional means, over their conditional standard
 * deviations, where no draw has been too. Those of a prior are in units of its scale at the mean of
 * draws. */
START_TEST(coordinates_are_those_of_the_conditional_laws)
{
    static double sample[N_DRAW][2][DIM];
    const kind of = (kind)(_i % WALK);
    const em_samples samples = {N_DRAW, &sample[0][0][0]};
    hierarchy h = {of, 0};
    const em_gradient_function gradient = {evaluate, &h};
    static em_normal_prior prior[DIM];
    static em_noncentring_row row[DIM];
    em_noncentring map;
    double middle[1] = {0};
    int64_t n_child;

    draw(of, (uint64_t)(_i / WALK) + 1, sample);
    prove(&h, &samples, prior);
    ck_assert_int_eq(em_noncentring_of_many(DIM, &samples, &gradient, prior, row, &n_child), EM_OK);
    ck_assert_int_eq((int)n_child, are_factors(of) ? N - N / 10 : N);
    ck_assert_int_le(h.evaluations, 120);
    ck_assert_int_eq(em_noncentring_create(DIM, &map), EM_OK);
    ck_assert_int_eq(em_noncentring_set(&map, row), EM_OK);
    for (int n = 0; n < N_DRAW; n++)
        middle[K] += sample[n][0][K] / N_DRAW;
    const double unit = are_factors(of) ? 1 : exp(log_scale_of(of, middle, NULL));
    for (int n = -2; n <= 2; n++) {
        double x[DIM], z[DIM];
        for (int i = 0; i < DIM; i++)
            x[i] = 0.7 * cos(i);
        x[K] = -1 + n;
        memcpy(z, x, sizeof z);
        em_noncentring_from_model(&map, z, NULL);
        for (int i = 0; i < N; i++) {
            double mean, sd;
            condition(of, x, i, &mean, &sd);
            const double expected = unit * (x[FIRST + i] - mean) / sd;
            ck_assert_double_eq_tol(z[FIRST + i], expected, 1e-3 * (1 + fabs(expected)));
        }
    }
    em_noncentring_release(&map);
}
END_TEST

/* A walk is mapped together, by the conditional law of all members: its derivatives in z are -z. */
START_TEST(a_walk_is_mapped_together)
{
    static double sample[N_DRAW][2][DIM];
    const em_samples samples = {N_DRAW, &sample[0][0][0]};
    hierarchy h = {WALK, 0};
    const em_gradient_function gradient = {evaluate, &h};
    static em_normal_prior prior[DIM];
    static em_noncentring_row row[DIM];
    em_noncentring map;
    int64_t n_child;

    draw(WALK, (uint64_t)_i + 1, sample);
    prove(&h, &samples, prior);
    ck_assert_int_eq(em_noncentring_of_many(DIM, &samples, &gradient, prior, row, &n_child), EM_OK);
    ck_assert_int_eq(em_noncentring_create(DIM, &map), EM_OK);
    ck_assert_int_eq(em_noncentring_set(&map, row), EM_OK);
    ck_assert_int_ge((int)em_noncentring_count(&map).joint, N);
    for (int n = -2; n <= 2; n++) {
        double z[DIM], g[DIM];
        for (int i = 0; i < DIM; i++)
            z[i] = 0.7 * cos(i);
        z[K] = -1 + n;
        gradient_at(WALK, z, g);
        em_noncentring_from_model(&map, z, map.at);
        em_noncentring_pull(&map, z, map.at, g);
        for (int i = FIRST; i < DIM; i++)
            ck_assert_double_eq_tol(g[i], -z[i], 1e-3 * (1 + fabs(z[i])));
    }
    em_noncentring_release(&map);
}
END_TEST

int main(void)
{
    TCase *many = tcase_create("many parameters");

    tcase_add_loop_test(many, few_gradients_prove_many_members, 0, 4 * N_KIND);
    tcase_add_loop_test(many, coordinates_are_those_of_the_conditional_laws, 0, 4 * WALK);
    tcase_add_loop_test(many, a_walk_is_mapped_together, 0, 4);
    return run_case(many, CK_FORK);
}
