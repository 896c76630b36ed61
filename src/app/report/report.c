#include "app/report/report.h"

#include "app/report/report_figures.h"
#include "app/report/report_priors.h"
#include "app/report/svg.h"
#include "app/summary/command_arguments.h"
#include "base/memory.h"
#include "base/page.h"
#include "base/text.h"
#include "par/world.h"

#include <math.h>
#include <popt.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TABLE_ROWS = 300 };

/* What every page begins with, by which one is known that may be written anew. */
#define FIRST_LINE "<!doctype html><!-- a report of emass -->\n"

typedef struct arguments {
    char *file, *output, *figures, **pattern;
} arguments;

/* ---------------------------------------------------------------- the page */

static const char style[] =
    ":root{color-scheme:light dark;--page:#fff;--card:#f6f8fa;--text:#1c2430;--faint:#5d6979;"
    "--edge:#d9dee5;--good:#00704f;--warning:#8a5a00;--wrong:#b43200}\n"
    "@media (prefers-color-scheme:dark){:root{--page:#0d1117;--card:#161b22;--text:#e8ebf0;"
    "--faint:#a3adba;--edge:#38414d;--good:#3ecfa0;--warning:#f0c050;--wrong:#ff9a5c}}\n"
    "*{box-sizing:border-box}body{margin:0 "
    "auto;max-width:76rem;padding:min(1.5rem,4vw);font:16px/1.5 "
    "system-ui,sans-serif;color:var(--text);background:var(--page);overflow-wrap:anywhere}\n"
    "h1{font-size:1.6rem;margin:0 0 .3rem}h2{font-size:1.2rem;margin:2.2rem 0 .4rem}"
    "p{margin:.4rem 0;max-width:72ch}.faint{color:var(--faint)}\n"
    ".verdict{border-left:.4rem solid var(--faint);background:var(--card);padding:.7rem 1rem;"
    "margin:1rem 0;border-radius:.2rem}.verdict b{font-size:1.15rem}\n"
    ".good{border-color:var(--good)}.good b{color:var(--good)}.warning{border-color:var(--warning)}"
    ".warning b{color:var(--warning)}.wrong{border-color:var(--wrong)}"
    ".wrong b,td.wrong{color:var(--wrong);font-weight:600}\n"
    "dl{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(11rem,40%),1fr));gap:.6rem "
    "1.5rem;"
    "margin:1rem 0}dt{color:var(--faint);font-size:.85rem}dd{margin:0;font-weight:600}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem;"
    "font-variant-numeric:tabular-nums}th,td{padding:.15rem .7rem;text-align:right;"
    "border-bottom:1px solid var(--edge);white-space:nowrap}"
    "td.note{text-align:left;color:var(--faint)}th:first-child,td:first-child{text-align:left;"
    "padding-left:0;position:sticky;left:0;"
    "background:var(--page)}thead th{color:var(--faint);"
    "font-weight:600}tbody th{font-weight:400}\n"
    /* The last of an odd number has the whole row. */
    ".sections,.figures{display:flex;flex-wrap:wrap;gap:0 2rem}.figures{gap:1rem}"
    ".sections>*{flex:1 1 "
    "min(100%,27rem);min-width:0}.sections>:has(figure+figure){flex-basis:100%}"
    ".figures>*{flex:1 1 min(100%,21rem);min-width:0}"
    "figure{margin:0;background:var(--card);border:1px solid var(--edge);border-radius:.3rem;"
    "padding:.6rem}figure svg{display:block;width:100%;max-width:29rem;height:auto;margin:auto}\n"
    "pre{background:var(--card);padding:.8rem 1rem;overflow-x:auto;border-radius:.3rem;"
    "font-size:.85rem}code{font-size:.9em}summary{cursor:pointer}\n"
    "@media print{body{max-width:none}figure{break-inside:avoid}}\n";

/* The attribute of the file, or NULL. */
static char *text_of(const em_report_data *data, const char *name)
{
    char *text = NULL;

    return em_reader_text(data->draws, name, &text) ? text : NULL;
}

static void fact(FILE *out, const char *term, const char *value)
{
    fputs("<div><dt>", out);
    em_escape_html(out, term);
    fputs("</dt><dd>", out);
    em_escape_html(out, value);
    fputs("</dd></div>\n", out);
}

