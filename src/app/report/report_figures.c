/* What is drawn is bounded: so many rows, chains and points, whatever the size of the run. */
#include "app/report/report_figures.h"

#include "app/report/report_sampler.h"
#include "app/report/svg.h"
#include "base/memory.h"
#include "base/system/terminal.h"
#include "diagnostics/diag.h"
#include "diagnostics/rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_ROWS = 60,    /* of the forest */
    MOST_OF_ONE = 25,  /* of a variable */
    MOST_LINES = 8,    /* chains with a line */
    MOST_POINTS = 500, /* of a line */
    MOST_DOTS = 1500   /* of a scatter */
};

static const char *const line_class[MOST_LINES] = {"thin c0", "thin c1", "thin c2", "thin c3",
                                                   "thin c4", "thin c5", "thin c6", "thin c7"};

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---------------------------------------------------------------- forest */

/* Wider where names are long: they are not cut for the intervals, nor these for them. */
enum { ROW = 18, INTERVALS = 210 };

enum {
    MOST_RATIO = 60, /* of an axis to its shortest interval */
    MOST_PANELS = 4  /* of a variable */
};

/* How many of the elements from `first` on are of its variable. */
static int64_t count_of_variable(const em_report_data *data, int64_t first)
{
    int64_t n = 1;

    while (first + n < data->n_element &&
           data->element[first + n].variable == data->element[first].variable)
        n++;
    return n;
}

/*
 * The rows of the forest, and its panels: each of one variable, whose intervals are all wide enough
 * on their axis to be seen. So few panels of one that they stay a figure; the last has the rest.
 */
typedef struct forest {
    int64_t n_row, n_panel;
    int64_t row[MOST_ROWS];  /* elements, panel by panel */
    int64_t size[MOST_ROWS]; /* of each panel */
} forest;

static double extent(const em_report_element *e)
{
    const double width = e->value[EM_AT_Q95] - e->value[EM_AT_Q5];

    return width > 0 ? width : INFINITY; /* a constant asks for no room */
}

/* Whether an element's interval and those of a panel would be more than dots on one axis. */
static bool suits(const em_report_data *data, int64_t n, const int64_t *row, int64_t element)
{
    const double *const at = data->element[element].value;
    double low = at[EM_AT_Q5], high = at[EM_AT_Q95], least = extent(&data->element[element]);

    for (int64_t i = 0; i < n; i++) {
        const em_report_element *e = &data->element[row[i]];
        low = fmin(low, e->value[EM_AT_Q5]);
        high = fmax(high, e->value[EM_AT_Q95]);
        least = fmin(least, extent(e));
    }
    return !(high - low > MOST_RATIO * least);
}

/* Elements [first, first + n) in panels: each takes the widest that are left, and what suits them.
 */
