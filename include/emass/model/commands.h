/*
 * Capability `commands`: commands of the program that belong to a model, as `emass topics` does to
 * topic models. A command has the file of a finished run as its argument, or several files, and
 * options by a table of fields (emass/field.h): field `words` is --words N, and a field that is
 * true or false is --csv, without a value. The program has the commands of built-in models only,
 * because a plug-in is not loaded before a config names it.
 *
 * Example commands:
 *     // emass say FILE.h5 [--loudly]
 *     typedef struct { bool loudly; } options;
 *     static const em_field fields[] = {
 *         EM_BOOL(options, loudly, .fallback = "false", .doc = "with an exclamation mark"), {0}};
 *     static em_status say(const em_command_host *host, const char *path, const void *given)
 *     {
 *         if (host->prints)
 *             printf("%s%s\n", path, ((const options *)given)->loudly ? "!" : "");
 *         return EM_OK;
 *     }
 *     static const em_model_command command = {
 *         .name = "say", .help = "usage: emass say FILE.h5 [--loudly]\n",
 *         .options_size = sizeof(options), .fields = fields, .run = say};
 *     static em_status density(const void *none, const double *theta, double *log_p,
 *                              double *gradient)
 *     {
 *         *log_p -= theta[0] * theta[0] / 2;
 *         gradient[0] -= theta[0];
 *         return EM_OK;
 *     }
 *     EMASS_PLUGIN({.name = "commands", .dim = 1, .log_density_gradient = density,
 *                   .commands = &(const em_model_commands){.count = 1, .command = &command}});
 */
#pragma once

#include "emass/model.h"

#include <stdio.h>

EM_BEGIN_C

/* Services of the program for a command. */
typedef struct em_command_host {
    void *context;
    bool prints;             /* this rank prints, to standard output */
    int64_t n_file;          /* number of files given: one, or up to most_files of the command */
    const char *const *file; /* [n_file] */
    /* Reads the options of the model from the config in the file of a run. They stay valid until
     * the command returns. Relative paths start in `folder`; NULL: in the folder of the run. Local.
     * Errors: EM_EDATA, EM_ECONFIG. */
    em_status (*options)(void *context, const char *path, const char *folder, const void **out);
} em_command_host;

typedef struct em_model_command {
    const char *name;
    const char *help; /* lines of text: usage, what it does, options, an example */
    size_t options_size;
    const em_field *fields; /* the options of the command; may be NULL */
    int64_t most_files;     /* the largest number of files it accepts; 0: one */
    /* `path` is the file, the first of host->file. Collective over all ranks. Errors: the same on
     * all ranks. */
    em_status (*run)(const em_command_host *host, const char *path, const void *options);
} em_model_command;

typedef struct em_model_commands {
    int count;
    const em_model_command *command; /* [count] */
    /* An integer option of the model for which `emass run` also accepts a list. It then makes a run
     * for each value (a scan). NULL: none. */
    const char *scanned;
    /* Compares the runs of a scan; host->file has their files. Writes the HTML file `page`, and
     * prints a line for each run where host->prints is true. Local. Errors: those of reading and
     * writing. */
    em_status (*compare)(const em_command_host *host, const char *page);
    /* The first line of every such page. A run replaces an existing file only if it begins with
     * this line. NULL without compare. */
    const char *page_line;
    /* Writes the model's part of the report of a run (emass report), as HTML; host->file[0] is the
     * file of the run. Long lines are broken in elements of the class `words`. Local. Errors: those
     * of reading. NULL: none. */
    em_status (*report)(const em_command_host *host, FILE *out);
} em_model_commands;

EM_END_C
