#include "diag/rank.h"

#include "math/normal.h"

#include <math.h>
#include <string.h>

static double normal_score(double rank, int64_t n)
{
    return em_normal_quantile((rank - 0.375) / ((double)n + 0.25));
}

void em_normal_score_table(int64_t n, double *score)
{
    for (int64_t i = 0; i < n; i++)
        score[i] = normal_score((double)(i + 1), n);
}

/* An integer with the order of the doubles: negative ones have all bits turned, the others the
 * sign. */
static uint64_t key(double x)
{
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    return bits ^ (bits >> 63 ? UINT64_MAX : (uint64_t)1 << 63);
}

/* A radix sort, one byte at a time from the lowest, but for bytes that all have in common: for
 * thousands of draws several times faster than comparing. */
void em_sort(int64_t n, const double *x, em_sorted *sorted, em_sorted *scratch)
{
    enum { DIGITS = sizeof(uint64_t), VALUES = 256 };
    int64_t start[DIGITS][VALUES] = {{0}};
    em_sorted *from = sorted, *to = scratch;

    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = key(x[i]);

        sorted[i] = (em_sorted){x[i], i};
        for (int digit = 0; digit < DIGITS; digit++)
            start[digit][bits >> 8 * digit & 0xff]++;
    }
    for (int digit = 0; digit < DIGITS; digit++) {
        em_sorted *const done = to;
        int64_t first = 0;

        if (n == 0 || start[digit][key(x[0]) >> 8 * digit & 0xff] == n)
            continue;
        for (int value = 0; value < VALUES; value++) {
            int64_t count = start[digit][value];

            start[digit][value] = first;
            first += count;
        }
        for (int64_t i = 0; i < n; i++)
            to[start[digit][key(from[i].value) >> 8 * digit & 0xff]++] = from[i];
        to = from;
        from = done;
    }
    if (from != sorted)
        memcpy(sorted, from, (size_t)n * sizeof *sorted);
}

double em_sorted_quantile(int64_t n, const em_sorted *sorted, double p)
{
    /* Counted from 1, and the weights in this form, as R does: the draw at the quantile then is
     * at or below it in both, or in neither. */
    double position = 1 + (double)(n - 1) * p;
    int64_t low = (int64_t)floor(position), high = (int64_t)ceil(position);
    double below = sorted[low - 1].value, above = sorted[high - 1].value;
    double h = position - (double)low;

    return h > 0 && above != below ? (1 - h) * below + h * above : below;
}

void em_fold(int64_t n, const em_sorted *sorted, double centre, em_sorted *folded)
{
    int64_t right = 0, left;

    while (right < n && sorted[right].value < centre)
        right++;
    left = right - 1;
    for (int64_t i = 0; i < n; i++) {
        double to_left = left < 0 ? INFINITY : fabs(sorted[left].value - centre);
        double to_right = right == n ? INFINITY : fabs(sorted[right].value - centre);

        if (right == n || (left >= 0 && to_left < to_right))
            folded[i] = (em_sorted){to_left, sorted[left--].index};
        else
            folded[i] = (em_sorted){to_right, sorted[right++].index};
    }
}

void em_normal_scores(int64_t n, const em_sorted *sorted, const double *score, double *z)
{
    for (int64_t i = 0, next; i < n; i = next) {
        double common;

        for (next = i + 1; next < n && sorted[next].value == sorted[i].value;)
            next++;
        /* The mean of ranks i + 1 ... next may lie halfway between two integers. */
        common =
            (i + next) % 2 ? score[(i + next) / 2] : normal_score((double)(i + 1 + next) / 2, n);
        for (int64_t k = i; k < next; k++)
            z[sorted[k].index] = common;
    }
}
