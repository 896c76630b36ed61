/*
 * Autocovariances are summed directly, a few lags at a time, until Geyer's sequence ends, which for
 * most numbers is within the first dozen. Where it does not end within DIRECT_LAGS, all lags are
 * transformed at once.
 */
#include "diagnostics/ess.h"

#include "base/clones.h"
#include "base/memory.h"
#include "diagnostics/distributed.h"
#include "diagnostics/fft.h"

#include <math.h>
#include <string.h>

/* LAGS: the number of lags that are summed at a time. DIRECT_LAGS: the number of lags after which a
 * transform is cheaper. */
enum { LAGS = 4, DIRECT_LAGS = 64, LANES = EM_FFT_LANES };

struct em_ess {
    int64_t n_fft; /* room for transforms of this length */
    double *cosine, *sine, *power, *rho;
    em_fft_lanes *re, *im;
    int64_t n_product, n_spectra; /* room in: */
    double *product;              /* [own chains][LAGS] */
    double *spectra; /* [series][own chains][length] where several ranks share the work */
};

/* One call: its series, and where this rank has draws of them. */
typedef struct task {
    em_ess_series s;
    int64_t n_pair, length; /* chains; of the transform */
} task;

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
    em_release_all(&(*ess)->product, &(*ess)->spectra, ess);
}

static em_status reserve_fft(em_ess *e, int64_t length)
{
    if (length <= e->n_fft)
        return EM_OK;
    release_fft(e);
    em_status status = em_allocate_doubles(length, &e->cosine);
    status = status ? status : em_allocate_doubles(length, &e->sine);
    status = status ? status : em_allocate_doubles(length * EM_ESS_SERIES, &e->power);
    status = status ? status : em_allocate_doubles(length, &e->rho);
    status = status ? status : em_allocate_all(EM_ARRAY(e->re, length), EM_ARRAY(e->im, length));
    if (status)
        return status;
    em_fft_twiddles(length, e->cosine, e->sine); /* those of shorter transforms are among them */
    e->n_fft = length;
    return EM_OK;
}

em_status em_ess_reserve(em_ess *ess, const em_halves *h, bool together)
{
    const int64_t length = em_fft_length(h->length);
    em_status status = em_renew_doubles(h->n / 2 * LAGS, &ess->n_product, &ess->product);

    status = status ? status : reserve_fft(ess, length);
    if (!status && together)
        status =
            em_renew_doubles(EM_ESS_SERIES * h->n / 2 * length, &ess->n_spectra, &ess->spectra);
    return status;
}

/* ---------------------------------------------------------------- halves side by side */

static int64_t n_bunch(const em_halves *h)
{
    return (h->n + LANES - 1) / LANES;
}

int64_t em_lanes_size(const em_halves *h)
{
    return n_bunch(h) * h->length * LANES;
}

/* The offset of the first element of a half. Consecutive elements are LANES apart. */
static int64_t offset_of(const em_halves *h, int64_t half)
{
    return half / LANES * h->length * LANES + half % LANES;
}

void em_lanes_positions(const em_halves *h, int64_t *place)
{
    const int64_t n_draw = h->n_draw, length = h->length;

    for (int64_t c = 0; c < h->n / 2; c++, place += n_draw) {
        place[n_draw / 2] = -1;
        for (int64_t i = 0; i < length; i++) {
            place[i] = offset_of(h, 2 * c) + i * LANES;
            place[n_draw - length + i] = offset_of(h, 2 * c + 1) + i * LANES;
        }
    }
}

void em_lanes_fill(const em_halves *h, const double *x, double *lanes)
{
    const double *from[LANES];

    for (int64_t b = 0; b < n_bunch(h); b++) {
        for (int k = 0; k < LANES; k++) {
            const int64_t half = b * LANES + k < h->n ? b * LANES + k : b * LANES;
            from[k] = x + half / 2 * h->n_draw + half % 2 * (h->n_draw - h->length);
        }
        for (int64_t i = 0; i < h->length; i++, lanes += LANES)
            for (int k = 0; k < LANES; k++)
                lanes[k] = from[k][i];
    }
}

/* Subtracts the mean. The mean of the residuals is subtracted too, so that equal elements have
 * exactly their value as the mean. */
