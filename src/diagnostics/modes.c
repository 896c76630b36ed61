#include "diagnostics/modes.h"

#include "base/memory.h"
#include "base/text.h"
#include "diagnostics/rank.h"
#include "math/finite.h"
#include "math/order.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { FEWEST_DRAWS = 16, QUARTERS = 4 };

/* The largest share of the variance of a chain's draws that may lie between the quarters of the
 * chain. It is 15 % with 20 independent draws, and 75 % for a random walk. */
static const double most_drift = 0.25;

/* The range of a chain in one number of the draws. */
typedef struct reach {
    int64_t chain;
    double low, centre, high;
} reach;

struct em_mode_finder {
    em_owner memory; /* of its arrays */
    int64_t n_chain, n_draw;
    int64_t *cluster; /* [n_chain] */
    reach *wanders;   /* [n_chain] chains that have not settled */
    reach *span;      /* [n_chain] of a cluster, its number in place of the chain's */
    reach *reach;     /* [n_chain] those that have settled */
    double *sorted;   /* [n_draw] */
    em_sorted *order; /* [2 n_draw] */
    double *above;    /* [n_chain] */
    uint64_t *sums;   /* [2 n_chain]: a key, equal for chains of one mode; numbers in which the
                         chain had not settled */
};

em_status em_mode_finder_create(int64_t n_chain, int64_t n_draw, em_mode_finder **out)
{
    em_status status = em_allocate(1, sizeof **out, out);

    if (status)
        return status;
    em_mode_finder *finder = *out;
    finder->n_chain = n_chain;
    finder->n_draw = n_draw;
    status = em_own_all(&finder->memory, EM_ARRAY(finder->cluster, n_chain),
                        EM_ARRAY(finder->reach, n_chain), EM_ARRAY(finder->wanders, n_chain),
                        EM_ARRAY(finder->span, n_chain), EM_ARRAY(finder->sorted, n_draw),
                        EM_ARRAY(finder->order, 2 * n_draw), EM_ARRAY(finder->above, n_chain),
                        EM_ARRAY(finder->sums, 2 * n_chain));
    if (status)
        em_release_owner(out);
    return status;
}

/* ---------------------------------------------------------------- one number */

static double mean_of(int64_t n, const double *x)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    return sum / (double)n;
}

/* The share of the variance of a chain that lies between its quarters; NaN: the variance is 0 or
 * not finite. */
static double drift_of(int64_t n_draw, const double *x)
{
    const int64_t n = n_draw / QUARTERS;
    const double mean = mean_of(QUARTERS * n, x);
    double all = 0, between = 0;

    for (int64_t i = 0; i < QUARTERS * n; i++)
        all += (x[i] - mean) * (x[i] - mean);
    for (int q = 0; q < QUARTERS; q++) {
        const double off = mean_of(n, x + q * n) - mean;
        between += (double)n * off * off;
    }
    return between / all;
}

static int compare_reach(const void *left, const void *right)
{
    const reach *a = left, *b = right;

    if (a->centre < b->centre || a->centre > b->centre)
        return a->centre < b->centre ? -1 : 1;
    return (a->chain > b->chain) - (a->chain < b->chain);
}

static reach reach_of(em_mode_finder *finder, int64_t chain, const double *x)
{
    const int64_t n_draw = finder->n_draw, tail = n_draw / 20;
    double *sorted = finder->sorted;

    em_sort(n_draw, x, finder->order, finder->order + n_draw);
    for (int64_t i = 0; i < n_draw; i++)
        sorted[i] = finder->order[i].value;
    return (reach){chain, sorted[tail], em_sorted_median(n_draw, sorted),
                   sorted[n_draw - 1 - tail]};
}

/* Finds the chains that have settled, ordered by their centres, and those that have not. Returns
 * the number of the former. It is 0 if most chains have not settled, because one random walk in
 * thirty looks settled, or if a draw is not finite. */
