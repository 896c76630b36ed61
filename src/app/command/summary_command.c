/* What the command line of `emass summary` asks for. */
#include "app/command/command.h"
#include "app/summary/command_arguments.h"
#include "app/summary/draws_summary.h"
#include "base/memory.h"
#include "par/world.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Numbers between 0 and 100, separated by commas. */
static em_status parse_percentiles(const char *text, em_reals *out)
{
    const char *next = text;
    em_status status = em_allocate_doubles((int64_t)strlen(text) / 2 + 1, &out->value);

    out->count = 0;
    while (!status) {
        char *end;
        double x = strtod(next, &end);

        if (end == next || (*end && *end != ',') || !(x >= 0 && x <= 100))
            return em_fail(EM_EUSAGE,
                           "--percentiles %s: found '%s', expected numbers between 0 and 100 "
                           "separated by commas",
                           text, next);
        out->value[out->count++] = x;
        if (!*end)
            return EM_OK;
        next = end + 1;
    }
    return status;
}

em_status em_summary_command(int argc, const char **argv)
{
    char *group = NULL, *percentiles = NULL;
    int csv = 0, squares = 0, common = 0, all = 0, rows = 0;
    em_summary_options options = em_summary_defaults(0, NULL);
    const struct poptOption table[] = {
        {"group", 0, POPT_ARG_STRING, &group, 0, NULL, NULL},
        {"var", 0, POPT_ARG_ARGV, &options.pattern, 0, NULL, NULL},
        {"percentiles", 0, POPT_ARG_STRING, &percentiles, 0, NULL, NULL},
        {"sort", 0, POPT_ARG_STRING, &options.sort, 0, NULL, NULL},
        {"ess", 0, POPT_ARG_NONE, &squares, 0, NULL, NULL},
        {"common", 0, POPT_ARG_NONE, &common, 0, NULL, NULL},
        {"csv", 0, POPT_ARG_NONE, &csv, 0, NULL, NULL},
        {"all", 0, POPT_ARG_NONE, &all, 0, NULL, NULL},
        {"rows", 0, POPT_ARG_INT, &rows, 0, NULL, NULL},
        POPT_TABLEEND};
    EM_SCOPED_BY(em_command_line_end) em_command_line line;
    em_reals percentile = {0};
    em_status status =
        em_command_line_read(argc, argv, table, "one file or more", 1, INT_MAX, &line);

    options.n_path = line.n;
    options.path = line.argument;
    options.group = group ? group : options.group;
    options.common = common;
    options.squares = squares;
    options.csv = csv;
    options.all = all;
    options.rows = rows;
    if (!status && rows < 0)
        status = em_fail(EM_EUSAGE, "--rows %d: expected 1 or more", rows);
    if (!status && percentiles) {
        status = em_agree(parse_percentiles(percentiles, &percentile));
        options.percentile = percentile;
    }
    status = status ? status : em_summary_print(&options, stdout);
    em_release(&percentile.value);
    return status;
}
