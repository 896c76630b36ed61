/* Models in shared objects of their own (emass/plugin.h). */
#pragma once

#include "emass/model.h"

typedef struct em_plugin em_plugin;

/* Loads the plug-in at `path` (relative to the current folder) and checks its table. Local. Errors:
 * EM_ECONFIG, naming the path, what was found and what was expected; EM_EMEMORY. */
em_status em_plugin_open(const char *path, em_plugin **out);
void em_plugin_close(em_plugin **plugin); /* NULL-safe. */

/* The model of a plug-in. Its options include a row for `library`, the path. Local. */
const em_model_ops *em_plugin_model(const em_plugin *plugin);