static int64_t find_reaches(em_mode_finder *finder, const double *draws)
{
    const int64_t n_chain = finder->n_chain, n_draw = finder->n_draw;
    int64_t n = 0;

    if (!em_all_finite(n_chain * n_draw, draws))
        return 0;
    for (int64_t c = 0; c < n_chain; c++) {
        const double *x = draws + c * n_draw;
        finder->cluster[c] = -1;
        if (drift_of(n_draw, x) <= most_drift)
            finder->reach[n++] = reach_of(finder, c, x);
        else
            finder->wanders[c - n] = reach_of(finder, c, x);
    }
    qsort(finder->reach, (size_t)n, sizeof *finder->reach, compare_reach);
    return 2 * n > n_chain ? n : 0;
}

/* The distance of two neighbours, in the standard deviation of a normal distribution with the same
 * range. */
static double separation(const reach *a, const reach *b)
{
    const double reach_of_one = 3.29;
    const double width = (a->high - a->low + b->high - b->low) / 2;

    return (b->centre - a->centre) * reach_of_one / width;
}

/* Numbers the clusters of the chains that have settled, and finds the range of each. Returns the
 * narrowest gap; 0: there is one cluster. */
static double find_clusters(em_mode_finder *finder, int64_t n, int64_t *n_cluster)
{
    const reach *r = finder->reach;
    double *above = finder->above, below = -INFINITY, narrowest = INFINITY;

    *n_cluster = 0;
    for (int64_t i = n - 1; i >= 0; i--) /* the lowest that those from i on reach */
        above[i] = i + 1 < n ? fmin(above[i + 1], r[i].low) : r[i].low;
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || below < above[i]) {
            if (i > 0)
                narrowest = fmin(narrowest, separation(&r[i - 1], &r[i]));
            finder->span[(*n_cluster)++] = (reach){.low = above[i]};
        }
        below = fmax(below, r[i].high);
        finder->span[*n_cluster - 1].high = below;
        finder->cluster[r[i].chain] = *n_cluster - 1;
    }
    return *n_cluster > 1 ? narrowest : 0;
}

/* Adds each chain that has not settled to a cluster if it overlaps that cluster and no other. */
static void take_in_others(em_mode_finder *finder, int64_t n_other, int64_t n_cluster)
{
    for (int64_t i = 0; i < n_other; i++) {
        const reach *r = &finder->wanders[i];
        int64_t met = 0, last = -1;
        for (int64_t k = 0; k < n_cluster; k++)
            if (r->low <= finder->span[k].high && r->high >= finder->span[k].low) {
                met++;
                last = k;
            }
        finder->cluster[r->chain] = met == 1 ? last : -1;
    }
}

/* A hash of a number and one of its clusters (the finaliser of SplitMix64). The sums of these over
 * numbers differ for chains in different modes. */
