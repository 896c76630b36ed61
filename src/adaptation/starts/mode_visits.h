/*
 * The modes that draws visit. Private to the mode search.
 *
 * A draw is near to the mode whose normal approximation, times its mass, has the largest density
 * there. It is inside of that mode if its log density is as high as most draws from the normal
 * approximation have it. The draws inside of no mode belong to a part of the posterior without an
 * optimum of its own, for example to a wide component around a narrow one. The mass of that part
 * is estimated from them.
 */
#pragma once

#include "emass/status.h"
#include "par/grid.h"

#include <stdint.h>

/* The largest number of modes. */
enum { EM_MOST_MODES = 32 };

/* One optimum and the normal approximation around it. */
typedef struct em_optimum_mode {
    double log_density, log_mass; /* NaN: not known */
    double *centre, *precision;   /* [dim], [dim][dim] */
} em_optimum_mode;

/* Counts of draws, a row for each chain of this rank. */
typedef struct em_mode_visits {
    double *near, *inside; /* [n_local][EM_MOST_MODES] draws near to, and inside of, each mode */
    double *outside; /* [n_local][n_outside] sums over draws inside of no mode (draw_mass.h) */
    int64_t n_outside;
} em_mode_visits;

/* em_mode_visits_create: all counts 0. Local. Errors: EM_EMEMORY. */
em_status em_mode_visits_create(int64_t n_local, int64_t dim, em_mode_visits *out);
void em_mode_visits_release(em_mode_visits *visits);

/* Counts a draw of chain c of this rank. Not a number as log_density: not known, and the draw
 * counts as inside. n_mode > 0. Local. */
void em_mode_visits_count(em_mode_visits *visits, int64_t c, int64_t dim, int64_t n_mode,
                          const em_optimum_mode *mode, const double *theta, double log_density);

/* The counts of all chains of the run. */
typedef struct em_mode_counts {
    double near[EM_MOST_MODES], inside[EM_MOST_MODES];
    double log_mass_outside; /* of the part of the posterior inside of no mode, at most; -infinity:
                                no such draw; infinity: too few to know it */
} em_mode_counts;

/* Collective. Errors: EM_EMEMORY, agreed. */
em_status em_mode_visits_sum(const em_mode_visits *visits, em_grid *grid, int64_t dim,
                             em_mode_counts *out);

/* The least log density of a draw inside of a mode: 84 % of the draws from a normal law have more
 * than that. Local. */
double em_least_inside(const em_optimum_mode *mode, int64_t dim);
