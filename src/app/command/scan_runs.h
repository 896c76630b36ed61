/* A scan: one config with several values of an option (run/config/config_scan.h). The ranks are
 * divided into sets, which work at the same time. Each set makes some of the runs, one after the
 * other. The file of a run does not depend on the set that made it. */
#pragma once

#include "app/command/scan_stop.h"
#include "run/config/config_scan.h"

#include <stdbool.h>

/* Makes run number i of the scan. The world consists of the ranks of one set. `shows`: this set may
 * show its progress. `stop`: where sets say that they are asked to stop; NULL: there is one set.
 * Collective over the world. */
typedef em_status em_scan_run(void *to, int64_t i, bool shows, em_scan_stop *stop);

/* Makes all runs. `in_turn`: the first ranks make them one at a time, in the order of the values,
 * and a run that fails ends the scan; otherwise the other runs go on. A set of ranks whose run is
 * stopped starts no other run. A signal to any rank stops the runs of all sets. Collective over the
 * world. Errors: those of the first run that failed. */
em_status em_scan_all(const em_config_scan *scan, em_scan_run *run, void *to, bool in_turn);

/* Compares the runs: writes the page of the scan and, if `prints`, prints a table. Collective over
 * the world. Errors: those of reading and writing. */
em_status em_scan_compare(const em_config_scan *scan, bool prints);
