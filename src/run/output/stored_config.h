/* The config and the arrays in the output of a run, for commands that use them again. */
#pragma once

#include "emass/model/prediction.h"
#include "io/draws/reader.h"
#include "run/config/config.h"

/*
 * The config stored in an output file, with overrides applied. Relative paths start in `folder`.
 * NULL: in the first of these folders in which all paths exist: the folder of the config that the
 * file names, the folder of the file, the current folder. Local. Errors: EM_EDATA if the file has
 * no config; those of em_config_parse.
 */
em_status em_stored_config(const char *path, const char *folder, int n_override,
                           const char *const *override, em_config **out);

/*
 * Compares the iterations per draw of files that are read together: of a run with `draws: auto`
 * those to which it has thinned its draws, else run.thin. *out names the first two that differ:
 * "run.thin is 1 in a.h5 and 5 in b.h5"; NULL: none differ. Freed by em_release. Local. Errors:
 * EM_EMEMORY.
 */
em_status em_thinned_unlike(em_reader *files, char **out);

/* The arrays of a file and the labels of its axes, for a model that predicts. */
typedef struct em_stored em_stored;

/* `path` is borrowed. Freed by em_release_owner. Local. Errors: EM_EMEMORY. */
em_status em_stored_create(const char *path, em_stored **out);
const em_fitted *em_stored_fitted(const em_stored *stored); /* Local. */
