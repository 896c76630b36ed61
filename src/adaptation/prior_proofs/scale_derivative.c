/*
 * If parameters have a normal prior with a common scale e^(a x_k), the log density is
 *
 *     - e^(-2 a x_k) Q(x) / 2 + (a function of x_k) + (a function of all other parameters),
 *
 * where Q(x) = x^T M x is the sum of squares of members less their means, and the last term
 * includes the data. So the derivatives H_i of its derivative g_k by the other x_i are
 *
 *     H_i = 2 a e^(-2 a x_k) (M x)_i,    g_k = sum_i x_i H_i / 2 + (a function of x_k).
 *
 * These are identities. They hold whatever the data are, and at every position. The second one
 * tests whether x_k is a log scale at a few draws, and linear regression finds M. A triangular
 * factor of M then has the members, their precisions and their means. H_i is computed as a
 * difference of gradients. If the scale is another function e^F of x_k (em_scale_form), the factor
 * is F' e^(-2 F) in place of a e^(-2 a x_k).
 *
 * If M depends on one more parameter, the second identity holds without its term. M is then found
 * at positions at which this parameter has its mean. The parameter may be a second log scale, of
 * which M is an exponential.
 */
#include "adaptation/prior_proofs/scale_derivative.h"

#include "adaptation/prior_proofs/draw_columns.h"
#include "adaptation/prior_proofs/scale_test.h"
#include "adaptation/prior_proofs/without_prior.h"
#include "base/memory.h"

#include <math.h>

enum {
    CORRELATED = 400, /* draws for correlations */
    MOST_SCALES = 16, /* that are tested at one time */
    MOST_FAILURES = 2 /* after which a parameter is tested no more */
};

/* The least skewness of g_k, which contains a sum of squares. That of many squares is small, but
 * then the logs of many derivatives are correlated with x_k: the least sum of squared correlations.
 * And what a failure and each parameter of a vector count more than both together. */
static const double least_skewness = 0.3, least_correlation = 0.5, a_failure = 1e9, a_number = 1e4;

/* The size of the skewness of the derivatives by parameter k. */
static double skewness(const em_scale_test *t, int64_t k)
{
    const double n = (double)t->samples->n;
    double mean, sd, square = 0, cube = 0;

    em_sample_moments(t->dim, t->samples, t->dim + k, &mean, &sd);
    for (int64_t r = 0; r < t->samples->n; r++) {
        const double off = em_scale_test_draw(t, r)[t->dim + k] - mean;
        square += off * off / n;
        cube += off * off * off / n;
    }
    return fabs(cube) / pow(square, 1.5);
}

/* Writes to out [dim] the sums over i of squared correlations of log |g_i| and each x_k. */
static em_status sum_correlations(const em_scale_test *t, double *out)
{
    const int64_t dim = t->dim, n = em_least(t->samples->n, CORRELATED);
    const int64_t first = t->samples->n - n;
    EM_SCOPED double *x = NULL, *g = NULL, *rho = NULL, *sd = NULL, *log_sd = NULL;
    em_status status =
        em_allocate_all(EM_ARRAY(x, dim * n), EM_ARRAY(g, dim * n), EM_ARRAY(rho, dim * dim),
                        EM_ARRAY(sd, dim), EM_ARRAY(log_sd, dim));

    for (int64_t i = 0; !status && i < dim; i++) {
        double mean;
        for (int64_t r = 0; r < n; r++) {
            x[i * n + r] = em_scale_test_draw(t, first + r)[i];
            g[i * n + r] = em_scale_test_draw(t, first + r)[dim + i];
        }
        sd[i] = em_centre_column(n, x + i * n, &mean);
    }
    status = status ? status : em_correlate_logs(dim, n, x, sd, g, log_sd, rho);
    for (int64_t i = 0; !status && i < dim; i++)
        for (int64_t k = 0; k < dim; k++)
            out[k] += pow(rho[i * dim + k], 2);
    return status;
}

/* Writes possible log scales to out [MOST_SCALES], those first that have failed in fewer tests,
 * then those of short vectors, and then those with the largest sums of squared correlations and
 * skewness. correlation [dim]: those sums. Returns their number. */