EM_CLONES static void centre(int64_t n, em_fft_lanes *x, double *means)
{
    double mean[LANES] = {0}, residual[LANES] = {0};

    for (int64_t i = 0; i < n; i++)
        for (int lane = 0; lane < LANES; lane++)
            mean[lane] += x[i][lane];
    for (int lane = 0; lane < LANES; lane++)
        mean[lane] /= (double)n;
    for (int64_t i = 0; i < n; i++)
        for (int lane = 0; lane < LANES; lane++)
            residual[lane] += x[i][lane] - mean[lane];
    for (int lane = 0; lane < LANES; lane++)
        means[lane] = mean[lane] += isinf(mean[lane]) ? 0 : residual[lane] / (double)n;
    for (int64_t i = 0; i < n; i++)
        for (int lane = 0; lane < LANES; lane++)
            x[i][lane] -= mean[lane];
}

EM_CLONES static void sum_squares(int64_t n, const em_fft_lanes *x, double *sums)
{
    double sum[LANES] = {0};

    for (int64_t i = 0; i < n; i++)
        for (int lane = 0; lane < LANES; lane++)
            sum[lane] += x[i][lane] * x[i][lane];
    memcpy(sums, sum, sizeof sum);
}

void em_lanes_centre(const em_halves *h, double *lanes, double *mean)
{
    double means[LANES];

    for (int64_t first = 0; first < h->n; first += LANES) {
        const int64_t n = h->n - first < LANES ? h->n - first : LANES;
        centre(h->length, (em_fft_lanes *)(lanes + first * h->length), means);
        memcpy(mean + first, means, (size_t)n * sizeof *mean);
    }
}

void em_lanes_squares(const em_halves *h, const double *lanes, double *square)
{
    double squares[LANES];

    for (int64_t first = 0; first < h->n; first += LANES) {
        const int64_t n = h->n - first < LANES ? h->n - first : LANES;
        sum_squares(h->length, (const em_fft_lanes *)(lanes + first * h->length), squares);
        memcpy(square + first, squares, (size_t)n * sizeof *square);
    }
}

/* ---------------------------------------------------------------- the first autocovariances */

/* For each column: sums[k] = the sum of the products of elements that are lag + k apart. */
EM_CLONES static void sum_products(int64_t n, int64_t lag, const em_fft_half (*x)[2],
                                   em_fft_half (*sums)[2])
{
    em_fft_half sum[LAGS][2] = {{{0}}};
    int64_t i = 0;

    for (; i < n - lag - LAGS + 1; i++)
        for (int k = 0; k < LAGS; k++)
            for (int part = 0; part < 2; part++)
                sum[k][part] += x[i][part] * x[i + lag + k][part];
    for (; i < n - lag; i++)
        for (int k = 0; i + lag + k < n; k++)
            for (int part = 0; part < 2; part++)
                sum[k][part] += x[i][part] * x[i + lag + k][part];
    memcpy(sums, sum, sizeof sum);
}

/* The autocovariances of a series at lags `lag` ... lag + LAGS - 1, averaged over all halves. The
 * halves of the chains are added in the order of the chains. */
static em_status covariances(em_ess *e, const task *t, int s, int64_t lag, double *out)
{
    const em_halves *h = t->s.h;
    const double scale = 1 / ((double)h->length * (double)h->all);
    _Alignas(32) double sums[LAGS][LANES];
    em_status status = EM_OK;

    for (int64_t first = 0; first < h->n; first += LANES) {
        const int64_t n = h->n - first < LANES ? h->n - first : LANES;
        sum_products(h->length, lag, (const em_fft_half(*)[2])(t->s.lanes[s] + first * h->length),
                     (em_fft_half(*)[2])sums);
        for (int64_t half = 0; half < n; half += 2)
            for (int k = 0; k < LAGS; k++)
                e->product[(first + half) / 2 * LAGS + k] = sums[k][half] + sums[k][half + 1];
    }
    memset(out, 0, LAGS * sizeof *out);
    if (t->s.comm)
        status = em_share_sum(t->s.comm, t->s.count, LAGS, e->product, out);
    else
        for (int64_t c = 0; c < t->n_pair; c++)
            for (int k = 0; k < LAGS; k++)
                out[k] += e->product[c * LAGS + k];
    for (int k = 0; k < LAGS; k++)
        out[k] *= scale;
    return status;
}

/* ---------------------------------------------------------------- all autocovariances */

/* Chains of one or several series that are transformed together, one in each lane: item c of series
 * s is number s x n_pair + c. */
typedef struct bunch {
    int64_t first;
    int n;
    const double *x[LANES], *y[LANES]; /* the halves of each, LANES apart */
} bunch;