static uint64_t key_of(uint64_t number, int64_t cluster)
{
    uint64_t z = number + (uint64_t)(cluster + 1) * 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A hash of the clusters that a number makes of the chains. Numbers with the same clusters have the
 * same hash. */
static uint64_t name_of(const em_mode_finder *finder)
{
    uint64_t name = 0;

    for (int64_t c = 0; c < finder->n_chain; c++)
        name = key_of(name, finder->cluster[c]);
    return name;
}

/* Counts the draws of a chain that are at most `point`, and those that are at least `point`. */
static void count_around(int64_t n, const double *x, double point, int64_t *at_most,
                         int64_t *at_least)
{
    double below = 0, above = 0; /* doubles, which are counted several at a time */

    for (int64_t i = 0; i < n; i++) {
        below += x[i] <= point ? 1 : 0;
        above += x[i] >= point ? 1 : 0;
    }
    *at_most = (int64_t)below;
    *at_least = (int64_t)above;
}

/* The median of a few draws of all chains. */
static double middle_of(const em_mode_finder *finder, const double *draws)
{
    enum { FEW = 15 };
    const int64_t n = finder->n_chain * finder->n_draw;
    double few[FEW];

    for (int64_t i = 0; i < FEW; i++) {
        const double x = draws[(2 * i + 1) * n / (2 * FEW)];
        int64_t k = i;
        for (; k > 0 && few[k - 1] > x; k--)
            few[k] = few[k - 1];
        few[k] = x;
    }
    return few[FEW / 2];
}

/* Whether one point is in the ranges of all chains, which are then one cluster. It is a quick test
 * that nearly every number of chains that agree passes. */
static bool have_common_point(const em_mode_finder *finder, const double *draws)
{
    const int64_t n_draw = finder->n_draw, tail = n_draw / 20;
    const double point = middle_of(finder, draws);
    bool common = true;

    for (int64_t c = 0; common && c < finder->n_chain; c++) {
        int64_t at_most, at_least;
        count_around(n_draw, draws + c * n_draw, point, &at_most, &at_least);
        common = at_most > tail && at_least > tail;
    }
    return common;
}

double em_mode_finder_examine(em_mode_finder *finder, const double *draws)
{
    const int64_t n_chain = finder->n_chain;

    if (finder->n_draw < FEWEST_DRAWS || have_common_point(finder, draws))
        return 0;
    int64_t n_cluster;
    const int64_t n_settled = find_reaches(finder, draws);
    const double gap = find_clusters(finder, n_settled, &n_cluster);
    if (gap > 0)
        take_in_others(finder, n_chain - n_settled, n_cluster);
    const uint64_t name = gap > 0 ? name_of(finder) : 0;
    for (int64_t c = 0; gap > 0 && c < n_chain; c++) {
        finder->sums[c] += key_of(name, finder->cluster[c]);
        finder->sums[n_chain + c] += finder->cluster[c] < 0;
    }
    return gap;
}

const int64_t *em_mode_finder_clusters(const em_mode_finder *finder)
{
    return finder->cluster;
}

/* ---------------------------------------------------------------- results over all numbers */

int64_t em_mode_finder_width(const em_mode_finder *finder)
{
    return 2 * finder->n_chain;
}

uint64_t *em_mode_finder_sums(em_mode_finder *finder)
{
    return finder->sums;
}

static int compare_keys(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

/* Adds a mode of `size` chains to the list, which is in descending order. */
static void add_mode(em_modes *out, int64_t size)
{
    int64_t at = out->count++;

    if (at >= EM_MODES_LISTED && size <= out->size[EM_MODES_LISTED - 1])
        return;
    at = at < EM_MODES_LISTED ? at : EM_MODES_LISTED - 1;
    for (; at > 0 && out->size[at - 1] < size; at--)
        out->size[at] = out->size[at - 1];
    out->size[at] = size;
}

em_status em_mode_finder_count(const em_mode_finder *finder, em_modes *out)
{
    const int64_t n_chain = finder->n_chain;
    EM_SCOPED uint64_t *key = NULL;
    int64_t n = 0;
    em_status status = em_allocate(n_chain, sizeof *key, &key);

    *out = (em_modes){.n_chain = n_chain};
    for (int64_t c = 0; !status && c < n_chain; c++)
        if (finder->sums[n_chain + c] == 0)
            key[n++] = finder->sums[c];
    if (!status)
        qsort(key, (size_t)n, sizeof *key, compare_keys);
    for (int64_t i = 0, first = 0; i < n; i++)
        if (i + 1 == n || key[i + 1] != key[i]) {
            add_mode(out, i + 1 - first);
            first = i + 1;
        }
    out->unsettled = n_chain - n;
    if (out->count < 2)
        *out = (em_modes){.n_chain = n_chain};
    return status;
}

void em_modes_describe(const em_modes *modes, size_t bytes, char *text)
{
    const int64_t listed = modes->count < EM_MODES_LISTED ? modes->count : EM_MODES_LISTED;

    snprintf(text, bytes, "%lld modes (", (long long)modes->count);
    for (int64_t i = 0; i < listed; i++)
        em_append(bytes, text,
                  i == 0                                    ? "%lld"
                  : i + 1 < listed || listed < modes->count ? ", %lld"
                                                            : " and %lld",
                  (long long)modes->size[i]);
    em_append(bytes, text, listed < modes->count ? ", ... of %lld chains)" : " of %lld chains)",
              (long long)modes->n_chain);
}
