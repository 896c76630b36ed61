#include "app/report/report_page.h"

#include "app/report/report_figures.h"
#include "app/summary/advice.h"
#include "app/summary/command_arguments.h"
#include "app/summary/model_commands.h"
#include "app/summary/summary_rows.h"
#include "base/memory.h"
#include "base/page.h"
#include "base/text.h"
#include "model/model_list.h"
#include "par/mpi_world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#ifdef EM_DUKTAPE
#include <duktape.h>
#endif

enum { MOST_TABLE_ROWS = 300, MOST_FILES = 1000 };

/* template.c: the page up to the JSON, and the script that draws the page from it. */
extern const char em_report_page[], em_report_script[];

typedef struct report_arguments {
    int64_t n_file; /* several: runs that are compared */
    const char *const *file;
    char *output, *figures, **pattern;
    bool quiet;
} report_arguments;

/* ---------------------------------------------------------------- the figures as files */

#ifdef EM_DUKTAPE
/* Makes the folder unless it exists. Errors: EM_EUSAGE if no files can be made in it, or if
 * the program was built without Duktape. */
static em_status prepare_figures(const char *folder)
{
    return em_page_make_folder(folder);
}

static em_status write_figure(const char *folder, const char *name, const char *svg)
{
    em_page page = {NULL};
    EM_SCOPED char *path = NULL;
    em_status status = em_format_text(&path, "%s/%s.svg", folder, name);

    if (!status) {
        status = em_page_open(path, &page);
        if (!status)
            fputs(svg, page.out);
        status = em_page_close(&page, status);
    }
    return status;
}

/* Runs the script of the page on the JSON of the page, by Duktape, and writes each figure into the
 * folder as an SVG file. The script defines a function `files`, which turns the data into an array
 * [name, svg, name, ...]. Errors: EM_EUSAGE, EM_EMEMORY, EM_EIO. */
static em_status write_figures(const char *script, const char *json, const char *folder)
{
    duk_context *context = duk_create_heap_default();
    em_status status = EM_OK;

    if (!context)
        return em_fail(EM_EMEMORY, "out of memory");
    duk_push_string(context, json);
    duk_put_global_string(context, "json");
    if (duk_pcompile_string(context, 0, script) != 0 || duk_pcall(context, 0) != 0 ||
        duk_peval_string(context, "files(JSON.parse(json))") != 0)
        status =
            em_fail(EM_EMEMORY, "the figures cannot be drawn: %s", duk_safe_to_string(context, -1));
    for (duk_uarridx_t i = 0; !status && i < duk_get_length(context, -1); i += 2) {
        duk_get_prop_index(context, -1, i);
        duk_get_prop_index(context, -2, i + 1);
        status =
            write_figure(folder, duk_require_string(context, -2), duk_require_string(context, -1));
        duk_pop_2(context);
    }
    duk_destroy_heap(context);
    return status;
}
#else
static em_status prepare_figures(const char *folder)
{
    return em_fail(EM_EUSAGE,
                   "--figures %s: found a build of emass without Duktape (Debian's duktape-dev), "
                   "expected one with it; each figure of the page has a link that saves it as SVG",
                   folder);
}

static em_status write_figures(const char *script, const char *json, const char *folder)
{
    (void)script;
    (void)json;
    return prepare_figures(folder);
}
#endif

/* ---------------------------------------------------------------- the numbers of the page */

/* Writes attributes of the file as members of the same name. A member is null if the file lacks the
 * attribute. */
static json_t *attributes(em_reader *reader)
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
    json_t *out = json_object();
    bool good = out;

    for (size_t i = 0; good && i < sizeof text / sizeof *text; i++) {
        EM_SCOPED char *value = NULL;
        em_reader_text(reader, text[i], &value);
        good = json_object_set_new(out, text[i], em_json_text(value)) == 0;
    }
    for (size_t i = 0; good && i < sizeof integer / sizeof *integer; i++) {
        int64_t value = 0;
        const bool found = em_reader_int(reader, integer[i], &value);
        good = json_object_set_new(out, integer[i], found ? json_integer(value) : json_null()) == 0;
    }
    if (!good)
        json_decref(out);
    return good ? out : NULL;
}

