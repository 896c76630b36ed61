#include "app/command/help.h"

#include "base/system/terminal.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define EXIT_STATUS                                                                                \
    "Exit status: 0 done; 1 failed while running; 2 usage, config or data error, nothing was\n"    \
    "written; 75 stopped by a signal or the time limit after a valid checkpoint: submit the "      \
    "same\n"                                                                                       \
    "command again with --resume.\n"

const char em_help[] =
    "emass: parallel chains of MCMC over MPI, with a mass matrix that all chains learn together.\n"
    "\n"
    "usage: emass COMMAND ...                  one process\n"
    "       emass run --ranks P ...            P processes; so do mpirun -n P emass run ... and "
    "srun\n"
    "\n"
    "commands:\n"
    "  run CONFIG.yaml       sample, and write the draws to one HDF5 file that ArviZ opens\n"
    "  summary FILE.h5 ...   means, quantiles, effective sample sizes and R-hat of files\n"
    "  report FILE.h5        one HTML page: verdict, table, figures, what to do next\n"
    "  check CONFIG.yaml     read config and data, print the plan, test the gradient; no sampling\n"
    "  list [WHAT [NAME]]    models, samplers, mass estimators, and every option\n"
    "  topics FILE.h5        what the topics of a run are about; mixtures of new documents\n"
    "  predict FILE.h5       predictions for new data from the draws of a run\n"
    "  verify FILE.h5        run a stretch of a file again on other ranks, and compare bit for "
    "bit\n"
    "  merge OUT.h5 A.h5 ... files of one model, as of a job array, into one\n"
    "  loo FILE.h5 ...       leave-one-out cross-validation from stored log likelihoods\n"
    "  diff A.h5 B.h5        which attributes, options and numbers differ, and where first\n"
    "  convert IN OUT.h5     a table in the form that ranks read fastest\n"
    "\n"
    "  COMMAND --help        more about a command; also: help COMMAND\n"
    "  --version             versions of emass and of the MPI it is linked with\n"
    "\n"
    "example:\n"
    "  emass run --ranks 4 heart.yaml --set run.draws=2000\n"
    "\n" EXIT_STATUS;

const char em_help_run[] =
    "usage: emass run CONFIG.yaml [OPTION...]\n"
    "\n"
    "Samples the model of the config, writes one HDF5 file in ArviZ's schema, and prints the\n"
    "summary and the convergence verdict. The same seed gives the same draws on any number of\n"
    "processes. An output that exists is an error, unless one of the last two options is given.\n"
    "\n"
    "Converged means: R-hat at most 1.01 and bulk and tail ESS at least 100 per chain (or what "
    "the\n"
    "section stop of the config asks for), and no chain that stood still. With warnings: up to "
    "one\n"
    "divergence in 1000 draws, a chain's E-BFMI below 0.3, saturated trees, or a mode of less "
    "mass\n"
    "where no chain is. Not converged: more divergences, chains in several modes, or a mode of\n"
    "more mass where no chain is. A sentence under the verdict says what to do about each.\n"
    "\n"
    "options:\n"
    "  --ranks N               start N processes, with EMASS_LAUNCHER, or srun in a Slurm job, or\n"
    "                          mpirun; as root too, and more than there are cores\n"
    "  --set KEY.PATH=VALUE    replace one value of the config; may be repeated (emass list)\n"
    "  --output FILE           the same as --set output.file=FILE\n"
    "  --seed N                the same as --set run.seed=N\n"
    "  --chains N              the same as --set run.chains=N\n"
    "  --max-time TIME         the same as --set stop.max_time=TIME, such as 90s, 10m or 3h\n"
    "  --progress MODE         auto (default: bar on a terminal, else log), bar, log or none\n"
    "  --quiet                 no progress, no table\n"
    "  --resume                go on where an earlier run was stopped, else start; a finished run\n"
    "                          is extended to run.draws, and never drawn anew\n"
    "  --overwrite             replace an output that exists, a finished one too\n"
    "\n"
    "example:\n"
    "  emass run --ranks 4 heart.yaml --set sampler.leapfrog_steps=20 --output heart20.h5\n"
    "\n" EXIT_STATUS;

