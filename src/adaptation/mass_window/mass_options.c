#include "adaptation/mass_window/mass_options.h"

#include "mass/estimator.h"

#include <stddef.h>

static const char *const shares[] = {"all", "none", NULL};
static const char *const noncentrings[] = {"auto", "off", NULL};
static const char *const rules[] = {"fixed", "interval", NULL};

const em_field em_mass_fields[] = {
    EM_PATH(em_mass_options, from, .fallback = "",
            .doc = "begin with the mass and the step size of an earlier run of the same model: its "
                   ".h5 file"),
    EM_BOOL(
        em_mass_options, from_positions, .fallback = "false",
        .doc =
            "also begin at the last positions of that run (which needs output.save_unconstrained)"),
    EM_CHOICE(em_mass_options, estimator, .fallback = "fisher", .choices = em_estimator_names,
              .doc = "criterion by which the M-step estimates the mass; momentum is that of the "
                     "papers, noise is for stochastic samplers"),
    EM_CHOICE(em_mass_options, structure, .fallback = "auto", .choices = em_structure_names,
              .doc = "auto: dense up to dimension 200 if there are enough samples; in higher "
                     "dimensions low_rank for hmc, nuts and walnuts; otherwise diag"),
    EM_REALS(em_mass_options, blocks, .fallback = "",
             .doc = "block_diagonal: numbers of parameters of the blocks, in order; further "
                    "parameters are each a block; none: the blocks of the model"),
    EM_CHOICE(em_mass_options, share, .fallback = "all", .choices = shares,
              .doc = "all: E-step samples pooled over all chains; none: every chain adapts alone"),
    EM_INT(em_mass_options, s_count, .minimum = 2, .maximum = 1e12, .fallback = "100",
           .doc = "samples of an E-step, pooled over the chains that share (with windows: of the "
                  "first one; later ones double)"),
    EM_CHOICE(
        em_mass_options, s_count_rule, .fallback = "fixed", .choices = rules,
        .doc = "interval: S_count grows by the papers' confidence-interval rule (momentum only)"),
    EM_ROW_AS("kappa.k0", em_mass_options, kappa_k0, EM_FIELD_REAL, double, .maximum = 1e9,
              .fallback = "1",
              .doc = "kappa_k = (k + k0)^-eta is the weight of the k-th estimate; the current "
                     "inverse mass has 1 - kappa_k"),
    EM_ROW_AS(
        "kappa.eta", em_mass_options, kappa_eta, EM_FIELD_REAL, double, .maximum = 10,
        .fallback = "auto", .word = "auto",
        .doc =
            "auto: 1 for momentum, 0 (the last window replaces the earlier ones) for the others"),
    EM_INT(em_mass_options, init_buffer, .maximum = 1e9, .fallback = "auto", .word = "auto",
           .doc = "warmup iterations before the first window; auto: 15 % of warmup, at most 75"),
    EM_INT(em_mass_options, term_buffer, .maximum = 1e9, .fallback = "auto", .word = "auto",
           .doc = "warmup iterations after the last M-step; auto: 10 % of warmup, at most 50"),
    EM_ROW_AS("rule.nu", em_mass_options, rule_nu, EM_FIELD_REAL, double, .maximum = 1e6,
              .fallback = "1",
              .doc = "interval rule: epochs are subsampled at offsets 1 + Poisson(nu i^d)"),
    EM_ROW_AS("rule.d", em_mass_options, rule_d, EM_FIELD_REAL, double, .maximum = 10,
              .fallback = "2", .doc = "interval rule: d in the offsets 1 + Poisson(nu i^d)"),
    EM_ROW_AS("rule.alpha", em_mass_options, rule_alpha, EM_FIELD_REAL, double, .maximum = 1,
              .fallback = "0.05",
              .doc = "interval rule: level of the interval; the paper's 1 gives an empty interval, "
                     "with which S_count never grows"),
    EM_ROW_AS("rule.s_i", em_mass_options, rule_s_i, EM_FIELD_REAL, double, .minimum = 1,
              .maximum = 1e9, .fallback = "10",
              .doc = "interval rule: S_count grows by S_count / s_i"),
    EM_BOOL(
        em_mass_options, rescue, .fallback = "false",
        .doc = "in warmup, a chain that cannot move at any step size takes the position of another "
               "chain (hmc, nuts, walnuts)"),
    EM_CHOICE(em_mass_options, noncentring, .fallback = "auto", .choices = noncentrings,
              .doc = "auto: if warmup draws show that the scale of parameters depends on another "
                     "parameter, that a location is curved, or that a parameter has one long tail, "
                     "hmc, nuts and walnuts use "
                     "coordinates in which draws are more nearly normal; off: never"),
    {0}};

/* The options of one block of parameters. The first two rows are left out, because they apply to
 * the whole run. */
const em_field *const em_block_mass_fields = em_mass_fields + 2;
