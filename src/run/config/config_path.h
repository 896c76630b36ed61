/* Paths in a config. */
#ifndef EM_RUN_CONFIG_CONFIG_PATH_H
#define EM_RUN_CONFIG_CONFIG_PATH_H

#include "emass/status.h"

#include <stdbool.h>

/*
 * Turns a path as it is written in the config `config_path` into one from the current folder, in
 * place: ${NAME} is replaced by the environment variable, and what is then relative is taken from
 * the config's folder. Where ${EMASS_DATA} is not set it is "data", and the file has to be there.
 * Local. Errors: EM_ECONFIG, for the caller to say where; EM_EMEMORY.
 */
em_status em_expand_path(const char *config_path, char **path);

/*
 * The same for the paths in the JSON text of a mapping, in place: in strings, not names, that have
 * a colon, what stands before the last one (table.csv:age). Errors: EM_ECONFIG, EM_EMEMORY.
 */
em_status em_expand_paths(const char *config_path, char **json);

/* Whether there is a file at an expanded path, or the file of one with a dataset in it
 * (file.h5:/x); of a mapping as JSON, at each of its paths. Local. */
bool em_path_is_there(const char *path);

#endif