/* The verdict of the run; for a file of another program, the verdict from its table. */
static em_status put_verdict(const em_report_data *data, json_t *page)
{
    static const char *const grade[] = {[EM_CONVERGED] = "good",
                                        [EM_CONVERGED_WITH_WARNINGS] = "warning",
                                        [EM_NOT_CONVERGED] = "wrong"};
    const bool complete = !em_find_incomplete(data->summary.reader);
    em_verdict verdict;
    EM_SCOPED char *text = NULL;
    em_status status = em_judge_verdict(data->summary.judge, &verdict, &text);

    return status ? status
                  : em_json_put(page, json_pack("{s:b, s:s, s:o}", "complete", complete, "grade",
                                                complete ? grade[verdict] : "wrong", "verdict",
                                                em_json_text(text)));
}

/* The sentences of the summary, an element each. */
static em_status put_advice(const em_report_data *data, json_t *page)
{
    const em_summary *s = &data->summary;
    char *text = NULL, *rest = NULL;
    json_t *lines = json_array();
    em_text_stream words;
    em_status status = em_text_begin(&words);

    status = status ? status : em_advise(s->judge, &s->table, words.out);
    status = em_text_end(&words, status, &text);
    for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; !status && line;
         line = strtok_r(NULL, "\n", &rest))
        em_json_add(&lines, em_json_text(line));
    em_release(&text);
    return em_json_put_as(page, "advice", lines, status);
}

/* The name of a row and its cells, or its note. Quartiles are left out, because only figures use
 * them. */
static json_t *row_of(const em_summary_table *table, const em_summary_row *row)
{
    json_t *out = json_pack("[o]", em_json_text(row->name));

    if (row->note)
        em_json_add(&out, em_json_text(row->note));
    for (int64_t j = 0; !row->note && j < table->n_column; j++) {
        char text[EM_TABLE_CELL];

        em_table_cell(&table->column[j], row->value[j], text);
        if (j != EM_AT_Q25 && j != EM_AT_Q75)
            em_json_add(&out, em_json_text(text));
    }
    return out;
}

/* Writes all rows or, if there are very many, the first ones and those that mix worst. */
static em_status put_table(const em_report_data *data, json_t *page)
{
    const em_summary *s = &data->summary;
    const em_column *limited = &s->table.column[s->table.at.r_hat];
    const em_rows_order order = {.most = MOST_TABLE_ROWS};
    json_t *columns = json_array(), *lines = json_array();
    EM_SCOPED_BY(em_rows_release) em_visible_rows rows = {0};
    em_status status = em_rows_arrange(&s->table, s->reader, &order, &rows);

    for (int64_t j = 0; !status && j < s->table.n_column; j++)
        if (j != EM_AT_Q25 && j != EM_AT_Q75)
            em_json_add(&columns, em_json_text(s->table.column[j].name));
    for (int64_t i = 0; !status && i < rows.table.n_row; i++)
        em_json_add(&lines, row_of(&rows.table, &rows.table.row[i]));
    json_t *table =
        json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "elements", (json_int_t)s->n_element, "lines",
                  (json_int_t)rows.n_line, "limited", em_json_text(limited->name), "limit",
                  em_json_real(limited->most), "columns", columns, "rows", lines);
    return em_json_put_as(page, "table", table, status);
}

/* The priors of a regression, one a line. */
static em_status put_priors(const em_report_data *data, json_t *page)
{
    json_t *priors = json_array();
    char **line = NULL;
    int64_t n = 0;
    em_status status = EM_OK;

    if (em_reader_has(data->summary.reader, "constant_data", "prior_count"))
        status = em_read_labels(data->path, "constant_data/prior", &n, &line);
    for (int64_t i = 0; i < n; i++)
        em_json_add(&priors, em_json_text(line[i]));
    em_release_texts(n, &line);
    return em_json_put_as(page, "priors", priors, status);
}

