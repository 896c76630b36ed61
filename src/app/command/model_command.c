#include "app/command/model_command.h"

#include "app/summary/command_arguments.h"
#include "base/memory.h"
#include "base/options/field.h"
#include "model/model_list.h"
#include "par/world.h"
#include "run/output/stored_config.h"

#include <stdlib.h>

enum { MOST_OPTIONS = 16 };

const em_model_command *em_model_command_at(int i)
{
    const em_model_ops *ops;

    for (int k = 0; (ops = em_model_at(k)); k++) {
        const int count = ops->commands ? ops->commands->count : 0;
        if (i < count)
            return &ops->commands->command[i];
        i -= count;
    }
    return NULL;
}

/* An option as it was written, or else its default. */
static em_status read_option(const char *command, const em_field *field, char *text, void *options)
{
    const char *written = text ? text : field->fallback;
    char *const value = (char *)written;
    const em_value one = {.kind = *written ? EM_VALUE_SCALAR : EM_VALUE_NULL,
                          .text = {1, (char **)&value}};
    const em_status status = em_field_read(field, &one, options);

    return status == EM_ECONFIG
               ? em_fail(EM_EUSAGE, "%s: --%s: %s", command, field->name, em_error_text())
               : status;
}

static em_status read_arguments(const em_model_command *command, int argc, const char **argv,
                                char **path, void *options)
{
    struct poptOption table[MOST_OPTIONS + 1] = {POPT_TABLEEND};
    char *text[MOST_OPTIONS] = {NULL}, yes[] = "true", title[64];
    int n = 0, flag[MOST_OPTIONS] = {0};

    for (const em_field *f = command->fields; f && f->name && n < MOST_OPTIONS; f++, n++)
        table[n] =
            f->type == EM_FIELD_BOOL
                ? (struct poptOption){f->name, 0, POPT_ARG_NONE, &flag[n], 0, f->doc, NULL}
                : (struct poptOption){f->name, 0, POPT_ARG_STRING, &text[n], 0, f->doc, "VALUE"};
    snprintf(title, sizeof title, "emass %s", command->name);
    poptContext context = poptGetContext(title, argc, argv, table, 0);
    em_status status = em_arguments_check(context, command->name, poptGetNextOpt(context));
    if (!status)
        status = em_arguments_only(context, command->name, "one file", path);
    for (int i = 0; i < n; i++) {
        if (!status)
            status =
                read_option(command->name, &command->fields[i], flag[i] ? yes : text[i], options);
        free(text[i]);
    }
    poptFreeContext(context);
    return status;
}

static em_status stored_options(void *context, const char *path, const char *folder,
                                const void **out)
{
    em_config **config = context;
    em_status status;

    em_config_destroy(config);
    status = em_stored_config(path, folder, 0, NULL, config);
    *out = status ? NULL : (*config)->model_options;
    return status;
}

em_status em_model_command_run(const em_model_command *command, int argc, const char **argv)
{
    em_config *config = NULL;
    const em_command_host host = {&config, em_world_rank() == 0, stored_options};
    char *path = NULL;
    void *options = calloc(1, command->options_size + 1);
    em_status status = options ? read_arguments(command, argc, argv, &path, options)
                               : em_fail(EM_EMEMORY, "out of memory");

    if (!status)
        status = command->run(&host, path, options);
    em_config_destroy(&config);
    if (options)
        em_field_release(command->fields, options);
    free(options);
    em_release(&path);
    return status;
}
