#include "diagnostics/rank.h"

#include "math/special.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static double normal_score(double rank, int64_t n)
{
    return em_normal_quantile((rank - 0.375) / ((double)n + 0.25));
}

/* Computes only half of the scores, because the score of the rank at the same distance from the
 * other end has the opposite sign. */
void em_normal_score_table(em_among among, int64_t n, double *score)
{
    const int64_t total = among.total;

    for (int64_t r = among.before; r < among.before + n; r++) {
        const int64_t mirrored = total - 1 - r;
        double *out = &score[r - among.before];
        if (r < mirrored)
            *out = normal_score((double)(r + 1), total);
        else
            *out = mirrored >= among.before && mirrored < r
                       ? -score[mirrored - among.before]
                       : -normal_score((double)(mirrored + 1), total);
    }
}

/* The score half way between the ranks r + 1 and r + 2, for r < n - 1. Tied draws use it. */
void em_normal_score_halves(int64_t n, double *half)
{
    for (int64_t r = 0; r + 1 < n; r++)
        half[r] = normal_score((double)(2 * r + 3) / 2, n);
}

/* Maps a double to an integer with the same order: in negative numbers all bits are inverted, in
 * others the sign bit. Both zeros have the same integer. */
static uint64_t key(double x)
{
    const double one_zero = x + 0.0;
    uint64_t bits;

    memcpy(&bits, &one_zero, sizeof bits);
    return bits ^ (bits >> 63 ? UINT64_MAX : (uint64_t)1 << 63);
}

/*
 * A sort by buckets of equal width between the smallest and the largest draw, with about two
 * buckets a draw. A bucket is sorted by insertion, or, if it has many draws, as with heavy tails,
 * again by buckets. From the third level on, and where a draw is infinite, the width is one of
 * keys, with which there are at most eight levels. Every step keeps the order of equals.
 */
enum { BUCKETS = 1 << 13, FEW = 24, LINEAR_LEVELS = 2 };

/* The buckets of a sort: their range and their number. */
typedef struct buckets {
    double least, scale;
    uint64_t least_key;
    int64_t n;
    bool linear;
} buckets;

static inline int64_t bucket_of(const buckets *b, double x)
{
    return (int64_t)((b->linear ? x - b->least : (double)(key(x) - b->least_key)) * b->scale);
}

/* Lays out the buckets for the draws. Returns false if all draws are equal. */
static bool lay_buckets(int64_t n, const em_sorted *x, int level, buckets *b)
{
    double least = x[0].value, most = x[0].value;

    for (int64_t i = 1; i < n; i++) {
        least = x[i].value < least ? x[i].value : least;
        most = x[i].value > most ? x[i].value : most;
    }
    *b = (buckets){.least = least, .least_key = key(least), .n = 2 * n < BUCKETS ? 2 * n : BUCKETS};
    b->scale = (double)(b->n - 1) / (most - least);
    b->linear = level < LINEAR_LEVELS && b->scale > 0 && isfinite(b->scale);
    if (!b->linear)
        b->scale = (double)(b->n - 1) / (double)(key(most) - b->least_key);
    return least < most;
}

static void insert(int64_t n, em_sorted *x)
{
    for (int64_t i = 1; i < n; i++) {
        const em_sorted one = x[i];
        int64_t k = i;
        for (; k > 0 && x[k - 1].value > one.value; k--)
            x[k] = x[k - 1];
        x[k] = one;
    }
}

/* Sorts the draws of `from` into `to`; `from` may be overwritten afterwards. */
static void sort_by_buckets(int64_t n, em_sorted *from, em_sorted *to, int level)
{
    int64_t end[BUCKETS];
    buckets b;

    if (n <= FEW || !lay_buckets(n, from, level, &b)) {
        memcpy(to, from, (size_t)n * sizeof *to);
        if (n <= FEW)
            insert(n, to);
        return;
    }
    memset(end, 0, (size_t)b.n * sizeof *end);
    for (int64_t i = 0; i < n; i++)
        end[bucket_of(&b, from[i].value)]++;
    for (int64_t k = 0, first = 0; k < b.n; k++) {
        const int64_t count = end[k];
        end[k] = first;
        first += count;
    }
    for (int64_t i = 0; i < n; i++)
        to[end[bucket_of(&b, from[i].value)]++] = from[i];
    for (int64_t k = 0, first = 0, few = 0; k < b.n; first = end[k++])
        if (end[k] - first > FEW ||
            k == b.n - 1) { /* the draws of small buckets before it are in place */
            const bool many = end[k] - first > FEW;
            insert((many ? first : n) - few, to + few);
            few = end[k];
            if (many) {
                memcpy(from + first, to + first, (size_t)(end[k] - first) * sizeof *from);
                sort_by_buckets(end[k] - first, from + first, to + first, level + 1);
            }
        }
}