static void text_fact(const em_report_data *data, FILE *out, const char *term, const char *name)
{
    char *text = text_of(data, name);

    if (text)
        fact(out, term, text);
    em_release(&text);
}

static void int_fact(const em_report_data *data, FILE *out, const char *term, const char *name)
{
    int64_t value;
    char text[32];

    if (!em_reader_int(data->draws, name, &value))
        return;
    snprintf(text, sizeof text, "%lld", (long long)value);
    fact(out, term, text);
}

static const char *file_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

static void write_head(const em_report_data *data, FILE *out)
{
    fputs(FIRST_LINE "<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
                     "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
                     "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                     "style-src 'unsafe-inline'\">\n<title>",
          out);
    em_escape_html(out, file_name(data->path));
    fprintf(out, "</title>\n<style>\n%s%s</style></head><body>\n<h1>", style, em_svg_style);
    em_escape_html(out, file_name(data->path));
    fputs("</h1>\n", out);
}

/* The verdict of the run; of a file of another program, what the table shows. */
static em_status write_verdict(const em_report_data *data, FILE *out)
{
    static const char *const class[] = {[EM_CONVERGED] = "good",
                                        [EM_CONVERGED_WITH_WARNINGS] = "warning",
                                        [EM_NOT_CONVERGED] = "wrong"};
    const bool complete = !em_find_incomplete(data->draws);
    em_verdict verdict;
    char *text = NULL;
    em_status status = em_judge_verdict(data->judge, &verdict, &text);

    if (status)
        return status;
    const size_t first = strcspn(text, ":"), rest = first + (text[first] ? 2 : 0);
    fprintf(out, "<div class=\"verdict %s\"><b>%s ", complete ? class[verdict] : "wrong",
            complete && verdict == EM_CONVERGED ? "\u2713" : "\u26a0");
    text[first] = '\0';
    if (!complete)
        fputs("not finished, so far ", out);
    em_escape_html(out, text);
    fputs("</b><br>", out);
    em_escape_html(out, text + rest);
    if (!complete)
        fputs("<br>The run that wrote this file did not reach its end; the numbers are of the "
              "draws so far.",
              out);
    fputs("</div>\n", out);
    em_release(&text);
    return EM_OK;
}

static void write_facts(const em_report_data *data, FILE *out)
{
    char text[64];

    fputs("<dl>\n", out);
    text_fact(data, out, "model", "model");
    text_fact(data, out, "sampler", "sampler");
    snprintf(text, sizeof text, "%lld \u00d7 %lld", (long long)data->n_chain,
             (long long)data->n_draw);
    fact(out, "chains \u00d7 draws", text);
    snprintf(text, sizeof text, "%lld", (long long)data->n_element);
    fact(out, "numbers of a draw, here", text);
    int_fact(data, out, "iterations of warmup", "tuning_steps");
    int_fact(data, out, "seed", "seed");
    int_fact(data, out, "ranks", "ranks");
    text_fact(data, out, "cut", "cut");
    text_fact(data, out, "made", "created_at");
    text_fact(data, out, "by", "inference_library");
    text_fact(data, out, "version", "inference_library_version");
    fputs("</dl>\n", out);
}

/* The sentences of the advice, each with its title in bold. */
static void write_advice(const em_report_data *data, const char *advice, FILE *out)
{
    fputs("<h2 id=\"next\">What to do next</h2>\n", out);
    if (!*advice)
        fputs("<p>Nothing stands against using these draws: chains agree, and there are enough "
              "effective draws for means and for the quantiles of the table.</p>\n",
              out);
    else
        fputs("<ul>\n", out);
    for (const char *line = advice; *line;) {
        const char *end = line + strcspn(line, "\n"),
                   *colon = memchr(line, ':', (size_t)(end - line));
        char piece[2048];

        snprintf(piece, sizeof piece, "%.*s", (int)(colon ? colon - line : 0), line);
        fputs("<li><b>", out);
        em_escape_html(out, piece);
        fputs("</b>", out);
        snprintf(piece, sizeof piece, "%.*s", (int)(end - (colon ? colon : line)),
                 colon ? colon : line);
        em_escape_html(out, piece);
        fputs("</li>\n", out);
        line = *end ? end + 1 : end;
    }
    fprintf(out, "%s<p>All rows: <code>emass summary ", *advice ? "</ul>\n" : "");
    em_escape_html(out, file_name(data->path));
    fputs("</code>. In Python: <code>arviz.from_netcdf(\"", out);
    em_escape_html(out, file_name(data->path));
    fputs("\")</code>.</p>\n", out);
}

