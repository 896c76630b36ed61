#include "app/report/report_sampler.h"

#include "app/report/svg.h"
#include "base/memory.h"
#include "diagnostics/diag.h"

#include <math.h>
#include <string.h>

enum { MOST_BINS = 200 }; /* of a course, whatever the size of the run */

/* What the two curves of a figure are, above it: pieces of their lines, the names behind them. */
static void draw_legend(FILE *out, int solid_at, const char *solid, int dashed_at,
                        const char *dashed)
{
    enum { LINE = 24, BASE = 30, GAP = 6 };

    fprintf(out, "<path class=\"line c0\" d=\"M%d %dh%d\"/>", solid_at, BASE, LINE);
    fprintf(out, "<path class=\"line c1 dash\" d=\"M%d %dh%d\"/>", dashed_at, BASE, LINE);
    em_svg_text(out, solid_at + LINE + GAP, BASE + 4, "start", "", solid);
    em_svg_text(out, dashed_at + LINE + GAP, BASE + 4, "start", "", dashed);
}

/* ---------------------------------------------------------------- energy */

enum { ENERGY_BINS = 40 };

/* Counts of E less its chain's mean, and of the changes of E from draw to draw, as densities. */
static void count_energies(const em_report_data *data, const double *energy, em_range range,
                           double marginal[ENERGY_BINS], double transition[ENERGY_BINS])
{
    const double bins = ENERGY_BINS / (range.high - range.low);

    for (int64_t c = 0; c < data->n_chain; c++) {
        const double *e = energy + c * data->n_draw;
        double mean = 0;
        for (int64_t i = 0; i < data->n_draw; i++)
            mean += e[i] / (double)data->n_draw;
        for (int64_t i = 0; i < data->n_draw; i++) {
            const double at = (e[i] - mean - range.low) * bins;
            const double jump = i > 0 ? (e[i] - e[i - 1] - range.low) * bins : NAN;
            if (at >= 0 && at < ENERGY_BINS)
                marginal[(int)at] += 1;
            if (jump >= 0 && jump < ENERGY_BINS)
                transition[(int)jump] += 1;
        }
    }
}

/* How far from their means energies are, over all chains: the range of the figure. */
static double energy_spread(const em_report_data *data, const double *energy)
{
    double sum = 0;

    for (int64_t c = 0; c < data->n_chain; c++) {
        const double *e = energy + c * data->n_draw;
        double mean = 0;
        for (int64_t i = 0; i < data->n_draw; i++)
            mean += e[i] / (double)data->n_draw;
        for (int64_t i = 0; i < data->n_draw; i++)
            sum += (e[i] - mean) * (e[i] - mean) / (double)(data->n_chain * data->n_draw);
    }
    return sqrt(sum);
}

em_status em_report_draw_energy(const em_report_data *data, int k, FILE *out)
{
    double marginal[ENERGY_BINS] = {0}, transition[ENERGY_BINS] = {0}, lowest = INFINITY;
    double *energy = NULL;
    char text[96];
    em_status status = em_report_statistic(data->stats, "energy", &energy);

    (void)k;
    if (status || !energy)
        return status;
    for (int64_t c = 0; c < data->n_chain; c++)
        lowest = fmin(lowest, em_ebfmi(data->n_draw, energy + c * data->n_draw));
    const double spread = energy_spread(data, energy);
    const em_range range = {-4 * spread, 4 * spread};
    if (spread > 0 && isfinite(spread)) {
        count_energies(data, energy, range, marginal, transition);
        const em_range y = em_range_over(em_range_over((em_range){0, 0}, ENERGY_BINS, marginal),
                                         ENERGY_BINS, transition);
        const em_axes axes = {.out = out,
                              .left = 12,
                              .top = 40,
                              .width = EM_SVG_WIDTH - 24,
                              .height = 150,
                              .x = range,
                              .y = {0, y.high * 1.05},
                              .no_y_ticks = true};
        snprintf(text, sizeof text, "smallest E-BFMI %.2f (expected: more than 0.3)", lowest);
        em_svg_begin(out, EM_SVG_WIDTH, 226, "Energy");
        em_svg_text(out, EM_SVG_WIDTH - 12, 15, "end", "soft", text);
        em_axes_draw(&axes, "energy, less the mean of its chain", NULL);
        em_axes_steps(&axes, "line c0", ENERGY_BINS, range, marginal);
        em_axes_steps(&axes, "line c1 dash", ENERGY_BINS, range, transition);
        draw_legend(out, 12, "energy of draws", 164, "its change from draw to draw");
        em_svg_end(out);
    }
    em_release(&energy);
    return status;
}

