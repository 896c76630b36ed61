/* Private to this folder: the state of the ladders on one rank. */
#pragma once

#include "adaptation/mass_window/window.h"
#include "adaptation/step_size/step_size.h"
#include "mass/estimator.h"
#include "par/mailbox.h"
#include "posterior/noncentring.h"
#include "posterior/tempered.h"
#include "tempering/tempering.h"

/* The end of the ladder that a copy visited last, for counting round trips. */
typedef enum em_origin { EM_FROM_NOWHERE, EM_FROM_REFERENCE, EM_FROM_TARGET } em_origin;

/* A copy of the state, on one of the rungs of its ladder. */
typedef struct em_copy {
    int64_t rung;
    em_origin origin;
    double log_p;
    double log_r[EM_MOST_LEGS];
    double restarts, round_trips; /* since the counts were cleared */
} em_copy;

/* Counts of a copy for each rung, and for each pair of rungs of which it was on the one with the
 * lower number. */
typedef struct em_rung_counts {
    double n;                  /* moves since the last update of step sizes */
    double n_diverging;        /* of them, with a divergence */
    double rejection, n_swaps; /* sum of rejection probabilities, and how many */
} em_rung_counts;

/* Mass and step size of a kernel on a rung, learned from all ladders. */
typedef struct em_rung_kernel {
    em_mass *mass; /* of the kernel's parameters */
    double step_size;
    em_dual_averaging averaging;
} em_rung_kernel;

/* A kernel on this rank: it moves one copy at a time. */
typedef struct em_copy_kernel {
    const em_tempering_kernel *task;
    /* the tempered posterior, or its restriction to the kernel's parameters */
    em_posterior *posterior;
    em_sampler *sampler;
    em_block *block; /* of one copy, of the kernel's parameters; NULL: all */
} em_copy_kernel;

/* Statistics of a kernel for the last move of a copy. */
typedef struct em_move {
    double acceptance, n_step;
    double stat[EM_STAT_COUNT];
} em_move;

struct em_tempering {
    em_owner memory; /* of the arrays that last as long as it */
    em_tempering_task task;
    int64_t dim, stride, n_ladder, n_leg;
    em_reference *reference[EM_MOST_LEGS]; /* that of leg B is a mixture of the next two */
    em_reference *learned_law;             /* the normal law of the draws */
    em_reference
        *mode_law[EM_MOST_MODES]; /* [n_mode] normal distributions at the modes that were found */
    double mode_mass[EM_MOST_MODES]; /* [n_mode] the log masses of these modes */
    int64_t n_mode;
    double *scale;          /* [dim] standard deviations of the normal reference of leg A */
    em_structure structure; /* of the learned reference, the masses and the accumulators */
    int64_t most_rank;      /* not 0: reference and masses are of low rank, with at most this many
                               directions */
    em_window window;       /* the draws that these directions come from */
    em_noncentring map;     /* of the copies' coordinates to the model's (coordinates.c) */
    bool learns_map;        /* else it is the identity */
    em_noncentring_row *found_map; /* [dim] the map that the draws of this round show */
    double *coordinates;           /* [stride] work space of these transformations */
    double *reference_precision;   /* [EM_MOST_LEGS][dim] 1 over the variances of the references */
    em_ladder ladder;
    em_rung_kernel *rung_kernel; /* [2 EM_MOST_LEG_RUNGS][n_kernel] */
    int n_kernel;
    bool without_gradient; /* no kernel uses gradients */

    /* Copies of all ladders, distributed over groups of ranks: copies l n_rung + k belong to ladder
     * l. */
    em_grid *copies;
    em_mailbox *mailbox;
    int64_t n_copy, first_copy; /* of this rank */
    em_copy *copy;              /* [n_copy] */
    em_temperature *temperature;
    /* The posterior of the model's parameters, the same in the coordinates of the copies, and the
     * tempered ones. */
    em_posterior *of_parameters, *posterior, *tempered;
    em_copy_kernel kernel[EM_MOST_KERNELS];
    em_block *block;        /* positions in these coordinates, gradients of the tempered density */
    em_move *move;          /* [n_copy][n_kernel] */
    double *of_model;       /* [n_copy][stride] gradient of log p */
    double *of_reference;   /* [n_copy][EM_MOST_LEGS][stride] gradients of log r */
    double log_constant[2]; /* log normalising constants of prior and likelihood */
    double *message;        /* work space for sending one draw */
    em_rung_counts *count;  /* [n_copy][n_rung] */
    double *acceptance;     /* [n_copy][n_rung][n_kernel] sums, of as many moves as count has */
    em_bridge *bridges;     /* [n_copy][n_unit][n_rung - 1] */
    double *path; /* [n_copy][EM_MOST_TIMES] rungs, of every path_every-th scan of the draws */
    int64_t path_every;  /* doubles when the path is full */
    int64_t n_unit;      /* parts of the draws for error estimates: 1, or an even number; */
    int64_t unit_length; /* scans of each, which doubles when all are full */
    double *held;        /* draws that arrived early: see receive in scan.c */
    int64_t n_held, most_held;

