#include "network/network_score.h"

#include <math.h>

/* Bins of the forecasts of one event by the probability that they gave it. */
typedef struct bins {
    double n, probability[EM_SCORE_BINS], happened[EM_SCORE_BINS];
} bins;

static void put(bins *b, double p, double happened)
{
    int i = (int)(p * EM_SCORE_BINS);

    i = !(p > 0) ? 0 : i < EM_SCORE_BINS ? i : EM_SCORE_BINS - 1;
    b->n++;
    b->probability[i] += p;
    b->happened[i] += happened;
}

static double calibration_error(const bins *b)
{
    double sum = 0;

    for (int i = 0; i < EM_SCORE_BINS; i++)
        sum += fabs(b->probability[i] - b->happened[i]);
    return sum / b->n;
}

static int64_t largest(int64_t n, const double *p)
{
    int64_t at = 0;

    for (int64_t k = 1; k < n; k++)
        at = p[k] > p[at] ? k : at;
    return at;
}

static double brier(int64_t n, const double *p, int64_t truth)
{
    double sum = 0;

    for (int64_t k = 0; k < n; k++)
        sum += (p[k] - (k == truth)) * (p[k] - (k == truth));
    return sum;
}

/* Adds one observation; returns its most probable class. */
static int64_t add(int64_t n_class, const double *p, int64_t truth, em_score *sum)
{
    const int64_t guess = largest(n_class, p);

    sum->accuracy += guess == truth;
    sum->nll -= log(p[truth]);
    sum->brier += brier(n_class, p, truth);
    return guess;
}

static em_score divide(const em_score *sum, double n, const bins *b)
{
    return (em_score){sum->accuracy / n, sum->nll / n, sum->brier / n, calibration_error(b)};
}

em_score em_score_of(int64_t n, int64_t n_class, const double *p, const double *label, int64_t k)
{
    em_score sum = {0, 0, 0, 0};
    bins b = {.n = 0};
    double count = 0;

    for (int64_t i = 0; i < n; i++, p += n_class) {
        const int64_t truth = (int64_t)label[i];
        int64_t confident = k;
        if (k == EM_ALL_CLASSES || truth == k) {
            const int64_t guess = add(n_class, p, truth, &sum);
            confident = k == EM_ALL_CLASSES ? guess : k;
            count++;
        }
        put(&b, p[confident], truth == confident);
    }
    return divide(&sum, count > 0 ? count : NAN, &b);
}