/* The model of a file, if it is a built-in model with commands; else NULL. */
static const em_model_commands *commands_of(em_reader *reader, const em_model_ops **model)
{
    EM_SCOPED char *name = NULL;

    em_reader_text(reader, "model", &name);
    *model = name ? em_model_named(name) : NULL;
    return *model ? (*model)->commands : NULL;
}

/* The model's part of the report, as HTML. */
static em_status put_model_part(const em_report_data *data, json_t *page)
{
    const em_model_ops *model;
    const em_model_commands *commands = commands_of(data->summary.reader, &model);
    EM_SCOPED char *html = NULL;
    em_status status = EM_OK;

    if (commands && commands->report) {
        em_text_stream part;
        em_world *all = em_world_enter(NULL); /* the other ranks wait */
        status = em_text_begin(&part);
        status = status ? status : em_model_report_part(model, data->path, part.out);
        em_world_enter(all);
        status = em_text_end(&part, status, &html);
    }
    return em_json_put_as(page, "model_part", em_json_text(html), status);
}

/* Writes a hint on how to store log likelihoods if the file has none. */
static em_status put_loo_hint(const em_report_data *data, json_t *page)
{
    EM_SCOPED char *how = NULL;
    em_status status = data->log_likelihood ? EM_OK : em_loo_ask(data->summary.reader, &how);

    return em_json_put_as(page, "loo_hint", em_json_text(how), status);
}

/* Cost and results of the draws. */
static em_status put_cost(const em_report_data *data, json_t *page)
{
    const em_judge_columns *at = &data->summary.table.at;
    double *n_steps = NULL, seconds = NAN, gradients = 0, ess = INFINITY;
    em_status status = em_report_statistic(data->stats, "n_steps", &n_steps);

    for (int64_t i = 0; !status && n_steps && i < data->n_chain * data->n_draw; i++)
        gradients += n_steps[i];
    for (int64_t i = 0; i < data->summary.n_element; i++)
        ess = fmin(ess, fmin(em_report_value(data, i, at->ess_bulk),
                             em_report_value(data, i, at->ess_tail)));
    em_reader_real(data->summary.reader, "sampling_time", &seconds);
    em_release(&n_steps);
    return status ? status
                  : em_json_put(page, json_pack("{s:o, s:o, s:o}", "seconds", em_json_real(seconds),
                                                "gradients", em_json_real(gradients),
                                                "smallest_ess", em_json_real(ess)));
}

/* Writes all of the report as one JSON document. The caller releases it by free(). */
static em_status make_json(const em_report_data *data, char **text)
{
    static em_status (*const part[])(const em_report_data *, json_t *) = {
        put_verdict, put_advice, put_model_part, put_table, put_priors, put_loo_hint, put_cost};
    const char *slash = strrchr(data->path, '/');
    json_t *figures = NULL,
           *page = json_pack("{s:o, s:I, s:I, s:I, s:o}", "file",
                             em_json_text(slash ? slash + 1 : data->path), "chains",
                             (json_int_t)data->n_chain, "draws", (json_int_t)data->n_draw,
                             "superchains", (json_int_t)data->summary.n_superchain, "attributes",
                             attributes(data->summary.reader));
    em_status status = em_json_made(page);

    for (size_t i = 0; !status && i < sizeof part / sizeof *part; i++)
        status = part[i](data, page);
    status = status ? status : em_report_figures(data, &figures);
    status = em_json_put_as(page, "figures", figures, status);
    if (!status) {
        *text = json_dumps(page, JSON_COMPACT | JSON_REAL_PRECISION(EM_JSON_DIGITS));
        status = *text ? EM_OK : em_fail(EM_EMEMORY, "out of memory");
    }
    json_decref(page);
    return status;
}

/* ---------------------------------------------------------------- files */

/* Writes the page. The JSON stands in an element of the page and must not contain the end of the
 * element. '<' occurs only in strings, and is escaped. */
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

