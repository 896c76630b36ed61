#include "app/command/command.h"

#include "app/summary/command_arguments.h"
#include "app/summary/model_commands.h"
#include "base/memory.h"
#include "base/options/field.h"
#include "model/model_list.h"
#include "par/world.h"
#include "run/config/config.h"

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

/* Reads an option from its text, or takes its default. */
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

/* The options of a command as texts. */
typedef struct written {
    int n, flag[MOST_OPTIONS];
    char *text[MOST_OPTIONS];
    struct poptOption table[MOST_OPTIONS + 1];
} written;

static void list_options(const em_model_command *command, written *w)
{
    *w = (written){.table = {POPT_TABLEEND}};
    for (const em_field *f = command->fields; f && f->name && w->n < MOST_OPTIONS; f++, w->n++)
        w->table[w->n] = (struct poptOption){
            .longName = f->name,
            .argInfo = f->type == EM_FIELD_BOOL ? POPT_ARG_NONE : POPT_ARG_STRING,
            .arg = f->type == EM_FIELD_BOOL ? (void *)&w->flag[w->n] : (void *)&w->text[w->n]};
}

static em_status read_options(const em_model_command *command, const written *w, void *options)
{
    char yes[] = "true";
    em_status status = EM_OK;

    for (int i = 0; !status && i < w->n; i++)
        status =
            read_option(command->name, &command->fields[i], w->flag[i] ? yes : w->text[i], options);
    return status;
}

em_status em_model_command_run(const em_model_command *command, int argc, const char **argv)
{
    const bool many = command->most_files > 1;
    EM_SCOPED_BY(em_config_destroy) em_config *config = NULL;
    em_command_host host = {
        .context = &config, .prints = em_world_rank() == 0, .options = em_stored_model_options};
    written given;
    EM_SCOPED_BY(em_command_line_end) em_command_line line;
    void *options = calloc(1, command->options_size + 1);

    list_options(command, &given);
    em_status status =
        em_command_line_read(argc, argv, given.table, many ? "one file or more" : "one file", 1,
                             many ? command->most_files : 1, &line);
    if (!status)
        status =
            options ? read_options(command, &given, options) : em_fail(EM_EMEMORY, "out of memory");
    host.n_file = line.n;
    host.file = line.argument;
    status = status ? status : command->run(&host, line.argument[0], options);
    if (options)
        em_field_release(command->fields, options);
    free(options);
    return status;
}
