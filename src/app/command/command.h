/* The commands that have no folder of their own. Each has one file. argv[0] is the name of the
 * command. Unless marked Local they are collective, and errors are agreed: EM_EUSAGE for a wrong
 * command line, and those named here. */
#pragma once

#include "emass/model/commands.h"
#include "emass/status.h"

/* Samples, writes one file and prints its summary. Any error of a run. */
em_status em_run_command(int argc, const char **argv);

/* Reads config and data, prints the plan and tests the gradient, without sampling. EM_EMODEL if the
 * gradient is wrong. */
em_status em_check_command(int argc, const char **argv);

/* Prints the models, samplers, estimators and options that a config can name. Local. */
em_status em_list_command(int argc, const char **argv);

/* Prints the table of files of draws (app/summary/draws_summary.h). */
em_status em_summary_command(int argc, const char **argv);

/* Merges the files of several runs of one model into one file. Errors of em_merge. */
em_status em_merge_command(int argc, const char **argv);

/* Writes predictions for new data from the draws of a run. Errors of em_predict. */
em_status em_predict_command(int argc, const char **argv);

/* Writes a table in the form that ranks read fastest. EM_EDATA, EM_EIO, EM_EMEMORY. */
em_status em_convert_command(int argc, const char **argv);

/* Prints what differs between two files, and the first difference. EM_ENUMERIC if they differ,
 * EM_EDATA if a file cannot be read. */
em_status em_diff_command(int argc, const char **argv);

/* Runs a part of a finished run again, on other ranks, and compares. EM_ENUMERIC names the first
 * difference. */
em_status em_verify_command(int argc, const char **argv);

/* Prints the log evidence of tempered runs, and Bayes factors. EM_EUSAGE if their data differ,
 * EM_EDATA if a run has no evidence. */
em_status em_evidence_command(int argc, const char **argv);

/* Reads the text of a config on rank 0 and sends it to the others. EM_EUSAGE, EM_EDATA, EM_EMEMORY.
 * Freed by em_release. */
em_status em_read_config(const char *path, char **text);

/* Prints the help of a command, or of "emass", from help.txt to standard output. On a terminal
 * lines are broken to its width, a hundred columns at most. Local. Errors: EM_EMEMORY. */
em_status em_help_print(const char *name);

/* Prints the help of a model's command (emass/model/commands.h) from its text, in the same way. */
em_status em_help_print_text(const char *text);

/* The i-th command of the built-in models (emass/model/commands.h); NULL: no more. Local. */
const em_model_command *em_model_command_at(int i);

/* Runs a command of a model. Errors: EM_EUSAGE, those of the command. */
em_status em_model_command_run(const em_model_command *command, int argc, const char **argv);
