/* What simulators are made of: parameters and their priors, answers, failures, and the log of
 * evaluations. */
#include "base/memory.h"
#include "emass/random.h"
#include "model/external/answer.h"
#include "model/external/evaluation_log.h"
#include "model/external/failures.h"
#include "model/external/parameters.h"
#include "support/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- parameters ---- */

static const char every_law[] =
    "{\"a\": {\"normal\": [1, 2]}, \"b\": {\"student_t\": [4, 1, 2]}, \"c\": {\"cauchy\": [0, 1]},"
    " \"d\": {\"uniform\": [-1, 3]}, \"e\": {\"exponential\": 2}, \"f\": {\"half_normal\": 3},"
    " \"g\": {\"half_student_t\": [3, 2]}, \"h\": {\"half_cauchy\": 1}, \"i\": {\"gamma\": [2, 3]},"
    " \"j\": {\"inverse_gamma\": [3, 2]}, \"k\": {\"normal\": [\"0\", \"1e0\"], \"size\": 3},"
    " \"l\": {}, \"m\": {\"lower\": 0, \"upper\": 2, \"size\": \"2\"}}";
enum { N_LAW = 13, N_PROPER = 11 };

START_TEST(parameters_have_their_laws)
{
    em_input *input = NULL;
    int64_t n = 0;

    ck_assert_int_eq(em_inputs_read(every_law, &n, &input), EM_OK);
    ck_assert_int_eq(n, N_LAW);
    ck_assert_int_eq(input[10].size, 3);
    ck_assert(!input[10].scalar && input[0].scalar);
    ck_assert_int_eq(input[12].size, 2);
    ck_assert_int_eq(input[12].bounds.constraint, EM_BETWEEN);
    for (int64_t i = 0; i < n; i++)
        ck_assert_int_eq(em_input_is_proper(&input[i]), i < N_PROPER);
    em_inputs_release(n, &input);
}
END_TEST

/* The density integrates to 1, and its slope is that of central differences. */
START_TEST(priors_are_normalised)
{
    em_input *input = NULL;
    int64_t n = 0;

    ck_assert_int_eq(em_inputs_read(every_law, &n, &input), EM_OK);
    const em_input *law = &input[_i];
    const bool positive = law->bounds.constraint == EM_LOWER;
    const double constant = em_input_log_constant(law);
    double sum = 0, slope, ignored;

    if (law->uniform)
        sum = exp(constant) * (law->bounds.upper - law->bounds.lower);
    for (int k = 0; !law->uniform && k < 400000; k++) { /* x = sinh t, or e^t */
        const double t = -20 + 40 * (k + 0.5) / 400000, x = positive ? exp(t) : sinh(t);
        sum += exp(em_input_log_prior(law, x, &slope) + constant) * (positive ? x : cosh(t)) * 1e-4;
    }
    ck_assert_double_lt(fabs(sum - 1), 1e-4);
    const double x = 0.8, h = 1e-6, up = em_input_log_prior(law, x + h, &ignored);
    em_input_log_prior(law, x, &slope);
    ck_assert_double_lt(fabs(slope - (up - em_input_log_prior(law, x - h, &ignored)) / (2 * h)),
                        1e-7);
    em_inputs_release(n, &input);
}
END_TEST

/* By the mean of tanh x, in standard errors, against the density itself. */
START_TEST(draws_have_the_prior)
{
    enum { N_DRAW = 20000 };
    em_input *input = NULL;
    int64_t n = 0;
    double mean = 0, square = 0, norm = 0, expected = 0, slope;

    ck_assert_int_eq(em_inputs_read(every_law, &n, &input), EM_OK);
    const em_input *law = &input[_i];
    const bool positive = law->bounds.constraint == EM_LOWER;
    for (int64_t k = 0; k < N_DRAW; k++) {
        const em_draw draw = {5, 0, k, EM_DRAW_PRIOR};
        em_variate v = {&draw, 0};
        const double f = tanh(em_input_draw(law, &v));
        mean += f / N_DRAW;
        square += f * f / N_DRAW;
    }
    for (int k = 0; k < 400000; k++) {
        const double t = -20 + 40 * (k + 0.5) / 400000;
        const double x = law->uniform ? -1 + 4 * (t + 20) / 40 : positive ? exp(t) : sinh(t);
        const double w = exp(em_input_log_prior(law, x, &slope)) * (law->uniform ? 1
                                                                    : positive   ? x
                                                                                 : cosh(t));
        norm += w;
        expected += w * tanh(x);
    }
    ck_assert_double_lt(fabs(mean - expected / norm), 4 * sqrt((square - mean * mean) / N_DRAW));
    em_inputs_release(n, &input);
}
END_TEST

