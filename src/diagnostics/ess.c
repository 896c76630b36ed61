#include "diagnostics/ess.h"

#include "base/clones.h"
#include "base/memory.h"
#include "diagnostics/diagnostics_team.h"
#include "diagnostics/fft.h"

#include <math.h>
#include <stdbool.h>

struct em_ess {
    int64_t n_fft; /* room for transforms of this length */
    double *cosine, *sine, *power, *rho;
    em_fft_lanes *re, *im;
    int64_t n_mean, n_spectra; /* room in: */
    double *mean;              /* [series][all halves] */
    double *spectra;           /* [series][own chains][length] for a team */
};

/* What one call works on. */
typedef struct task {
    const em_halves *h;
    const em_subcommunicator *team; /* NULL: nobody has other draws */
    const int64_t *count;
    const double *const *series;
    int n_series;
    int64_t n_pair, length; /* chains; of the transform */
} task;

static const double *half_chain(const em_halves *h, int64_t k)
{
    return h->x + k / 2 * h->n_draw + k % 2 * (h->n_draw - h->length);
}

double em_mean_of(int64_t n, const double *x)
{
    double mean = 0, residual = 0;

    for (int64_t i = 0; i < n; i++)
        mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        residual += x[i] - mean;
    return isinf(mean) ? mean : mean + residual / (double)n;
}

double em_variance_of(int64_t n, const double *x, double mean)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    return sum / (double)(n - 1);
}

/* ---------------------------------------------------------------- work space */

em_status em_ess_create(em_ess **out)
{
    return em_allocate(1, sizeof **out, out);
}

static void release_fft(em_ess *e)
{
    e->n_fft = 0;
    em_release_all(&e->cosine, &e->sine, &e->power, &e->rho, &e->re, &e->im);
}

void em_ess_destroy(em_ess **ess)
{
    if (!*ess)
        return;
    release_fft(*ess);
    em_release_all(&(*ess)->mean, &(*ess)->spectra, ess);
}

static em_status reserve_fft(em_ess *e, int64_t length)
{
    em_status status;

    if (length <= e->n_fft)
        return EM_OK;
    release_fft(e);
    status = em_allocate_doubles(length, &e->cosine);
    if (!status)
        status = em_allocate_doubles(length, &e->sine);
    if (!status)
        status = em_allocate_doubles(length * EM_ESS_SERIES, &e->power);
    if (!status)
        status = em_allocate_doubles(length, &e->rho);
    if (!status)
        status = em_allocate_all(EM_ARRAY(e->re, length), EM_ARRAY(e->im, length));
    if (status)
        return status;
    em_fft_twiddles(length, e->cosine, e->sine); /* those of shorter transforms are among them */
    e->n_fft = length;
    return EM_OK;
}

em_status em_ess_reserve(em_ess *ess, const em_halves *h, bool together)
{
    const int64_t length = em_fft_length(h->length);
    em_status status = em_renew_doubles(EM_ESS_SERIES * h->all, &ess->n_mean, &ess->mean);

    if (!status)
        status = reserve_fft(ess, length);
    if (!status && together)
        status =
            em_renew_doubles(EM_ESS_SERIES * h->n / 2 * length, &ess->n_spectra, &ess->spectra);
    return status;
}

/* ---------------------------------------------------------------- autocovariances */

/* Chains of one or several series that are transformed together, one in each lane: item c of series
 * s is number s x n_pair + c. */
typedef struct bunch {
    int64_t first;
    int n;
    const double *x[EM_FFT_LANES], *y[EM_FFT_LANES]; /* the halves of each */
} bunch;

static bunch bunch_of(const task *t, int64_t first)
{
    const int64_t left = t->n_series * t->n_pair - first;
    bunch b = {.first = first, .n = left < EM_FFT_LANES ? (int)left : EM_FFT_LANES};

    for (int lane = 0; lane < EM_FFT_LANES; lane++) {
        const int64_t item = first + (lane < b.n ? lane : 0); /* those that are idle repeat one */
        em_halves h = *t->h;
        h.x = t->series[item / t->n_pair];
        b.x[lane] = half_chain(&h, 2 * (item % t->n_pair));
        b.y[lane] = half_chain(&h, 2 * (item % t->n_pair) + 1);
    }
    return b;
}

