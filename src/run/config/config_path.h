/* Paths in a config. */
#ifndef EM_RUN_CONFIG_CONFIG_PATH_H
#define EM_RUN_CONFIG_CONFIG_PATH_H

#include "emass/status.h"
#include "io/draws/writer.h"
#include "run/config/config.h"

#include <stdbool.h>

/* Turns a path as it is written in the config `config_path` into one from the current folder, in
 * place: ${NAME} is replaced by the environment variable, and what is then relative is taken from
 * the config's folder. Where ${EMASS_DATA} is not set it is "data", and the file has to be there.
 * Local. Errors: EM_ECONFIG, for the caller to say where; EM_EMEMORY. */
em_status em_expand_path(const char *config_path, char **path);

/* The same for the paths in the JSON text of a mapping, in place: in strings, not names, that have
 * a colon, what stands before the last one (table.csv:age). Errors: EM_ECONFIG, EM_EMEMORY. */
em_status em_expand_paths(const char *config_path, char **json);

/* Whether there is a file at an expanded path, or the file of one with a dataset in it
 * (file.h5:/x); of a mapping as JSON, at each of its paths. Local. */
bool em_path_is_there(const char *path);

/* The folder that the relative paths of a stored config start in. An output names it as seen from
 * its own folder, so that both may be moved together and no path of the machine is in the file. */

/* The root attribute that names it. */
#define EM_HOME_ATTRIBUTE "config_folder"

/* Whether a config has options that are relative paths, or may have them within a mapping. Local.
 */
bool em_home_matters(const em_config *config);

/* Writes the name of `folder`, which matters on rank 0 alone (NULL: it is not known), into the
 * output `output`. Where the two have nothing in common but the root of the file system the name is
 * the folder's whole path, and a file that is to be `reproducible` has none. Collective. Errors,
 * agreed: EM_EIO, EM_EMEMORY. */
em_status em_home_put(em_writer *writer, const char *folder, const char *output, bool reproducible);

/* The folder that an output of emass gives this name, as seen from the current one, a fresh string
 * (em_release). Local. Errors: EM_EUSAGE, links that go on and on; EM_EMEMORY. */
em_status em_home_of(const char *output, const char *name, char **folder);

/* Whether there is something at every relative path of a config. Local. */
bool em_home_fits(const em_config *config);

#endif
