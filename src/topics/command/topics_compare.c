/* Compares runs with several numbers of topics, in a table and on a page. */
#include "base/memory.h"
#include "base/page.h"
#include "base/text.h"
#include "io/draws/reader.h"
#include "par/world.h"
#include "topics/command/topics_command.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The measures by which numbers of topics are compared. */
typedef struct run_row {
    int64_t n_topic, n_chain;
    double perplexity, coherence; /* NaN: not known; coherence: mean weighted by share */
    double junk, common;          /* shares of topics: NPMI of 0 or less; found by all chains */
    double seconds;
    char *data;    /* hash of the data; NULL: not known */
    char *verdict; /* "converged", "converged with warnings" or "not converged"; NULL: not known */
} run_row;

/* Sets all but seconds. */
static void set_row(em_topics *t, run_row *row)
{
    const double n = (double)t->n_topic;
    double share = 0, sum = 0;

    row->n_topic = t->n_topic;
    row->n_chain = t->n_chain;
    row->perplexity = row->coherence = NAN;
    row->junk = t->coherence ? 0 : NAN;
    if (t->score[0].pooled)
        row->perplexity = t->score[0].pooled[0];
    else if (t->score[0].perplexity)
        row->perplexity = t->score[0].perplexity[0];
    for (int64_t k = 0; k < t->n_topic; k++) {
        row->common += (double)(t->n_found[k] == t->n_chain) / n;
        if (!t->coherence || isnan(t->coherence[k]))
            continue;
        row->junk += (double)em_topic_is_junk(t, k) / n;
        share += t->mean_share[k];
        sum += t->mean_share[k] * t->coherence[k];
    }
    if (share > 0)
        row->coherence = sum / share;
    row->verdict = t->verdict;
    row->data = t->data;
    t->verdict = t->data = NULL;
    if (row->verdict)
        row->verdict[strcspn(row->verdict, ":")] = '\0';
}

/* Reads a run, without what is needed no longer. */
static em_status read_run(em_topics *t, run_row *row)
{
    em_reader *reader = NULL;
    em_status status = em_reader_open(t->path, NULL, &reader);

    row->seconds = NAN;
    if (!status)
        em_reader_real(reader, "sampling_time", &row->seconds);
    em_reader_close(&reader);
    status = status ? status : em_topics_read(t);
    status = status ? status : em_topics_rank(t);
    em_topics_release_words(t);
    return status;
}

static bool are_same(const char *data, const char *other)
{
    return data && other && strcmp(data, other) == 0;
}

/* Runs on the same data are counted together, so that their corpus is read once. */
static em_status find_coherences(int64_t n, em_topics *t)
{
    EM_SCOPED em_topics **alike = NULL;
    EM_SCOPED bool *found = NULL;
    em_status status = em_allocate_all(EM_ARRAY(alike, n), EM_ARRAY(found, n));

    for (int64_t i = 0; !status && i < n; i++) {
        int64_t n_alike = 0;
        for (int64_t j = i; j < n && !found[i]; j++)
            if (j == i || (are_same(t[i].data, t[j].data) && t[j].n_word == t[i].n_word))
                alike[n_alike++] = &t[j];
        for (int64_t j = 0; j < n_alike; j++)
            found[alike[j] - t] = true;
        if (n_alike > 0)
            status = em_topics_find_coherence(n_alike, alike);
    }
    return status;
}

static em_status read_rows(const em_command_host *host, const em_topics_comparison *c, run_row *row)
{
    EM_SCOPED em_topics *t = NULL;
    em_status status = em_allocate(host->n_file, sizeof *t, &t);

    for (int64_t i = 0; !status && i < host->n_file; i++) {
        t[i] = (em_topics){
            .host = host, .path = host->file[i], .folder = c->folder, .n_top = c->n_top};
        status = read_run(&t[i], &row[i]);
    }
    status = status ? status : find_coherences(host->n_file, t);
    for (int64_t i = 0; t && i < host->n_file; i++) {
        if (!status)
            set_row(&t[i], &row[i]);
        em_topics_release(&t[i]);
    }
    return status;
}

static const char explanation[] =
    "Perplexity: of the test documents, averaged over draws and chains; lower is better. npmi: "
    "mean "
    "coherence\nof the topics, weighted by their shares. junk: topics with an npmi of 0 or less.\n";

/* Prints a number of a row, or a sign if it is not known. */
static void print_number(const char *format, double value, int width, const char *unknown)
{
    if (isnan(value))
        printf("%*s", width, unknown);
    else
        printf(format, value);
}