static void write_row(const em_summary_table *table, const em_summary_row *row, FILE *out)
{
    fputs("<tr><th scope=\"row\">", out);
    em_escape_html(out, row->name);
    fputs("</th>", out);
    if (row->note) {
        fprintf(out, "<td class=\"note\" colspan=\"%lld\">", (long long)table->n_column);
        em_escape_html(out, row->note);
        fputs("</td>", out);
    }
    for (int64_t j = 0; !row->note && j < table->n_column; j++) {
        char text[EM_TABLE_CELL];
        const em_column *column = &table->column[j];

        em_table_cell(column, row->value[j], text);
        fprintf(out, "<td%s>%s</td>",
                column->most > 0 && row->value[j] > column->most ? " class=\"wrong\"" : "", text);
    }
    fputs("</tr>\n", out);
}

/* All rows, or of very many the first, and those that mix worst. */
static em_status write_table(const em_report_data *data, FILE *out)
{
    em_shown_rows rows = {0};
    em_status status = em_report_rows(data, MOST_TABLE_ROWS, &rows);

    fputs("<h2 id=\"table\">Table</h2>\n", out);
    if (rows.n_line > rows.table.n_row)
        fprintf(out,
                "<p>%lld of %lld rows, with those that mix worst among them; <code>emass "
                "summary</code> has all.</p>\n",
                (long long)rows.table.n_row, (long long)data->n_element);
    fputs("<div class=\"wide\"><table><thead><tr><th></th>", out);
    for (int64_t j = 0; j < data->table.n_column; j++)
        fprintf(out, "<th scope=\"col\">%s</th>", data->table.column[j].name);
    fputs("</tr></thead><tbody>\n", out);
    for (int64_t i = 0; i < rows.table.n_row; i++)
        write_row(&rows.table, &rows.table.row[i], out);
    fputs("</tbody></table></div>\n<p class=\"faint\">mcse_mean: Monte Carlo standard error of the "
          "mean. ess_bulk, ess_tail: effective draws for the centre and for the 5 % and 95 % "
          "quantiles. r_hat: 1 where chains agree.",
          out);
    if (data->n_superchain)
        fprintf(out,
                " r_hat_nested: the same for %lld superchains, of short chains from one start "
                "each; it judges them, and r_hat is above 1 as they are short.",
                (long long)data->n_superchain);
    fputs("</p>\n", out);
    em_rows_release(&rows);
    return status;
}

/* ---------------------------------------------------------------- what it took */

static double smallest_ess(const em_report_data *data)
{
    double least = INFINITY;

    for (int64_t i = 0; i < data->n_element; i++)
        least = fmin(least, fmin(data->element[i].value[EM_AT_ESS_BULK],
                                 data->element[i].value[EM_AT_ESS_TAIL]));
    return least;
}

static em_status write_cost(const em_report_data *data, FILE *out)
{
    double *n_steps = NULL, seconds = 0, gradients = 0;
    const double ess = smallest_ess(data);
    char *warmup = text_of(data, "warmup"), text[64];
    em_status status = em_report_statistic(data->stats, "n_steps", &n_steps);

    for (int64_t i = 0; n_steps && i < data->n_chain * data->n_draw; i++)
        gradients += n_steps[i];
    fputs("<h2 id=\"cost\">Time and gradients</h2>\n", out);
    if (warmup && *warmup) {
        fputs("<p>", out);
        em_escape_html(out, warmup);
        fputs("</p>\n", out);
    }
    fputs("<dl>\n", out);
    if (em_reader_real(data->draws, "sampling_time", &seconds) && seconds > 0) {
        snprintf(text, sizeof text, seconds < 100 ? "%.3g s" : "%.0f s", seconds);
        fact(out, "time in all", text);
        snprintf(text, sizeof text, ess < 1e4 * seconds ? "%.4g" : "%.0f", ess / seconds);
        if (isfinite(ess))
            fact(out, "smallest ESS per second", text);
    }
    if (gradients > 0) {
        snprintf(text, sizeof text, "%.0f", gradients);
        fact(out, "leapfrog steps of the draws", text);
        snprintf(text, sizeof text, "%.4g", 1000 * ess / gradients);
        if (isfinite(ess))
            fact(out, "smallest ESS per 1000 of them", text);
    }
    if (isfinite(ess)) {
        snprintf(text, sizeof text, "%.0f", ess);
        fact(out, "smallest ESS", text);
    }
    fputs("</dl>\n", out);
    em_release(&n_steps);
    em_release(&warmup);
    return status;
}