    /* Accumulators of the draws at the target, [n_local_ladder][n_accumulator]. */
    double *accumulator, *centre;
    int64_t n_accumulator;
    double *farthest; /* [n_local_ladder, at least 1][dim] largest distance of these draws from the
                         origin */
    double *
        learned; /* the last inverse mass of the target, numbers of em_tempering_form; NULL: none */

    int64_t round, round_begin, round_end; /* iterations */
    int64_t warmup;                        /* it ends there at the latest */
    int64_t ended;                         /* iterations of warmup; -1 while it lasts */
    int64_t evaluations;                   /* of posteriors that were destroyed */
    em_tempering_findings findings;
    em_status failure;
    char why[512];
};

/* Mass and step size of kernel i on rung k. Local. */
static inline em_rung_kernel *em_rung_kernel_at(const em_tempering *t, int64_t k, int i)
{
    return t->rung_kernel + k * t->n_kernel + i;
}

/* The size of the message with a draw: iteration, log p, visit, statistics of the kernels, theta
 * and its gradient. Local. */
static inline int64_t em_draw_length(const em_tempering *t)
{
    return 3 + t->n_kernel * (int64_t)(sizeof(em_move) / sizeof(double)) + 2 * t->stride;
}

/* Create and destroy the kernels of this rank, whose copies must have a tempered posterior
 * (kernels.c). Local. Errors: EM_EMEMORY, those of a sampler. */
em_status em_copy_kernels_create(em_tempering *t);
void em_copy_kernels_destroy(em_tempering *t);

/* Moves copy c by the kernels of its rung (moves.c); at beta 0 it is drawn from the reference
 * instead. Afterwards log p and log r at its position are set; at the target, log r of both legs.
 * Local. Errors: those of the posterior. */
em_status em_copy_move(em_tempering *t, int64_t c, int64_t iteration);

/* The group of ranks that has a copy, and the one that records a ladder. Local. */
static inline int64_t em_copy_group(const em_tempering *t, int64_t number)
{
    return em_partition_of(t->n_ladder * t->ladder.n_rung, em_grid_n_group(t->copies), number);
}

static inline int64_t em_ladder_group(const em_tempering *t, int64_t ladder)
{
    return em_partition_of(t->n_ladder, em_grid_n_group(t->task.grid), ladder);
}

/* Allocates the copies of the current ladder, in place of former ones. Collective. Errors:
 * EM_EMEMORY, agreed. */
em_status em_copies_create(em_tempering *t);
void em_copies_destroy(em_tempering *t); /* Collective. */

/* Evaluates and stores log p and its gradient, unless no kernel needs it, at the position of copy
 * c. Local. */
em_status em_copy_evaluate_model(em_tempering *t, int64_t c);

/* Evaluates and stores log r of a leg and its gradient [stride] at the position of copy c. Local.
 */
em_status em_copy_evaluate_reference(em_tempering *t, int64_t c, int leg);

/* That gradient. Local. */
static inline double *em_copy_reference(const em_tempering *t, int64_t c, int leg)
{
    return t->of_reference + (c * EM_MOST_LEGS + leg) * t->stride;
}

/* em_copy_compose: computes the tempered density and its gradient of copy c on its rung, from the
 * stored log r and gradient of its leg. em_copy_evaluate_and_compose: the same after
 * em_copy_evaluate_reference. Local. */
void em_copy_compose(em_tempering *t, int64_t c);
em_status em_copy_evaluate_and_compose(em_tempering *t, int64_t c);

/* Sends the copies at the target to the groups of their ladders, and writes the block and the
 * statistics of the kernels there. Local, but waits for the sender. */
void em_ladders_deliver(em_tempering *t, int64_t iteration, em_block *block,
                        const em_block *const *of_kernel);

/* Sets the masses of all rungs from the references and the learned mass of the target. Local. */
em_status em_rungs_set_masses(em_tempering *t);

/*
 * The coordinates of the copies (coordinates.c). A position and, unless NULL, the gradient and the
 * log density of the model's parameters there are transformed in place, to the model's coordinates
 * or from them. Local.
 */
void em_copies_to_model(const em_tempering *t, double *theta, double *gradient, double *log_p);
void em_copies_from_model(const em_tempering *t, double *theta, double *gradient, double *log_p);

