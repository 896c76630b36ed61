/* The words of a verdict: each number beside its limit, so that both can be told apart. */
#include "run/convergence/verdict.h"
#include "support/tap.h"

#include <math.h>
#include <string.h>

static const char *words_of(double r_hat, double ess, char text[512])
{
    const em_evidence e = {.r_hat = r_hat,
                           .ess = ess,
                           .r_hat_limit = 1.01,
                           .ess_limit = 400,
                           .n_iteration = 4000,
                           .findings = {.e_bfmi = NAN, .modes = {.count = 1}},
                           .mode_search_log_mass = NAN};

    em_verdict_word(&e, 512, text);
    return text;
}

START_TEST(rounding_does_not_hide_a_reason)
{
    char text[512];

    ck_assert_str_eq(words_of(1.0052, 812.4, text),
                     "converged: worst R-hat 1.005 (limit 1.01), smallest ESS 812 (limit 400)");
    ck_assert_ptr_nonnull(
        strstr(words_of(1.0102, 812.4, text), "not converged: worst R-hat 1.0102 (limit 1.01)"));
    ck_assert_ptr_nonnull(strstr(words_of(1.01, 812.4, text), "worst R-hat 1.010 (limit 1.01)"));
    ck_assert_ptr_nonnull(
        strstr(words_of(1.0052, 399.97, text), "smallest ESS 399.97 (limit 400)"));
}
END_TEST

/* The only topic of a corpus has the share 1 in all draws. A trajectory that never moves is worse.
 */
START_TEST(constants_converge_where_no_energy_moves_them)
{
    em_evidence e = {.r_hat = NAN,
                     .ess = NAN,
                     .r_hat_limit = 1.01,
                     .ess_limit = 400,
                     .undefined = true,
                     .constant = true,
                     .findings = {.e_bfmi = NAN, .modes = {.count = 1}},
                     .mode_search_log_mass = NAN};
    char text[512];

    em_verdict_word(&e, sizeof text, text);
    ck_assert_str_eq(
        text, "converged: all monitored numbers are constant, so chains cannot differ in them");
    e.findings.n_still = 1;
    ck_assert_int_eq(em_verdict_of(&e), EM_NOT_CONVERGED);
    e.findings.n_still = 0;
    e.findings.e_bfmi = 0.9;
    em_verdict_word(&e, sizeof text, text);
    ck_assert_ptr_nonnull(strstr(text, "not converged: worst R-hat undefined (limit 1.01)"));
    e.findings.e_bfmi = NAN;
    e.constant = false;
    ck_assert_int_eq(em_verdict_of(&e), EM_NOT_CONVERGED);
}
END_TEST

/* Kernels without an energy, as the slice sampler, have no divergences: none are counted. */
START_TEST(divergences_are_counted_where_there_is_an_energy)
{
    em_evidence e = {.r_hat = 1,
                     .ess = 900,
                     .r_hat_limit = 1.01,
                     .ess_limit = 400,
                     .n_iteration = 4000,
                     .findings = {.e_bfmi = NAN, .modes = {.count = 1}},
                     .mode_search_log_mass = NAN};
    char text[512];

    em_verdict_word(&e, sizeof text, text);
    ck_assert_ptr_null(strstr(text, "divergence"));
    e.findings.e_bfmi = 0.9;
    em_verdict_word(&e, sizeof text, text);
    ck_assert_ptr_nonnull(strstr(text, ", 0 divergences"));
    e.findings.e_bfmi = NAN;
    e.is_tempered = true;
    em_verdict_word(&e, sizeof text, text);
    ck_assert_ptr_nonnull(strstr(text, ", 0 divergences"));
    e.is_tempered = false;
    e.divergences = 1;
    em_verdict_word(&e, sizeof text, text);
    ck_assert_ptr_nonnull(strstr(text, ", 1 divergence (limit 4)"));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("verdict");

    tcase_add_test(tests, rounding_does_not_hide_a_reason);
    tcase_add_test(tests, constants_converge_where_no_energy_moves_them);
    tcase_add_test(tests, divergences_are_counted_where_there_is_an_energy);
    return run_case(tests, CK_FORK);
}
