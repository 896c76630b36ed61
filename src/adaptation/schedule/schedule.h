/* When the chains meet in warmup: data, built before the first step by a pure function. Local. */
#ifndef EM_ADAPTATION_SCHEDULE_SCHEDULE_H
#define EM_ADAPTATION_SCHEDULE_SCHEDULE_H

#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Iterations are counted from 0; a meeting "after n" takes place when n iterations are done. E-step
 * samples are collected in the iterations first .. last - 1. The M-steps take place after
 * window_end[0] < window_end[1] < ... (doubling windows).
 */
typedef struct em_schedule {
    int64_t warmup, adapt_every, first, last;
    int64_t n_window;
    int64_t *window_end;
} em_schedule;

/*
 * Windows of s_count pooled samples, then twice that, and so on, from init_buffer to warmup -
 * term_buffer; the last window takes what is left when no doubled one would fit. `n_chain` chains
 * share their samples. Buffers of INT64_MIN are chosen: 15 % of warmup but at most 75, and 10 % but
 * at most 50. Errors: EM_EMEMORY.
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
