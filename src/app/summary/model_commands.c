#include "app/summary/model_commands.h"

#include "base/memory.h"
#include "run/config/config.h"
#include "run/output/stored_config.h"

em_status em_stored_model_options(void *context, const char *path, const char *folder,
                                  const void **out)
{
    em_config **config = context;

    em_config_destroy(config);
    const em_status status = em_stored_config(path, folder, 0, NULL, config);
    *out = status ? NULL : (*config)->model_options;
    return status;
}

em_status em_model_compare(const em_model_ops *model, int64_t n_file, const char *const *file,
                           bool prints, const char *page)
{
    EM_SCOPED_BY(em_config_destroy) em_config *config = NULL;
    const em_command_host host = {.context = &config,
                                  .prints = prints,
                                  .n_file = n_file,
                                  .file = file,
                                  .options = em_stored_model_options};
    return model->commands->compare(&host, page);
}

em_status em_model_report_part(const em_model_ops *model, const char *file, FILE *out)
{
    EM_SCOPED_BY(em_config_destroy) em_config *config = NULL;
    const em_command_host host = {
        .context = &config, .n_file = 1, .file = &file, .options = em_stored_model_options};
    return model->commands->report(&host, out);
}