static void write_config(const em_report_data *data, FILE *out)
{
    char *config = text_of(data, "config"), *commit = text_of(data, "git_commit"),
         *hash = text_of(data, "data_hash");
    int64_t merged = 0;

    em_reader_int(data->draws, "merged", &merged);
    if (config) {
        fputs("<h2 id=\"config\">The run, to be repeated</h2>\n<p class=\"faint\">Commit ", out);
        em_escape_html(out, commit ? commit : "unknown");
        fputs(", data ", out);
        em_escape_html(out, hash ? hash : "unknown");
        fputs(". The same config and seed give the same draws on any number of ranks.", out);
        if (merged > 0)
            fprintf(
                out,
                " These are of %lld runs: the config is that of the first, and the seeds are in "
                "the group runs.",
                (long long)merged);
        fputs("</p>\n<details><summary>The config, every default filled in</summary><pre>", out);
        em_escape_html(out, config);
        fputs("</pre></details>\n", out);
    }
    em_release(&config);
    em_release(&commit);
    em_release(&hash);
}

/* ---------------------------------------------------------------- figures */

/* The k-th of a kind as SVG; NULL: there is none. */
static em_status draw(const em_report_data *data, const em_figure *figure, int k, char **svg)
{
    size_t size = 0;
    FILE *out = open_memstream(svg, &size);
    em_status status = out ? figure->draw(data, k, out) : em_fail(EM_EMEMORY, "out of memory");

    if (out)
        fclose(out);
    if (status || size == 0) {
        free(*svg);
        *svg = NULL;
    }
    return status;
}

static em_status write_figure(const em_report_data *data, const em_figure *figure, FILE *out)
{
    em_status status = EM_OK;
    bool begun = false;

    for (int k = 0; !status && k < figure->most; k++) {
        char *svg = NULL;
        status = draw(data, figure, k, &svg);
        if (svg && !begun)
            fprintf(out,
                    "<section><h2 id=\"%s\">%s</h2>\n<p class=\"faint\">%s</p>\n"
                    "<div class=\"figures\">\n",
                    figure->name, figure->heading, figure->caption);
        if (svg)
            fprintf(out, "<figure>%s</figure>\n", svg);
        begun |= svg != NULL;
        free(svg);
    }
    if (begun)
        fputs("</div></section>\n", out);
    return status;
}

/* Where there is nothing to leave out, how there would be. */
static em_status write_loo_hint(const em_report_data *data, FILE *out)
{
    char *how = NULL;
    em_status status = data->log_likelihood ? EM_OK : em_loo_ask(data->draws, &how);

    if (how) {
        fputs("<h2 id=\"loo\">Leaving out one observation</h2>\n<p class=\"faint\">Leave-one-out "
              "cross-validation needs a group log_likelihood: ",
              out);
        em_escape_html(out, how);
        fputs(".</p>\n", out);
    }
    em_release(&how);
    return status;
}

static em_status write_page(em_report_data *data, FILE *out)
{
    char *advice = NULL;
    em_status status = em_report_advice(data, &advice);

    if (status)
        return status;
    write_head(data, out);
    status = write_verdict(data, out);
    write_facts(data, out);
    write_advice(data, advice, out);
    if (!status)
        status = write_table(data, out);
    if (!status)
        status = em_report_priors(data, out);
    fputs("<div class=\"sections\">\n", out);
    for (const em_figure *f = em_figures; !status && f->name; f++)
        status = write_figure(data, f, out);
    fputs("</div>\n", out);
    if (!status)
        status = write_loo_hint(data, out);
    if (!status)
        status = write_cost(data, out);
    write_config(data, out);
    fputs("</body></html>\n", out);
    em_release(&advice);
    return status;
}