static bunch bunch_of(const task *t, int64_t first)
{
    const int64_t left = t->s.n * t->n_pair - first;
    bunch b = {.first = first, .n = left < LANES ? (int)left : LANES};

    for (int lane = 0; lane < LANES; lane++) {
        const int64_t item = first + (lane < b.n ? lane : 0); /* those that are idle repeat one */
        const double *series = t->s.lanes[item / t->n_pair];
        b.x[lane] = series + offset_of(t->s.h, 2 * (item % t->n_pair));
        b.y[lane] = series + offset_of(t->s.h, 2 * (item % t->n_pair) + 1);
    }
    return b;
}

/* Fills the lanes with the halves of chains: the first half is the real part, and the second half
 * the imaginary part. */
static void fill_lanes(const bunch *b, int64_t n, int64_t length, em_fft_lanes *re,
                       em_fft_lanes *im)
{
    for (int64_t i = 0; i < n; i++)
        for (int lane = 0; lane < LANES; lane++) {
            re[i][lane] = b->x[lane][i * LANES];
            im[i][lane] = b->y[lane][i * LANES];
        }
    memset(re + n, 0, (size_t)(length - n) * sizeof *re);
    memset(im + n, 0, (size_t)(length - n) * sizeof *im);
}

/* Adds the power of lanes `begin` ... `end` - 1 to `power`, one lane after the other. */
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

/* Computes in e->power the sum over all chains of the power of every series. Chains are added in
 * their order. */
static em_status sum_power(em_ess *e, const task *t)
{
    const int64_t n_item = t->s.n * t->n_pair, length = t->length;
    const int64_t each = t->s.comm ? 1 : t->n_pair; /* items that are added up here */
    double *const power = t->s.comm ? e->spectra : e->power;
    em_status status = EM_OK;

    for (int64_t j = 0; j < n_item / each * length; j++)
        power[j] = 0;
    for (int64_t first = 0; first < n_item; first += LANES) {
        const bunch b = bunch_of(t, first);
        fill_lanes(&b, t->s.h->length, length, e->re, e->im);
        em_fft_forward(length, e->cosine, e->sine, e->re, e->im);
        for (int lane = 0, end; lane < b.n; lane = end) {
            const int64_t row = (first + lane) / each, left = (row + 1) * each - first;
            end = left < b.n ? (int)left : b.n;
            add_lanes(length, e->re, e->im, lane, end, power + row * length);
        }
    }
    for (int s = 0; t->s.comm && !status && s < t->s.n; s++)
        status = em_share_sum(t->s.comm, t->s.count, length, e->spectra + s * t->n_pair * length,
                              e->power + s * length);
    return status;
}

/* Computes in lane s of e->re the autocovariances of series s at all lags, averaged over the
 * halves. The inverse transform of |Z|^2, where Z is that of x + i y, has the sum of both
 * autocorrelations as its real part. */
static void autocovariance(em_ess *e, const task *t)
{
    const double scale = 1.0 / ((double)t->length * (double)t->s.h->length * (double)t->s.h->all);

    memset(e->re, 0, (size_t)t->length * sizeof *e->re);
    memset(e->im, 0, (size_t)t->length * sizeof *e->im);
    for (int64_t j = 0; j < t->length; j++)
        for (int s = 0; s < t->s.n; s++)
            e->re[j][s] = e->power[s * t->length + j] * scale;
    em_fft_backward(t->length, e->cosine, e->sine, e->re, e->im);
}

/* ---------------------------------------------------------------- effective sample size */

/* The autocorrelations of a series, computed from its autocovariances on demand. */
typedef struct autocorrelation {
    const double *covariance;
    int64_t stride, known; /* between those of two lags; lags of which it is known */
    double mean_var, var_plus;
    int64_t end; /* of the pairs that are in rho */
    double *rho;
} autocorrelation;

static double correlation_at(const autocorrelation *of, int64_t lag)
{
    return 1 - (of->mean_var - of->covariance[lag * of->stride]) / of->var_plus;
}

/* Extends Geyer's initial positive sequence of pairs as far as autocovariances are known. Returns
 * false if it needs more. */
