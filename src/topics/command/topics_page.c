#include "topics/command/topics_command.h"

#include "base/memory.h"
#include "base/page.h"
#include "base/text.h"
#include "io/draws/reader.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The first line of every page, which marks pages that may be replaced. */
const char em_topics_page_line[] = "<!doctype html><!-- topics by emass -->\n";

enum { NEAREST = 3, MOST_POINTS = 400, N_COLOUR = 4 };
enum { WIDTH = 640, HEIGHT = 260, LEFT = 96, BOTTOM = 40, TOP = 12, RIGHT = 12, INSET = 24 };

static const char style[] =
    ":root{color-scheme:light dark;--page:#fff;--card:#f6f8fa;--text:#1c2430;--faint:#5d6979;"
    "--edge:#d9dee5;--bar:#9cc3e8;--c0:#0062b1;--c1:#b43200;--c2:#00704f;--c3:#7a3e9d}\n"
    "@media (prefers-color-scheme:dark){:root{--page:#0d1117;--card:#161b22;--text:#e8ebf0;"
    "--faint:#a3adba;--edge:#38414d;--bar:#24507a;--c0:#6cb6ff;--c1:#ff9a5c;--c2:#3ecfa0;"
    "--c3:#d2a8ff}}\n"
    "body{margin:0 auto;max-width:72rem;padding:1.5rem;font:16px/1.5 system-ui,sans-serif;"
    "color:var(--text);background:var(--page);overflow-wrap:anywhere}h1{font-size:1.5rem}"
    "h2{font-size:1.15rem;margin-top:2rem}p{max-width:72ch}.faint{color:var(--faint)}\n"
    "svg{width:100%;max-width:44rem;height:auto;background:var(--card);"
    "border:1px solid var(--edge);border-radius:.3rem}svg text{fill:var(--faint);font:12px "
    "system-ui,sans-serif}polyline{fill:none;stroke-width:1.5}.c0{stroke:var(--c0)}"
    ".dot{fill:var(--c0)}.c1{stroke:var(--c1)}.c2{stroke:var(--c2)}.c3{stroke:var(--c3)}.rim{fill:"
    "none;"
    "stroke:var(--edge)}\n"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:.92rem;"
    "font-variant-numeric:tabular-nums;overflow-wrap:normal}td.words{min-width:9rem}"
    "th,td{padding:.3rem .7rem;text-align:left;"
    "vertical-align:top;border-bottom:1px solid var(--edge)}th{color:var(--faint)}"
    "td.n{text-align:right;white-space:nowrap}tr:target{background:var(--card)}"
    "meter{width:5rem}a{color:var(--c0)}\n";

/* ---------------------------------------------------------------- the trace */

/* One number of each draw of each chain. */
typedef struct trace {
    int64_t n_chain, n_draw;
    double *value; /* [n_chain][n_draw]; NULL: none */
} trace;

static em_status read_trace(const char *path, const char *name, trace *out)
{
    EM_SCOPED_BY(em_reader_close) em_reader *reader = NULL;
    em_status status = em_reader_open(path, "posterior", &reader);

    const int64_t i = status ? -1 : em_reader_find(reader, name);

    *out = (trace){0};
    if (i < 0)
        return status;
    out->n_chain = em_reader_n_chain(reader);
    out->n_draw = em_reader_n_draw(reader);
    status = em_allocate(out->n_chain * out->n_draw, sizeof(double), &out->value);
    return status ? status : em_reader_elements(reader, i, 0, 1, out->value);
}

static void range_of(const trace *of, double *low, double *high)
{
    *low = INFINITY;
    *high = -INFINITY;
    for (int64_t i = 0; i < of->n_chain * of->n_draw; i++)
        if (isfinite(of->value[i])) {
            *low = fmin(*low, of->value[i]);
            *high = fmax(*high, of->value[i]);
        }
    if (!(*high > *low)) {
        *low = isfinite(*low) ? *low - 0.5 : 0;
        *high = *low + 1;
    }
}

/* Writes the frame of a figure, and the range of its values. */
static void put_frame(FILE *out, const char *title, double low, double high)
{
    fprintf(out, "<h2>%s</h2>\n<svg viewBox=\"0 0 %d %d\" role=\"img\"><title>%s</title>\n", title,
            WIDTH, HEIGHT, title);
    fprintf(out, "<rect class=\"rim\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", LEFT, TOP,
            WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.6g</text>", LEFT - 6, TOP + 10,
            high);
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%.6g</text>", LEFT - 6,
            HEIGHT - BOTTOM, low);
}