START_TEST(wrong_parameters_are_refused)
{
    static const char *const wrong[] = {
        "[]",
        "{}",
        "3",
        "{\"a\": 1}",
        "{\"a\": {\"normal\": 1}}",
        "{\"a\": {\"normal\": [0, 0]}}",
        "{\"a\": {\"normal\": [0, \"x\"]}}",
        "{\"a\": {\"normal\": [0, 1], \"cauchy\": [0, 1]}}",
        "{\"a\": {\"normal\": [0, 1], \"lower\": 0}}",
        "{\"a\": {\"lower\": 1, \"upper\": 1}}",
        "{\"a\": {\"size\": 0}}",
        "{\"a\": {\"size\": 1.5}}",
        "{\"a\": {\"uniform\": [2, 2]}}",
        "{\"a\": {\"gaussian\": [0, 1]}}",
        "{\"a\": {\"normal\": [0, 1e999]}}",
        "{\"a\": ",
    };

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        em_input *input = NULL;
        int64_t n = 0;
        ck_assert_msg(em_inputs_read(wrong[i], &n, &input) == EM_ECONFIG, "%s", wrong[i]);
        ck_assert_msg(strstr(em_error_text(), "model.parameters"), "%s", em_error_text());
        em_inputs_release(n, &input);
    }
}
END_TEST

/* ---- answers ---- */

START_TEST(words_are_numbers)
{
    char text[] =
        "{\"x\": [1, NaN, -Infinity, Infinity, null, -2.5e3], \"NaN\": \"NaN, \\\"Infinity\"}";
    char wrong[] = "{\"x\": Nan}", cut[] = "{\"x\": [1, Na";
    char printed[] =
        "{\"x\": [nan, -nan, inf, -inf], \"inf\": \"nan\"}"; /* as printf writes them */
    double x[6];
    json_t *answer = em_answer_parse(text);

    ck_assert_ptr_nonnull(answer);
    ck_assert(em_answer_numbers(json_object_get(answer, "x"), 6, x));
    ck_assert(x[0] == 1 && isnan(x[1]) && x[2] == -INFINITY && x[3] == INFINITY && isnan(x[4]) &&
              x[5] == -2500);
    ck_assert(!em_answer_numbers(json_object_get(answer, "x"), 5, x));
    ck_assert_str_eq(json_string_value(json_object_get(answer, "NaN")), "NaN, \"Infinity");
    ck_assert(!em_answer_number(json_object_get(answer, "NaN"), x));
    ck_assert(!em_answer_numbers(NULL, 1, x));
    json_decref(answer);
    answer = em_answer_parse(printed);
    ck_assert(em_answer_numbers(json_object_get(answer, "x"), 4, x));
    ck_assert(isnan(x[0]) && isnan(x[1]) && x[2] == INFINITY && x[3] == -INFINITY);
    ck_assert_str_eq(json_string_value(json_object_get(answer, "inf")), "nan");
    json_decref(answer);
    ck_assert_ptr_null(em_answer_parse(wrong));
    ck_assert_ptr_null(em_answer_parse(cut));
}
END_TEST

/* ---- failures ---- */

