/*
 * The optimisers, step by step, beside the textbook's form of them; and psgld, whose law on a
 * normal is exp(-U) with all of its correction and exp(-U) / G without.
 */
#include "support/kernel_bench.h"
#include "support/on_grid.h"

static em_grid *grid;

/* ---- optimisers ---- */

enum { DIM = 3, STEPS = 60 };

/* Of one parameter: x goes down the gradient `d` of the loss -log p / N; `a`, `b` begin as 0. */
typedef struct textbook {
    double x, a, b;
} textbook;

typedef void textbook_step(textbook *s, double d, int t);

static void textbook_sgd(textbook *s, double d, int t)
{
    (void)t;
    s->a = 0.9 * s->a + d * N_ROW; /* of a loss that is the sum */
    s->x -= 0.01 * s->a;
}

static void textbook_rmsprop(textbook *s, double d, int t)
{
    (void)t;
    s->b = 0.9 * s->b + 0.1 * d * d;
    s->x -= 0.01 * d / (sqrt(s->b) + 1e-3);
}

static void textbook_adam(textbook *s, double d, int t)
{
    s->a = 0.8 * s->a + 0.2 * d;
    s->b = 0.95 * s->b + 0.05 * d * d;
    s->x -= 0.02 / (1 - pow(0.8, t)) * s->a / (sqrt(s->b) / sqrt(1 - pow(0.95, t)) + 1e-3);
}

static const struct {
    const char *sampler;
    textbook_step *step;
} optimisers[] = {
    {"name: sgd, step_size: 0.01, momentum: 0.9", textbook_sgd},
    {"name: rmsprop, step_size: 0.01, square_decay: 0.9, delta: 1e-3", textbook_rmsprop},
    {"name: adam, step_size: 0.02, momentum: 0.8, square_decay: 0.95, delta: 1e-3", textbook_adam},
};
enum { N_OPTIMISER = sizeof optimisers / sizeof *optimisers };

/* -grad log p / N of all rows */
static void losses(const textbook *s, double *d)
{
    for (int i = 0; i < DIM; i++) {
        d[i] = 0;
        for (int j = 0; j < DIM; j++)
            d[i] += law_of_three.precision[i][j] * (s[j].x - law_of_three.mean[j]) / N_ROW;
    }
}

/* The largest distance of a chain of the kernel from the textbook's way, over the length of that.
 */
static double distance_from(const char *sampler, textbook_step *step)
{
    noisy_model model = noisy_model_of(&law_of_three, 0.4);
    textbook at[DIM] = {{0}};
    double d[DIM], worst = 0, length = 0;
    char text[256];
    em_mass *mass = NULL;
    em_config *config = NULL;
    kernel_bench b;

    snprintf(text, sizeof text, "%s, minibatch: all, leapfrog_steps: 2", strchr(sampler, 'n'));
    ck_assert_int_eq(em_mass_identity(EM_MASS_DIAG, DIM, &mass), EM_OK);
    char whole[512];
    snprintf(whole, sizeof whole, "model: {name: gaussian}\nsampler: {%s}\n", text);
    ck_assert_msg(em_config_parse("test.yaml", whole, 0, NULL, &config) == EM_OK, "%s",
                  em_error_text());
    const kernel_run run = {.ops = config->sampler,
                            .options = config->sampler_options,
                            .mass = mass,
                            .step_size =
                                ((em_sampler_options *)config->sampler_options)->step_size};
    ck_assert(run.ops->optimises);
    bench_open(&model.law.base, grid, &run, &b);
    bench_start(&b);
    for (int t = 1; t <= STEPS; t++) {
        losses(at, d);
        for (int i = 0; i < DIM; i++)
            step(&at[i], d[i], t);
        if (t % 2)
            continue;
        const em_step_context context = bench_context(&b, t / 2 - 1);
        ck_assert_int_eq(run.ops->step(b.sampler, &context, b.block), EM_OK);
        for (int c = 0; c < N_CHAIN; c++)
            for (int i = 0; i < DIM; i++)
                worst = fmax(worst, fabs(b.block->theta[c * b.block->stride + i] - at[i].x));
    }
    for (int i = 0; i < DIM; i++)
        length = fmax(length, fabs(at[i].x));
    bench_close(&b);
    em_config_destroy(&config);
    em_mass_destroy(&mass);
    return worst / length;
}

