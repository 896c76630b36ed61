/* The fixed schedule of warmup: when adaptation updates take place and windows end. It is computed
 * before the first iteration by a pure function. Local. */
#ifndef EM_ADAPTATION_SCHEDULE_SCHEDULE_H
#define EM_ADAPTATION_SCHEDULE_SCHEDULE_H

#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Iterations are counted from 0. An adaptation update "after n" takes place when n iterations are
 * done. E-step samples are collected in iterations first .. last - 1. M-steps take place after
 * window_end[0] < window_end[1] < ... iterations (doubling windows).
 */
typedef struct em_schedule {
    int64_t warmup, adapt_every, first, last;
    int64_t n_window;
    int64_t *window_end;
} em_schedule;

/*
 * Windows of s_count pooled samples, then twice that, and so on, from init_buffer to warmup -
 * term_buffer. The last window takes all that is left when no doubled one would fit. `n_chain`
 * chains share their samples. INT64_MIN stands for the default of a buffer: 15 % of warmup but at
 * most 75, and 10 % but at most 50. Errors: EM_EMEMORY.
 */
em_status em_schedule_create(int64_t warmup, int64_t adapt_every, int64_t init_buffer,
                             int64_t term_buffer, int64_t s_count, int64_t n_chain,
                             em_schedule *out);
void em_schedule_destroy(em_schedule *schedule);

/* True when a window ends after n iterations. */
bool em_schedule_window_ends(const em_schedule *schedule, int64_t n);

/* Pooled samples of the last window. */
int64_t em_schedule_last_window(const em_schedule *schedule, int64_t n_chain);

#endif
