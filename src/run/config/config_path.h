/* Paths in a config. */
#pragma once

#include "emass/status.h"

#include <stdbool.h>

/* Replaces a path from the config `config_path` by one relative to the current folder: each ${NAME}
 * becomes the environment variable, and a relative path is taken from the config's folder.
 * ${EMASS_DATA} defaults to "data"; then the file must exist. Local. Errors: EM_ECONFIG, to which
 * the caller adds the place; EM_EMEMORY. */
em_status em_expand_path(const char *config_path, char **path);

/* Replaces the paths in the JSON text of a mapping in the same way. The path in a value such as
 * "table.csv:age" is the part before the last colon. Local. Errors: EM_ECONFIG, EM_EMEMORY. */
em_status em_expand_paths(const char *config_path, char **json);

/* Whether the file of an expanded path exists; the path may end with a dataset (file.h5:/x). For a
 * mapping in JSON: whether all its files exist. Local. */
bool em_path_is_there(const char *path);

/* Writes a setting such as "model.data='new.csv'", with the path quoted for YAML, to a fresh string
 * (em_release). Local. Errors: EM_EMEMORY. */
em_status em_path_setting(const char *option, const char *path, char **out);
