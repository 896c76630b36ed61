/* Advice about chains in several modes. */
#include "app/summary/advice.h"

#include "base/memory.h"

#include <math.h>

enum { MOST_SHOWN = 8, MOST_TRIED = 32 };

/* The clusters of chains in one row. */
typedef struct mode_view {
    em_judge *judge;
    const em_summary_table *table;
    const em_summary_row *row;
    int64_t n_cluster;
    const int64_t *cluster; /* [n_chain] of a chain, or -1 */
    double *mean;           /* [n_chain] mean of each chain's draws in the current row */
} mode_view;

/* The mean over the chains of a cluster of one number per chain, and the number of these chains. */
static double mean_over(const mode_view *v, const double *of_chain, int64_t cluster, int64_t *count)
{
    double sum = 0;

    *count = 0;
    for (int64_t c = 0; c < v->judge->n_chain; c++)
        if (v->cluster[c] == cluster) {
            sum += of_chain[c];
            ++*count;
        }
    return sum / (double)*count;
}

static void find_means(const em_judge *judge, const double *draws, double *mean)
{
    for (int64_t c = 0; c < judge->n_chain; c++) {
        mean[c] = 0;
        for (int64_t i = 0; i < judge->n_draw; i++)
            mean[c] += draws[c * judge->n_draw + i] / (double)judge->n_draw;
    }
}

/* The number of digits that tell the centres of the clusters apart: three digits of their range. */
static int digits_of(const mode_view *v)
{
    double low = INFINITY, high = -INFINITY;
    int64_t n;

    for (int64_t k = 0; k < v->n_cluster; k++) {
        const double centre = mean_over(v, v->mean, k, &n);
        low = fmin(low, centre);
        high = fmax(high, centre);
    }
    const double more = ceil(log10(fmax(fabs(low), fabs(high)) / (high - low)));
    return more > 0 ? 3 + (int)fmin(more, 9) : 3;
}

static void tell_centres(const mode_view *v, FILE *out)
{
    const int digits = digits_of(v);

    fprintf(out, "In %s ", v->row->name);
    for (int64_t k = 0; k < v->n_cluster && k < MOST_SHOWN; k++) {
        int64_t n;
        const double centre = mean_over(v, v->mean, k, &n);
        fprintf(out, "%s%lld %s about %.*g",
                k == 0                  ? ""
                : k + 1 == v->n_cluster ? " and "
                                        : ", ",
                (long long)n, n == 1 ? "is" : "are", digits, centre);
    }
    fputs(v->n_cluster > MOST_SHOWN ? " .... " : ". ", out);
}

/* Whether each cluster has in this row the mean that another cluster has in the other row. `mean`:
 * means of the chains in the other row. */
static bool exchanges(const mode_view *v, const double *mean)
{
    const double nearly = 0.25;
    int64_t n;
    double first = mean_over(v, v->mean, 0, &n), gap = INFINITY;

    for (int64_t k = 1; k < v->n_cluster; k++) {
        const double next = mean_over(v, v->mean, k, &n);
        gap = fmin(gap, next - first);
        first = next;
    }
    for (int64_t k = 0; k < v->n_cluster; k++) {
        const double here = mean_over(v, mean, k, &n);
        bool found = false;
        for (int64_t m = 0; m < v->n_cluster; m++)
            found = found || (m != k && fabs(mean_over(v, v->mean, m, &n) - here) < nearly * gap);
        if (!found)
            return false;
    }
    return true;
}

/* Finds another element of the variable whose values are exchanged with those of this one, as for
 * means of mixture components with exchangeable labels. *out NULL: there is none. */
static em_status find_exchange(const mode_view *v, double *draws, const em_summary_row **out)
{
    const em_summary_table *table = v->table;
    em_judge *judge = v->judge;
    EM_SCOPED double *mean = NULL;
    int64_t n_tried = 0;
    em_status status = em_allocate(judge->n_chain, sizeof *mean, &mean);

    *out = NULL;
    for (int64_t i = 0; !status && !*out && i < table->n_row && n_tried < MOST_TRIED; i++) {
        const em_summary_row *other = &table->row[i];
        if (other == v->row || other->variable != v->row->variable ||
            other->value[table->at.judged + EM_JUDGED_SEPARATION] == 0)
            continue;
        n_tried++;
        status = em_reader_elements(judge->reader, other->variable, other->index, 1, draws);
        if (status)
            break;
        find_means(judge, draws, mean);
        if (exchanges(v, mean))
            *out = other;
    }
    return status;
}

