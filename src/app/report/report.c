#include "app/report/report.h"

#include "app/report/picture_files.h"
#include "app/report/report_figures.h"
#include "app/summary/advice.h"
#include "app/summary/command_arguments.h"
#include "app/summary/summary_rows.h"
#include "base/memory.h"
#include "base/page.h"
#include "base/text.h"
#include "par/world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TABLE_ROWS = 300 };

/* template.c: the page up to the JSON, and the script that draws the page from it. */
extern const char em_report_page[], em_report_script[];

typedef struct arguments {
    const char *file;
    char *output, *figures, **pattern;
} arguments;

/* ---------------------------------------------------------------- the text of the page */

/* Attributes of the file, as members of that name; a member is null where the file lacks it. */
static void put_attributes(const em_report_data *data, em_json *json)
{
    static const char *const text[] = {"model",
                                       "sampler",
                                       "cut",
                                       "created_at",
                                       "inference_library",
                                       "inference_library_version",
                                       "warmup",
                                       "config",
                                       "git_commit",
                                       "data_hash"},
                             *const integer[] = {"tuning_steps", "seed", "ranks", "merged"};

    em_json_open(json, "attributes", '{');
    for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
        char *value = NULL;
        em_json_text(json, text[i],
                     em_reader_text(data->summary.reader, text[i], &value) ? value : NULL);
        em_release(&value);
    }
    for (size_t i = 0; i < sizeof integer / sizeof *integer; i++) {
        int64_t value = 0;
        const bool found = em_reader_int(data->summary.reader, integer[i], &value);
        em_json_real(json, integer[i], found ? (double)value : NAN);
    }
    em_json_close(json, '}');
}

/* The verdict of the run; of a file of another program, what the table shows. */
static em_status put_verdict(const em_report_data *data, em_json *json)
{
    static const char *const grade[] = {[EM_CONVERGED] = "good",
                                        [EM_CONVERGED_WITH_WARNINGS] = "warning",
                                        [EM_NOT_CONVERGED] = "wrong"};
    const bool complete = !em_find_incomplete(data->summary.reader);
    em_verdict verdict;
    char *text = NULL;
    em_status status = em_judge_verdict(data->summary.judge, &verdict, &text);

    if (!status) {
        em_json_text(json, "complete", complete ? "yes" : NULL);
        em_json_text(json, "grade", complete ? grade[verdict] : "wrong");
        em_json_text(json, "verdict", text);
    }
    em_release(&text);
    return status;
}

/* The sentences of the summary, an element each. */
static em_status put_advice(const em_report_data *data, em_json *json)
{
    const em_summary *s = &data->summary;
    char *text = NULL, *rest = NULL;
    size_t size = 0;
    FILE *words = open_memstream(&text, &size);
    em_status status = words ? em_advise(s->judge, &s->table, &s->column, words)
                             : em_fail(EM_EMEMORY, "out of memory");

    if (words)
        fclose(words);
    em_json_open(json, "advice", '[');
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; !status && line;
         line = strtok_r(NULL, "\n", &rest))
        em_json_text(json, NULL, line);
    em_json_close(json, ']');
    free(text);
    return status;
}

/* The name of a row and its cells, of which the quartiles are for figures alone; or its note. */
static void put_row(const em_summary_table *table, const em_summary_row *row, em_json *json)
{
    em_json_open(json, NULL, '[');
    em_json_text(json, NULL, row->name);
    if (row->note)
        em_json_text(json, NULL, row->note);
    for (int64_t j = 0; !row->note && j < table->n_column; j++) {
        char text[EM_TABLE_CELL];

        if (j == EM_AT_Q25 || j == EM_AT_Q75)
            continue;
        em_table_cell(&table->column[j], row->value[j], text);
        em_json_text(json, NULL, text);
    }
    em_json_close(json, ']');
}

/* All rows, or of very many the first, and those that mix worst. */
static em_status put_table(const em_report_data *data, em_json *json)
{
    const em_summary *s = &data->summary;
    const em_rows_order order = {.at = &s->column, .most = MOST_TABLE_ROWS};
    em_shown_rows rows = {0};
    em_status status = em_rows_arrange(&s->table, s->reader, &order, &rows);

    em_json_open(json, "table", '{');
    em_json_real(json, "elements", (double)s->n_element);
    em_json_real(json, "lines", (double)rows.n_line);
    em_json_text(json, "limited", s->table.column[s->column.r_hat].name);
    em_json_real(json, "limit", s->table.column[s->column.r_hat].most);
    em_json_open(json, "columns", '[');
    for (int64_t j = 0; j < s->table.n_column; j++)
        if (j != EM_AT_Q25 && j != EM_AT_Q75)
            em_json_text(json, NULL, s->table.column[j].name);
    em_json_close(json, ']');
    em_json_open(json, "rows", '[');
    for (int64_t i = 0; i < rows.table.n_row; i++)
        put_row(&rows.table, &rows.table.row[i], json);
    em_json_close(json, ']');
    em_json_close(json, '}');
    em_rows_release(&rows);
    return status;
}

/* Which priors a regression had, a line each. */
static em_status put_priors(const em_report_data *data, em_json *json)
{
    char **line = NULL;
    int64_t n = 0;
    em_status status = EM_OK;

    if (em_reader_has(data->summary.reader, "constant_data", "prior_count"))
        status = em_read_labels(data->path, "constant_data/prior", &n, &line);
    em_json_open(json, "priors", '[');
    for (int64_t i = 0; i < n; i++) {
        em_json_text(json, NULL, line[i]);
        em_release(&line[i]);
    }
    em_json_close(json, ']');
    em_release(&line);
    return status;
}