/* ---------------------------------------------------------------- what warmup learned */

/* A dataset of the group of M-steps; NULL where there is none. */
static em_status read_m_steps(const em_report_data *data, const char *name, int64_t *n,
                              double **out)
{
    char path[64];

    *out = NULL;
    if (!em_reader_has(data->draws, "mass_adaptation", name))
        return EM_OK;
    snprintf(path, sizeof path, "mass_adaptation/%s", name);
    return em_read_array(data->path, path, n, out);
}

/* Curves of log10 eigenvalues; a chain that has a mass of its own begins anew. */
static void draw_eigenvalues(const em_axes *axes, const char *class, int64_t n,
                             const double *iteration, const double *y)
{
    for (int64_t first = 0, end; first < n; first = end) {
        for (end = first + 1; end < n && iteration[end] > iteration[end - 1];)
            end++;
        em_axes_line(axes, class, end - first, iteration + first, y + first);
        em_axes_dots(axes, strstr(class, "c0") ? "mark c0" : "mark c1", end - first,
                     iteration + first, y + first);
    }
}

static void draw_mass_curves(int64_t n, const double *iteration, double *smallest, double *largest,
                             FILE *out)
{
    const double last = n > 0 ? largest[n - 1] / smallest[n - 1] : NAN;
    em_range y = em_no_range;
    char text[96];

    for (int64_t i = 0; i < n; i++) {
        smallest[i] = log10(smallest[i]);
        largest[i] = log10(largest[i]);
    }
    y = em_range_over(em_range_over(y, n, smallest), n, largest);
    const em_axes axes = {.out = out,
                          .left = 56,
                          .top = 40,
                          .width = EM_SVG_WIDTH - 68,
                          .height = 150,
                          .x = em_range_padded(em_range_over(em_no_range, n, iteration)),
                          .y = em_range_of_logs(y),
                          .log_y = true};
    snprintf(text, sizeof text, "condition number at the end %.3g", last);
    em_svg_begin(out, EM_SVG_WIDTH, 226, "Inverse mass by iteration");
    em_svg_text(out, EM_SVG_WIDTH - 12, 15, "end", "soft", text);
    em_axes_draw(&axes, "iteration of warmup", NULL);
    draw_eigenvalues(&axes, "line c0", n, iteration, largest);
    draw_eigenvalues(&axes, "line c1 dash", n, iteration, smallest);
    draw_legend(out, 56, "largest eigenvalue", 220, "smallest eigenvalue");
    em_svg_end(out);
}

/* Leaves out what fills up the steps of a merged file whose runs have different numbers of them;
 * how many are left. */
static int64_t keep_finite(int64_t n, double *iteration, double *smallest, double *largest)
{
    int64_t kept = 0;

    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(smallest[i]) || !isfinite(largest[i]))
            continue;
        iteration[kept] = iteration[i];
        smallest[kept] = smallest[i];
        largest[kept++] = largest[i];
    }
    return kept;
}

em_status em_report_draw_mass(const em_report_data *data, int k, FILE *out)
{
    double *iteration = NULL, *smallest = NULL, *largest = NULL;
    int64_t n = 0, n_smallest = 0, n_largest = 0;
    em_status status = read_m_steps(data, "iteration", &n, &iteration);

    (void)k;
    if (!status)
        status = read_m_steps(data, "smallest_eigenvalue", &n_smallest, &smallest);
    if (!status)
        status = read_m_steps(data, "largest_eigenvalue", &n_largest, &largest);
    if (!status && iteration && smallest && largest && n > 0 && n == n_smallest && n == n_largest)
        n = keep_finite(n, iteration, smallest, largest);
    else
        n = 0;
    if (n > 0)
        draw_mass_curves(n, iteration, smallest, largest, out);
    em_release(&iteration);
    em_release(&smallest);
    em_release(&largest);
    return status;
}