const char em_help_summary[] =
    "usage: emass summary FILE.h5 [FILE.h5 ...] [OPTION...]\n"
    "\n"
    "Prints mean, Monte Carlo standard error, standard deviation, percentiles, bulk and tail\n"
    "effective sample size and R-hat (Vehtari et al. 2021) of every variable, the verdict, and\n"
    "what to do where something is wrong; of a run of superchains nested R-hat too. Reads any "
    "file\n"
    "in ArviZ's schema. On a terminal at most 40 rows are shown: parameters before transformed\n"
    "parameters before generated quantities, those that mix worst among them; rows that are\n"
    "constant or the same as another are one line. A pipe or a file gets all rows.\n"
    "Of several files of one model, as of the jobs of an array, the chains are numbered through:\n"
    "the table is that of the merged file (emass merge --help).\n"
    "\n"
    "options:\n"
    "  --group NAME            group of draws (default posterior)\n"
    "  --var GLOB              only these variables or elements, such as 'beta*'; may be repeated\n"
    "  --percentiles P,P,...   percentiles to show (default 5,50,95)\n"
    "  --sort COLUMN           rows by this column, the worst first, such as r_hat\n"
    "  --common                of files of unequal numbers of draws the first, as many as all "
    "have\n"
    "  --ess                   the effective sample size of squares too, on which sd rests\n"
    "  --all                   all rows on a terminal too\n"
    "  --rows N                at most N rows, chosen as for a terminal\n"
    "  --csv                   comma-separated, all digits, all rows\n"
    "\n"
    "example:\n"
    "  emass summary heart.h5 --var 'beta*' --sort r_hat\n"
    "  emass summary heart.seed*.h5\n"
    "\n" EXIT_STATUS;

const char em_help_report[] =
    "usage: emass report FILE.h5 [OPTION...]\n"
    "\n"
    "Writes one HTML page for any browser; it loads nothing from elsewhere. The page shows what\n"
    "was run, the verdict and what to do next, the table, chains and their ranks, intervals, "
    "pairs\n"
    "with divergent transitions marked, energy, the eigenvalues of the mass matrix, step size and\n"
    "acceptance, Pareto k where there are log likelihoods, time, and the config. Reads any file "
    "in\n"
    "ArviZ's schema. An existing report is replaced, and no other file is.\n"
    "\n"
    "options:\n"
    "  --output FILE           the page (default: FILE.html in place of FILE.h5)\n"
    "  --var GLOB              only these variables or elements, such as 'beta*'; may be repeated\n"
    "  --figures DIR           each figure as an SVG file in this folder too, which is made; "
    "needs\n"
    "                          an emass that was built with Duktape. A figure of the page can be\n"
    "                          saved by its link as well. rsvg-convert -f pdf makes a PDF of one\n"
    "\n"
    "example:\n"
    "  emass report heart.h5 --figures figures\n"
    "\n" EXIT_STATUS;

const char em_help_loo[] =
    "usage: emass loo FILE.h5 [FILE.h5 ...] [--var NAME] [--together] [--common] [--csv]\n"
    "\n"
    "Leave-one-out cross-validation by Pareto smoothed importance sampling (Vehtari et al. 2024)\n"
    "from the group log_likelihood, as ArviZ's loo: expected log density of new observations\n"
    "(elpd_loo) with its standard error, effective number of parameters (p_loo), and Pareto k, by\n"
    "which one sees how far they can be relied on. Observations whose k is too large are listed.\n"
    "Several files are compared, as models of the same observations: the best first, the others\n"
    "with what their elpd_loo is less (elpd_diff) and the standard error of that (diff_se). Files\n"
    "of other data are refused. Reads any file in ArviZ's schema. A run stores the group with\n"
    "model.log_likelihood: true, or of a Stan program where it has log_lik.\n"
    "\n"
    "options:\n"
    "  --var NAME              the variable of the group, where it has several\n"
    "  --together              the chains of several files of one model, as emass summary has "
    "them\n"
    "  --common                the same; of files of unequal numbers of draws the first, as many\n"
    "                          as all have\n"
    "  --csv                   comma-separated, all digits: of every observation, or of several\n"
    "                          files the table that compares them\n"
    "\n"
    "example:\n"
    "  emass run heart.yaml --set model.log_likelihood=true && emass loo heart.h5\n"
    "  emass loo small.h5 large.h5\n"
    "\n" EXIT_STATUS;

const char em_help_check[] =
    "usage: emass check CONFIG.yaml [--set KEY.PATH=VALUE]...\n"
    "\n"
    "Reads the config and the data, prints the plan (processes, chains, shards, bytes) and the\n"
    "config with every default filled in, and compares the model's gradient with central\n"
    "differences at several points. Nothing is sampled and nothing is written.\n"
    "\n"
    "example:\n"
    "  mpirun -n 4 emass check heart.yaml\n"
    "\n" EXIT_STATUS;

