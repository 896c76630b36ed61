/*
 * Parallel tempering of independent ladders over the ranks (Syed, Bouchard-Cote, Deligiannidis and
 * Doucet 2022; two legs: Surjanovic et al. 2022). See README.md of this folder.
 *
 * Each chain of the run is a ladder: copies of the state, one on each rung. In a scan every copy is
 * moved by the kernel, or drawn from a reference, and then neighbouring rungs may swap. A swap
 * exchanges the rung numbers of two copies; their states stay on their ranks. The draw of a ladder
 * in an iteration is the copy at the target after the swaps.
 */
#pragma once

#include "adaptation/starts/mode_search.h"
#include "emass/visitor.h"
#include "par/grid.h"
#include "posterior/noncentring.h"
#include "sampler/kernel/sampler.h"
#include "tempering/ladder.h"

typedef enum em_reference_kind {
    EM_REFERENCE_AUTO, /* the prior if the model can draw from it, else normal */
    EM_REFERENCE_PRIOR,
    EM_REFERENCE_NORMAL
} em_reference_kind;

typedef enum em_temper_when {
    EM_TEMPER_ALWAYS,
    EM_TEMPER_AUTO, /* if the warmup of untempered chains ends in several modes */
    EM_TEMPER_NEVER /* the same as no section */
} em_temper_when;

/* Section `temper` of a config. */
typedef struct em_temper_options {
    bool on; /* the section is present, and `when` is not never */
    int when;
    int reference;
    double scale;  /* of the normal reference, in each unconstrained dimension; NaN: auto */
    int64_t rungs; /* in each leg; INT64_MIN: from the barrier */
    int64_t legs;  /* 1 or 2 */
} em_temper_options;

extern const em_field em_temper_fields[];

typedef struct em_tempering em_tempering;

/* A kernel that moves the copies: all parameters or, as one of several that alternate, a block of
 * them. */
typedef struct em_tempering_kernel {
    const em_sampler_ops *ops;
    const em_sampler_options *options;
    const em_parameters *parameters; /* NULL: all */
    uint64_t seed;                   /* kernels have different seeds */
} em_tempering_kernel;

/* Arguments of em_tempering_create. The objects that they point to must outlive the ladders. */
typedef struct em_tempering_task {
    const em_temper_options *options;
    em_tempering_kernel kernel[EM_MOST_KERNELS];
    int n_kernel;
    em_model *model;
    em_grid *grid; /* of the ladders, as chains */
    uint64_t seed;
    int64_t warmup; /* INT64_MIN: until the ladders are learned */
    double init_radius;
    bool noncentring; /* copies may move in non-centred coordinates */
    int64_t first;    /* iterations of the chains before tempering began */
    const char *why;  /* the reason for tempering; NULL: tempered from the start */
} em_tempering_task;

/* Whether tempering is impossible: the kernel with these options does not move by an exact density
 * of a single chain, or the model has no such density. Local. */
bool em_sampler_forbids_tempering(const em_sampler_ops *sampler, const em_sampler_options *options);

static inline bool em_model_forbids_tempering(const em_model *model)
{
    return model->ops->latent || model->estimates;
}

/* Whether a kernel may move copies, and whether the model may be tempered. Local. Errors:
 * EM_ECONFIG. */
em_status em_tempering_check_kernel(const em_sampler_ops *sampler,
                                    const em_sampler_options *sampler_options,
                                    const em_model *model);
em_status em_tempering_check(const em_temper_options *options, const em_model *model);

/* Whether the prior may be the reference: the model can draw from it, and computes its density
 * separately from the likelihood. Local. */
bool em_tempering_has_prior(const em_model *model);

/* The longest warmup of a run. Local. */
int64_t em_tempering_most_warmup(int64_t config_warmup);

/* Collective. Errors, agreed: EM_EMEMORY, those of the model. */
em_status em_tempering_create(const em_tempering_task *task, em_tempering **out);
void em_tempering_destroy(em_tempering **tempering); /* NULL-safe. Collective. */

/*
 * Makes both references cover the modes that a search has found. A normal reference with automatic
 * scale is widened to their distance from the origin. The learned reference becomes a mixture with
 * the normal approximations of the modes. `modes` is equal on all ranks. To be called before the
 * ladders start or a checkpoint is restored. Local. Errors: EM_EMEMORY.
 */
em_status em_tempering_use_modes(em_tempering *tempering, const em_mode_search *modes);

/* Draws the starts of all copies, and fills `block` and of_kernel of this rank's ladders as
 * em_tempering_scan does. Collective. Errors, agreed: EM_EMODEL. */
em_status em_tempering_start(em_tempering *tempering, em_block *block,
                             const em_block *const *of_kernel);

/* Results of the warmup of untempered chains; equal on all ranks. */
typedef struct em_tempering_beginning {
    const double *theta;        /* [n_ladder][stride] their positions */
    const double *mean;         /* [dim] of their draws; NULL: not known */
    const double *variance;     /* [dim] of their draws */
    const double *inverse_mass; /* [dim], the diagonal; NULL: not known */
    double step_size[EM_MOST_KERNELS];
    /* [dim] the map of the coordinates in which mean, variance and mass are; NULL: the model's */
    const em_noncentring_row *noncentring;
} em_tempering_beginning;