static void add_panels(const em_report_data *data, int64_t first, int64_t n, forest *f)
{
    int64_t order[MOST_OF_ONE], left = 0, at;

    for (int64_t i = first; i < first + n; i++) { /* the widest first, else as they are stored */
        for (at = left++;
             at > 0 && extent(&data->element[order[at - 1]]) < extent(&data->element[i]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (int panel = 0; left > 0; panel++) {
        int64_t *const row = f->row + f->n_row, size = 0, n_left = 0;

        for (int64_t k = 0; k < left; k++)
            if (panel + 1 < MOST_PANELS && !suits(data, size, row, order[k]))
                order[n_left++] = order[k];
            else {
                for (at = size++; at > 0 && row[at - 1] > order[k]; at--) /* as they are stored */
                    row[at] = row[at - 1];
                row[at] = order[k];
            }
        left = n_left;
        f->n_row += size;
        f->size[f->n_panel++] = size;
    }
}

static void arrange(const em_report_data *data, forest *f)
{
    int64_t n;

    *f = (forest){0};
    for (int64_t i = 0; i < data->n_element && f->n_row < MOST_ROWS; i += n) {
        n = count_of_variable(data, i);
        add_panels(data, i, smaller(smaller(n, MOST_OF_ONE), MOST_ROWS - f->n_row), f);
    }
}

/* Where the n-th character of a text begins, or the text ends. */
static const char *character_at(const char *text, size_t n)
{
    while (*text && n-- > 0)
        do
            text++;
        while (((unsigned char)*text & 0xC0) == 0x80);
    return text;
}

/* A name in as many characters as there is room for: of a long one both ends, as elements of one
 * variable differ in the last. */
enum { NAME_BYTES = 256 };
static void cut_name(const char *name, size_t most, char out[NAME_BYTES])
{
    const size_t half = most / 2, bytes = NAME_BYTES / 2 - 4;
    size_t n = 0;

    for (const char *c = name; *c; c++)
        n += ((unsigned char)*c & 0xC0) != 0x80;
    if (n <= most && strlen(name) < NAME_BYTES) {
        snprintf(out, NAME_BYTES, "%s", name);
        return;
    }
    const size_t head = (size_t)(character_at(name, half) - name);
    const char *tail = character_at(name, n > most - half - 1 ? n - (most - half - 1) : 0);
    snprintf(out, NAME_BYTES, "%.*s\u2026%.*s", (int)(head < bytes ? head : bytes), name,
             (int)bytes, tail);
}

/* Of the forest's names, at the width of a letter. */
static double name_width(const em_report_data *data, const forest *f)
{
    const double letter = 6.4, most = 40;
    double longest = 0;

    for (int64_t i = 0; i < f->n_row; i++)
        longest = fmax(longest, em_terminal_width(data->element[f->row[i]].name));
    return fmin(longest, most) * letter + 16;
}

static void draw_interval(const em_axes *axes, const em_report_element *e, double y)
{
    const double *v = e->value, wide[] = {v[EM_AT_Q5], v[EM_AT_Q95]},
                 half[] = {v[EM_AT_Q25], v[EM_AT_Q75]}, at[] = {y, y};
    char name[NAME_BYTES];

    em_axes_line(axes, "line c0", 2, wide, at);
    em_axes_line(axes, "thick c0", 2, half, at);
    em_axes_dots(axes, "mark ink", 1, &v[EM_AT_Q50], at);
    cut_name(e->name, 40, name);
    em_svg_text(axes->out, axes->left - 8,
                axes->top + axes->height * (1 - (y - axes->y.low) / (axes->y.high - axes->y.low)) +
                    4,
                "end", "", name);
}

/* Elements on an axis of their own; returns its height. */
static double draw_panel(const em_report_data *data, int64_t n, const int64_t *row, double left,
                         double width, double top, FILE *out)
{
    em_range range = em_no_range;
    const double height = (double)(n * ROW);

    for (int64_t i = 0; i < n; i++) {
        range = em_range_over(range, 1, &data->element[row[i]].value[EM_AT_Q5]);
        range = em_range_over(range, 1, &data->element[row[i]].value[EM_AT_Q95]);
    }
    const em_axes axes = {.out = out,
                          .left = left,
                          .top = top,
                          .width = width - left - 14,
                          .height = height,
                          .x = em_range_padded(range),
                          .y = {0, (double)n},
                          .no_y_ticks = true};
    em_axes_draw(&axes, NULL, NULL);
    for (int64_t i = 0; i < n; i++)
        draw_interval(&axes, &data->element[row[i]], (double)(n - i) - 0.5);
    return height;
}

static em_status draw_forest(const em_report_data *data, int k, FILE *out)
{
    double top = 10;
    char rest[96];
    forest f;

    (void)k;
    arrange(data, &f);
    const double names = name_width(data, &f);
    const double width = fmax(names + INTERVALS, EM_SVG_WIDTH);
    em_svg_begin(out, width,
                 (double)(f.n_row * ROW + f.n_panel * 34) + (f.n_row < data->n_element ? 26 : 4),
                 "Intervals of the parameters");
    for (int64_t panel = 0, at = 0; panel < f.n_panel; at += f.size[panel++])
        top += draw_panel(data, f.size[panel], f.row + at, names, width, top, out) + 34;
    if (f.n_row < data->n_element) {
        snprintf(rest, sizeof rest, "and %lld more, which the table or emass summary has",
                 (long long)(data->n_element - f.n_row));
        em_svg_text(out, names, top + 4, "start", "soft", rest);
    }
    em_svg_end(out);
    return EM_OK;
}

/* ---------------------------------------------------------------- traces and ranks */

enum { TRACE_TOP = 44 };

/* The chains whose lines are drawn: all of few, and of many those whose means are farthest out. */
static int64_t choose_chains(const em_report_data *data, const double *draws, int64_t *chain)
{
    double farthest[MOST_LINES], mean = 0;
    int64_t n = 0;

    for (int64_t i = 0; i < data->n_chain * data->n_draw; i++)
        mean += draws[i] / (double)(data->n_chain * data->n_draw);
    for (int64_t c = 0; c < data->n_chain; c++) {
        double distance = 0;
        for (int64_t i = 0; i < data->n_draw; i++)
            distance += (draws[c * data->n_draw + i] - mean) / (double)data->n_draw;
        distance = isfinite(distance) ? fabs(distance) : INFINITY;
        int64_t at = n < MOST_LINES ? n++ : MOST_LINES;
        for (; at > 0 && farthest[at - 1] < distance && data->n_chain > MOST_LINES; at--)
            if (at < MOST_LINES) {
                farthest[at] = farthest[at - 1];
                chain[at] = chain[at - 1];
            }
        if (at < MOST_LINES) {
            farthest[at] = distance;
            chain[at] = c;
        }
    }
    return n;
}

static void draw_trace(const em_axes *axes, const em_report_data *data, const double *draws,
                       int64_t n_chosen, const int64_t *chosen)
{
    const int64_t step = (data->n_draw + MOST_POINTS - 1) / MOST_POINTS;
    double x[MOST_POINTS], y[MOST_POINTS];

    em_axes_draw(axes, "draw", NULL);
    for (int64_t i = 0; i < n_chosen; i++) {
        int64_t n = 0;
        for (int64_t k = 0; k < data->n_draw; k += step) {
            x[n] = (double)k;
            y[n++] = draws[chosen[i] * data->n_draw + k];
        }
        em_axes_line(axes, line_class[i], n, x, y);
    }
}

/* Of each chain, how many draws are in each bin of the ranks of all: [n_chain][n_bin]. */
static em_status count_ranks(const em_report_data *data, const double *draws, int64_t n_bin,
                             double *count)
{
    const int64_t n = data->n_chain * data->n_draw;
    em_sorted *sorted = NULL, *scratch = NULL;
    em_status status = em_allocate(n, sizeof *sorted, &sorted);

    if (!status)
        status = em_allocate(n, sizeof *scratch, &scratch);
    if (!status) {
        em_sort(n, draws, sorted, scratch);
        for (int64_t rank = 0; rank < n; rank++)
            count[sorted[rank].index / data->n_draw * n_bin + rank * n_bin / n]++;
    }
    em_release(&sorted);
    em_release(&scratch);
    return status;
}

static bool has_nan(int64_t n, const double *x)
{
    for (int64_t i = 0; i < n; i++)
        if (isnan(x[i]))
            return true;
    return false;
}

static em_status draw_ranks(const em_report_data *data, const double *draws, int64_t n_chosen,
                            const int64_t *chosen, FILE *out)
{
    const int64_t n_bin = data->n_draw / 25 < 5 ? 5 : smaller(data->n_draw / 25, 20);
    const double expected = (double)data->n_draw / (double)n_bin;
    const double spread = 2 * sqrt(expected * (1 - 1 / (double)n_bin));
    const double ends[] = {0, 1}, low[] = {expected - spread, expected - spread},
                 high[] = {expected + spread, expected + spread};
    em_range range = {0, expected + 2 * spread};
    double *count = NULL;
    em_status status = em_allocate(data->n_chain * n_bin, sizeof *count, &count);

    if (!status && !has_nan(data->n_chain * data->n_draw, draws))
        status = count_ranks(data, draws, n_bin, count);
    for (int64_t i = 0; !status && i < n_chosen; i++)
        range = em_range_over(range, n_bin, count + chosen[i] * n_bin);
    const em_axes axes = {.out = out,
                          .left = 280,
                          .top = TRACE_TOP,
                          .width = 112,
                          .height = 110,
                          .x = {0, 1},
                          .y = {0, range.high * 1.05},
                          .no_x_ticks = true,
                          .no_y_ticks = true};
    em_axes_draw(&axes, "rank among all", NULL);
    em_axes_band(&axes, "band c7", 2, ends, low, high);
    for (int64_t i = 0; !status && i < n_chosen; i++)
        em_axes_steps(&axes, line_class[i], n_bin, (em_range){0, 1}, count + chosen[i] * n_bin);
    em_release(&count);
    return status;
}

static em_status draw_chains(const em_report_data *data, int k, FILE *out)
{
    int64_t chosen[MOST_LINES] = {0};
    double *draws = NULL;
    char title[160], name[NAME_BYTES];
    em_status status;

    if (k >= data->n_shown)
        return EM_OK;
    const em_report_element *e = &data->element[data->shown[k]];
    status = em_report_draws(data, data->shown[k], &draws);
    if (status)
        return status;
    const int64_t n_chosen = choose_chains(data, draws, chosen);
    em_range range = em_no_range;
    for (int64_t i = 0; i < n_chosen; i++)
        range = em_range_over(range, data->n_draw, draws + chosen[i] * data->n_draw);
    const em_axes trace = {.out = out,
                           .left = 52,
                           .top = TRACE_TOP,
                           .width = 212,
                           .height = 110,
                           .x = {0, fmax((double)data->n_draw - 1, 1)},
                           .y = em_range_padded(range)};
    cut_name(e->name, 40, name);
    snprintf(title, sizeof title, "%s %.3f, bulk ESS %.0f, tail ESS %.0f",
             data->n_superchain ? "nested R-hat" : "R-hat", e->value[data->r_hat],
             e->value[EM_AT_ESS_BULK], e->value[EM_AT_ESS_TAIL]);
    em_svg_begin(out, EM_SVG_WIDTH, TRACE_TOP + 144, e->name);
    em_svg_text(out, 52, 15, "start", "head", name);
    em_svg_text(out, 52, 32, "start", "soft", title);
    draw_trace(&trace, data, draws, n_chosen, chosen);
    status = draw_ranks(data, draws, n_chosen, chosen, out);
    em_svg_end(out);
    em_release(&draws);
    return status;
}

/* ---------------------------------------------------------------- pairs */

/* What is marked: every `step`-th draw, or those that diverged, but for what is too many. */
static int64_t pick(const em_report_data *data, bool diverged, int64_t *index)
{
    const int64_t n = data->n_chain * data->n_draw, step = (n + MOST_DOTS - 1) / MOST_DOTS;
    int64_t count = 0;

    for (int64_t i = 0; i < n && count < MOST_DOTS; i++)
        if (diverged ? data->diverging && data->diverging[i] != 0 : i % step == 0)
            index[count++] = i;
    return count;
}

static void draw_dots(const em_axes *axes, const char *class, int64_t n, const int64_t *index,
                      const double *x, const double *y)
{
    double px[MOST_DOTS], py[MOST_DOTS];

    for (int64_t i = 0; i < n; i++) {
        px[i] = x[index[i]];
        py[i] = y[index[i]];
    }
    em_axes_dots(axes, class, n, px, py);
}

enum { PAIRS_TOP = 48 };

/* Why these: divergent draws gather there, or not so that it could be told from chance. */
static void say_why(const em_report_data *data, char out[160])
{
    const long long n = (long long)data->n_diverging;

    if (data->n_gathering < 1 && n < 1)
        snprintf(out, 160, "those that mix worst");
    else if (data->n_gathering < 1)
        snprintf(out, 160, "%lld divergent, %s: those that mix worst", n,
                 n == data->n_chain * data->n_draw ? "all of them" : "no clear pattern");
    else if (data->n_gathering < data->n_pair)
        snprintf(out, 160, "%lld divergent, gathered in the first%s; others mix worst", n,
                 data->n_gathering == 1   ? ""
                 : data->n_gathering == 2 ? " two"
                                          : " three");
    else
        snprintf(out, 160, "%lld divergent: where they gather most", n);
}

/*
 * What an axis of pairs shows: all draws, or, where a few of them would squeeze the others
 * together, their central 99 %. Errors: EM_EMEMORY.
 */
static em_status find_range(const em_report_data *data, em_diag *diag, const double *draws,
                            em_range *out)
{
    static const double most = 2; /* so many times as wide as these 99 % */
    double end[] = {0.005, 0.995};
    const int64_t n = data->n_chain * data->n_draw;
    const em_range all = em_range_over(em_no_range, n, draws);
    const em_status status = em_quantiles(diag, n, draws, 2, end, end);
    const double width = end[1] - end[0];

    *out = em_range_padded(
        width > 0 && all.high - all.low > most * width ? (em_range){end[0], end[1]} : all);
    return status;
}

/* Those that an axis leaves out. */
static void say_outside(const em_report_data *data, double *const *draws, const em_range *range,
                        char out[160])
{
    const int64_t n = data->n_chain * data->n_draw;
    int64_t count = 0, bad = 0;

    for (int64_t i = 0; i < n; i++) {
        bool inside = true;
        for (int64_t k = 0; inside && k < data->n_pair; k++)
            inside = draws[k][i] >= range[k].low && draws[k][i] <= range[k].high;
        count += !inside;
        bad += !inside && data->diverging && data->diverging[i] != 0;
    }
    out[0] = '\0';
    if (count)
        snprintf(out, 160, "%lld of %lld draws are outside%s", (long long)count, (long long)n,
                 bad ? ", divergent ones too" : "");
}

static void draw_pair_panels(const em_report_data *data, double *const *draws,
                             const em_range *range, FILE *out)
{
    const int64_t n_shown = data->n_pair;
    const double side = (EM_SVG_WIDTH - 58.0) / (double)(n_shown - 1), gap = 14;
    int64_t some[MOST_DOTS], bad[MOST_DOTS];
    const int64_t n_some = pick(data, false, some), n_bad = pick(data, true, bad);
    char name[NAME_BYTES];

    for (int64_t row = 1; row < n_shown; row++)
        for (int64_t column = 0; column < row; column++) {
            const em_axes axes = {.out = out,
                                  .left = 52 + side * (double)column,
                                  .top = PAIRS_TOP + side * (double)(row - 1),
                                  .width = side - gap,
                                  .height = side - gap - 12,
                                  .x = range[column],
                                  .y = range[row],
                                  .no_x_ticks = row<n_shown - 1, .no_y_ticks = column> 0};
            em_axes_draw(&axes, NULL, NULL);
            draw_dots(&axes, "dot c0", n_some, some, draws[column], draws[row]);
            draw_dots(&axes, "mark bad", n_bad, bad, draws[column], draws[row]);
            if (column == 0) {
                cut_name(data->element[data->pair[row]].name, 40, name);
                em_svg_text(out, axes.left, axes.top - 5, "start", "head", name);
            }
            if (row == n_shown - 1) {
                cut_name(data->element[data->pair[column]].name, 40, name);
                em_svg_text(out, column ? axes.left + axes.width : axes.left,
                            axes.top + axes.height + 31 + 15 * (double)column,
                            column ? "end" : "start", "head", name);
            }
        }
}

static em_status draw_pairs(const em_report_data *data, int k, FILE *out)
{
    const int64_t n_shown = data->n_pair;
    double *draws[EM_REPORT_PAIRS] = {NULL};
    em_range range[EM_REPORT_PAIRS];
    char why[160], outside[160];
    em_diag *diag = NULL;
    em_status status;

    (void)k;
    if (n_shown < 2)
        return EM_OK;
    status = em_diag_create(&diag);
    for (int64_t i = 0; !status && i < n_shown; i++) {
        status = em_report_draws(data, data->pair[i], &draws[i]);
        if (!status)
            status = find_range(data, diag, draws[i], &range[i]);
    }
    em_diag_destroy(&diag);
    if (!status) {
        say_why(data, why);
        say_outside(data, draws, range, outside);
        em_svg_begin(out, EM_SVG_WIDTH, EM_SVG_WIDTH + PAIRS_TOP - 50 + 15 * (double)(n_shown - 1),
                     "Pairs of parameters");
        em_svg_text(out, 2, 15, "start", "soft", why);
        em_svg_text(out, 2, 29, "start", "soft", outside);
        draw_pair_panels(data, draws, range, out);
        em_svg_end(out);
    }
    for (int64_t i = 0; i < n_shown; i++)
        em_release(&draws[i]);
    return status;
}

/* ---------------------------------------------------------------- leave-one-out */

/* Observations as dots at `at` and k, those whose k is too large or not: each as many as are drawn.
 */
static int64_t pick_observations(const em_loo *loo, bool high, em_range y, double *at, double *k)
{
    const int64_t n = loo->variable->size, step = high ? 1 : (n + MOST_DOTS - 1) / MOST_DOTS;
    int64_t count = 0;

    for (int64_t i = 0; i < n && count < MOST_DOTS; i += step) {
        const double value = loo->value[i * EM_N_LOO + EM_LOO_K];
        if (isnan(value) || (value > loo->good_k) != high)
            continue;
        at[count] = (double)i;
        k[count++] = fmin(fmax(value, y.low), y.high); /* infinity: on the rim */
    }
    return count;
}

static const char *worst_observation(const em_loo *loo)
{
    int64_t worst = 0;

    for (int64_t i = 0; i < loo->variable->size; i++) {
        const double k = loo->value[i * EM_N_LOO + EM_LOO_K],
                     most = loo->value[worst * EM_N_LOO + EM_LOO_K];
        worst = k > most || isnan(most) ? i : worst;
    }
    return loo->variable->label[worst];
}

static em_range range_of_k(const em_loo *loo)
{
    const double most = 1.5; /* beyond which one is as bad as the other */
    em_range y = {0, fmax(loo->good_k, 0) + 0.1};

    for (int64_t i = 0; i < loo->variable->size; i++)
        y = em_range_over(y, 1, &loo->value[i * EM_N_LOO + EM_LOO_K]);
    return em_range_padded((em_range){fmax(y.low, -most), fmin(y.high, most)});
}

static em_status draw_loo(const em_report_data *data, int number, FILE *out)
{
    double at[MOST_DOTS], k[MOST_DOTS];
    char text[160 + NAME_BYTES], name[NAME_BYTES];

    if (number >= data->n_loo)
        return EM_OK;
    const em_loo *loo = &data->loo[number];
    const double last = (double)loo->variable->size - 1, limit[] = {loo->good_k, loo->good_k};
    const em_axes axes = {.out = out,
                          .left = 44,
                          .top = 62,
                          .width = EM_SVG_WIDTH - 58,
                          .height = 150,
                          .x = em_range_padded((em_range){0, last}),
                          .y = range_of_k(loo)};
    const double ends[] = {axes.x.low, axes.x.high};

    em_svg_begin(out, EM_SVG_WIDTH, axes.top + axes.height + 38, "Pareto k of the observations");
    cut_name(loo->variable->name, 40, name);
    em_svg_text(out, 44, 15, "start", "head", name);
    snprintf(text, sizeof text, "elpd_loo %.1f, standard error %.1f; p_loo %.1f", loo->elpd,
             loo->se, loo->p);
    em_svg_text(out, 44, 32, "start", "soft", text);
    snprintf(text, sizeof text, "k above %.2f: %lld of %lld", loo->good_k, (long long)loo->n_high,
             (long long)loo->variable->size);
    cut_name(worst_observation(loo), 24, name);
    if (loo->n_high > 0)
        snprintf(text + strlen(text), sizeof text - strlen(text), ", most of %s", name);
    if (loo->n_undefined > 0)
        snprintf(text + strlen(text), sizeof text - strlen(text), "; not finite: %lld",
                 (long long)loo->n_undefined);
    em_svg_text(out, 44, 49, "start", "soft", text);
    em_axes_draw(&axes, "observation", NULL);
    em_axes_line(&axes, "line c7 dash", 2, ends, limit);
    em_axes_dots(&axes, "mark c0", pick_observations(loo, false, axes.y, at, k), at, k);
    em_axes_dots(&axes, "mark bad", pick_observations(loo, true, axes.y, at, k), at, k);
    em_svg_end(out);
    return EM_OK;
}

const em_figure em_figures[] = {
    {"chains", "Chains, those of the parameters that mix worst",
     "Left, the draws of each chain: all well, they look alike, like grass. Right, how the draws "
     "of "
     "each chain are spread over the ranks of all: all well, the lines stay in the grey band, "
     "which "
     "chance leaves one time in twenty. Of more than eight chains, the eight whose means are "
     "farthest out. Of functions of one another, as of a coefficient on two scales, one is shown.",
     EM_REPORT_SHOWN, draw_chains},
    {"forest", "Intervals",
     "Median (dot), 50 % (thick) and 90 % (thin) of all draws. Each variable has an axis of its "
     "own, or several, the widest first, where some of its intervals would be mere dots on one.",
     1, draw_forest},
    {"pairs", "Pairs",
     "Draws two by two; large marks are divergent transitions, which gather where the posterior "
     "bends more sharply than the steps follow. Of the parameters those where divergent draws "
     "stand "
     "farthest from the others, by ranks and farther than chance leaves them one time in twenty; "
     "else, where there is no clear pattern, those that mix worst (emass report --var NAME chooses "
     "others). An axis that a few draws "
     "would make more than twice as wide shows the central 99 % of them.",
     1, draw_pairs},
    {"energy", "Energy",
     "All well, the dashed curve is about as wide as the other: each momentum then reaches all "
     "energies. A narrow one means slow exploration of the tails (E-BFMI).",
     1, em_report_draw_energy},
    {"mass", "What the mass learned",
     "Largest and smallest eigenvalue of the inverse mass after each M-step; their ratio is the "
     "condition number. All well, they come to rest before warmup ends.",
     1, em_report_draw_mass},
    {"steps", "Step size and acceptance",
     "Means over the chains, and their range; the dashed line is the end of warmup, of which "
     "statistics are stored with output.save_warmup: true only.",
     2, em_report_draw_steps},
    {"loo", "Leaving out one observation",
     "Pareto k says how much the posterior changes without an observation. Above the dashed line "
     "it "
     "changes more than draws of the whole can tell, and elpd_loo, the expected log density of new "
     "observations, is not to be relied on: look there first for what the model does not fit.",
     EM_REPORT_LOO, draw_loo},
    {NULL}};