const char em_help_list[] =
    "usage: emass list [models|samplers|mass|run|stop|output|keys] [NAME]\n"
    "\n"
    "Without arguments, the models, samplers and mass estimators with a line each. With the name\n"
    "of one, where it comes from and all its options: type, bounds, default, and what they do.\n"
    "run, stop and output list the options of these sections of the config; keys, each key that a\n"
    "config may have, a line each.\n"
    "\n"
    "example:\n"
    "  emass list samplers hmc\n"
    "  emass list models ./mine.so     the model of a plug-in\n"
    "\n" EXIT_STATUS;

const char em_help_verify[] =
    "usage: emass verify FILE.h5 [--ranks N] [--draws N] [--folder DIR]\n"
    "\n"
    "Runs the config that is stored in the file once more, for the first draws, on another number\n"
    "of ranks, and says where the draws first differ, bit for bit, if they do. Needs as long as "
    "the\n"
    "warmup of the run did. With --ranks it starts them itself; under mpirun or srun leave it "
    "out.\n"
    "\n"
    "options:\n"
    "  --ranks N               start N ranks, as emass run does\n"
    "  --draws N               draws to compare (default 100)\n"
    "  --folder DIR            where relative paths of the config start (default: where they\n"
    "                          did in the run, else the folder of FILE.h5, else the current one)\n"
    "\n"
    "example:\n"
    "  emass verify heart.h5 --ranks 3\n"
    "\n" EXIT_STATUS;

const char em_help_merge[] =
    "usage: emass merge OUT.h5 A.h5 B.h5 [C.h5 ...] [OPTION...]\n"
    "\n"
    "Puts files of one model, as of the jobs of an array (jobs/slurm/array.sbatch), into one: the\n"
    "chains of A come first, then those of B, numbered through, and whatever reads a file of a "
    "run\n"
    "reads it. Models, data and variables have to be the same, and so have the numbers of draws,\n"
    "unless --common is given; chains that are in two of the files, as of runs with one seed, are\n"
    "refused. Groups that only some files have, and warmups of different lengths, are left out,\n"
    "with a warning. What was learned of the mass gets an axis `run`; the group `runs` has the "
    "seeds\n"
    "and how many draws each file had. Needs little memory, however long the files are; to look "
    "at\n"
    "R-hat alone emass summary A.h5 B.h5 needs no new file.\n"
    "\n"
    "options:\n"
    "  --common                the first draws, as many as all files have, where some were cut "
    "short\n"
    "                          by a time limit or ended early; the file says so in `cut`\n"
    "  --overwrite             replace an output of emass that exists\n"
    "\n"
    "example:\n"
    "  emass merge heart.h5 heart.seed*.h5\n"
    "\n" EXIT_STATUS;

const char em_help_diff[] =
    "usage: emass diff A.h5 B.h5 [--all]\n"
    "\n"
    "Says what differs between two files, in a line each: attributes, options of the config, "
    "groups\n"
    "and variables that one of them alone has, and of every variable the first number that "
    "differs\n"
    "(of the first draw, of the first chain there), bit for bit, with both values, how many "
    "doubles\n"
    "lie between them (ulps, to a million), and how many numbers differ. Files of other lengths\n"
    "are compared as far as both go. What changes from run to run (times, hosts, ranks) is passed\n"
    "over.\n"
    "Exit status: 0 no difference; 1 the files differ; 2 one cannot be read.\n"
    "\n"
    "options:\n"
    "  --all                   what changes from run to run too\n"
    "\n"
    "example:\n"
    "  emass diff heart.h5 heart20.h5\n"
    "\n" EXIT_STATUS;

const char em_help_convert[] =
    "usage: emass convert IN OUT.h5 [OPTION...]\n"
    "\n"
    "Reads a table (CSV, TSV, spaces or LIBSVM; plain, .gz or .xz; or HDF5 as file.h5:/dataset) "
    "and\n"
    "writes it in the form that ranks read fastest, with the names of its columns and its hash:\n"
    "OUT.h5:/table, which a config names as `data: OUT.h5`. Says what was found. Several ranks "
    "read\n"
    "together (mpirun -n P emass convert ...); the file is the same. Of a corpus of documents rank "
    "0\n"
    "reads some at a time: it may be larger than the memory.\n"
    "\n"
    "options:\n"
    "  --format FORMAT         auto (default), libsvm, comma, semicolon, tab or space; of a "
    "corpus\n"
    "                          lda-c or docword\n"
    "  --vocabulary FILE       words of a corpus, one a line\n"
    "  --header HEADER         auto (default), yes or no: whether the first line names the "
    "columns\n"
    "  --decimal DECIMAL       point (default) or comma, which numbers are then written with\n"
    "  --columns N             features of a LIBSVM file that may lack the last\n"
    "  --overwrite             replace an output of emass that exists\n"
    "\n"
    "example:\n"
    "  emass convert flights.csv.gz flights.h5\n"
    "\n" EXIT_STATUS;

