/* Defaults for what authors of models may omit, such as `create`. */
#ifndef EM_MODEL_PLAIN_H
#define EM_MODEL_PLAIN_H

#include "emass/model.h"

/* Fills in what the table of a model leaves out, as emass/model.h says. Local. Errors: EM_ECONFIG,
 * with `path`, where it came from, where something is missing that nothing stands for. */
em_status em_model_complete(const char *path, em_model_ops *ops);

#endif
