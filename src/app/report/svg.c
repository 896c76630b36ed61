#include "app/report/svg.h"

#include <math.h>
#include <string.h>

const em_range em_no_range = {INFINITY, -INFINITY};

/* Okabe and Ito's colours, which no kind of colour blindness takes for each other, made darker on
 * white and lighter on black. */
const char em_svg_style[] =
    "svg{--ink:#1c2430;--soft:#5d6979;--rule:#d9dee5;--back:#fff;--c0:#0072b2;--c1:#c25a00;"
    "--c2:#00835f;--c3:#a8508a;--c4:#3a8fc4;--c5:#8a6d00;--c6:#d0483a;--c7:#4b5563;"
    "--bad:#c43c00}\n"
    "@media (prefers-color-scheme:dark){svg{--ink:#e8ebf0;--soft:#a3adba;--rule:#38414d;"
    "--back:#161b22;--c0:#5ab4ec;--c1:#f0a040;--c2:#3ecfa0;--c3:#dd9cc8;--c4:#8fd0f5;--c5:#e6d35a;"
    "--c6:#ff8f7d;--c7:#b4bcc8;--bad:#ff9a5c}}\n"
    "svg text{font:12px system-ui,sans-serif;fill:var(--ink)}svg .soft{fill:var(--soft)}"
    "svg .head{font-weight:600}\n"
    "svg .grid{stroke:var(--rule);stroke-width:1;fill:none}svg .frame{stroke:var(--soft);"
    "stroke-width:1;fill:none}\n"
    "svg .line{fill:none;stroke-width:1.6;stroke-linejoin:round}svg .thin{fill:none;"
    "stroke-width:.8;stroke-linejoin:round;opacity:.85}\n"
    "svg .dot{fill:none;stroke-linecap:round;stroke-width:2.2;opacity:.45}svg .mark{fill:none;"
    "stroke-linecap:round;stroke-width:4.5}\n"
    "svg .fine{stroke-width:1.4}svg .thick{stroke-width:4;stroke-linecap:round;fill:none}"
    "svg .dash{stroke-dasharray:5 4}\n"
    "svg .band{stroke:none;opacity:.2}svg .c0{stroke:var(--c0)}svg .c1{stroke:var(--c1)}"
    "svg .c2{stroke:var(--c2)}svg .c3{stroke:var(--c3)}svg .c4{stroke:var(--c4)}"
    "svg .c5{stroke:var(--c5)}svg .c6{stroke:var(--c6)}svg .c7{stroke:var(--c7)}"
    "svg .bad{stroke:var(--bad)}svg .ink{stroke:var(--ink)}\n"
    "svg .band.c0{fill:var(--c0)}svg .band.c7{fill:var(--c7)}svg .band.c1{fill:var(--c1)}\n";

/* What a variable is where it is set first. */
static void write_colour(FILE *out, size_t n, const char *name)
{
    const char *at = em_svg_style;

    while ((at = strstr(at, name)) && at[n] != ':')
        at++;
    if (at)
        fprintf(out, "%.*s", (int)strcspn(at + n + 1, ";}"), at + n + 1);
}

void em_svg_write_plain_style(FILE *out)
{
    static const char use[] = "var(", dark_end[] = "}}\n";
    const char *at = strchr(em_svg_style, '\n') + 1; /* behind the light colours and the dark */

    at = strstr(at, dark_end) + sizeof dark_end - 1;
    for (const char *next; (next = strstr(at, use)); at = next + strcspn(next, ")") + 1) {
        char name[16];
        fwrite(at, 1, (size_t)(next - at), out);
        next += sizeof use - 1;
        const size_t n = strcspn(next, ")");
        snprintf(name, sizeof name, "%.*s", (int)n, next);
        write_colour(out, n, name);
    }
    fputs(at, out);
}

/* ---------------------------------------------------------------- ranges and ticks */