const char em_help_topics[] =
    "usage: emass topics FILE.h5 [--words N] [--folder DIR] [--html PAGE]\n"
    "       emass topics FILE.h5 --documents FILE [--fold-in em|gibbs]\n"
    "\n"
    "A line for each topic of a run of model lda, the largest first: its share of the tokens, its\n"
    "coherence (NPMI of its words over the documents of the run's corpus), how many chains found\n"
    "it, and its most probable words; and the perplexity of the test documents. Topics of the\n"
    "chains are matched before they are averaged.\n"
    "\n"
    "options:\n"
    "  --words N               words of a topic (default 10)\n"
    "  --documents FILE        instead, the mixture of topics of each document of a corpus of the\n"
    "                          same words, comma-separated\n"
    "  --fold-in em|gibbs      of those: from the topics alone by EM with alpha 0.1 (default), or "
    "by\n"
    "                          the model's own Gibbs, with alpha of the first chain\n"
    "  --html PAGE             instead, one page that needs no other file: the traces, and of "
    "each\n"
    "                          topic size, coherence, words and nearest topics\n"
    "  --folder DIR            where relative paths of the config start (default: where they\n"
    "                          did in the run, else the folder of FILE.h5, else the current one)\n"
    "\n"
    "example:\n"
    "  emass topics news.h5 --documents new.ldac > mixtures.csv\n"
    "\n" EXIT_STATUS;

const char em_help_predict[] =
    "usage: emass predict FILE.h5 --data NEW [--output P.h5] [--folder DIR] [--overwrite]\n"
    "\n"
    "Predicts, from each draw of a run, what its model makes of new data: a table with the same\n"
    "columns (by name; the response need not be there), coded and scaled as those of the run "
    "were.\n"
    "Writes a file of its own with the group predictions: of a regression the responses drawn, y,\n"
    "and their mean, mu; and, in predictions_constant_data, the line of the table that each is "
    "for\n"
    "(na: drop leaves some out). The same run and data give the same file on any number of ranks\n"
    "(mpirun -n P emass predict ...).\n"
    "\n"
    "options:\n"
    "  --data FILE             what is predicted for\n"
    "  --output FILE           where predictions go (default FILE.predictions.h5)\n"
    "  --folder DIR            where relative paths of the config start (default: where they\n"
    "                          did in the run, else the folder of FILE.h5, else the current one)\n"
    "  --overwrite             replace an output of emass that exists\n"
    "\n"
    "example:\n"
    "  emass predict heart.h5 --data patients.csv\n"
    "  emass summary heart.predictions.h5 --group predictions --var mu\n"
    "\n" EXIT_STATUS;

/* Whether `next` goes on with the sentence of the line before it, which is the last one of what
 * began at `start`: both at the margin, which titles are not; or an option's, far from it. */
static bool continues(const char *start, const char *line, const char *next)
{
    enum { FAR = 8 };
    const size_t indent = strspn(next, " "), length = strcspn(line, "\n");

    if (*next == '\n' || *next == '\0' || length == 0)
        return false;
    return indent >= FAR ? *start == ' ' : indent == 0 && *start != ' ' && line[length - 1] != ':';
}

/* Every sentence in one line. */
static void join_lines(const char *text, FILE *out)
{
    const char *start = text, *next;

    for (const char *line = text; *line; line = next) {
        const size_t length = strcspn(line, "\n");

        next = line + length + (line[length] == '\n');
        fwrite(line, 1, length, out);
        if (continues(start, line, next)) {
            fputc(' ', out);
            next += strspn(next, " ");
        } else {
            fputc('\n', out);
            start = next;
        }
    }
}

em_status em_help_print(const char *text)
{
    enum { WIDEST = 100 };
    em_prose prose;
    em_status status = em_prose_begin(stdout, &prose);

    if (status)
        return status;
    if (em_terminal_columns(stdout) > 0)
        join_lines(text, prose.words);
    else
        fputs(text, prose.words);
    em_prose_end(&prose, WIDEST);
    return EM_OK;
}