static bool ends(autocorrelation *of, int64_t n)
{
    if (of->end == 0) {
        of->rho[0] = 1;
        of->rho[1] = correlation_at(of, 1);
    }
    while (of->end < n - 5 && of->rho[of->end] + of->rho[of->end + 1] > 0) {
        if (of->end + 2 >= of->known)
            return false;
        of->end += 2;
        of->rho[of->end] = correlation_at(of, of->end);
        of->rho[of->end + 1] = correlation_at(of, of->end + 1);
    }
    return true;
}

/* tau = -1 + 2 sum of rho over Geyer's sequence, made monotone. The lag after the last pair counts
 * once, which lowers the variance for antithetic chains. */
static double autocorrelation_time(const autocorrelation *of)
{
    const int64_t end = of->end;
    double tau = -1, *rho = of->rho;

    if (end == 0)
        return 2; /* no pair at all: what posterior gives, whose sum over 1:0 takes in lag 0 */
    for (int64_t t = 2; t < end; t += 2)
        if (rho[t] + rho[t + 1] > rho[t - 2] + rho[t - 1])
            rho[t] = rho[t + 1] = (rho[t - 2] + rho[t - 1]) / 2;
    for (int64_t t = 0; t < end; t++)
        tau += 2 * rho[t];
    return rho[end] > 0 || rho[end] + rho[end + 1] >= 0 ? tau + rho[end] : tau;
}

static autocorrelation autocorrelation_of(em_ess *e, const task *t, int s, const double *covariance,
                                          int64_t stride, int64_t known)
{
    const em_halves *h = t->s.h;
    const double n = (double)h->length;

    return (autocorrelation){
        .covariance = covariance,
        .stride = stride,
        .known = known,
        .mean_var = covariance[0] * n / (n - 1),
        .var_plus =
            covariance[0] + em_variance_of(h->all, t->s.mean[s], em_mean_of(h->all, t->s.mean[s])),
        .rho = e->rho};
}

static double size_of(const em_halves *h, const autocorrelation *of)
{
    const double s = (double)h->length * (double)h->all;

    return s / fmax(autocorrelation_time(of), 1 / log10(s));
}

/* Computes the ESS of a series from its first lags. *done: they were enough; else all lags are to
 * be transformed. */
static em_status size_by_first_lags(em_ess *e, const task *t, int s, double *out, bool *done)
{
    double covariance[DIRECT_LAGS];
    autocorrelation of = {.known = 0};
    em_status status = EM_OK;

    for (*done = false; !status && !*done && of.known < DIRECT_LAGS;) {
        status = covariances(e, t, s, of.known, covariance + of.known);
        if (of.known == 0)
            of = autocorrelation_of(e, t, s, covariance, 1, 0);
        of.known += LAGS;
        *done = !(of.var_plus > 0 && isfinite(of.var_plus)) || ends(&of, t->s.h->length);
    }
    if (!status && *done && of.var_plus > 0 && isfinite(of.var_plus))
        *out = size_of(t->s.h, &of);
    return status;
}

/* Computes the ESS of the series of a task by transforms. The autocovariances of each series are
 * then in a lane of e->re. */
static em_status sizes_by_transform(em_ess *e, const task *t, double *out)
{
    em_status status = sum_power(e, t);

    if (status)
        return status;
    autocovariance(e, t);
    for (int s = 0; s < t->s.n; s++) {
        autocorrelation of =
            autocorrelation_of(e, t, s, (const double *)e->re + s, LANES, t->length);
        ends(&of, t->s.h->length);
        out[s] = size_of(t->s.h, &of);
    }
    return EM_OK;
}

em_status em_ess_of(em_ess *ess, const em_ess_series *series, double *out)
{
    const em_halves *h = series->h;
    task t = {*series, h->n / 2, em_fft_length(h->length)};
    double late[EM_ESS_SERIES];
    int number[EM_ESS_SERIES], n_late = 0;
    em_status status = EM_OK;

    for (int s = 0; s < series->n; s++)
        out[s] = NAN;
    if (h->length < 3)
        return EM_OK;
    for (int s = 0; !status && s < series->n; s++) {
        bool done;
        status = size_by_first_lags(ess, &t, s, &out[s], &done);
        if (!done)
            number[n_late++] = s;
    }
    t.s.n = n_late;
    for (int s = 0; s < n_late; s++) {
        t.s.lanes[s] = series->lanes[number[s]];
        t.s.mean[s] = series->mean[number[s]];
    }
    if (!status && n_late > 0)
        status = sizes_by_transform(ess, &t, late);
    for (int s = 0; !status && s < n_late; s++)
        out[number[s]] = late[s];
    return status;
}