void em_topics_put_curve(FILE *out, const char *title, const char *format, int64_t n,
                         const double *x, const double *y)
{
    const double wide = log(x[n - 1] / x[0]), across = WIDTH - LEFT - RIGHT - 2 * INSET;
    const trace of = {1, n, (double *)y};
    double low, high;

    range_of(&of, &low, &high);
    const double margin = (high - low) / 8;
    low -= margin;
    high += margin;
    put_frame(out, title, low, high);
    for (int line = 1; line >= 0; line--) { /* the line, then its points */
        fprintf(out, line ? "<polyline class=\"c0\" points=\"" : "\"/>\n");
        for (int64_t i = 0; i < n; i++) {
            const double at = LEFT + INSET + across * (wide > 0 ? log(x[i] / x[0]) / wide : 0.5);
            const double down = TOP + (HEIGHT - TOP - BOTTOM) * (high - y[i]) / (high - low);
            if (line) {
                fprintf(out, "%.1f,%.1f ", at, down);
                continue;
            }
            fprintf(out,
                    "<circle class=\"dot\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>%g topics: ", at,
                    down, x[i]);
            fprintf(out, format, y[i]);
            fprintf(out,
                    "</title></circle><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%g</text>\n",
                    at, HEIGHT - BOTTOM + 18, x[i]);
        }
    }
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">topics</text></svg>\n", WIDTH - RIGHT,
            HEIGHT - 6);
}

static void put_trace(FILE *out, const char *title, const trace *of)
{
    const int64_t step = of->n_draw / MOST_POINTS + 1;
    const double across = WIDTH - LEFT - RIGHT, down = HEIGHT - TOP - BOTTOM;
    double low, high;

    range_of(of, &low, &high);
    put_frame(out, title, low, high);
    fprintf(out, "<text x=\"%d\" y=\"%d\">0</text>", LEFT, HEIGHT - BOTTOM + 18);
    fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">draw %lld</text>\n", WIDTH - RIGHT,
            HEIGHT - BOTTOM + 18, (long long)of->n_draw);
    for (int64_t c = 0; c < of->n_chain; c++) {
        fprintf(out, "<polyline class=\"c%d\" points=\"", (int)(c % N_COLOUR));
        for (int64_t i = 0; i < of->n_draw; i += step) {
            const double y = of->value[c * of->n_draw + i];
            if (isfinite(y))
                fprintf(out, "%.1f,%.1f ",
                        LEFT + across * (double)i / fmax(1, (double)of->n_draw - 1),
                        TOP + down * (high - y) / (high - low));
        }
        fprintf(out, "\"/>\n");
    }
    fprintf(out, "</svg>\n");
}

static em_status put_traces(FILE *out, const em_topics *t)
{
    static const char *const name[] = {"perplexity", "log_density"};
    static const char *const title[] = {"Perplexity of the test documents, draw by draw",
                                        "Log density of words and topics, draw by draw"};
    em_status status = EM_OK;

    for (size_t i = 0; !status && i < sizeof name / sizeof *name; i++) {
        trace of;
        status = read_trace(t->path, name[i], &of);
        if (!status && of.value && of.n_draw > 0)
            put_trace(out, title[i], &of);
        em_release(&of.value);
    }
    return status;
}

/* ---------------------------------------------------------------- topics */

/* Lists the topics that overlap with this one at all, the nearest first. overlap [n_topic] is 0 for
 * the topic itself. */
static void put_nearest(FILE *out, const em_topics *t, const float *overlap)
{
    const long n = (long)em_least(NEAREST, t->n_topic);
    int32_t nearest[NEAREST];

    em_topics_largest(t->n_topic, overlap, n, nearest);
    for (long i = 0; i < n && overlap[nearest[i]] > 0; i++)
        fprintf(out, "<a href=\"#t%d\">%d</a> <span class=\"faint\">%.2f</span> ", nearest[i],
                nearest[i], (double)overlap[nearest[i]]);
}

static void put_topic(FILE *out, const em_topics *t, const float *overlap, int64_t k)
{
    fprintf(out, "<tr id=\"t%lld\"><td class=\"n\">%lld<td class=\"n\">%.2f %%", (long long)k,
            (long long)k, 100 * t->mean_share[k]);
    fprintf(out, "<br><meter min=\"0\" max=\"%.6g\" value=\"%.6g\"></meter>",
            t->mean_share[t->order[0]], t->mean_share[k]);
    if (t->coherence && !isnan(t->coherence[k]))
        fprintf(out, "<td class=\"n\">%.3f%s", t->coherence[k],
                em_topic_is_junk(t, k) ? "<br><span class=\"faint\">junk</span>" : "");
    else
        fprintf(out, "<td class=\"n\">");
    fprintf(out, "<td class=\"n\">%lld of %lld<td class=\"words\">", (long long)t->n_found[k],
            (long long)t->n_chain);
    for (long i = 0; i < t->n_top; i++) {
        const int32_t v = t->top[k * t->n_top + i];
        fprintf(out, "%s<span title=\"%.4g\">", i ? " " : "", (double)t->mean[k * t->n_word + v]);
        em_escape_html(out, t->word[v]);
        fprintf(out, "</span>");
    }
    fprintf(out, "<td class=\"words\">");
    put_nearest(out, t, overlap);
    fprintf(out, "\n");
}

