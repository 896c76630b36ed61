/*
 * A scan (run/config/config_scan.h): its runs are dealt to sets of ranks, which work side by side
 * and each make one run after the other. Which set makes a run changes nothing in its file.
 */
#pragma once

#include "run/config/config_scan.h"

#include <stdbool.h>

/* Makes run number i of the scan, in a world of the ranks of a set. `shows`: this set may show
 * its progress. Collective over the world. */
typedef em_status em_scan_run(void *to, int64_t i, bool shows);

/* Makes all runs. In turn: one at a time, in the order of the values, by the first ranks.
 * A run that fails does not end the others, except in turn. A set of ranks whose run is stopped
 * begins no other. Collective over the world. Errors: the first run's that failed. */
em_status em_scan_all(const em_config_scan *scan, em_scan_run *run, void *to, bool in_turn);

/* Compares the runs: writes the page of the scan and, where it `prints`, prints a table. Collective
 * over the world. Errors: those of reading and writing. */
em_status em_scan_compare(const em_config_scan *scan, bool prints);
