#include "app/command/command.h"
#include "app/summary/command_arguments.h"
#include "base/memory.h"
#include "io/draws/reader.h"
#include "par/world.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The log evidence of the model in one file. */
typedef struct evidence {
    const char *path;
    char *model, *data, *verdict;
    double value, error;
} evidence;

static em_status read_evidence(const char *path, evidence *out)
{
    EM_SCOPED_BY(em_reader_close) em_reader *reader = NULL;
    em_status status = em_reader_open(path, "posterior", &reader);

    *out = (evidence){.path = path};
    if (!status && (!em_reader_real(reader, "log_evidence", &out->value) ||
                    !em_reader_real(reader, "log_evidence_error", &out->error) ||
                    !em_reader_text(reader, "data_hash", &out->data) ||
                    !em_reader_text(reader, "model", &out->model) ||
                    !em_reader_text(reader, "verdict", &out->verdict)))
        status = em_fail(
            EM_EDATA,
            "%s: found no log evidence, expected a finished run with temper: {} in its config",
            path);
    return status;
}

static em_status check_data(const evidence *a, const evidence *b)
{
    return strcmp(a->data, b->data) == 0
               ? EM_OK
               : em_fail(EM_EUSAGE,
                         "%s has other data than %s: found the hash %s, expected %s; give "
                         "--same-data if the responses are the same and only other columns differ",
                         b->path, a->path, b->data, a->data);
}

static bool has_converged(const evidence *e)
{
    static const char word[] = "converged";

    return strncmp(e->verdict, word, strlen(word)) == 0;
}

/* Sorts models by their evidence, the best first. */
static void sort(int64_t n, evidence *e)
{
    for (int64_t i = 1; i < n; i++)
        for (int64_t k = i; k > 0 && e[k].value > e[k - 1].value; k--) {
            const evidence one = e[k];
            e[k] = e[k - 1];
            e[k - 1] = one;
        }
}

static void print(int64_t n, const evidence *e)
{
    double sum = 0;
    int width = 4;

    for (int64_t i = 0; i < n; i++) {
        sum += exp(e[i].value - e[0].value);
        width = (int)strlen(e[i].path) > width ? (int)strlen(e[i].path) : width;
    }
    printf("%-*s  log_evidence  std_error  log_bayes_factor  std_error  probability\n", width,
           "file");
    for (int64_t i = 0; i < n; i++)
        printf("%-*s  %12.3f  %9.2g  %16.3f  %9.2g  %11.3g%s\n", width, e[i].path, e[i].value,
               e[i].error, e[i].value - e[0].value, i == 0 ? 0 : hypot(e[i].error, e[0].error),
               exp(e[i].value - e[0].value) / sum, has_converged(&e[i]) ? "" : "  (not converged)");
}

em_status em_evidence_command(int argc, const char **argv)
{
    int same = 0;
    const struct poptOption options[] = {
        {"same-data", 0, POPT_ARG_NONE, &same, 0, "hashes of data may differ", NULL},
        POPT_TABLEEND};
    EM_SCOPED_BY(em_command_line_end) em_command_line line;
    evidence *all = NULL;
    em_status status =
        em_command_line_read(argc, argv, options, "one file or more", 1, INT_MAX, &line);

    status = status ? status : em_allocate(line.n, sizeof *all, &all);
    for (int64_t i = 0; !status && i < line.n; i++) {
        status = read_evidence(line.argument[i], &all[i]);
        if (!status && !same)
            status = check_data(&all[0], &all[i]);
    }
    status = em_agree(status);
    if (!status && em_world_rank() == 0) {
        sort(line.n, all);
        print(line.n, all);
    }
    for (int64_t i = 0; all && i < line.n; i++)
        em_release_all(&all[i].model, &all[i].data, &all[i].verdict);
    em_release(&all);
    return status;
}
