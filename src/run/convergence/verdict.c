#include "run/convergence/verdict.h"

#include "base/text.h"
#include "diagnostics/limits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

int64_t em_divergence_limit(const em_evidence *e)
{
    return e->n_iteration /
           (e->is_tempered ? EM_DRAWS_PER_TEMPERED_DIVERGENCE : EM_DRAWS_PER_DIVERGENCE);
}

/* Whether the posterior has no number that could differ, as the only topic of a corpus. A sampler
 * with an energy moves real numbers: if they are constant, it does not work. */
static bool nothing_varies(const em_evidence *e)
{
    return e->constant && isnan(e->findings.e_bfmi) && !e->is_tempered;
}

static bool has_failed(const em_evidence *e)
{
    const bool differ = !(e->r_hat <= e->r_hat_limit) || !(e->ess >= e->ess_limit) || e->undefined;

    return (differ && !nothing_varies(e)) || e->findings.n_still > 0 ||
           e->findings.modes.count > 1 || e->divergences > em_divergence_limit(e) ||
           e->mode_search_log_mass > EM_MISSED_LOG_MASS_LIMIT || e->tempering_failed ||
           e->optimiser;
}

static bool has_warnings(const em_evidence *e)
{
    return e->divergences > 0 || e->findings.e_bfmi < EM_E_BFMI_LIMIT ||
           e->findings.n_saturated > 0 || !isnan(e->mode_search_log_mass) || e->tempering;
}

em_verdict em_verdict_of(const em_evidence *e)
{
    return has_failed(e)     ? EM_NOT_CONVERGED
           : has_warnings(e) ? EM_CONVERGED_WITH_WARNINGS
                             : EM_CONVERGED;
}

/* Appends a number and its limit: "worst R-hat 1.003 (limit 1.01)". A number that only rounding
 * makes equal to its limit has more decimals. */
static void append_number(size_t bytes, char *text, const char *what, int decimals, double value,
                          double limit)
{
    char number[32];

    do
        snprintf(number, sizeof number, "%.*f", decimals++, value);
    while (value != limit && strtod(number, NULL) == limit && decimals < 10);
    em_append(bytes, text, "%s %s (limit %g)", what, isnan(value) ? "undefined" : number, limit);
}

/* Appends the findings that have no limit. */
static void append_findings(const em_evidence *e, size_t bytes, char *text)
{
    const em_findings *f = &e->findings;
    char modes[256];

    if (f->n_still > 0)
        em_append(bytes, text, "%lld chain%s stood still (up to %lld draws), ",
                  (long long)f->n_still, em_plural(f->n_still), (long long)f->longest_still);
    if (f->modes.count > 1) {
        em_modes_describe(&f->modes, sizeof modes, modes);
        em_append(bytes, text, "%s, ", modes);
    }
    if (f->n_growing > 0)
        em_append(bytes, text, "%lld number%s may be improper, ", (long long)f->n_growing,
                  em_plural(f->n_growing));
    if (e->tempering)
        em_append(bytes, text, "%s", e->tempering);
    if (!isnan(e->mode_search_log_mass))
        em_append(bytes, text, "a mode of %.2g times the mass that %s draw is near to, ",
                  exp(e->mode_search_log_mass), e->is_tempered ? "hardly any" : "no");
}

void em_verdict_word(const em_evidence *e, size_t bytes, char *text)
{
    static const char *const word[] = {
        [EM_CONVERGED] = "converged",
        [EM_CONVERGED_WITH_WARNINGS] = "converged with warnings",
        [EM_NOT_CONVERGED] = "not converged",
    };

    text[0] = '\0';
    if (e->optimiser)
        em_append(bytes, text, "no sample of the posterior, %s being an optimiser: ", e->optimiser);
    else
        em_append(bytes, text, "%s: ", word[em_verdict_of(e)]);
    append_findings(e, bytes, text);
    if (nothing_varies(e)) {
        em_append(bytes, text,
                  "all monitored numbers are constant, so chains cannot differ in them");
        return;
    }
    append_number(bytes, text, e->nested ? "worst nested R-hat" : "worst R-hat", 3, e->r_hat,
                  e->r_hat_limit);
    append_number(bytes, text, ", smallest ESS", 0, e->ess, e->ess_limit);
    if (!isnan(e->findings.e_bfmi))
        append_number(bytes, text, ", smallest E-BFMI", 2, e->findings.e_bfmi, EM_E_BFMI_LIMIT);
    /* Kernels without an energy, such as the slice sampler, have no divergences. */
    if (e->divergences > 0 || e->is_tempered || !isnan(e->findings.e_bfmi))
        em_append(bytes, text, ", %lld divergence%s", (long long)e->divergences,
                  em_plural(e->divergences));
    if (e->divergences > 0)
        em_append(bytes, text, " (limit %lld)", (long long)em_divergence_limit(e));
    if (e->findings.n_saturated > 0)
        em_append(bytes, text, ", %lld saturated tree%s", (long long)e->findings.n_saturated,
                  em_plural(e->findings.n_saturated));
}
