/* The options of the adaptation engine: section `mass` of the config. */
#pragma once

#include "emass/field.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct em_mass_options {
    char *from; /* file of an earlier run, whose mass and step size become the initial ones; or NULL
                 */
    bool rescue;                /* outlying chains that cannot move are reinitialised */
    int noncentring;            /* em_noncentring_choice */
    bool from_positions;        /* chains start at the last draws of the run `from` */
    int estimator;              /* index into em_estimators */
    int structure;              /* em_structure_choice */
    em_reals blocks;            /* sizes of the blocks of block_diagonal */
    int share;                  /* em_share_choice */
    int64_t s_count;            /* samples of the first E-step, pooled over the chains that share */
    int s_count_rule;           /* em_s_count_choice */
    double kappa_k0, kappa_eta; /* kappa_k = (k + k0)^-eta; eta NaN: by the estimator */
    int64_t init_buffer, term_buffer; /* iterations before the first and after the last window */
    /* of the confidence-interval rule for S_count (Roychowdhury & Parthasarathy, section 3.2) */
    double rule_nu, rule_d, rule_alpha, rule_s_i;
} em_mass_options;

enum { EM_ESTIMATOR_NONE }; /* the index of `none` in em_estimators */
enum em_structure_choice {
    EM_STRUCTURE_AUTO,
    EM_STRUCTURE_DIAG,
    EM_STRUCTURE_DENSE,
    EM_STRUCTURE_BLOCK_DIAGONAL,
    EM_STRUCTURE_LOW_RANK
};
enum em_share_choice { EM_SHARE_ALL, EM_SHARE_NONE };
enum em_noncentring_choice { EM_NONCENTRING_AUTO, EM_NONCENTRING_OFF };
enum em_s_count_choice { EM_S_COUNT_FIXED, EM_S_COUNT_INTERVAL };

extern const em_field em_mass_fields[]; /* adaptation/mass_window/mass_options.c */
extern const em_field
    *const em_block_mass_fields; /* options that each sampler of a list may set for itself */