static void print_csv_row(const char *file, const run_row *r)
{
    const double value[] = {r->perplexity, r->coherence, r->junk, r->common, r->seconds};

    em_topics_print_quoted(file);
    printf(",%lld,%lld", (long long)r->n_topic, (long long)r->n_chain);
    for (size_t i = 0; i < sizeof value / sizeof *value; i++)
        print_number(",%.9g", value[i], 1, ",");
    printf(",%s\n", r->verdict ? r->verdict : "");
}

static void print_row(const char *file, const run_row *r)
{
    printf("%6lld  %6lld", (long long)r->n_topic, (long long)r->n_chain);
    print_number("  %10.1f", r->perplexity, 12, "-");
    print_number("  %6.3f", r->coherence, 8, "-");
    print_number("  %5.1f%%", 100 * r->junk, 8, "-");
    print_number("  %12.1f%%", 100 * r->common, 15, "-");
    print_number("  %7.1f", r->seconds, 9, "-");
    printf("  %s\n", file);
}

static void print_unconverged(const em_command_host *host, const run_row *row)
{
    const char *between = "Not converged: ";

    for (int64_t i = 0; i < host->n_file; i++)
        if (row[i].verdict && strcmp(row[i].verdict, "not converged") == 0) {
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
        alike = alike && (!row[0].data || !row[i].data || are_same(row[0].data, row[i].data));
    if (!alike)
        em_say("warning: topics: these runs have different data, so their perplexities are not "
               "comparable");
}

/* ---------------------------------------------------------------- the page */

/* A column of the table. */
typedef struct figure {
    const char *title, *format; /* of a value */
    size_t offset;              /* of a double in run_row */
    double scale;
} figure;

static const figure figures[] = {
    {"Held-out perplexity", "%.1f", offsetof(run_row, perplexity), 1},
    {"Coherence (mean NPMI, weighted by the shares of topics)", "%.3f",
     offsetof(run_row, coherence), 1},
    {"Junk topics, %", "%.1f", offsetof(run_row, junk), 100},
    {"Topics that all chains found, %", "%.1f", offsetof(run_row, common), 100},
    {"Seconds of sampling", "%.3g", offsetof(run_row, seconds), 1}};

enum { N_FIGURE = sizeof figures / sizeof *figures };

static double value_of(const figure *f, const run_row *row)
{
    return f->scale * *(const double *)((const char *)row + f->offset);
}

/* Writes the figure of a measure, unless no run has the measure. x, y: memory for n numbers. */
static void put_figure(FILE *out, const figure *f, int64_t n, const run_row *const *row, double *x,
                       double *y)
{
    int64_t known = 0;

    for (int64_t i = 0; i < n; i++)
        if (isfinite(value_of(f, row[i]))) {
            x[known] = (double)row[i]->n_topic;
            y[known++] = value_of(f, row[i]);
        }
    if (known > 0)
        em_topics_put_curve(out, f->title, f->format, known, x, y);
}

static void put_cell(FILE *out, const figure *f, const run_row *row)
{
    fprintf(out, "<td class=\"n\">");
    if (isfinite(value_of(f, row)))
        fprintf(out, f->format, value_of(f, row));
}

static void put_table(FILE *out, const em_command_host *host, const run_row *row)
{
    fprintf(out,
            "<div class=\"wide\"><table><thead><tr><th>topics<th>chains<th>perplexity<th>npmi"
            "<th>junk, %%<th>in all chains, %%<th>seconds<th>verdict<th>file</thead><tbody>\n");
    for (int64_t i = 0; i < host->n_file; i++) {
        fprintf(out, "<tr><td class=\"n\">%lld<td class=\"n\">%lld", (long long)row[i].n_topic,
                (long long)row[i].n_chain);
        for (int f = 0; f < N_FIGURE; f++)
            put_cell(out, &figures[f], &row[i]);
        fprintf(out, "<td>%s<td>", row[i].verdict ? row[i].verdict : "");
        em_escape_html(out, host->file[i]);
        fprintf(out, "\n");
    }
    fprintf(out, "</tbody></table></div>\n<p class=\"faint\">%s</p>\n", explanation);
}

static int by_topics(const void *a, const void *b)
{
    const run_row *const *x = a, *const *y = b;

    return ((*x)->n_topic > (*y)->n_topic) - ((*x)->n_topic < (*y)->n_topic);
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
        for (int f = 0; f < N_FIGURE; f++)
            put_figure(page.out, &figures[f], host->n_file, sorted, x, y);
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
        em_release_all(&row[i].verdict, &row[i].data);
    em_release(&row);
    return status;
}
