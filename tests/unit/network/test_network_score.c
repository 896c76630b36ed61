/* Scores of predictions. */
#include "network/network_score.h"

#include <check.h>
#include <math.h>

#include "support/tap.h"

/* Three observations of two classes, by hand. */
START_TEST(scores_of_predictions)
{
    static const double p[] = {0.9, 0.1, 0.6, 0.4, 0.2, 0.8}, label[] = {0, 1, 1};
    const em_score all = em_score_of(3, 2, p, label, EM_ALL_CLASSES),
                   one = em_score_of(3, 2, p, label, 1);

    ck_assert_double_eq_tol(all.accuracy, 2. / 3, 1e-15);
    ck_assert_double_eq_tol(all.nll, -log(0.9 * 0.4 * 0.8) / 3, 1e-15);
    ck_assert_double_eq_tol(all.brier, (0.02 + 0.72 + 0.08) / 3, 1e-15);
    ck_assert_double_eq_tol(all.ece, (0.1 + 0.6 + 0.2) / 3, 1e-15);
    ck_assert_double_eq_tol(one.accuracy, 0.5, 1e-15);
    ck_assert_double_eq_tol(one.nll, -log(0.4 * 0.8) / 2, 1e-15);
    ck_assert_double_eq_tol(one.ece, (0.1 + 0.6 + 0.2) / 3, 1e-15);
    ck_assert(isnan(em_score_of(2, 2, p, label + 1, 0).nll));
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("network_score");

    tcase_add_test(tests, scores_of_predictions);
    return run_case(tests, CK_FORK_GETENV);
}