em_range em_range_over(em_range range, int64_t n, const double *x)
{
    for (int64_t i = 0; i < n; i++)
        if (isfinite(x[i])) {
            range.low = fmin(range.low, x[i]);
            range.high = fmax(range.high, x[i]);
        }
    return range;
}

em_range em_range_padded(em_range range)
{
    if (!(range.low <= range.high))
        return (em_range){0, 1};
    const double width = range.high - range.low, size = fmax(fabs(range.low), fabs(range.high));
    const double pad = width > 1e-9 * size ? 0.04 * width : size > 0 ? 0.1 * size : 1;

    return (em_range){range.low - pad, range.high + pad};
}

em_range em_range_of_logs(em_range range)
{
    const double least = 0.6, missing = least - (range.high - range.low);

    return em_range_padded(
        missing > 0 ? (em_range){range.low - missing / 2, range.high + missing / 2} : range);
}

/* 1, 2 or 5 times a power of ten, about `most` of which fill the range. */
static double tick_step(em_range range, double most)
{
    const double rough = (range.high - range.low) / most, power = pow(10, floor(log10(rough)));
    const double share = rough / power;

    return power * (share < 1.5 ? 1 : share < 3.5 ? 2 : share < 7.5 ? 5 : 10);
}

static void tick_text(double value, double step, char text[32])
{
    snprintf(text, 32, "%.6g", fabs(value) < 1e-9 * step ? 0 : value);
}

/* ---------------------------------------------------------------- pictures */

void em_svg_begin(FILE *out, double width, double height, const char *title)
{
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %g %g\" role=\"img\" "
            "aria-label=\"",
            width, height);
    em_escape_html(out, title);
    fputs("\">\n", out);
}

void em_svg_end(FILE *out)
{
    fputs("</svg>\n", out);
}

void em_svg_text(FILE *out, double x, double y, const char *anchor, const char *class,
                 const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" class=\"%s\">", x, y, anchor,
            class);
    em_escape_html(out, text);
    fputs("</text>\n", out);
}

static double place_x(const em_axes *a, double x)
{
    return a->left + a->width * (x - a->x.low) / (a->x.high - a->x.low);
}

static double place_y(const em_axes *a, double y)
{
    return a->top + a->height * (1 - (y - a->y.low) / (a->y.high - a->y.low));
}

static void x_ticks(const em_axes *a)
{
    enum { ROOM = 60 }; /* for a number, at the least two thirds of it */
    const double step = tick_step(a->x, fmax(a->width / ROOM, 3)), letter = 6.6, gap = 4;
    double end = -INFINITY; /* of the last number */
    char text[32];

    for (double k = ceil(a->x.low / step); k * step <= a->x.high; k++) {
        const double at = place_x(a, k * step);
        fprintf(a->out, "<path class=\"grid\" d=\"M%.1f %.1fv%.1f\"/>", at, a->top, a->height);
        tick_text(k * step, step, text);
        /* No number reaches into the one before, or of panels side by side into the next. */
        const double half = letter * (double)strlen(text) / 2;
        if (a->no_x_ticks || at - half < end + gap ||
            (a->width < 200 && fabs(at - a->left - a->width / 2) >= 0.42 * a->width))
            continue;
        em_svg_text(a->out, at, a->top + a->height + 15, "middle", "soft", text);
        end = at + half;
    }
}

static void y_tick(const em_axes *a, double y, const char *text)
{
    const double at = place_y(a, y);

    fprintf(a->out, "<path class=\"grid\" d=\"M%.1f %.1fh%.1f\"/>", a->left, at, a->width);
    em_svg_text(a->out, a->left - 6, at + 4, "end", "soft", text);
}

