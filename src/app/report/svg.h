/*
 * Figures in SVG, to be read inside an HTML page, whose style sheet gives their classes colours, or
 * by themselves. Numbers are of the data; what is not finite is left out, and so is what lies
 * outside. Text is escaped. All Local.
 */
#ifndef EM_APP_REPORT_SVG_H
#define EM_APP_REPORT_SVG_H

#include "base/escape.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The style sheet of the classes, light, and dark where the reader's is. */
extern const char em_svg_style[];

/* The same for a picture that stands by itself, to be printed: light, and in plain colours, as
 * programs for pictures know no variables. */
void em_svg_write_plain_style(FILE *out);

/* A range of numbers, of one axis. */
typedef struct em_range {
    double low, high;
} em_range;

/* The range of `n` numbers and of `range`; one that begins with em_no_range is theirs alone. */
extern const em_range em_no_range;
em_range em_range_over(em_range range, int64_t n, const double *x);

/* A little wider, so that nothing lies on the rim; of one number, or of none, something around it.
 */
em_range em_range_padded(em_range range);

/* The range of decimal logarithms, wide enough for a tick. */
em_range em_range_of_logs(em_range range);

/* A picture of `width` x `height` units, of which 12 are a line of text. `title` is for those who
 * cannot see it. Most are this wide: legible on a telephone, and two or three beside one another on
 * a screen. */
enum { EM_SVG_WIDTH = 400 };
void em_svg_begin(FILE *out, double width, double height, const char *title);
void em_svg_end(FILE *out);

/* Text at a point of the picture; `anchor`: start, middle or end. */
void em_svg_text(FILE *out, double x, double y, const char *anchor, const char *class,
                 const char *text);

/* Axes in a part of a picture. */
typedef struct em_axes {
    FILE *out;
    double left, top, width, height; /* of the inner part */
    em_range x, y;
    bool log_y; /* y: decimal logarithms, told as powers */
    bool no_x_ticks, no_y_ticks;
} em_axes;

/* Frame, grid, ticks and labels; NULL: no label. */
void em_axes_draw(const em_axes *axes, const char *x_label, const char *y_label);

/* A line through n points, broken where one is not finite. */
void em_axes_line(const em_axes *axes, const char *class, int64_t n, const double *x,
                  const double *y);
/* A mark at each point. */
void em_axes_dots(const em_axes *axes, const char *class, int64_t n, const double *x,
                  const double *y);
/* Between two curves. */
void em_axes_band(const em_axes *axes, const char *class, int64_t n, const double *x,
                  const double *low, const double *high);
/* n bars of equal width from x.low to x.high, as a line of steps. */
void em_axes_steps(const em_axes *axes, const char *class, int64_t n, em_range x, const double *y);

#endif