/* ---------------------------------------------------------------- files */

static em_status write_report(em_report_data *data, const char *path)
{
    em_page page;
    em_status status = em_page_open(path, &page);

    if (!status)
        status = write_page(data, page.out);
    return em_page_close(&page, status);
}

/* A figure as it is printed. */
static em_status write_svg(const char *path, const char *svg)
{
    const char *inside = strchr(svg, '>') + 1;
    double width = 0, height = 0;
    em_page page;
    const em_status status = em_page_open(path, &page);

    sscanf(strstr(svg, "viewBox"), "viewBox=\"0 0 %lf %lf", &width, &height);
    if (!status) {
        fprintf(page.out, "%.*s width=\"%g\" height=\"%g\">\n<style>\n", (int)(inside - 1 - svg),
                svg, width, height);
        em_svg_write_plain_style(page.out);
        fprintf(page.out, "</style>\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>%s",
                inside);
    }
    return em_page_close(&page, status);
}

static em_status write_figures(const em_report_data *data, const char *folder)
{
    em_status status = EM_OK;

    for (const em_figure *f = em_figures; !status && f->name; f++)
        for (int k = 0; !status && k < f->most; k++) {
            char *svg = NULL, *path = NULL;
            status = draw(data, f, k, &svg);
            if (svg && f->most > 1)
                status = em_format_text(&path, "%s/%s-%d.svg", folder, f->name, k + 1);
            else if (svg)
                status = em_format_text(&path, "%s/%s.svg", folder, f->name);
            if (svg && !status)
                status = write_svg(path, svg);
            em_release(&path);
            free(svg);
        }
    return status;
}

/* ---------------------------------------------------------------- the command */

static em_status name_output(arguments *a, char **out)
{
    const size_t length = strlen(a->file);
    const bool ends = length > 3 && strcmp(a->file + length - 3, ".h5") == 0;

    return a->output ? em_copy_text(a->output, out)
                     : em_format_text(out, "%.*s.html", (int)(length - (ends ? 3 : 0)), a->file);
}

/* Rank 0. */
static em_status make_report(arguments *a)
{
    em_report_data data = {.path = NULL};
    char *output = NULL;
    em_status status = name_output(a, &output);

    if (!status)
        status = em_page_check(output, FIRST_LINE, "report");
    if (!status)
        status = em_report_read(a->file, (const char *const *)a->pattern, &data);
    if (!status && a->figures)
        status = em_page_make_folder(a->figures);
    if (!status)
        status = write_report(&data, output);
    if (!status && a->figures)
        status = write_figures(&data, a->figures);
    if (!status)
        printf("%s\n", output);
    em_report_release(&data);
    em_release(&output);
    return status;
}

static em_status parse(poptContext popt, arguments *a)
{
    em_status status = em_arguments_check(popt, "report", poptGetNextOpt(popt));

    return status ? status : em_arguments_only(popt, "report", "one file", &a->file);
}

em_status em_report_command(int argc, const char **argv)
{
    arguments a = {NULL};
    const struct poptOption table[] = {{"output", 0, POPT_ARG_STRING, &a.output, 0, NULL, NULL},
                                       {"figures", 0, POPT_ARG_STRING, &a.figures, 0, NULL, NULL},
                                       {"var", 0, POPT_ARG_ARGV, &a.pattern, 0, NULL, NULL},
                                       POPT_TABLEEND};
    poptContext popt = poptGetContext("emass report", argc, argv, table, 0);
    em_status status = em_agree(parse(popt, &a));

    if (!status)
        status = em_agree(em_world_rank() == 0 ? make_report(&a) : EM_OK);
    poptFreeContext(popt);
    for (char **p = a.pattern; p && *p; p++)
        free(*p);
    free(a.pattern);
    free(a.output);
    free(a.figures);
    em_release(&a.file);
    return status;
}
