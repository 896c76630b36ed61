#include "app/command/command.h"

#include "app/summary/command_arguments.h"
#include "base/memory.h"
#include "data/table/table_options.h"
#include "par/world.h"
#include "run/loop/predict.h"

#include <stdio.h>
#include <string.h>

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

static em_status check_choice(const char *name, const char *text, const char *const *choices)
{
    int choice;

    return em_command_choice("predict", name, text, choices, &choice);
}

static em_status check_reading(const em_prediction *order)
{
    em_status status = check_choice("format", order->format, em_table_format_names);

    status = status ? status : check_choice("header", order->header, em_table_header_names);
    return status ? status : check_choice("decimal", order->decimal, em_table_decimal_names);
}

em_status em_predict_command(int argc, const char **argv)
{
    em_prediction order = {.path = NULL};
    EM_SCOPED char *beside = NULL;
    char *output = NULL;
    int overwrite = 0;
    const struct poptOption options[] = {
        {"data", 0, POPT_ARG_STRING, &order.data, 0, "new data", "FILE"},
        {"format", 0, POPT_ARG_STRING, &order.format, 0, "of a text file", "FORMAT"},
        {"header", 0, POPT_ARG_STRING, &order.header, 0, "whether the first line names", "HEADER"},
        {"decimal", 0, POPT_ARG_STRING, &order.decimal, 0, "what parts digits", "DECIMAL"},
        {"output", 0, POPT_ARG_STRING, &output, 0, "where predictions go", "FILE"},
        {"folder", 0, POPT_ARG_STRING, &order.folder, 0, "folder of the config", "DIR"},
        {"overwrite", 0, POPT_ARG_NONE, &overwrite, 0, "replace an output", NULL},
        POPT_TABLEEND};
    EM_SCOPED_BY(em_command_line_end) em_command_line line;
    em_status status = em_command_line_read(argc, argv, options, "one file", 1, 1, &line);

    if (!status && !order.data)
        status = em_fail(EM_EUSAGE, "predict: expected --data NEW, the data to make predictions "
                                    "for (see emass predict --help)");
    if (!status && !output)
        status = em_agree(em_replace_h5(line.argument[0], ".predictions.h5", &beside));
    order.path = line.argument ? line.argument[0] : NULL;
    order.output = output ? output : beside;
    order.overwrite = overwrite;
    status = status ? status : check_reading(&order);
    return status ? status : predict(&order);
}