/* Decides whether ladders learn a map, and creates the identity. Local. Errors: EM_EMEMORY. */
em_status em_coordinates_create(em_tempering *t);

/* *separates: a log scale of the map differs between modes that the search has found. Modes of
 * different widths then look like a funnel, and the map would hide one of them. Local. Errors:
 * EM_EMEMORY. */
em_status em_coordinates_judge(const em_tempering *t, const em_noncentring *map, bool *separates);

/*
 * Searches the draws of a round for a map, and stores it in t->found_map. If no new map suits the
 * draws, it is the present one, or the identity if the present one does not suit them either.
 * *grows: the map has clearly more non-centred parameters than the present one. Collective. Errors,
 * agreed: EM_EMEMORY.
 */
em_status em_coordinates_find(em_tempering *t, const em_samples *draws, bool *grows);

/*
 * Transforms the copies, the references and the draws to the coordinates of the map that was found.
 * If it is not the identity, the sums of the draws, and their largest distances from the origin in
 * t->farthest, are computed again. Collective. Errors, agreed: EM_EMEMORY, those of the model.
 */
em_status em_coordinates_exchange(em_tempering *t, const em_samples *draws, double *sum);

/* Rounds of warmup (round.c). em_round_structure: the structure of the masses, dense if the draws
 * of the round suffice. Local. */
void em_round_begin(em_tempering *t, int64_t done);
em_structure em_round_structure(const em_tempering *t);
em_status em_round_create_window(em_tempering *t); /* before the first round */
em_status em_round_allocate(em_tempering *t);      /* allocates the accumulators of the target */

/* The form of the masses and of the learned moments of the target. Local. */
em_mass_form em_tempering_form(const em_tempering *t);

/* The estimator of the masses: from draws and gradients, or from draws alone if no kernel computes
 * gradients. Local. */
static inline const em_estimator_ops *em_tempering_estimator(const em_tempering *t)
{
    return t->without_gradient ? &em_estimator_variance : &em_estimator_fisher;
}

/* The ratio of the standard deviations of the learned reference to those of the draws. */
#define EM_INFLATION 1.2

/* Creates the initial references: the prior or a broad normal distribution, and a normal
 * distribution. Local. Errors: EM_EMEMORY, those of the model. */
em_status em_references_create(em_tempering *t);

/* em_reference_widen: if the scale of the normal reference of leg A is automatic, enlarges it to at
 * least distance [dim] from the origin. em_reference_rescale: creates the reference of leg A: the
 * prior, or a normal one with the standard deviations t->scale. Local. Errors: EM_EMEMORY, those of
 * the model.
 */
em_status em_reference_widen(em_tempering *t, const double *distance);
em_status em_reference_rescale(em_tempering *t);

/* Creates the reference of leg A again after a change of the coordinates: the prior, whose
 * variances change, or a normal distribution that covers the modes, with unit [dim] times the
 * standard deviations of the options (NULL: once). Local. Errors: EM_EMEMORY, those of the model.
 */
em_status em_reference_restart(em_tempering *t, const double *unit);

/* Creates the reference of leg B from `learned`, which it takes over, and the normal distributions
 * of the modes. Local. Errors: EM_EMEMORY. */
em_status em_reference_compose(em_tempering *t, em_reference *learned);

/* Creates the reference of leg B from a normal distribution with the moments of draws, made wider.
 * If their covariance is not positive definite, the reference is not changed. `covariance`: numbers
 * of em_tempering_form, or of a diagonal form. Local. Errors: EM_EMEMORY. */
em_status em_reference_learn(em_tempering *t, const em_mass_form *form, const double *mean,
                             const double *covariance);
void em_references_destroy(em_tempering *t); /* Local. */

/* The acceptance rate at which step sizes of kernel i aim. Local. */
double em_target_accept(const em_tempering *t, int i);

/* Sets the step size of kernel i of rung k and restarts its dual averaging. Local. */
void em_rung_start_step(em_tempering *t, int64_t k, int i, double step_size);

/* Records the rungs of all copies after every path_every-th scan of the draws. Local. */
void em_path_take(em_tempering *t, int64_t scan);

/* Copies the paths of the first ladders to the findings. Collective. */
em_status em_path_gather(em_tempering *t, int64_t n_scan, em_tempering_findings *out);

/* Clears the counts of all copies. Local. */
void em_counts_clear(em_tempering *t);

/* The counts of each rung, over all ladders: sum [n_rung]. Collective. Errors: EM_EMEMORY, agreed.
 */
em_status em_counts_sum(em_tempering *t, em_rung_counts *sum);

/* Rejection rates of all pairs, and the evidence of each leg, over all ladders. Collective. */
em_status em_counts_gather(em_tempering *t, em_tempering_round *out, double *rejection,
                           double *of_ladder);