/* *tells: the mean log densities of two modes differ enough to show which mode has the mass. */
static em_status tell_densities(const mode_view *v, FILE *out, bool *tells)
{
    const em_judge *judge = v->judge;
    const double much = 10;
    double *mean = NULL, highest = -INFINITY, lowest = INFINITY;
    int64_t low = 0, n;
    em_status status =
        judge->log_density ? em_allocate(judge->n_chain, sizeof *mean, &mean) : EM_OK;

    *tells = false;
    if (status || !judge->log_density)
        return status;
    find_means(judge, judge->log_density, mean);
    for (int64_t k = 0; k < v->n_cluster; k++) {
        const double density = mean_over(v, mean, k, &n);
        highest = fmax(highest, density);
        if (density < lowest) {
            lowest = density;
            low = k;
        }
    }
    *tells = highest - lowest > much;
    if (*tells)
        fprintf(out,
                "The log density at %s about %.*g is %.3g lower than elsewhere, so this mode has "
                "hardly any mass, unless it is much wider: run again with another seed or a "
                "smaller init_radius.",
                v->row->name, digits_of(v), mean_over(v, v->mean, low, &n), highest - lowest);
    em_release(&mean);
    return EM_OK;
}

static em_status tell_row(mode_view *v, double *draws, FILE *out)
{
    const em_judge *judge = v->judge;
    const em_summary_row *other = NULL;
    bool tells;

    for (int64_t c = 0; c < judge->n_chain; c++)
        v->n_cluster = v->cluster[c] >= v->n_cluster ? v->cluster[c] + 1 : v->n_cluster;
    find_means(judge, draws, v->mean);
    tell_centres(v, out);
    fputs("Chains do not cross from one mode to another. So the weights of the modes are not "
          "known, and longer runs do not help. ",
          out);
    fputs(judge->can_be_tempered ? "Runs with temper: {} in the config estimate the weights, and "
                                   "so do runs with temper: auto if warmup ends in several "
                                   "modes. "
                                 : "Tempering is not possible with this model or sampler. ",
          out);
    em_status status = tell_densities(v, out, &tells);
    if (!status && !tells)
        status = find_exchange(v, draws, &other);
    if (!status && other)
        fprintf(out,
                "%s and %s have exchanged their values (label switching), as the components of a "
                "mixture do if their labels are arbitrary: constrain their order, for example by "
                "Stan's type ordered.",
                v->row->name, other->name);
    else if (!status && !tells)
        fputs(judge->can_be_tempered ? "Constrain the model to one mode if the modes are copies of "
                                       "each other, or reparameterise it."
                                     : "Runs with other seeds or with more chains show which "
                                       "results depend on the mode.",
              out);
    return status;
}

em_status em_advise_on_modes(em_judge *judge, const em_summary_table *table, FILE *out)
{
    const em_modes *modes = &judge->evidence.findings.modes;
    const em_summary_row *row = em_find_worst_row(table, EM_JUDGED_SEPARATION).row;
    EM_SCOPED_BY(em_release_owner) em_mode_finder *finder = NULL;
    double *draws = NULL;
    mode_view v = {.judge = judge, .table = table, .row = row};
    char text[256];

    if (modes->count < 2 || !row)
        return EM_OK;
    em_modes_describe(modes, sizeof text, text);
    fprintf(out, "Modes: the chains are in %s. ", text);
    if (modes->unsettled > 0)
        fprintf(out, "%lld %s in no mode for long. ", (long long)modes->unsettled,
                modes->unsettled == 1 ? "chain stays" : "chains stay");
    em_status status = em_mode_finder_create(judge->n_chain, judge->n_draw, &finder);
    status = status ? status : em_allocate_doubles(judge->n_chain * judge->n_draw, &draws);
    status = status ? status : em_allocate(judge->n_chain, sizeof *v.mean, &v.mean);
    if (!status)
        status = em_reader_elements(judge->reader, row->variable, row->index, 1, draws);
    if (!status && em_mode_finder_examine(finder, draws) > 0) {
        v.cluster = em_mode_finder_clusters(finder);
        status = tell_row(&v, draws, out);
    }
    fputc('\n', out);
    em_release_all(&v.mean, &draws);
    return status;
}
