/* A signal to any rank of a scan stops the runs of all sets of ranks. The first rank of a set hears
 * of it by a message, because sets agree on nothing while they work. */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct em_scan_stop em_scan_stop;

/* `first_rank` [n_set]: the first rank of each set, in the world that was entered; copied.
 * Collective over that world. Errors, agreed: EM_EMEMORY. */
em_status em_scan_stop_create(int64_t n_set, const int *first_rank, em_scan_stop **out);

/* Tells the other sets if this one `is_asked` to stop. Returns whether another set has said so,
 * which only the first rank of a set hears. NULL-safe: false. Local. */
bool em_scan_stop_check(em_scan_stop *stop, bool is_asked);

/* For a rank whose set has no run left: waits for all ranks, and passes on a signal to this one
 * meanwhile. Then frees `*stop`; NULL-safe. Collective. */
void em_scan_stop_wait(em_scan_stop **stop);
