/*
 * Progress of a run: one line redrawn on a terminal, or plain dated lines in a log. A thread, which
 * does nothing else, says how long ago the last news came where there are none for some seconds.
 * All Local.
 */
#ifndef EM_BASE_SYSTEM_PROGRESS_H
#define EM_BASE_SYSTEM_PROGRESS_H

#include "emass/status.h"

#include <stdbool.h>
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

/* How far the run is; what is NaN is left out, and so are iterations where `total` is 0. */
typedef struct em_progress_record {
    int64_t iteration, total;
    const char *phase; /* starting, warmup, sampling; a text that stays */
    double r_hat;      /* worst */
    double ess;        /* smallest */
    int64_t divergences;
    double draws_per_second;
    double seconds_left;
    bool at_most; /* so many: warmup may end earlier */
} em_progress_record;

typedef struct em_progress em_progress;

/* `stream` is borrowed, stderr by custom. `starting` is what the run does until the first record
 * comes; NULL: nothing is said until then. Errors: EM_EMEMORY. */
em_status em_progress_create(em_progress_mode mode, FILE *stream, const char *starting,
                             em_progress **out);

/*
 * Shows the record, unless the last one shown is too recent: a bar is redrawn up to ten times a
 * second, a log gets a line every five seconds. The first record, and the last, whose iteration is
 * `total`, are always shown. Where no record comes, the last one is shown again, with its age:
 * every two seconds in a bar, every five in a log; the first half a second (log: a second) after
 * the beginning. `progress` NULL: nothing happens.
 */
void em_progress_tell(em_progress *progress, const em_progress_record *record);

/* Makes room for a line of something else: what a bar shows goes from the screen, until its next
 * record. `progress` NULL: nothing happens. */
void em_progress_give_way(em_progress *progress);

/* Ends the line of a bar; NULL-safe. */
void em_progress_destroy(em_progress **progress);

#endif