/* ---------------------------------------------------------------- step size and acceptance */

/* Means over chains and stretches of iterations, and the range of the chains; counted from the
 * first of warmup. */
typedef struct course {
    int64_t n;
    double x[2 * MOST_BINS], mean[2 * MOST_BINS], low[2 * MOST_BINS], high[2 * MOST_BINS];
} course;

static void add_to_course(course *c, int64_t n_chain, int64_t n_draw, const double *value,
                          double from, double stride)
{
    const int64_t width = (n_draw + MOST_BINS - 1) / MOST_BINS;

    for (int64_t first = 0; first < n_draw; first += width) {
        const int64_t end = first + width < n_draw ? first + width : n_draw, at = c->n++;
        double sum = 0;

        c->low[at] = INFINITY;
        c->high[at] = -INFINITY;
        for (int64_t k = 0; k < n_chain; k++) {
            double of_chain = 0;
            for (int64_t i = first; i < end; i++)
                of_chain += value[k * n_draw + i] / (double)(end - first);
            sum += of_chain / (double)n_chain;
            c->low[at] = fmin(c->low[at], of_chain);
            c->high[at] = fmax(c->high[at], of_chain);
        }
        c->x[at] = from + stride * (double)(first + end) / 2;
        c->mean[at] = sum;
    }
}

/* Of warmup, where its statistics are stored, and of the draws. */
static em_status read_course(const em_report_data *data, const char *name, int64_t warmup,
                             course *c)
{
    double *value = NULL;
    em_status status = em_report_statistic(data->warmup, name, &value);

    c->n = 0;
    if (!status && value && warmup > 0)
        add_to_course(c, em_reader_n_chain(data->warmup), em_reader_n_draw(data->warmup), value, 0,
                      (double)warmup / (double)em_reader_n_draw(data->warmup));
    em_release(&value);
    if (!status)
        status = em_report_statistic(data->stats, name, &value);
    if (!status && value)
        add_to_course(c, em_reader_n_chain(data->stats), em_reader_n_draw(data->stats), value,
                      (double)warmup, 1);
    em_release(&value);
    return status;
}

static void draw_course(const course *c, const char *label, em_range y, bool log, double warmup,
                        FILE *out)
{
    const em_axes axes = {.out = out,
                          .left = 56,
                          .top = 24,
                          .width = EM_SVG_WIDTH - 68,
                          .height = 128,
                          .x = {0, c->x[c->n - 1] * 1.01 + 1},
                          .y = y,
                          .log_y = log};
    const double end[] = {warmup, warmup}, rim[] = {y.low, y.high};

    em_axes_draw(&axes, "iteration", label);
    em_axes_band(&axes, "band c0", c->n, c->x, c->low, c->high);
    em_axes_line(&axes, "line c0", c->n, c->x, c->mean);
    if (warmup > 0)
        em_axes_line(&axes, "line c7 dash", 2, end, rim);
}

/* The logarithms of a course, for an axis of them; returns their range. */
static em_range take_logs(course *c)
{
    for (int64_t i = 0; i < c->n; i++) {
        c->mean[i] = log10(c->mean[i]);
        c->low[i] = log10(c->low[i]);
        c->high[i] = log10(c->high[i]);
    }
    return em_range_of_logs(em_range_over(em_range_over(em_no_range, c->n, c->low), c->n, c->high));
}

em_status em_report_draw_steps(const em_report_data *data, int k, FILE *out)
{
    const bool is_step = k == 0;
    int64_t warmup = 0;
    course *c = NULL;
    em_status status = em_allocate(1, sizeof *c, &c);

    em_reader_int(data->draws, "tuning_steps", &warmup);
    if (!status)
        status = read_course(data, is_step ? "step_size" : "acceptance_rate", warmup, c);
    if (!status && c->n > 0) {
        const em_range y = is_step ? take_logs(c) : (em_range){0, 1};
        em_svg_begin(out, EM_SVG_WIDTH, 190,
                     is_step ? "Step size by iteration" : "Acceptance by iteration");
        draw_course(c, is_step ? "step size" : "acceptance rate", y, is_step, (double)warmup, out);
        em_svg_end(out);
    }
    em_release(&c);
    return status;
}
