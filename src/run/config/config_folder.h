/*
 * The folder that the relative paths of a stored config start in. An output names it as seen from
 * its own folder, so that both may be moved together and no path of the machine is in the file.
 */
#ifndef EM_RUN_CONFIG_CONFIG_FOLDER_H
#define EM_RUN_CONFIG_CONFIG_FOLDER_H

#include "io/draws/writer.h"
#include "run/config/config.h"

/* The root attribute that names it. */
#define EM_HOME_ATTRIBUTE "config_folder"

/* Whether a config has options that are relative paths, or may have them within a mapping. Local.
 */
bool em_home_matters(const em_config *config);

/*
 * Writes the name of `folder`, which matters on rank 0 alone (NULL: it is not known), into the
 * output `output`. Where the two have nothing in common but the root of the file system the name is
 * the folder's whole path, and a file that is to be `reproducible` has none. Collective. Errors,
 * agreed: EM_EIO, EM_EMEMORY.
 */
em_status em_home_put(em_writer *writer, const char *folder, const char *output, bool reproducible);

/* The folder that an output of emass gives this name, as seen from the current one, a fresh string
 * (em_release). Local. Errors: EM_EUSAGE, links that go on and on; EM_EMEMORY. */
em_status em_home_of(const char *output, const char *name, char **folder);

/* Whether there is something at every relative path of a config. Local. */
bool em_home_fits(const em_config *config);

#endif
