#include "exchange/options.h"

#include <stddef.h>

/* The order of mass/list.c. */
static const char *const estimators[] = {"none",     "momentum", "fisher", "variance",
                                         "gradient", "noise",    NULL};
static const char *const structures[] = {"auto",           "diag",     "dense",
                                         "block_diagonal", "low_rank", NULL};
static const char *const shares[] = {"all", "none", NULL};
static const char *const rules[] = {"fixed", "interval", NULL};

#define AT(member) offsetof(em_mass_options, member)
const em_field em_mass_fields[] = {
    {"estimator", EM_FIELD_CHOICE, AT(estimator), 0, 0, "fisher", estimators, NULL,
     "criterion of the M-step; momentum is the papers', noise is for stochastic samplers"},
    {"structure", EM_FIELD_CHOICE, AT(structure), 0, 0, "auto", structures, NULL,
     "auto: dense up to dimension 200 where the samples allow it, beyond that low_rank for hmc and "
     "nuts, else diag"},
    {"blocks", EM_FIELD_REALS, AT(blocks), 0, 0, "", NULL, NULL,
     "block_diagonal: how many parameters each block has, in their order; those left over are "
     "alone"},
    {"share", EM_FIELD_CHOICE, AT(share), 0, 0, "all", shares, NULL,
     "all: E-step samples pooled over all chains; none: every chain adapts alone"},
    {"s_count", EM_FIELD_INT, AT(s_count), 2, 1e12, "100", NULL, NULL,
     "samples of an E-step (of the first window, which then double), pooled over the sharing "
     "chains"},
    {"s_count_rule", EM_FIELD_CHOICE, AT(s_count_rule), 0, 0, "fixed", rules, NULL,
     "interval: S_count grows by the papers' confidence-interval rule (momentum only)"},
    {"kappa.k0", EM_FIELD_REAL, AT(kappa_k0), 0, 1e9, "1", NULL, NULL,
     "kappa_k = (k + k0)^-eta weighs the k-th estimate against the current inverse mass"},
    {"kappa.eta", EM_FIELD_REAL, AT(kappa_eta), 0, 10, "auto", NULL, "auto",
     "auto: 1 for momentum, 0 (the last window replaces the earlier ones) for the others"},
    {"init_buffer", EM_FIELD_INT, AT(init_buffer), 0, 1e9, "auto", NULL, "auto",
     "warmup iterations before the first window; auto: 15 % of warmup, at most 75"},
    {"term_buffer", EM_FIELD_INT, AT(term_buffer), 0, 1e9, "auto", NULL, "auto",
     "warmup iterations after the last M-step; auto: 10 % of warmup, at most 50"},
    {"rule.nu", EM_FIELD_REAL, AT(rule_nu), 0, 1e6, "1", NULL, NULL,
     "interval rule: epochs are subsampled at offsets 1 + Poisson(nu i^d)"},
    {"rule.d", EM_FIELD_REAL, AT(rule_d), 0, 10, "2", NULL, NULL, "interval rule: see rule.nu"},
    {"rule.alpha", EM_FIELD_REAL, AT(rule_alpha), 0, 1, "0.05", NULL, NULL,
     "interval rule: level; the paper's 1 gives an empty interval that never fires"},
    {"rule.s_i", EM_FIELD_REAL, AT(rule_s_i), 1, 1e9, "10", NULL, NULL,
     "interval rule: S_count grows by S_count / s_i"},
    {"rescue", EM_FIELD_BOOL, AT(rescue), 0, 0, "true", NULL, NULL,
     "while chains arrive, one that others left behind goes on from where one of them is (hmc, "
     "nuts)"},
    {"from", EM_FIELD_PATH, AT(from), 0, 0, "", NULL, NULL,
     "begin with the mass and the step size of an earlier run of the same model: its .h5 file"},
    {"from_positions", EM_FIELD_BOOL, AT(from_positions), 0, 0, "false", NULL, NULL,
     "and with its last positions (it needs output.save_unconstrained)"},
    {NULL, EM_FIELD_BOOL, 0, 0, 0, NULL, NULL, NULL, NULL}};