void em_sort(int64_t n, const double *x, em_sorted *sorted, em_sorted *scratch)
{
    for (int64_t i = 0; i < n; i++)
        scratch[i] = (em_sorted){x[i], i};
    sort_by_buckets(n, scratch, sorted, 0);
}

em_quantile_position em_locate_quantile(int64_t n, double p)
{
    /* Counted from 1, and the weights in this form, as R does: the draw at the quantile then is
     * at or below it in both, or in neither. */
    const double position = 1 + (double)(n - 1) * p;
    const int64_t low = (int64_t)floor(position), high = (int64_t)ceil(position);

    return (em_quantile_position){low - 1, high - 1, position - (double)low};
}

double em_quantile_between(em_quantile_position place, double below, double above)
{
    const double h = place.weight;

    return h > 0 && above != below ? (1 - h) * below + h * above : below;
}

double em_sorted_quantile(int64_t n, const em_sorted *sorted, double p)
{
    const em_quantile_position place = em_locate_quantile(n, p);

    return em_quantile_between(place, sorted[place.low].value, sorted[place.high].value);
}

/* Sorts the distances from `centre` by a merge of the draws on both sides. It merges from both ends
 * at once, because each step of a merge waits for the one before it. Of equal distances the one on
 * the right comes first. */
void em_fold(int64_t n, const em_sorted *sorted, double centre, em_sorted *folded)
{
    int64_t right = 0, left, first = 0, last = n - 1, out = 0, end = n - 1;

    while (right < n && sorted[right].value < centre)
        right++;
    left = right - 1;
    for (; first < left && right < last;
         out++, end--) { /* without a branch, which would be unpredictable */
        const double near_left = fabs(sorted[left].value - centre);
        const double near_right = fabs(sorted[right].value - centre);
        const double far_left = fabs(sorted[first].value - centre);
        const double far_right = fabs(sorted[last].value - centre);
        const bool is_left = near_left < near_right, is_last = far_left < far_right;
        folded[out].value = is_left ? near_left : near_right;
        folded[out].index = sorted[is_left ? left : right].index;
        folded[end].value = is_last ? far_right : far_left;
        folded[end].index = sorted[is_last ? last : first].index;
        left -= is_left;
        right += !is_left;
        last -= is_last;
        first += !is_last;
    }
    for (; out <= end; out++) {
        const bool is_left =
            left >= first && (right > last || fabs(sorted[left].value - centre) <
                                                  fabs(sorted[right].value - centre));
        const em_sorted one = sorted[is_left ? left : right];
        folded[out] = (em_sorted){fabs(one.value - centre), one.index};
        left -= is_left;
        right += !is_left;
    }
}

void em_normal_scores(em_among among, int64_t n, const em_sorted *sorted, const double *score,
                      const double *half, const int64_t *place, double *z)
{
    for (int64_t i = 0, next; i < n; i = next) {
        double common = score[i];

        next = i + 1;
        if (next < n && sorted[next].value == sorted[i].value) {
            while (next < n && sorted[next].value == sorted[i].value)
                next++;
            /* The mean of ranks i + 1 ... next may lie halfway between two integers. */
            common = (i + next) % 2 ? score[(i + next) / 2]
                     : half
                         ? half[(i + next) / 2 - 1]
                         : normal_score((double)(2 * among.before + i + 1 + next) / 2, among.total);
        }
        for (int64_t k = i; k < next; k++)
            z[place ? place[sorted[k].index] : sorted[k].index] = common;
    }
}
