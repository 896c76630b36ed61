#include "diagnostics/rank.h"

#include "math/special.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

static double normal_score(double rank, int64_t n)
{
    return em_normal_quantile((rank - 0.375) / ((double)n + 0.25));
}

/* Of the rank of the same distance from the end, with the other sign: a table of all computes half
 * of them. */
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

/* Half way between rank r + 1 and the next, r < n - 1: what tied draws take. */
void em_normal_score_halves(int64_t n, double *half)
{
    for (int64_t r = 0; r + 1 < n; r++)
        half[r] = normal_score((double)(2 * r + 3) / 2, n);
}

/* An integer with the order of the doubles: negative ones have all bits turned, the others the
 * sign. */
static uint64_t key(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits ^ (bits >> 63 ? UINT64_MAX : (uint64_t)1 << 63);
}

/*
 * A radix sort, some bits at a time from the lowest, of those that tell draws apart: the upper
 * half. What is alike in these is then put in order by what is left, a few at a time by insertion.
 * For thousands of draws several times faster than comparing, and every step keeps the order of
 * equals.
 */
enum { BITS = 8, VALUES = 1 << BITS, PASSES = 4, UPPER = 64 - PASSES * BITS, FEW = 64 };

typedef int64_t counts[PASSES][VALUES];

static inline int64_t digit(double x, int lowest, int pass)
{
    return (int64_t)(key(x) >> (lowest + pass * BITS) & (VALUES - 1));
}

/* By PASSES digits from bit `lowest` on: as that is an even number, all end where they were. */
static void sort_by_digits(int64_t n, int lowest, em_sorted *from, em_sorted *to)
{
    counts start = {{0}};

    for (int64_t i = 0; i < n; i++)
        for (int pass = 0; pass < PASSES; pass++)
            start[pass][digit(from[i].value, lowest, pass)]++;
    for (int pass = 0; pass < PASSES; pass++) {
        int64_t first = 0;
        for (int64_t value = 0; value < VALUES; value++) {
            const int64_t count = start[pass][value];
            start[pass][value] = first;
            first += count;
        }
        for (int64_t i = 0; i < n; i++)
            to[start[pass][digit(from[i].value, lowest, pass)]++] = from[i];
        em_sorted *other = from;
        from = to;
        to = other;
    }
}

static bool is_sorted(int64_t n, const em_sorted *x)
{
    for (int64_t i = 1; i < n; i++)
        if (key(x[i - 1].value) > key(x[i].value))
            return false;
    return true;
}

static void insert(int64_t n, em_sorted *x)
{
    for (int64_t i = 1; i < n; i++) {
        const em_sorted one = x[i];
        int64_t k = i;
        for (; k > 0 && key(x[k - 1].value) > key(one.value); k--)
            x[k] = x[k - 1];
        x[k] = one;
    }
}

/* The same by the upper halves of the keys alone, each in one word with the place of its draw: half
 * as much to move. `from` and `to` are [n]; the result is in `from`. */
static void sort_words(int64_t n, uint64_t *from, uint64_t *to)
{
    counts start = {{0}};

    for (int64_t i = 0; i < n; i++)
        for (int pass = 0; pass < PASSES; pass++)
            start[pass][from[i] >> (UPPER + pass * BITS) & (VALUES - 1)]++;
    for (int pass = 0; pass < PASSES; pass++) {
        int64_t first = 0;
        for (int64_t value = 0; value < VALUES; value++) {
            const int64_t count = start[pass][value];
            start[pass][value] = first;
            first += count;
        }
        for (int64_t i = 0; i < n; i++)
            to[start[pass][from[i] >> (UPPER + pass * BITS) & (VALUES - 1)]++] = from[i];
        uint64_t *other = from;
        from = to;
        to = other;
    }
}

/* Puts in order what is alike in the upper half. */
static void finish_sort(int64_t n, em_sorted *sorted, em_sorted *scratch)
{
    for (int64_t i = 0, next; i < n; i = next) {
        const uint64_t upper = key(sorted[i].value) >> UPPER;
        for (next = i + 1; next < n && key(sorted[next].value) >> UPPER == upper;)
            next++;
        if (next - i <= FEW)
            insert(next - i, sorted + i);
        else if (!is_sorted(next - i, sorted + i))
            sort_by_digits(next - i, 0, sorted + i, scratch);
    }
}

void em_sort(int64_t n, const double *x, em_sorted *sorted, em_sorted *scratch)
{
    uint64_t *word = (uint64_t *)scratch;

    if (n > UINT32_MAX) {
        for (int64_t i = 0; i < n; i++)
            sorted[i] = (em_sorted){x[i], i};
        sort_by_digits(n, UPPER, sorted, scratch);
    } else {
        for (int64_t i = 0; i < n; i++)
            word[i] = key(x[i]) >> UPPER << UPPER | (uint64_t)i;
        sort_words(n, word, word + n);
        for (int64_t i = 0; i < n; i++) {
            const int64_t index = (int64_t)(word[i] & UINT32_MAX);
            sorted[i] = (em_sorted){x[index], index};
        }
    }
    finish_sort(n, sorted, scratch);
}

em_quantile_place em_place_quantile(int64_t n, double p)
{
    /* Counted from 1, and the weights in this form, as R does: the draw at the quantile then is
     * at or below it in both, or in neither. */
    const double position = 1 + (double)(n - 1) * p;
    const int64_t low = (int64_t)floor(position), high = (int64_t)ceil(position);

    return (em_quantile_place){low - 1, high - 1, position - (double)low};
}

double em_quantile_between(em_quantile_place place, double below, double above)
{
    const double h = place.weight;

    return h > 0 && above != below ? (1 - h) * below + h * above : below;
}

double em_sorted_quantile(int64_t n, const em_sorted *sorted, double p)
{
    const em_quantile_place place = em_place_quantile(n, p);

    return em_quantile_between(place, sorted[place.low].value, sorted[place.high].value);
}

void em_fold(int64_t n, const em_sorted *sorted, double centre, em_sorted *folded)
{
    int64_t right = 0, left, i = 0;

    while (right < n && sorted[right].value < centre)
        right++;
    left = right - 1;
    for (; left >= 0 && right < n; i++) { /* without a branch, which chance would decide */
        const double to_left = fabs(sorted[left].value - centre);
        const double to_right = fabs(sorted[right].value - centre);
        const bool is_left = to_left < to_right;
        folded[i].value = is_left ? to_left : to_right;
        folded[i].index = sorted[is_left ? left : right].index;
        left -= is_left;
        right += !is_left;
    }
    for (; left >= 0; left--, i++)
        folded[i] = (em_sorted){fabs(sorted[left].value - centre), sorted[left].index};
    for (; right < n; right++, i++)
        folded[i] = (em_sorted){fabs(sorted[right].value - centre), sorted[right].index};
}

void em_normal_scores(em_among among, int64_t n, const em_sorted *sorted, const double *score,
                      const double *half, double *z)
{
    for (int64_t i = 0, next; i < n; i = next) {
        double common;

        for (next = i + 1; next < n && sorted[next].value == sorted[i].value;)
            next++;
        /* The mean of ranks i + 1 ... next may lie halfway between two integers. */
        common = (i + next) % 2 ? score[(i + next) / 2]
                 : half         ? half[(i + next) / 2 - 1]
                        : normal_score((double)(2 * among.before + i + 1 + next) / 2, among.total);
        for (int64_t k = i; k < next; k++)
            z[sorted[k].index] = common;
    }
}