START_TEST(failures_are_counted_and_the_first_listed)
{
    const em_model_context context = {.first_chain = 10, .n_chain = 2};
    const double x[] = {0.1, INFINITY};
    em_failures *failures = NULL;

    ck_assert_int_eq(em_failures_create(&context, &failures), EM_OK);
    ck_assert_str_eq(failures->first, "");
    for (int i = 0; i < 7; i++)
        em_failures_add(failures, 11, 2, x, i == 0 ? "it says \"no\"" : "again");
    ck_assert_double_eq(failures->count[0], 0);
    ck_assert_double_eq(failures->count[1], 7);
    ck_assert_str_eq(failures->first, "it says \"no\"");
    const char *text = (const char *)failures->text + EM_MOST_FAILURES * EM_FAILURE_BYTES;
    ck_assert_str_eq(text,
                     "{\"chain\": 11, \"position\": [0.1, null], \"why\": \"it says \\\"no\\\"\"}");
    for (int i = 0; i < EM_MOST_FAILURES; i++)
        ck_assert(text[i * EM_FAILURE_BYTES] == '{');
    em_failures_add(failures, 5, 2, x, "a copy of a tempered chain"); /* 5 mod 2 */
    ck_assert_double_eq(failures->count[1], 8);
    em_release_owner(&failures);
}
END_TEST

/* ---- the log ---- */

START_TEST(the_log_knows_what_it_has)
{
    enum { N = 3000 };
    char path[] = "/tmp/emass_log_XXXXXX";
    em_evaluation_log *log = NULL;
    double output[2], gradient[1];

    close(mkstemp(path));
    ck_assert_int_eq(em_evaluation_log_open(path, 1, 2, &log), EM_OK);
    for (int i = 0; i < N; i++) {
        const double x = 1 / (1.0 + i);
        em_evaluation e = {.chain = i, .x = &x, .output = output, .seconds = 0.5};
        ck_assert(!em_evaluation_log_find(log, &e));
        output[0] = -x / 3, output[1] = i % 2 ? -INFINITY : 1e300;
        gradient[0] = x * x;
        e.gradient = i % 3 == 0 ? gradient : NULL;
        snprintf(e.why, sizeof e.why, "%s", i % 5 == 0 ? "no \"mesh\"" : "");
        ck_assert_int_eq(em_evaluation_log_add(log, &e), EM_OK);
    }
    em_evaluation_log_close(&log);
    FILE *cut = fopen(path, "a");
    fputs("{\"chain\": 1, \"x\": [0.12345], \"outp", cut);
    fclose(cut);
    for (int again = 0; again < 2; again++) {
        ck_assert_int_eq(em_evaluation_log_open(path, 1, 2, &log), EM_OK);
        for (int i = 0; i < N; i++) {
            const double x = 1 / (1.0 + i);
            em_evaluation e = {.chain = i, .x = &x, .output = output};
            ck_assert(em_evaluation_log_find(log, &e));
            ck_assert_str_eq(e.why, i % 5 == 0 ? "no \"mesh\"" : "");
            ck_assert(i % 5 == 0 ||
                      (output[0] == -x / 3 && output[1] == (i % 2 ? -INFINITY : 1e300)));
            e.gradient = gradient;
            ck_assert(em_evaluation_log_find(log, &e) == (i % 3 == 0 || i % 5 == 0));
            ck_assert(i % 3 != 0 || i % 5 == 0 || gradient[0] == x * x);
        }
        em_evaluation_log_close(&log);
    }
    FILE *in = fopen(path, "r"); /* every line has a record, but the one that was cut short */
    char *line = NULL;
    size_t size = 0;
    int whole = 0, others = 0;
    while (getline(&line, &size, in) > 0)
        *(strstr(line, "}\n") ? &whole : &others) += 1;
    free(line);
    fclose(in);
    ck_assert_int_eq(whole, N);
    ck_assert_int_eq(others, 1);
    ck_assert_int_eq(em_evaluation_log_open(path, 4, 2, &log), EM_ECONFIG); /* another model's */
    em_evaluation_log_close(&log);
    unlink(path);
}
END_TEST

int main(void)
{
    TCase *parts = tcase_create("simulator");

    tcase_set_timeout(parts, 60);
    tcase_add_test(parts, parameters_have_their_laws);
    tcase_add_loop_test(parts, priors_are_normalised, 0, N_PROPER);
    tcase_add_loop_test(parts, draws_have_the_prior, 0, N_PROPER);
    tcase_add_test(parts, wrong_parameters_are_refused);
    tcase_add_test(parts, words_are_numbers);
    tcase_add_test(parts, failures_are_counted_and_the_first_listed);
    tcase_add_test(parts, the_log_knows_what_it_has);
    return run_case(parts, CK_FORK);
}
