#include "app/command/command.h"

#include "app/summary/command_arguments.h"
#include "base/memory.h"
#include "par/world.h"
#include "run/merge/merge.h"

#include <limits.h>
#include <stdio.h>

static em_status merge(em_merging *order)
{
    em_status status = em_merge(order);

    if (!status && em_world_rank() == 0)
        printf("%s: %lld chains x %lld draws, of %lld files%s%s\n", order->output,
               (long long)order->n_chain, (long long)order->n_draw, (long long)order->n_input,
               order->cut ? ": " : "", order->cut ? order->cut : "");
    em_release(&order->cut);
    return status;
}

em_status em_merge_command(int argc, const char **argv)
{
    int overwrite = 0, common = 0;
    const struct poptOption options[] = {
        {"common", 0, POPT_ARG_NONE, &common, 0, "draws that all have", NULL},
        {"overwrite", 0, POPT_ARG_NONE, &overwrite, 0, "replace an output", NULL},
        POPT_TABLEEND};
    EM_SCOPED_BY(em_command_line_end) em_command_line line;
    em_status status = em_command_line_read(argc, argv, options, "OUT.h5 and two files or more", 3,
                                            INT_MAX, &line);

    return status ? status
                  : merge(&(em_merging){.output = line.argument[0],
                                        .n_input = line.n - 1,
                                        .input = line.argument + 1,
                                        .overwrite = overwrite != 0,
                                        .common = common != 0});
}
