/* Progress of a run: one line redrawn on a terminal, or plain dated lines in a log. A thread shows
 * the age of the last record when no new one comes for some seconds. All Local. */
#pragma once

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

/* The progress of a run. NaN members are not shown; with `total` 0 iterations are not, either. */
typedef struct em_progress_record {
    int64_t iteration, total;
    const char *phase; /* starting, warmup, sampling; a text that stays */
    double r_hat;      /* worst */
    double ess;        /* smallest */
    int64_t divergences;
    double draws_per_second;
    double seconds_left;
    bool at_most;      /* `total` is an upper bound: warmup may end earlier */
    bool some_numbers; /* r_hat and ess are of some numbers: others may be worse */
} em_progress_record;

/* The line of a record, without a bar: "sampling 150/300  R-hat 1.020  ESS 310". */
void em_progress_describe(const em_progress_record *record, size_t size, char *line);

typedef struct em_progress em_progress;

/* `stream` is borrowed, usually stderr. `starting` says what the run does before the first record;
 * NULL: nothing is shown until then. Errors: EM_EMEMORY. */
em_status em_progress_create(em_progress_mode mode, FILE *stream, const char *starting,
                             em_progress **out);

/* Shows the record unless the last one is too recent: a bar is redrawn at most ten times a second,
 * a log gets a line every five seconds. The first record and the last (iteration `total`) are
 * always shown. Without a new record the last one is repeated with its age after em_progress_pause;
 * first after half a second (log: a second). `progress` NULL: nothing happens. */
void em_progress_tell(em_progress *progress, const em_progress_record *record);

/* If no new record arrives, the last one is printed again. This is the pause before that, in
 * seconds; `age` is the record's age when it was last printed. A bar waits two seconds. A log waits
 * for the age, at least five seconds and at most ten minutes, so that slow iterations do not fill
 * it. `mode`: bar or log. */
double em_progress_pause(em_progress_mode mode, double age);

/* Clears the bar from the screen, so that another line can be printed; the next record draws it
 * again. `progress` NULL: nothing happens. */
void em_progress_give_way(em_progress *progress);

/* Ends the line of a bar; NULL-safe. */
void em_progress_destroy(em_progress **progress);
