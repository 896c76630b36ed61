/* Lets the program's commands use what a model with commands (emass/model/commands.h) computes from
 * finished runs. All Local. */
#pragma once

#include "emass/model/commands.h"
#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* em_command_host.options. `context` points to an em_config *, at first NULL, which is replaced;
 * the caller frees it by em_config_destroy. */
em_status em_stored_model_options(void *context, const char *path, const char *folder,
                                  const void **out);

/* Calls em_model_commands.compare of a built-in model for finished runs. Errors: its errors. */
em_status em_model_compare(const em_model_ops *model, int64_t n_file, const char *const *file,
                           bool prints, const char *page);

/* Calls em_model_commands.report of a built-in model for a finished run. Errors: its errors. */
em_status em_model_report_part(const em_model_ops *model, const char *file, FILE *out);