/* Powers of ten, every second, third ... of very many; of few 2 and 5 times them too. */
static void log_y_ticks(const em_axes *a)
{
    static const int share[] = {1, 2, 5};
    const double decades = a->y.high - a->y.low, step = fmax(ceil(decades / 5), 1);
    char text[32];

    for (double k = floor(a->y.low / step); k * step <= a->y.high; k++)
        for (size_t i = 0; i < (decades < 2.2 ? 3 : 1); i++) {
            const double y = k * step + log10(share[i]);
            if (y < a->y.low || y > a->y.high)
                continue;
            snprintf(text, sizeof text, fabs(y) > 4 ? "%.0e" : "%g", share[i] * pow(10, k * step));
            y_tick(a, y, text);
        }
}

static void y_ticks(const em_axes *a)
{
    const double step = tick_step(a->y, a->height < 120 ? 4 : 5);
    char text[32];

    for (double k = ceil(a->y.low / step); k * step <= a->y.high; k++) {
        tick_text(k * step, step, text);
        y_tick(a, k * step, text);
    }
}

void em_axes_draw(const em_axes *a, const char *x_label, const char *y_label)
{
    x_ticks(a);
    if (!a->no_y_ticks)
        (a->log_y ? log_y_ticks : y_ticks)(a);
    fprintf(a->out, "<path class=\"frame\" d=\"M%.1f %.1fv%.1fh%.1f\"/>\n", a->left, a->top,
            a->height, a->width);
    if (x_label)
        em_svg_text(a->out, a->left + a->width, a->top + a->height + (a->no_x_ticks ? 15 : 30),
                    "end", "soft", x_label);
    if (y_label)
        em_svg_text(a->out, a->left, a->top - 7, "start", "soft", y_label);
}

static bool inside(const em_axes *a, double x, double y)
{
    return isfinite(x) && isfinite(y) && x >= a->x.low && x <= a->x.high && y >= a->y.low &&
           y <= a->y.high;
}

void em_axes_line(const em_axes *a, const char *class, int64_t n, const double *x, const double *y)
{
    bool pen = false;

    fprintf(a->out, "<path class=\"%s\" d=\"", class);
    for (int64_t i = 0; i < n; i++) {
        const bool here = inside(a, x[i], y[i]);
        if (here)
            fprintf(a->out, "%c%.1f %.1f", pen ? 'L' : 'M', place_x(a, x[i]), place_y(a, y[i]));
        pen = here;
    }
    fputs("\"/>\n", a->out);
}

void em_axes_dots(const em_axes *a, const char *class, int64_t n, const double *x, const double *y)
{
    fprintf(a->out, "<path class=\"%s\" d=\"", class);
    for (int64_t i = 0; i < n; i++)
        if (inside(a, x[i], y[i]))
            fprintf(a->out, "M%.1f %.1fh0", place_x(a, x[i]), place_y(a, y[i]));
    fputs("\"/>\n", a->out);
}

void em_axes_band(const em_axes *a, const char *class, int64_t n, const double *x,
                  const double *low, const double *high)
{
    char pen = 'M';

    fprintf(a->out, "<path class=\"%s\" d=\"", class);
    for (int64_t i = 0; i < 2 * n; i++) {
        const int64_t k = i < n ? i : 2 * n - 1 - i;
        const double y = fmin(fmax(i < n ? low[k] : high[k], a->y.low), a->y.high);
        if (!isfinite(y) || !inside(a, x[k], y))
            continue;
        fprintf(a->out, "%c%.1f %.1f", pen, place_x(a, x[k]), place_y(a, y));
        pen = 'L';
    }
    fputs("Z\"/>\n", a->out);
}

void em_axes_steps(const em_axes *a, const char *class, int64_t n, em_range x, const double *y)
{
    const double width = (x.high - x.low) / (double)n;

    fprintf(a->out, "<path class=\"%s\" d=\"", class);
    for (int64_t i = 0; i < n; i++) {
        const double top = place_y(a, fmin(fmax(y[i], a->y.low), a->y.high));
        fprintf(a->out, "%c%.1f %.1fH%.1f", i ? 'L' : 'M', place_x(a, x.low + (double)i * width),
                top, place_x(a, x.low + (double)(i + 1) * width));
    }
    fputs("\"/>\n", a->out);
}