/* How the file would come to have log likelihoods, where it has none. */
static em_status put_loo_hint(const em_report_data *data, em_json *json)
{
    char *how = NULL;
    em_status status = data->log_likelihood ? EM_OK : em_loo_ask(data->summary.reader, &how);

    em_json_text(json, "loo_hint", how);
    em_release(&how);
    return status;
}

/* What the draws took, and what came of it. */
static em_status put_cost(const em_report_data *data, em_json *json)
{
    const em_judge_columns *at = &data->summary.column;
    double *n_steps = NULL, seconds = NAN, gradients = 0, ess = INFINITY;
    em_status status = em_report_statistic(data->stats, "n_steps", &n_steps);

    for (int64_t i = 0; !status && n_steps && i < data->n_chain * data->n_draw; i++)
        gradients += n_steps[i];
    for (int64_t i = 0; i < data->summary.n_element; i++)
        ess = fmin(ess, fmin(em_report_value(data, i, at->ess_bulk),
                             em_report_value(data, i, at->ess_tail)));
    em_reader_real(data->summary.reader, "sampling_time", &seconds);
    em_json_real(json, "seconds", seconds);
    em_json_real(json, "gradients", gradients);
    em_json_real(json, "smallest_ess", ess);
    em_release(&n_steps);
    return status;
}

static em_status put_data(const em_report_data *data, em_json *json)
{
    const char *slash = strrchr(data->path, '/');

    em_json_open(json, NULL, '{');
    em_json_text(json, "file", slash ? slash + 1 : data->path);
    em_json_real(json, "chains", (double)data->n_chain);
    em_json_real(json, "draws", (double)data->n_draw);
    em_json_real(json, "superchains", (double)data->summary.n_superchain);
    em_status status = put_verdict(data, json);
    put_attributes(data, json);
    if (!status)
        status = put_advice(data, json);
    if (!status)
        status = put_table(data, json);
    if (!status)
        status = put_priors(data, json);
    if (!status)
        status = put_loo_hint(data, json);
    if (!status)
        status = put_cost(data, json);
    if (!status)
        status = em_report_figures(data, json);
    em_json_close(json, '}');
    return status;
}

/* All of it as one JSON document; freed by free(). */
static em_status make_json(const em_report_data *data, char **text)
{
    size_t size = 0;
    em_json json = {open_memstream(text, &size), '\0'};

    if (!json.out)
        return em_fail(EM_EMEMORY, "out of memory");
    const em_status status = put_data(data, &json);
    return fclose(json.out) == 0 || status ? status : em_fail(EM_EMEMORY, "out of memory");
}

/* ---------------------------------------------------------------- files */

/* The JSON stands in an element of the page, which nothing in it may end: '<' is only in strings,
 * and is escaped. */
static em_status write_report(const char *json, const char *path)
{
    em_page page;
    const em_status status = em_page_open(path, &page);

    if (!status) {
        fputs(em_report_page, page.out);
        for (const char *c = json; *c; c++)
            if (*c == '<')
                fputs("\\u003c", page.out);
            else
                fputc(*c, page.out);
        fprintf(page.out, "</script>\n<script>\n%s</script>\n</body></html>\n", em_report_script);
    }
    return em_page_close(&page, status);
}

/* Nothing is read where the page could not be written. */
static em_status check_output(const arguments *a, char **output)
{
    char first_line[128];
    em_status status =
        a->output ? em_copy_text(a->output, output) : em_replace_h5(a->file, ".html", output);

    snprintf(first_line, sizeof first_line, "%.*s\n", (int)strcspn(em_report_page, "\n"),
             em_report_page);
    return status ? status : em_page_check(*output, first_line, "report");
}

/* Rank 0. */
static em_status make_report(const arguments *a, em_report_data *data, const char *output)
{
    char *json = NULL;
    em_status status = em_report_read(data);

    if (!status && a->figures)
        status = em_prepare_pictures(a->figures);
    if (!status)
        status = make_json(data, &json);
    if (!status)
        status = write_report(json, output);
    if (!status && a->figures)
        status = em_write_pictures(em_report_script, json, a->figures);
    if (!status)
        printf("%s\n", output);
    free(json);
    return status;
}

/* ---------------------------------------------------------------- the command */

static em_status report(const arguments *a)
{
    static double percentile[] = {5, 25, 50, 75, 95};
    const char *const path[] = {a->file};
    em_summary_options options = em_summary_defaults(1, path);
    em_report_data data = {.path = a->file};
    char *output = NULL;
    em_status status = em_agree(em_world_rank() == 0 ? check_output(a, &output) : EM_OK);

    options.pattern = (const char *const *)a->pattern;
    options.percentile = (em_reals){5, percentile};
    if (!status)
        status = em_summary_read(&options, &data.summary);
    if (!status)
        status = em_agree(em_world_rank() == 0 ? make_report(a, &data, output) : EM_OK);
    em_report_release(&data);
    em_release(&output);
    return status;
}

em_status em_report_command(int argc, const char **argv)
{
    arguments a = {NULL};
    const struct poptOption table[] = {{"output", 0, POPT_ARG_STRING, &a.output, 0, NULL, NULL},
                                       {"figures", 0, POPT_ARG_STRING, &a.figures, 0, NULL, NULL},
                                       {"var", 0, POPT_ARG_ARGV, &a.pattern, 0, NULL, NULL},
                                       POPT_TABLEEND};
    em_command_line line;
    em_status status = em_command_line_read(argc, argv, table, "one file", 1, 1, &line);

    a.file = status ? NULL : line.argument[0];
    if (!status)
        status = report(&a);
    em_command_line_end(&line);
    return status;
}
