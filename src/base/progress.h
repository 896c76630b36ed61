/* Progress of a run: one line redrawn on a terminal, or plain dated lines in a log. All Local. */
#ifndef EM_BASE_PROGRESS_H
#define EM_BASE_PROGRESS_H

#include "emass/status.h"

#include <stdint.h>
#include <stdio.h>

typedef enum em_progress_mode {
    EM_PROGRESS_AUTO, /* bar on a terminal, else log */
    EM_PROGRESS_BAR,
    EM_PROGRESS_LOG,
    EM_PROGRESS_NONE
} em_progress_mode;

/* The mode called auto, bar, log or none. Errors: EM_EUSAGE. */
em_status em_progress_mode_of(const char *name, em_progress_mode *mode);

/* How far the run is; what is NaN is left out. */
typedef struct em_progress_record {
    int64_t iteration, total;
    const char *phase; /* warmup, sampling */
    double r_hat;      /* worst */
    double ess;        /* smallest */
    int64_t divergences;
    double draws_per_second;
    double seconds_left;
} em_progress_record;

typedef struct em_progress em_progress;

/* `stream` is borrowed, stderr by custom. Errors: EM_EMEMORY. */
em_status em_progress_create(em_progress_mode mode, FILE *stream, em_progress **out);

/*
 * Shows the record, unless the last one shown is too recent: a bar is redrawn up to ten times a
 * second, a log gets a line every five seconds. The first record, and the last, whose iteration is
 * `total`, are always shown. `progress` NULL: nothing happens.
 */
void em_progress_tell(em_progress *progress, const em_progress_record *record);

/* Ends the line of a bar. */
void em_progress_destroy(em_progress **progress);

#endif
