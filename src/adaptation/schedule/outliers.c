#include "adaptation/schedule/outliers.h"

#include "math/order.h"

#include <math.h>

em_log_density_window em_log_density_window_of(int64_t length, const double *log_density)
{
    const int64_t half = length / 2;
    em_log_density_window s = {.length = (double)length};

    for (int64_t t = 0; t < half; t++)
        s.early += log_density[t];
    for (int64_t t = half; t < length; t++)
        s.late += log_density[t];
    s.mean = (s.early + s.late) / (double)length;
    s.early = half > 0 ? s.early / (double)half : s.mean;
    s.late /= (double)(length - half);
    for (int64_t t = 0; t < length; t++)
        s.variance += (log_density[t] - s.mean) * (log_density[t] - s.mean) / (double)length;
    return s;
}

/* The median of the larger half of the means. A mean that is NaN counts as the smallest. */
static double better_median(int64_t n_chain, const em_log_density_window *window, double *mean)
{
    const int64_t worse = n_chain / 2;

    for (int64_t c = 0; c < n_chain; c++)
        mean[c] = isnan(window[c].mean) ? -INFINITY : window[c].mean;
    em_sort_numbers(n_chain, mean);
    return em_sorted_median(n_chain - worse, mean + worse);
}

bool em_stands_still(const em_log_density_window *window, int64_t dim)
{
    return !(sqrt(window->variance) > 0.05 * sqrt(0.5 * (double)dim));
}

double em_least_log_density(int64_t n_chain, const em_log_density_window *window, int64_t dim,
                            double *scratch)
{
    return better_median(n_chain, window, scratch) - 4 * (sqrt(0.5 * (double)dim) + 2);
}

int64_t em_transient_length(int64_t n, const double *log_density, double least)
{
    enum { LEAST_AFTER = 5 };
    int64_t length = n;
    double sum = 0, count = 0;

    while (length > 0 && !(log_density[length - 1] < least))
        length--;
    for (int64_t t = 0; t < length; t++) {
        sum += isnan(log_density[t]) ? 0 : log_density[t];
        count += !isnan(log_density[t]);
    }
    return n - length >= LEAST_AFTER && sum < least * count ? length : 0;
}

int64_t em_find_outlying_chains(int64_t n_chain, const em_log_density_window *window, int64_t dim,
                                double *scratch, bool *outlying)
{
    const double limit = em_least_log_density(n_chain, window, dim, scratch);
    bool some_moved = false;
    int64_t count = 0;

    for (int64_t c = 0; c < n_chain; c++)
        some_moved |= window[c].length >= 5 && !em_stands_still(&window[c], dim);
    for (int64_t c = 0; c < n_chain; c++) {
        outlying[c] = !(window[c].mean > limit) ||
                      (some_moved && window[c].length >= 5 && em_stands_still(&window[c], dim));
        count += outlying[c];
    }
    for (int64_t c = 0; count == n_chain && c < n_chain; c++)
        outlying[c] = false;
    return count == n_chain ? 0 : count;
}

/* Whether a chain enters the criterion: it is not outlying, and was not reinitialised in the last
 * iterations. */
static bool counts(const em_log_density_window *window, bool outlying)
{
    return !outlying && window->length >= 10;
}

bool em_initial_phase_has_ended(int64_t n_chain, const em_log_density_window *window,
                                const bool *outlying, int64_t spared)
{
    double early = 0, late = 0, within = 0, mean = 0, between = 0, length = INFINITY, n = 0;

    for (int64_t c = 0; c < n_chain; c++)
        n += counts(&window[c], outlying[c]);
    if (n < (double)(n_chain - spared))
        return false;
    for (int64_t c = 0; c < n_chain; c++) {
        if (!counts(&window[c], outlying[c]))
            continue;
        early += window[c].early / n;
        late += window[c].late / n;
        mean += window[c].mean / n;
        within += window[c].variance / n;
        length = fmin(length, window[c].length);
    }
    for (int64_t c = 0; c < n_chain; c++)
        if (counts(&window[c], outlying[c]))
            between += (window[c].mean - mean) * (window[c].mean - mean) / n;
    return fabs(early - late) < 0.5 * sqrt(within) &&
           sqrt(between) < 0.7 * sqrt(within) * fmax(1, sqrt(20 / length));
}