static int find_scales(const em_scale_test *t, const em_normal_prior *prior, const int64_t *length,
                       const double *correlation, bool *is_known, double *sd, int64_t *out)
{
    const int64_t dim = t->dim;
    double score[MOST_SCALES];
    int n = 0;

    for (int64_t i = 0; i < dim; i++)
        if (prior[i].precision > 0) {
            is_known[(int64_t)prior[i].scale] = true;
            if (prior[i].second_degree != 0)
                is_known[(int64_t)prior[i].second_scale] = true;
        }
    for (int64_t k = 0; k < dim; k++) {
        if (is_known[k] || prior[k].failures >= MOST_FAILURES ||
            (length && length[k] > MOST_SCALES))
            continue;
        double mean;
        em_sample_moments(dim, t->samples, k, &mean, &sd[k]);
        const double skew = skewness(t, k);
        const double late =
            a_failure * prior[k].failures + (length ? a_number * (double)length[k] : 0);
        if (sd[k] >= em_least_spread(dim) &&
            (skew >= least_skewness || correlation[k] > least_correlation))
            n = em_insert_by_score(n, MOST_SCALES, skew + correlation[k] - late, k, score, out);
    }
    return n;
}

/* Tests parameter k, if it has passed a first test, and adds the priors of its members. */
static em_status test_scale(em_scale_test *t, int64_t k, bool passes, em_normal_prior *prior)
{
    em_status status = passes ? em_scale_test_run(t, k, &passes) : EM_OK;

    if (!status && !passes)
        prior[k].failures++;
    else if (!status)
        status = em_scale_test_measure(t, &passes);
    return status || !passes ? status : em_add_members(t, prior);
}

/* Whether a parameter has a proved prior whose scale is a parameter. Its derivative then has
 * another term, so it is tested without that prior. */
static bool is_member(const em_normal_prior *prior)
{
    return prior->precision > 0 && prior->varies == 0;
}

static em_status test_member(const em_scale_test *t, int64_t k, const double *sd, bool *passes,
                             em_normal_prior *prior)
{
    em_scale_test own = *t;
    EM_SCOPED_BY(em_release_owned) em_owner memory = {NULL};
    em_without_prior without;
    em_status status =
        em_without_prior_create(&memory, t->dim, t->samples, t->gradients, k, &prior[k], &without);

    own.samples = &without.samples;
    own.gradients = &without.gradients;
    status = status ? status : em_scale_test_pairs(&own, 1, &k, sd, passes);
    return status ? status : test_scale(&own, k, passes[k], prior);
}

em_status em_prove_priors(int64_t dim, const em_samples *samples,
                          const em_gradient_function *gradient, const int64_t *length,
                          em_normal_prior *prior)
{
    EM_SCOPED_BY(em_release_owned) em_owner memory = {NULL};
    em_scale_test test;
    int64_t scale[MOST_SCALES], first[MOST_SCALES];
    bool *is_known, *passes;
    double *sd, *correlation;
    int n, n_first = 0;

    if (!em_suffices_for_proofs(dim, samples->n))
        return EM_OK;
    em_status status = em_scale_test_create(&memory, dim, samples, gradient, &test);
    status = status ? status
                    : em_own_all(&memory, EM_ARRAY(is_known, dim), EM_ARRAY(passes, dim),
                                 EM_ARRAY(sd, dim), EM_ARRAY(correlation, dim));
    status = status ? status : sum_correlations(&test, correlation);
    n = status ? 0 : find_scales(&test, prior, length, correlation, is_known, sd, scale);
    for (int q = 0; q < n; q++)
        if (!is_member(&prior[scale[q]]))
            first[n_first++] = scale[q];
    if (n_first > 0)
        status = em_scale_test_pairs(&test, n_first, first, sd, passes);
    for (int q = 0; !status && q < n; q++)
        status = is_member(&prior[scale[q]]) ? test_member(&test, scale[q], sd, passes, prior)
                                             : test_scale(&test, scale[q], passes[scale[q]], prior);
    return status;
}

void em_forget_narrow_scales(int64_t dim, const em_samples *samples, em_normal_prior *prior)
{
    for (int64_t i = 0; i < dim; i++) {
        double mean, sd = INFINITY;
        if (prior[i].precision > 0)
            em_sample_moments(dim, samples, (int64_t)prior[i].scale, &mean, &sd);
        if (sd < em_least_spread(dim))
            prior[i] = (em_normal_prior){0};
        prior[i].failures = 0;
    }
}
