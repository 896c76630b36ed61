/*
 * Finds in pooled draws the parameters with one long tail, and their rows of the map
 * (posterior/noncentring.h, EM_SCALE_OF_TAIL). The logarithm of a positive parameter that may be
 * almost 0 is such a one: of a gamma variate of shape 1/6 it has a standard deviation of 6.3 and an
 * exponential left tail. On its right side the posterior is as narrow as the data make it, so a
 * step that suits the whole width is too long there.
 *
 * Three quantiles give the row. It is kept if it makes the draws and their derivatives clearly more
 * nearly normal. Pure, Local.
 */
#pragma once

#include "mass/estimator.h"
#include "posterior/noncentring.h"

/* Adds to a map, row [dim], the rows of parameters with level 0 that have a tail. The levels of
 * other parameters rise by 1. is_known: an earlier window has found a tail, so weaker evidence is
 * enough. Does nothing if there are too few draws. Errors: EM_EMEMORY. */
em_status em_tail_fit(int64_t dim, const em_samples *samples, bool is_known,
                      em_noncentring_row *row);
