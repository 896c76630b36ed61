/* Compares runs with several numbers of topics, in a table and on a page. */
#include "base/memory.h"
#include "base/page.h"
#include "base/text.h"
#include "par/world.h"
#include "topics/command/topics_command.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The measures by which numbers of topics are compared. The coherence is the mean weighted by
 * share. Shares of topics are those with an NPMI of 0 or less, and those that all chains found. */
enum { PERPLEXITY, COHERENCE, JUNK, COMMON, SECONDS, N_MEASURE };

static const struct {
    const char *title, *format; /* of a value on the page */
    double scale;               /* of the format */
    const char *row_format;     /* on the terminal */
    int width;                  /* there */
} measures[N_MEASURE] = {
    {"Held-out perplexity", "%.1f", 1, "  %10.1f", 12},
    {"Coherence (mean NPMI, weighted by the shares of topics)", "%.3f", 1, "  %6.3f", 8},
    {"Junk topics, %", "%.1f", 100, "  %5.1f%%", 8},
    {"Topics that all chains found, %", "%.1f", 100, "  %12.1f%%", 15},
    {"Seconds of sampling", "%.3g", 1, "  %7.1f", 9}};

/* A run. The verdict of its topics is "converged", "converged with warnings" or "not converged". */
typedef struct run_row {
    em_topics t;             /* without what em_topics_release_words frees */
    double value[N_MEASURE]; /* NaN: not known */
} run_row;

static void set_row(run_row *row)
{
    const em_topics *t = &row->t;
    const double n = (double)t->n_topic;
    double share = 0, sum = 0;

    row->value[PERPLEXITY] = row->value[COHERENCE] = NAN;
    row->value[JUNK] = t->coherence ? 0 : NAN;
    row->value[SECONDS] = t->seconds;
    if (t->score[0].pooled)
        row->value[PERPLEXITY] = t->score[0].pooled[0];
    else if (t->score[0].perplexity)
        row->value[PERPLEXITY] = t->score[0].perplexity[0];
    for (int64_t k = 0; k < t->n_topic; k++) {
        row->value[COMMON] += (double)(t->n_found[k] == t->n_chain) / n;
        if (!t->coherence || isnan(t->coherence[k]))
            continue;
        row->value[JUNK] += (double)em_topic_is_junk(t, k) / n;
        share += t->mean_share[k];
        sum += t->mean_share[k] * t->coherence[k];
    }
    if (share > 0)
        row->value[COHERENCE] = sum / share;
    if (t->verdict)
        t->verdict[strcspn(t->verdict, ":")] = '\0';
}

static bool are_same(const char *data, const char *other)
{
    return data && other && strcmp(data, other) == 0;
}

/* Runs on the same data are counted together, so that their corpus is read once. */
static em_status find_coherences(int64_t n, run_row *row)
{
    EM_SCOPED em_topics **alike = NULL;
    EM_SCOPED bool *found = NULL;
    em_status status = em_allocate_all(EM_ARRAY(alike, n), EM_ARRAY(found, n));

    for (int64_t i = 0; !status && i < n; i++) {
        int64_t n_alike = 0;
        if (found[i])
            continue;
        for (int64_t j = i; j < n; j++)
            if (j == i ||
                (are_same(row[i].t.data, row[j].t.data) && row[j].t.n_word == row[i].t.n_word)) {
                alike[n_alike++] = &row[j].t;
                found[j] = true;
            }
        status = em_topics_find_coherence(n_alike, alike);
    }
    return status;
}

static em_status read_rows(const em_command_host *host, const em_topics_comparison *c, run_row *row)
{
    em_status status = EM_OK;

    for (int64_t i = 0; !status && i < host->n_file; i++) {
        row[i].t = (em_topics){
            .host = host, .path = host->file[i], .folder = c->folder, .n_top = c->n_top};
        status = em_topics_read(&row[i].t);
        em_topics_release_words(&row[i].t);
    }
    status = status ? status : find_coherences(host->n_file, row);
    for (int64_t i = 0; !status && i < host->n_file; i++)
        set_row(&row[i]);
    return status;
}

static const char explanation[] =
    "Perplexity: of the test documents, averaged over draws and chains; lower is better. npmi: "
    "mean "
    "coherence\nof the topics, weighted by their shares. junk: topics with an npmi of 0 or less.\n";

/* Prints a number of a row, or a sign if it is not known. */
static void print_number(FILE *out, const char *format, double value, int width,
                         const char *unknown)
{
    if (isnan(value))
        fprintf(out, "%*s", width, unknown);
    else
        fprintf(out, format, value);
}

static void print_csv_row(const char *file, const run_row *r)
{
    em_print_quoted(stdout, file);
    printf(",%lld,%lld", (long long)r->t.n_topic, (long long)r->t.n_chain);
    for (int i = 0; i < N_MEASURE; i++)
        print_number(stdout, ",%.9g", r->value[i], 1, ",");
    printf(",%s\n", r->t.verdict ? r->t.verdict : "");
}

static void print_row(const char *file, const run_row *r)
{
    printf("%6lld  %6lld", (long long)r->t.n_topic, (long long)r->t.n_chain);
    for (int i = 0; i < N_MEASURE; i++)
        print_number(stdout, measures[i].row_format, measures[i].scale * r->value[i],
                     measures[i].width, "-");
    printf("  %s\n", file);
}

