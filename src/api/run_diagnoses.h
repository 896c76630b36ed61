/* For the program emass, which prints a summary at the end of a run. */
#pragma once

#include "diagnostics/diag.h"
#include "emass/run.h"

/* What the last check of a run diagnosed on this rank; NULL: there was no check. Borrowed until the
 * run is destroyed. Local. */
em_diagnoses *em_run_diagnoses(const em_run *run);