/* Starts the ladders as em_tempering_start does, but the copies start at the positions of the
 * chains. Each ladder uses the positions of all chains, that of its own chain at the target.
 * Collective. Errors, agreed: EM_EMODEL, EM_EMEMORY. */
em_status em_tempering_start_from(em_tempering *tempering, const em_tempering_beginning *from,
                                  em_block *block, const em_block *const *of_kernel);

/*
 * Scan `iteration`: moves the copies of this rank, swaps, and fills `block` with position, log
 * density, gradient and statistics at the target of this rank's ladders. of_kernel [n_kernel] gets
 * the statistics of each kernel; with one kernel it may be `block`. It waits only for the ranks of
 * neighbouring rungs. If a move fails, the copy keeps its position, the scan continues so that no
 * other rank waits for ever, and em_tempering_failure returns the error. Local.
 */
void em_tempering_scan(em_tempering *tempering, int64_t iteration, em_block *block,
                       const em_block *const *of_kernel);
em_status em_tempering_failure(const em_tempering *tempering); /* Local. */

/* Iterations done at the next update after `done`; INT64_MAX: none. Local. */
int64_t em_tempering_next_update(const em_tempering *tempering, int64_t done);

/* The update after `done` iterations: of the step sizes and, at the end of a round, of the rungs,
 * the learned reference and the masses. *ended: warmup ends with this update. Collective. Errors:
 * agreed. */
em_status em_tempering_update(em_tempering *tempering, int64_t done, bool *ended);

/* Passes the state to a visitor. `done`: iterations so far. Collective. */
em_status em_tempering_visit(em_tempering *tempering, const em_visitor *visitor);

/* Results of one round, or of the draws of the run; equal on all ranks. */
typedef struct em_tempering_round {
    double scans, rungs;
    double barrier[EM_MOST_LEGS];
    double log_evidence[EM_MOST_LEGS], error[EM_MOST_LEGS], both, both_error;
    double restarts, round_trips; /* of all ladders: reference to target, and back */
    double divergences; /* the share of moves at the target, and beside it, that diverged */
} em_tempering_round;

enum { EM_MOST_ROUNDS = 24, EM_MOST_TIMES = 128, EM_MOST_PATH_LADDERS = 4 };

typedef struct em_tempering_findings {
    em_ladder ladder;
    int64_t n_round; /* of warmup */
    em_tempering_round round[EM_MOST_ROUNDS];
    em_tempering_round draws; /* of the iterations after warmup */
    double rejection[2 * EM_MOST_LEG_RUNGS];
    double step_size[2 * EM_MOST_LEG_RUNGS];
    double reach; /* of a normal reference: the root mean square distance of warmup draws from its
                     mean, in its standard deviations, in the dimension where this is largest; 0:
                     not known */
    double *of_ladder; /* [n_ladder][3] log evidence of legs A and B, round trips */
    double *path; /* the index process [n_path_ladder][n_rung][n_time]: the rung of each copy of
                     the first ladders after every path_every-th scan of the draws */
    int64_t n_path_ladder, n_time, path_every;
    bool is_prior;             /* the reference of leg A */
    const em_noncentring *map; /* of the copies' coordinates; NULL: they are the model's */
    int64_t first;             /* iterations before the ladders began */
    const char *why;           /* the reason; NULL: tempered from the start */
} em_tempering_findings;

/* Freed by em_release(&out->of_ladder) and em_release(&out->path). Collective. Errors, agreed:
 * EM_EMEMORY. `done`: iterations so far. */
em_status em_tempering_conclude(em_tempering *tempering, int64_t done, em_tempering_findings *out);

/* Whether the evidences of the legs contradict each other, or no copy has moved from a reference to
 * the target. Local. */
bool em_tempering_has_failed(const em_tempering_findings *found);

/* Whether more draws would help: the legs disagree, there are few round trips, or too few
 * independent visits to the target for an ESS of ess_limit. Other warnings are about what warmup
 * learned, which more draws do not change. Local. */
bool em_tempering_needs_draws(const em_tempering_findings *found, int64_t n_ladder,
                              double ess_limit);

/* Warnings about the ladders: the failures above, a pair of rungs that hardly ever swap, a
 * reference narrower than the draws, few round trips, too few independent visits to the target for
 * an ESS of ess_limit, a barrier that still grows. Each is a clause that ends with ", "; "" if
 * there are none. Local. */
void em_tempering_warning(const em_tempering_findings *found, int64_t n_ladder, double ess_limit,
                          size_t bytes, char *text);

/* "log evidence -1.03 (standard error 0.05, reference: prior), legs differ by 0.02 (standard error
 * 0.08); 14 round trips a ladder, 7 rungs, barrier 1.1 and 1.2". Local. */
void em_tempering_describe(const em_tempering_findings *found, int64_t n_ladder, size_t bytes,
                           char *text);

/* Whether a sampler of the ladders uses gradients. Local. */
bool em_tempering_uses_gradients(const em_tempering *tempering);

/* Evaluations of the posterior on this rank. Local. */
int64_t em_tempering_evaluations(const em_tempering *tempering);
