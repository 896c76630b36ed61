/* Whether files that are read together were thinned alike. */
#ifndef EM_RUN_OUTPUT_THINNING_H
#define EM_RUN_OUTPUT_THINNING_H

#include "emass/status.h"
#include "io/draws/reader.h"

/*
 * The first two files whose configs differ in run.thin: "run.thin is 1 in a.h5 and 5 in b.h5";
 * NULL: none differ. Freed by em_release. Local. Errors: EM_EMEMORY.
 */
em_status em_thinned_unlike(em_reader *files, char **out);

#endif
