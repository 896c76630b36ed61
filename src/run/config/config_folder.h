/* The folder from which the relative paths of a stored config start. The output stores it relative
 * to its own folder, so that both may be moved together and no path of the machine is in the
 * file. */
#pragma once

#include "io/draws/writer.h"
#include "run/config/config.h"

/* The root attribute that names it. */
#define EM_HOME_ATTRIBUTE "config_folder"

/* Whether a config has relative paths, or mappings that may have them. Local. */
bool em_home_matters(const em_config *config);

/* Writes the name of `folder`, which only rank 0 needs to know (NULL: unknown), into the output
 * `output`. If the two have no common folder but the root, the name is the absolute path, or is
 * left out of a `reproducible` file. Collective. Errors, agreed: EM_EIO, EM_EMEMORY. */
em_status em_home_put(em_writer *writer, const char *folder, const char *output, bool reproducible);

/* The folder that an output stores under this name, relative to the current folder; a fresh string
 * (em_release). Local. Errors: EM_EUSAGE for a loop of links; EM_EMEMORY. */
em_status em_home_of(const char *output, const char *name, char **folder);

/* Whether a file or folder exists at every relative path of a config. Local. */
bool em_home_has_all_paths(const em_config *config);
