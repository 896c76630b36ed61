#include "app/command/commands.h"

#include "app/summary/command_arguments.h"
#include "base/memory.h"
#include "par/world.h"
#include "run/loop/prediction.h"

#include <stdio.h>

static em_status predict(em_prediction *order)
{
    em_status status = em_predict(order);

    if (status)
        return status;
    if (order->n_failed > 0)
        em_say("warning: %lld of %lld draws had no prediction and are NaN: %s",
               (long long)order->n_failed, (long long)(order->n_chain * order->n_draw),
               order->failure);
    if (em_world_rank() == 0)
        printf("%s: predictions from %lld draws of %lld chains\n", order->output,
               (long long)order->n_draw, (long long)order->n_chain);
    return EM_OK;
}

em_status em_predict_command(int argc, const char **argv)
{
    char *folder = NULL, *data = NULL, *output = NULL, *beside = NULL;
    int overwrite = 0;
    const struct poptOption options[] = {
        {"data", 0, POPT_ARG_STRING, &data, 0, "new data", "FILE"},
        {"output", 0, POPT_ARG_STRING, &output, 0, "where predictions go", "FILE"},
        {"folder", 0, POPT_ARG_STRING, &folder, 0, "folder of the config", "DIR"},
        {"overwrite", 0, POPT_ARG_NONE, &overwrite, 0, "replace an output", NULL},
        POPT_TABLEEND};
    em_command_line line;
    em_status status = em_command_line_read(argc, argv, options, "one file", 1, 1, &line);

    if (!status && !data)
        status = em_fail(EM_EUSAGE, "predict: expected --data NEW, the data to make predictions "
                                    "for (see emass predict --help)");
    if (!status && !output)
        status = em_agree(em_replace_h5(line.argument[0], ".predictions.h5", &beside));
    if (!status)
        status = predict(&(em_prediction){.path = line.argument[0],
                                          .folder = folder,
                                          .data = data,
                                          .output = output ? output : beside,
                                          .overwrite = overwrite});
    em_release(&beside);
    em_command_line_end(&line);
    return status;
}