/* Checks that the page can be written before anything is read. */
static em_status check_output(const report_arguments *a, char **output)
{
    char first_line[128];
    em_status status =
        a->output ? em_copy_text(a->output, output) : em_replace_h5(a->file[0], ".html", output);

    snprintf(first_line, sizeof first_line, "%.*s\n", (int)strcspn(em_report_page, "\n"),
             em_report_page);
    return status ? status : em_page_check(*output, first_line, "report");
}

/* Rank 0. */
static em_status make_report(const report_arguments *a, em_report_data *data, const char *output)
{
    EM_SCOPED char *json = NULL;
    em_status status = em_report_read(data);

    if (!status && a->figures)
        status = prepare_figures(a->figures);
    status = status ? status : make_json(data, &json);
    status = status ? status : write_report(json, output);
    if (!status && a->figures)
        status = write_figures(em_report_script, json, a->figures);
    if (!status && !a->quiet)
        printf("%s\n", output);
    return status;
}

/* ---------------------------------------------------------------- the command */

static em_status report(const report_arguments *a)
{
    static double percentile[] = {5, 25, 50, 75, 95};
    em_summary_options options = em_summary_defaults(1, a->file);
    EM_SCOPED_BY(em_report_release) em_report_data data = {.path = a->file[0]};
    EM_SCOPED char *output = NULL;
    em_status status = em_agree(em_world_rank() == 0 ? check_output(a, &output) : EM_OK);

    options.pattern = (const char *const *)a->pattern;
    options.percentile = (em_reals){5, percentile};
    status = status ? status : em_summary_read(&options, &data.summary);
    return status ? status : em_agree(em_world_rank() == 0 ? make_report(a, &data, output) : EM_OK);
}

em_status em_report_check(const char *output)
{
    const report_arguments a = {.output = (char *)output};
    EM_SCOPED char *page = NULL;
    return check_output(&a, &page);
}

em_status em_report_write(const char *file, const char *output)
{
    const report_arguments a = {
        .n_file = 1, .file = &file, .output = (char *)output, .quiet = true};

    return report(&a);
}

/* Compares the runs of a scan. Rank 0, in a world of its own. */
static em_status compare(const report_arguments *a)
{
    const em_model_ops *model = NULL;
    const em_model_commands *commands = NULL;
    em_reader *reader = NULL;
    em_status status = em_reader_open(a->file[0], NULL, &reader);

    if (!status)
        commands = commands_of(reader, &model);
    em_reader_close(&reader);
    if (status)
        return status;
    if (!commands || !commands->compare)
        return em_fail(EM_EUSAGE,
                       "report: found %lld files, expected one, or runs of model lda: %s is not "
                       "a run of such a model",
                       (long long)a->n_file, a->file[0]);
    if (!a->output || a->figures || a->pattern)
        return em_fail(EM_EUSAGE, "report: found several files, expected --output PAGE with them, "
                                  "and no --figures or --var");
    return em_model_compare(model, a->n_file, a->file, false, a->output);
}

static em_status compare_runs(const report_arguments *a)
{
    em_status status = EM_OK;

    if (em_world_rank() == 0) {
        EM_SCOPED_BY(em_world_return) em_world *all = em_world_enter(NULL);
        status = compare(a);
        if (!status)
            printf("%s\n", a->output);
    }
    return em_agree(status);
}

em_status em_report_command(int argc, const char **argv)
{
    report_arguments a = {.n_file = 0};
    const struct poptOption table[] = {{"output", 0, POPT_ARG_STRING, &a.output, 0, NULL, NULL},
                                       {"figures", 0, POPT_ARG_STRING, &a.figures, 0, NULL, NULL},
                                       {"var", 0, POPT_ARG_ARGV, &a.pattern, 0, NULL, NULL},
                                       POPT_TABLEEND};
    EM_SCOPED_BY(em_command_line_end) em_command_line line;
    em_status status = em_command_line_read(argc, argv, table, "one file, or runs of a scan", 1,
                                            MOST_FILES, &line);

    a.n_file = line.n;
    a.file = line.argument;
    return status ? status : a.n_file > 1 ? compare_runs(&a) : report(&a);
}