START_TEST(steps_are_the_textbooks)
{
    ck_assert_double_lt(distance_from(optimisers[_i].sampler, optimisers[_i].step), 1e-12);
    ck_assert_double_gt(
        distance_from(optimisers[_i].sampler, optimisers[(_i + 1) % N_OPTIMISER].step), 1e-3);
}
END_TEST

/* ---- psgld ---- */

enum { MANY = LAW_MOST_DIM };

/* E theta^2 under exp(-theta^2 / 2) (lambda + |theta|)^power, by the trapezoid rule. */
static double mean_square(double lambda, double power)
{
    double weight = 0, square = 0;

    for (double x = -12; x <= 12; x += 1e-3) {
        const double w = exp(-x * x / 2) * pow(lambda + fabs(x), power);
        weight += w;
        square += w * x * x;
    }
    return square / weight;
}

/* Mean of theta^2 over all coordinates and chains, and its standard error by those of the chains.
 */
static double run_psgld(const char *options, double *error)
{
    gaussian_law normal = {.dim = MANY};
    double mean = 0, square = 0;
    char text[256];
    em_mass *mass = NULL;
    enum { SEEDS = 4, ITERATIONS = 6000, N = SEEDS * N_CHAIN };

    for (int i = 0; i < MANY; i++)
        normal.precision[i][i] = 1;
    law_model model = law_model_of(&normal);
    ck_assert_int_eq(em_mass_identity(EM_MASS_DIAG, MANY, &mass), EM_OK);
    snprintf(text, sizeof text,
             "name: psgld, lambda: 1, square_decay: 0.8, step_size: 0.01, leapfrog_steps: 20, %s",
             options);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        em_config *config = NULL;
        kernel_bench b;
        const kernel_run run = configured(text, mass, NULL, seed, &config);
        double of_chain[N_CHAIN] = {0};
        bench_open(&model.base, grid, &run, &b);
        for (int c = 0; c < N_CHAIN; c++)
            law_draw(&normal, seed, c, b.block->theta + c * b.block->stride);
        bench_start(&b);
        for (int64_t t = -100; t < ITERATIONS; t++) {
            const em_step_context context = bench_context(&b, t + 100);
            ck_assert_int_eq(run.ops->step(b.sampler, &context, b.block), EM_OK);
            for (int c = 0; t >= 0 && c < N_CHAIN; c++)
                for (int i = 0; i < MANY; i++) {
                    const double x = b.block->theta[c * b.block->stride + i];
                    of_chain[c] += x * x / (MANY * ITERATIONS);
                }
        }
        for (int c = 0; c < N_CHAIN; c++) {
            mean += of_chain[c] / N;
            square += of_chain[c] * of_chain[c] / N;
        }
        bench_close(&b);
        em_config_destroy(&config);
    }
    em_mass_destroy(&mass);
    *error = sqrt((square - mean * mean) / (N - 1));
    return mean;
}

/*
 * With U = theta^2 / 2 and exact gradients h = -theta, so that v -> theta^2 and 1 / G = 1 +
 * |theta|: E theta^2 is 1 with all of Gamma, and 1.444 without. What the step leaves is of order
 * eps, and of (eps / (1 - b)), the way that theta goes while v forgets: 0.05 here, of which a half
 * is allowed.
 */
START_TEST(psgld_has_its_law)
{
    double error;
    const double with = run_psgld("correction: true", &error);

    ck_assert_double_lt(fabs(with - mean_square(1, 0)), 4 * error + 0.025);
    const double without = run_psgld("correction: false", &error);
    ck_assert_double_lt(fabs(without - mean_square(1, 1)), 4 * error + 0.025);
    ck_assert_double_gt(fabs(without - mean_square(1, 0)), 4 * error + 0.025);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *tests = tcase_create("optimisers");

    tcase_set_timeout(tests, 60);
    tcase_add_loop_test(tests, steps_are_the_textbooks, 0, N_OPTIMISER);
    tcase_add_test(tests, psgld_has_its_law);
    return run_case_on_grid(tests, argc, argv, N_CHAIN, &grid);
}