/* The halves side by side: the first and the last as real and imaginary part. */
static void fill_lanes(const bunch *b, int64_t n, int64_t length, em_fft_lanes *re,
                       em_fft_lanes *im)
{
    for (int64_t i = 0; i < n; i++)
        for (int lane = 0; lane < EM_FFT_LANES; lane++) {
            re[i][lane] = b->x[lane][i];
            im[i][lane] = b->y[lane][i];
        }
    for (int64_t i = n; i < length; i++)
        re[i] = im[i] = (em_fft_lanes){0};
}

/* em_mean_of in each lane, which is then subtracted. */
EM_CLONES static void centre(int64_t n, em_fft_lanes *x, double *means)
{
    em_fft_lanes mean = {0}, residual = {0};

    for (int64_t i = 0; i < n; i++)
        mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        residual += x[i] - mean;
    for (int lane = 0; lane < EM_FFT_LANES; lane++)
        means[lane] = isinf(mean[lane]) ? mean[lane] : mean[lane] + residual[lane] / (double)n;
    for (int lane = 0; lane < EM_FFT_LANES; lane++)
        mean[lane] = means[lane];
    for (int64_t i = 0; i < n; i++)
        x[i] -= mean;
}

EM_CLONES static void sum_squares(int64_t n, const em_fft_lanes *x, double *sums)
{
    em_fft_lanes sum = {0};

    for (int64_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    for (int lane = 0; lane < EM_FFT_LANES; lane++)
        sums[lane] = sum[lane];
}

void em_half_moments(em_ess *ess, const em_halves *h, int n_series, const double *const *series,
                     double *const *mean, double *const *variance)
{
    const task t = {h, NULL, NULL, series, n_series, h->n / 2, h->length};
    double means[2][EM_FFT_LANES], squares[2][EM_FFT_LANES];

    for (int64_t first = 0; first < n_series * t.n_pair; first += EM_FFT_LANES) {
        const bunch b = bunch_of(&t, first);
        fill_lanes(&b, h->length, h->length, ess->re, ess->im);
        centre(h->length, ess->re, means[0]);
        centre(h->length, ess->im, means[1]);
        sum_squares(h->length, ess->re, squares[0]);
        sum_squares(h->length, ess->im, squares[1]);
        for (int k = 0; k < 2 * b.n; k++) {
            const int64_t item = first + k / 2, half = 2 * (item % t.n_pair) + k % 2;
            mean[item / t.n_pair][half] = means[k % 2][k / 2];
            variance[item / t.n_pair][half] = squares[k % 2][k / 2] / (double)(h->length - 1);
        }
    }
}

/* Subtracts the means of the halves, and keeps them. */
static void centre_halves(em_ess *e, const task *t, const bunch *b)
{
    double first[EM_FFT_LANES], last[EM_FFT_LANES];

    centre(t->h->length, e->re, first);
    centre(t->h->length, e->im, last);
    for (int lane = 0; lane < b->n; lane++) {
        const int64_t item = b->first + lane;
        double *mean = e->mean + item / t->n_pair * t->h->all + t->h->first;
        mean[2 * (item % t->n_pair)] = first[lane];
        mean[2 * (item % t->n_pair) + 1] = last[lane];
    }
}

/* Adds the power of lanes `begin` ... `end` - 1 to `power`, one after the other. */
static void add_lanes(int64_t length, const em_fft_lanes *re, const em_fft_lanes *im, int begin,
                      int end, double *power)
{
    for (int64_t j = 0; j < length; j++) {
        double sum = power[j];
        for (int lane = begin; lane < end; lane++)
            sum += re[j][lane] * re[j][lane] + im[j][lane] * im[j][lane];
        power[j] = sum;
    }
}

/* Leaves in e->power the sum of every series over all chains, in their order, and in e->mean the
 * means of their halves. */
static em_status sum_power(em_ess *e, const task *t)
{
    const int64_t n_item = t->n_series * t->n_pair, length = t->length;
    const int64_t each = t->team ? 1 : t->n_pair; /* items that are added up here */
    double *const power = t->team ? e->spectra : e->power;
    em_status status = EM_OK;

    for (int64_t j = 0; j < n_item / each * length; j++)
        power[j] = 0;
    for (int64_t first = 0; first < n_item; first += EM_FFT_LANES) {
        const bunch b = bunch_of(t, first);
        fill_lanes(&b, t->h->length, length, e->re, e->im);
        centre_halves(e, t, &b);
        em_fft_forward(length, e->cosine, e->sine, e->re, e->im);
        for (int lane = 0, end; lane < b.n; lane = end) {
            const int64_t row = (first + lane) / each, left = (row + 1) * each - first;
            end = left < b.n ? (int)left : b.n;
            add_lanes(length, e->re, e->im, lane, end, power + row * length);
        }
    }
    for (int s = 0; t->team && !status && s < t->n_series; s++) {
        em_subcommunicator_gather(t->team, 2 * sizeof *e->mean, t->count, e->mean + s * t->h->all);
        status = em_share_sum(t->team, t->count, length, e->spectra + s * t->n_pair * length,
                              e->power + s * length);
    }
    return status;
}

/*
 * Leaves in lane s of e->re the autocovariances of series s at all lags, averaged over the halves.
 * The inverse transform of |Z|^2, Z that of x + i y, has the sum of both autocorrelations as its
 * real part.
 */
static void autocovariance(em_ess *e, const task *t)
{
    const double scale = 1.0 / ((double)t->length * (double)t->h->length * (double)t->h->all);

    for (int64_t j = 0; j < t->length; j++) {
        e->re[j] = e->im[j] = (em_fft_lanes){0};
        for (int s = 0; s < t->n_series; s++)
            e->re[j][s] = e->power[s * t->length + j] * scale;
    }
    em_fft_backward(t->length, e->cosine, e->sine, e->re, e->im);
}

/* ---------------------------------------------------------------- effective sample size */

/* The autocorrelations of a series, by its autocovariances, in one of the lanes. */
typedef struct autocorrelation {
    const double *covariance;
    double mean_var, var_plus;
} autocorrelation;

static double correlation_at(const autocorrelation *of, int64_t lag)
{
    return 1 - (of->mean_var - of->covariance[lag * EM_FFT_LANES]) / of->var_plus;
}

/*
 * tau = -1 + 2 sum of rho over Geyer's initial positive, then monotone sequence of pairs. The lag
 * after the last pair counts once, which lowers the variance for antithetic chains. `rho` is work
 * space for n lags, of which as many are filled in as the sequence has.
 */
static double autocorrelation_time(const autocorrelation *of, int64_t n, double *rho)
{
    int64_t end = 0;
    double tau = -1;

    rho[0] = 1;
    rho[1] = correlation_at(of, 1);
    while (end < n - 5 && rho[end] + rho[end + 1] > 0) {
        end += 2;
        rho[end] = correlation_at(of, end);
        rho[end + 1] = correlation_at(of, end + 1);
    }
    if (end == 0)
        return 2; /* no pair at all: what posterior gives, whose sum over 1:0 takes in lag 0 */
    for (int64_t t = 2; t < end; t += 2)
        if (rho[t] + rho[t + 1] > rho[t - 2] + rho[t - 1])
            rho[t] = rho[t + 1] = (rho[t - 2] + rho[t - 1]) / 2;
    for (int64_t t = 0; t < end; t++)
        tau += 2 * rho[t];
    return rho[end] > 0 || rho[end] + rho[end + 1] >= 0 ? tau + rho[end] : tau;
}

/* Of the series whose autocovariances are in a lane of e->re. */
static double size_of(em_ess *e, const task *t, int lane)
{
    const em_halves *h = t->h;
    const double n = (double)h->length, s = n * (double)h->all;
    const double *covariance = (const double *)e->re + lane, *mean = e->mean + lane * h->all;
    const double mean_var = covariance[0] * n / (n - 1);
    const double var_plus = covariance[0] + em_variance_of(h->all, mean, em_mean_of(h->all, mean));

    const autocorrelation rho = {covariance, mean_var, var_plus};

    if (!(var_plus > 0 && isfinite(var_plus)))
        return NAN;
    return s / fmax(autocorrelation_time(&rho, h->length, e->rho), 1 / log10(s));
}

em_status em_ess_of(em_ess *ess, const em_halves *h, const em_subcommunicator *team,
                    const int64_t *count, int n_series, const double *const *series, double *out)
{
    const task t = {h, team, count, series, n_series, h->n / 2, em_fft_length(h->length)};
    em_status status = EM_OK;

    for (int s = 0; s < n_series; s++)
        out[s] = NAN;
    if (h->length < 3)
        return EM_OK;
    status = sum_power(ess, &t);
    if (status)
        return status;
    autocovariance(ess, &t);
    for (int s = 0; s < n_series; s++)
        out[s] = size_of(ess, &t, s);
    return EM_OK;
}
