/* Private to the mode search: its state, and the comparison of the optima that its ascents reach.
 */
#pragma once

#include "adaptation/starts/ascent.h"
#include "adaptation/starts/mode_search.h"
#include "adaptation/starts/mode_visits.h"
#include "adaptation/starts/outer_mass.h"
#include "adaptation/starts/steep_search.h"

#include <math.h>
#include <stdbool.h>

struct em_mode_search {
    em_owner memory; /* of the arrays that are never resized */
    em_grid *grid;
    em_search_plan plan; /* with the draws and the gradients of one chain */
    int64_t dim, stride, n_local;
    int64_t n_each;  /* the most ascents of a chain: from its start, and from further draws */
    double *redrawn; /* [n_local] */
    double *scale;   /* [n_local][stride] the diagonal of the inverse curvature above a start */
    int least_modes; /* the least number of modes for which masses are computed: 2, or 1 */
    int64_t n_mode;
    em_optimum_mode mode[EM_MOST_MODES];
    double *modes; /* [n_mode][2 + dim + dim^2] the numbers of the modes */
    em_mode_visits visits;
    em_outer_mass outer;
    em_steep_search steep; /* kept == NULL: none */
    int64_t every;         /* iterations between counts of visits */
};

typedef enum em_ascent_task { EM_ASCENT_DONE, EM_ASCENT_DRAW, EM_ASCENT_CONTINUE } em_ascent_task;

/* A search in progress. All ranks know the ends of all ascents, `row` numbers each. */
typedef struct em_ascents {
    em_owner memory; /* of its arrays */
    em_mode_search *search;
    em_posterior *posterior;
    em_start_law *law;
    void *context;
    em_block *block;
    const em_block *chains; /* a search at the end of warmup: the chains; NULL: the first search */
    const double *scale;    /* [stride] initial scale of ascents from draws; NULL: not known */
    int64_t most;           /* the most gradients of an ascent; 0: the default */
    double *gradients;
    em_ascent *path;
    bool compares; /* ends are compared; else they are not stored */
    /* number of ends of all chains; numbers of an end: log density, converged, theta */
    int64_t n, row;
    double *end;          /* [n][row] */
    int *mode;            /* [n] the mode of an end; -1: none, or not yet known */
    int *compared;        /* [n] number of modes with which an end was compared */
    em_ascent_task *task; /* [n] what is to be done */
    int *continued;       /* [n] how often an ascent was continued */
    double *onward; /* [EM_MOST_MODES][dim] direction uphill if the point is no optimum; else 0 */
    int64_t maker[EM_MOST_MODES],
        n_weighed;    /* the end from which each mode was made; number of modes with a mass */
    double *draws;    /* [n_local] so far */
    int64_t *probed;  /* [n_local] probes so far */
    double *limit;    /* [n_local] gradients after which no more probes are made */
    double *own;      /* [n_local][n_each][row] */
    double *rest;     /* [n_local][n_each][2][stride] gradient, scale */
    double *log_mass; /* [n_local] approximate log mass of the best point of the ascent from the
                         start */
    double *further;  /* [stride] */
    bool *moved;      /* [n_local] the chain begins elsewhere than at its first draw */
} em_ascents;

/* The number of the first ascent of this rank. Local. */
static inline int64_t em_first_own_ascent(const em_ascents *a)
{
    return em_grid_first_chain(a->search->grid) * a->search->n_each;
}

/* The log of the largest Laplace mass that is known; -infinity: none is. Local. */
static inline double em_largest_log_mass(const em_mode_search *search)
{
    double largest = -INFINITY;

    for (int64_t m = 0; m < search->n_mode; m++)
        largest = fmax(largest, search->mode[m].log_mass);
    return largest;
}

/* Creates the counts of draws, all 0, if there are modes. Collective. Errors: EM_EMEMORY, agreed.
 */
em_status em_create_visits(const em_mode_search *search, em_mode_visits *out);

/* Makes all ascents of a search, and the modes of their ends, and releases the arrays of `ascents`.
 * Collective. Errors, agreed: those of the law and of the posterior, EM_EMEMORY. */
em_status em_make_ascents(em_ascents *ascents);

/* Keeps where the last ascent ended as the end number i of this rank. Local. */
void em_keep_end(em_ascents *ascents, int64_t i);

/* Points search->mode to the rows of search->modes; `reads`: also reads their numbers. Local. */
void em_point_to_modes(em_mode_search *search, int64_t n_mode, bool reads);

/* Assigns ends of ascents to modes, makes new modes of the rest, and weighs all where there are
 * several. Collective. Errors: EM_EMEMORY, those of the target, agreed. */
em_status em_sort_into_modes(em_ascents *ascents);

/* Makes each chain whose start leads to a mode of negligible mass draw another start. Returns false
 * if there is no such chain. Local. */
bool em_refuse_negligible_modes(em_ascents *ascents);

/* Continues the ascents that ended before an optimum. *any: whether there are such. Collective.
 * Errors: as above. */
em_status em_continue_ascents(em_ascents *ascents, bool *any);

/* Computes the mass of a single mode, unless it is known. Collective. Errors: as above. */
em_status em_weigh_lone_mode(em_ascents *ascents);

/* The same if more than half of the chains are at lower densities than draws from the mode would
 * have, so that they may have missed it. The mode is kept then. */
em_status em_judge_lone_mode(em_ascents *ascents);

/* Removes modes without notable mass, if there are several modes. Local. */
void em_keep_modes(em_mode_search *search);