static em_status put_topics(FILE *out, const em_topics *t)
{
    EM_SCOPED float *overlaps = NULL;
    em_status status = em_allocate(t->n_topic * t->n_topic, sizeof *overlaps, &overlaps);

    status = status ? status : em_topic_overlaps(t, overlaps);
    for (int64_t i = 0; !status && i < t->n_topic; i++) {
        float *own = overlaps + t->order[i] * t->n_topic;
        own[t->order[i]] = 0;
        put_topic(out, t, own, t->order[i]);
    }
    return status;
}

static void put_score(FILE *out, const em_topics *t, const em_topic_score *score)
{
    fprintf(out, "<p>Held-out perplexity of each chain, probabilities averaged over its draws:");
    for (int64_t c = 0; c < t->n_chain; c++)
        fprintf(out, " %.1f", score->perplexity[c]);
    if (score->pooled && t->n_chain > 1)
        fprintf(out, "; over all chains too: <b>%.1f</b>", score->pooled[0]);
    fprintf(out, ".<br><span class=\"faint\">");
    em_escape_html(out, score->doc);
    fprintf(out, ".</span></p>\n");
}

static void put_scores(FILE *out, const em_topics *t)
{
    for (int i = 0; i < EM_TOPIC_SCORES; i++)
        if (t->score[i].perplexity)
            put_score(out, t, &t->score[i]);
}

em_status em_topics_put(FILE *out, const em_topics *t)
{
    fprintf(out, "<h2 id=\"topics\">Topics, the largest first</h2>\n");
    fprintf(out, "<p>%lld topics of %lld words, %lld chain%s.</p>\n", (long long)t->n_topic,
            (long long)t->n_word, (long long)t->n_chain, em_plural(t->n_chain));
    put_scores(out, t);
    fprintf(out, "<div class=\"wide\"><table><thead><tr><th>topic<th>share<th>coherence<th>chains"
                 "<th class=\"words\">words<th class=\"words\">nearest</thead><tbody>\n");
    em_status status = put_topics(out, t);
    fprintf(
        out,
        "</tbody></table></div>\n<p class=\"faint\">Topics are numbered as in the first chain. The "
        "topics of other chains are matched to them by the best assignment, and averaged if their "
        "word distributions overlap (the sum of the roots of the products) by %g or more. "
        "Coherence is the mean NPMI of the words over the documents of the run; junk has 0 or "
        "less. Nearest: the topics of the largest overlap.</p>\n",
        EM_LEAST_OVERLAP);
    return status;
}

static em_status put_page(FILE *out, const em_topics *t)
{
    if (t->verdict) {
        fprintf(out, "<p>The run: ");
        em_escape_html(out, t->verdict);
        fprintf(out, ".</p>\n");
    }
    em_status status = em_topics_put(out, t);
    status = status ? status : put_traces(out, t);
    fprintf(out, "</body></html>\n");
    return status;
}

/* ---------------------------------------------------------------- the file */

em_status em_topics_open_page(const char *path, const char *title, const char *of, em_page *page)
{
    em_status status = em_page_check(path, em_topics_page_line, "page of topics");

    *page = (em_page){.path = NULL};
    status = status ? status : em_page_open(path, page);
    if (status)
        return status;
    fprintf(page->out,
            "%s<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name=\"viewport\" "
            "content=\"width=device-width\">\n<title>%s",
            em_topics_page_line, title);
    em_escape_html(page->out, of ? of : "");
    fprintf(page->out, "</title>\n<style>\n%s</style></head><body>\n<h1>%s", style, title);
    em_escape_html(page->out, of ? of : "");
    fprintf(page->out, "</h1>\n");
    return EM_OK;
}

em_status em_topics_write_page(const em_topics *t)
{
    em_page page;
    em_status status = em_topics_open_page(t->html, "Topics of ", t->path, &page);

    status = status ? status : put_page(page.out, t);
    return em_page_close(&page, status);
}