static void print_unconverged(const em_command_host *host, const run_row *row)
{
    const char *between = "Not converged: ";

    for (int64_t i = 0; i < host->n_file; i++)
        if (row[i].t.verdict && strcmp(row[i].t.verdict, "not converged") == 0) {
            printf("%s%s", between, host->file[i]);
            between = ", ";
        }
    if (*between == ',')
        printf(" (emass summary FILE says why).\n");
}

static void print_rows(const em_command_host *host, const run_row *row, bool csv)
{
    printf(csv ? "file,topics,chains,perplexity,npmi,junk,in_all_chains,seconds,verdict\n"
               : "topics  chains  perplexity    npmi    junk  in all chains  seconds  file\n");
    for (int64_t i = 0; i < host->n_file; i++) {
        if (csv)
            print_csv_row(host->file[i], &row[i]);
        else
            print_row(host->file[i], &row[i]);
    }
    if (csv)
        return;
    fputs(explanation, stdout);
    print_unconverged(host, row);
}

static void warn_of_other_data(int64_t n, const run_row *row)
{
    bool alike = true;

    for (int64_t i = 1; i < n; i++)
        alike =
            alike && (!row[0].t.data || !row[i].t.data || are_same(row[0].t.data, row[i].t.data));
    if (!alike)
        em_say("warning: topics: these runs have different data, so their perplexities are not "
               "comparable");
}

/* ---------------------------------------------------------------- the page */

static double value_of(int measure, const run_row *row)
{
    return measures[measure].scale * row->value[measure];
}

/* Writes the figure of a measure, unless no run has the measure. x, y: memory for n numbers. */
static void put_figure(FILE *out, int measure, int64_t n, const run_row *const *row, double *x,
                       double *y)
{
    int64_t known = 0;

    for (int64_t i = 0; i < n; i++)
        if (isfinite(value_of(measure, row[i]))) {
            x[known] = (double)row[i]->t.n_topic;
            y[known++] = value_of(measure, row[i]);
        }
    if (known > 0)
        em_topics_put_curve(out, measures[measure].title, measures[measure].format, known, x, y);
}

static void put_table(FILE *out, const em_command_host *host, const run_row *row)
{
    fprintf(out,
            "<div class=\"wide\"><table><thead><tr><th>topics<th>chains<th>perplexity<th>npmi"
            "<th>junk, %%<th>in all chains, %%<th>seconds<th>verdict<th>file</thead><tbody>\n");
    for (int64_t i = 0; i < host->n_file; i++) {
        fprintf(out, "<tr><td class=\"n\">%lld<td class=\"n\">%lld", (long long)row[i].t.n_topic,
                (long long)row[i].t.n_chain);
        for (int k = 0; k < N_MEASURE; k++) {
            fprintf(out, "<td class=\"n\">");
            if (isfinite(row[i].value[k]))
                fprintf(out, measures[k].format, value_of(k, &row[i]));
        }
        fprintf(out, "<td>%s<td>", row[i].t.verdict ? row[i].t.verdict : "");
        em_escape_html(out, host->file[i]);
        fprintf(out, "\n");
    }
    fprintf(out, "</tbody></table></div>\n<p class=\"faint\">%s</p>\n", explanation);
}

static int by_topics(const void *a, const void *b)
{
    const run_row *const *x = a, *const *y = b;

    return ((*x)->t.n_topic > (*y)->t.n_topic) - ((*x)->t.n_topic < (*y)->t.n_topic);
}

static em_status write_page(const em_command_host *host, const char *path, const run_row *row)
{
    EM_SCOPED const run_row **sorted = NULL;
    EM_SCOPED double *x = NULL, *y = NULL;
    em_page page;
    const em_status made = em_allocate_all(EM_ARRAY(sorted, host->n_file),
                                           EM_ARRAY(x, host->n_file), EM_ARRAY(y, host->n_file));
    const em_status status = em_topics_open_page(path, "Numbers of topics", NULL, &page);

    if (!made && !status) {
        for (int64_t i = 0; i < host->n_file; i++)
            sorted[i] = &row[i];
        qsort(sorted, (size_t)host->n_file, sizeof *sorted, by_topics);
        put_table(page.out, host, row);
        for (int k = 0; k < N_MEASURE; k++)
            put_figure(page.out, k, host->n_file, sorted, x, y);
        fprintf(page.out, "</body></html>\n");
    }
    return em_page_close(&page, made ? made : status);
}

/* Prints a line for each run, in the order of the files. */
em_status em_topics_compare(const em_command_host *host, const em_topics_comparison *c)
{
    run_row *row = NULL;
    em_status status = em_allocate(host->n_file, sizeof *row, &row);

    status = status ? status : read_rows(host, c, row);
    if (!status && host->prints)
        warn_of_other_data(host->n_file, row);
    if (!status && host->prints && c->prints)
        print_rows(host, row, c->csv);
    if (!status && c->page)
        status = write_page(host, c->page, row);
    for (int64_t i = 0; row && i < host->n_file; i++)
        em_topics_release(&row[i].t);
    em_release(&row);
    return status;
}
