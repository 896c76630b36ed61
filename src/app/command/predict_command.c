#include "app/command/predict_command.h"

#include "app/summary/command_arguments.h"
#include "base/memory.h"
#include "par/world.h"
#include "run/loop/prediction.h"

#include <popt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct predict_command {
    char *path, *folder, *data, *output;
    int overwrite;
} predict_command;

/* heart.h5: heart.predictions.h5 */
static em_status name_output(const char *path, char **out)
{
    const size_t length = strlen(path);
    const bool ends = length > 3 && strcmp(path + length - 3, ".h5") == 0;

    return em_format_text(out, "%.*s.predictions.h5", (int)(ends ? length - 3 : length), path);
}

static em_status take(poptContext context, predict_command *command, const char *folder,
                      const char *data, const char *output)
{
    em_status status = em_arguments_only(context, "predict", "one file", &command->path);

    if (!status && !data)
        return em_fail(EM_EUSAGE,
                       "predict: expected --data NEW, what is to be predicted for (see emass "
                       "predict --help)");
    if (!status)
        status = em_copy_text(data, &command->data);
    if (!status && folder)
        status = em_copy_text(folder, &command->folder);
    if (status)
        return status;
    return output ? em_copy_text(output, &command->output)
                  : name_output(command->path, &command->output);
}

static em_status parse(int argc, const char **argv, predict_command *command)
{
    char *folder = NULL, *data = NULL, *output = NULL;
    const struct poptOption options[] = {
        {"data", 0, POPT_ARG_STRING, &data, 0, "new data", "FILE"},
        {"output", 0, POPT_ARG_STRING, &output, 0, "where predictions go", "FILE"},
        {"folder", 0, POPT_ARG_STRING, &folder, 0, "folder of the config", "DIR"},
        {"overwrite", 0, POPT_ARG_NONE, &command->overwrite, 0, "replace an output", NULL},
        POPT_TABLEEND};
    poptContext context = poptGetContext("emass predict", argc, argv, options, 0);
    const int option = poptGetNextOpt(context);
    em_status status = em_arguments_check(context, "predict", option);

    if (!status)
        status = take(context, command, folder, data, output);
    poptFreeContext(context);
    free(folder);
    free(data);
    free(output);
    return status;
}

static em_status predict(const predict_command *command)
{
    em_prediction order = {.path = command->path,
                           .folder = command->folder,
                           .data = command->data,
                           .output = command->output,
                           .overwrite = command->overwrite};
    em_status status = em_predict(&order);

    if (status)
        return status;
    if (order.n_failed > 0)
        em_say("warning: %lld of %lld draws had no prediction and are NaN: %s",
               (long long)order.n_failed, (long long)(order.n_chain * order.n_draw), order.failure);
    if (em_world_rank() == 0)
        printf("%s: predictions from %lld draws of %lld chains\n", command->output,
               (long long)order.n_draw, (long long)order.n_chain);
    return EM_OK;
}

em_status em_predict_command(int argc, const char **argv)
{
    predict_command command = {.path = NULL};
    em_status status = em_agree(parse(argc, argv, &command));

    if (!status)
        status = predict(&command);
    em_release(&command.path);
    em_release(&command.folder);
    em_release(&command.data);
    em_release(&command.output);
    return status;
}
