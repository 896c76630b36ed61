/* What models that bring commands (emass/model/commands.h) say of finished runs, to the commands of
 * the program. All Local. */
#pragma once

#include "emass/model/commands.h"
#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* em_command_host.options; `context` is an em_config *, NULL at first, which is replaced. Freed by
 * em_config_destroy. */
em_status em_stored_model_options(void *context, const char *path, const char *folder,
                                  const void **out);

/* em_model_commands.compare of a built-in model, of finished runs. Errors: those of it. */
em_status em_model_compare(const em_model_ops *model, int64_t n_file, const char *const *file,
                           bool prints, const char *page);

/* em_model_commands.report of a built-in model, of a finished run. Errors: those of it. */
em_status em_model_report_part(const em_model_ops *model, const char *file, FILE *out);
