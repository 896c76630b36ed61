/* What the command line of `emass summary` asks for. */
#include "app/summary/command_arguments.h"
#include "app/summary/summary.h"
#include "base/memory.h"
#include "par/world.h"

#include <popt.h>
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

/* What the command line gave; text is owned, from malloc as popt does it. */
typedef struct arguments {
    char *group, *percentiles, *sort, **pattern;
    const char **path; /* borrowed, but for the list */
    int csv, squares, common, all, rows;
    em_reals percentile;
} arguments;

static void release_arguments(arguments *a)
{
    for (char **p = a->pattern; p && *p; p++)
        free(*p);
    free(a->pattern);
    free(a->group);
    free(a->percentiles);
    free(a->sort);
    em_release(&a->path);
    em_release(&a->percentile.value);
}

static em_status parse(poptContext popt, arguments *a, em_summary_options *options)
{
    em_status status = em_arguments_check(popt, "summary", poptGetNextOpt(popt));

    if (status)
        return status;
    int64_t n = 0;
    status = em_arguments_all(popt, "summary", "one file or more", 1, &n, &a->path);
    if (status)
        return status;
    *options = em_summary_defaults(n, a->path);
    options->group = a->group ? a->group : options->group;
    options->pattern = (const char *const *)a->pattern;
    options->sort = a->sort;
    options->common = a->common;
    options->squares = a->squares;
    options->csv = a->csv;
    options->all = a->all;
    options->rows = a->rows;
    if (a->rows < 0)
        return em_fail(EM_EUSAGE, "--rows %d: expected 1 or more", a->rows);
    if (!a->percentiles)
        return EM_OK;
    status = parse_percentiles(a->percentiles, &a->percentile);
    options->percentile = a->percentile;
    return status;
}

em_status em_summary_command(int argc, const char **argv)
{
    arguments a = {0};
    const struct poptOption table[] = {
        {"group", 0, POPT_ARG_STRING, &a.group, 0, NULL, NULL},
        {"var", 0, POPT_ARG_ARGV, &a.pattern, 0, NULL, NULL},
        {"percentiles", 0, POPT_ARG_STRING, &a.percentiles, 0, NULL, NULL},
        {"sort", 0, POPT_ARG_STRING, &a.sort, 0, NULL, NULL},
        {"ess", 0, POPT_ARG_NONE, &a.squares, 0, NULL, NULL},
        {"common", 0, POPT_ARG_NONE, &a.common, 0, NULL, NULL},
        {"csv", 0, POPT_ARG_NONE, &a.csv, 0, NULL, NULL},
        {"all", 0, POPT_ARG_NONE, &a.all, 0, NULL, NULL},
        {"rows", 0, POPT_ARG_INT, &a.rows, 0, NULL, NULL},
        POPT_TABLEEND};
    poptContext popt = poptGetContext("emass summary", argc, argv, table, 0);
    em_summary_options options;
    em_status status = em_agree(parse(popt, &a, &options));

    if (!status)
        status = em_summary_print(&options, stdout);
    poptFreeContext(popt);
    release_arguments(&a);
    return status;
}
