#include "diagnostics/diag.h"

#include "base/memory.h"
#include "diagnostics/diagnoses.h"
#include "diagnostics/distributed.h"
#include "diagnostics/ess.h"
#include "diagnostics/limits.h"
#include "diagnostics/rank.h"
#include "math/finite.h"

#include <math.h>
#include <string.h>

/* The series computed from a number: normal scores of the draws and of the folded draws, indicators
 * of the two tails, and the draws themselves. */
enum { SCORE, LOW, HIGH, FOLDED, DRAWS, N_SERIES };

struct em_diag {
    const em_subcommunicator
        *comm;        /* whose ranks hold the other draws; NULL: this rank holds all */
    int64_t *count;   /* [em_subcommunicator_size] chains of each */
    em_status status; /* of what they did together */
    int64_t n_sorted; /* capacity in draws */
    em_sorted *sorted, *folded;
    int64_t n_lanes[N_SERIES]; /* capacity in numbers */
    double *lanes[N_SERIES];   /* the halves of each, side by side */
    double *score, *half;      /* of the ranks among n_score draws, and half way between them */
    int64_t n_score;
    int64_t n_place, n_place_chain, n_place_draw;
    int64_t *place; /* [n_place] in lanes, of the n_place_draw draws of n_place_chain chains */
    int64_t n_mean, n_variance; /* capacity in half chains */
    double *mean, *variance;    /* [N_SERIES] of all of them */
    em_ess *ess;
    em_visits *visits;   /* borrowed; NULL: none */
    em_diagnoses *known; /* likewise */
};

/* Of so few draws a diagnosis takes little time, and is not kept. */
enum { LEAST_KEPT = 128 };

/* The probabilities of the quantiles of a diagnosis, of which the outer ones are the tails. */
static const double diagnosed[EM_DIAGNOSED_QUANTILES] = {0.05, 0.5, 0.95};

em_status em_diag_create(em_diag **out)
{
    em_status status = em_allocate(1, sizeof **out, out);

    status = status ? status : em_ess_create(&(*out)->ess);
    if (status)
        em_diag_destroy(out);
    return status;
}

static void release_sorted(em_diag *d)
{
    d->n_sorted = d->n_score = 0;
    em_release_all(&d->sorted, &d->folded, &d->score, &d->half);
}

void em_diag_destroy(em_diag **diag)
{
    if (!*diag)
        return;
    release_sorted(*diag);
    for (int s = 0; s < N_SERIES; s++)
        em_release(&(*diag)->lanes[s]);
    em_release(&(*diag)->place);
    em_ess_destroy(&(*diag)->ess);
    em_release_all(&(*diag)->mean, &(*diag)->variance, &(*diag)->count, diag);
}

void em_diag_set_visits(em_diag *diag, em_visits *visits)
{
    diag->visits = visits;
}

void em_diag_set_known(em_diag *diag, em_diagnoses *known)
{
    diag->known = known;
}

/* Limits an ESS to the ESS that the visits of the draws x allow. */
static void bound_by_visits(const em_diag *d, int64_t left_out, const double *x, double *size)
{
    if (d->visits && !isnan(*size))
        *size = fmin(*size, em_visits_ess(d->visits, x, left_out));
}

static em_status reserve_sorted(em_diag *d, int64_t n)
{
    if (n <= d->n_sorted)
        return EM_OK;
    release_sorted(d);
    em_status status = em_allocate_all(EM_ARRAY(d->sorted, n), EM_ARRAY(d->folded, n));
    status = status ? status : em_allocate_doubles(n, &d->score);
    status = status ? status : em_allocate_doubles(n, &d->half);
    if (status)
        return status;
    d->n_sorted = n;
    return EM_OK;
}

static em_status reserve_positions(em_diag *d, const em_halves *h)
{
    const int64_t n = h->n / 2 * h->n_draw;

    if (n > d->n_place) {
        d->n_place = d->n_place_draw = 0;
        em_release(&d->place);
        const em_status status = em_allocate(n, sizeof *d->place, &d->place);
        if (status)
            return status;
        d->n_place = n;
    }
    if (d->n_place_chain != h->n / 2 || d->n_place_draw != h->n_draw) {
        em_lanes_positions(h, d->place);
        for (int s = 0; s < N_SERIES; s++) /* columns without a half, too, are computed with */
            memset(d->lanes[s], 0, (size_t)em_lanes_size(h) * sizeof(double));
    }
    d->n_place_chain = h->n / 2;
    d->n_place_draw = h->n_draw;
    return EM_OK;
}

static em_status reserve(em_diag *d, const em_halves *h, int64_t n)
{
    em_status status = reserve_sorted(d, n);

    for (int s = 0; !status && s < N_SERIES; s++)
        status = em_renew_doubles(em_lanes_size(h), &d->n_lanes[s], &d->lanes[s]);
    status = status ? status : reserve_positions(d, h);
    status = status ? status : em_renew_doubles(N_SERIES * h->all, &d->n_mean, &d->mean);
    status = status ? status : em_renew_doubles(N_SERIES * h->all, &d->n_variance, &d->variance);
    status = status ? status : em_ess_reserve(d->ess, h, d->comm != NULL);
    if (!status && !d->comm && d->n_score != h->n * h->length) {
        d->n_score = h->n * h->length;
        em_normal_score_table((em_among){0, d->n_score}, d->n_score, d->score);
        em_normal_score_halves(d->n_score, d->half);
    }
    return status;
}

/* Gathers into x [h->all] the numbers of the halves on other ranks. Those of the halves on this
 * rank are there already. */
static void gather_halves(const em_diag *d, double *x)
{
    if (d->comm)
        em_subcommunicator_gather(d->comm, 2 * sizeof *x, d->count, x);
}

/* The smaller of two numbers, or NaN if one of them is NaN, which fmin would ignore. */
static double lesser(double a, double b)
{
    return isnan(a) || a < b ? a : b;
}

static double larger(double a, double b)
{
    return isnan(a) || a > b ? a : b;
}

/* sqrt(((n - 1) / n W + B / n) / W), B / n the variance of the means, W the mean of the variances.
 * 0/0 when all are equal, and for halves of one draw. */
static double r_hat_of(const em_halves *h, const double *mean, const double *variance)
{
    double n = (double)h->length, between, within = 0;

    for (int64_t k = 0; k < h->all; k++)
        within += variance[k] / (double)h->all;
    between = em_variance_of(h->all, mean, em_mean_of(h->all, mean));
    return sqrt((n * between / within + n - 1) / n);
}

static double *mean_of(const em_diag *d, const em_halves *h, int s)
{
    return d->mean + s * h->all;
}

/* Subtracts the mean of each half of a series from it, and gathers the means of the halves of all
 * ranks. */
static void centre(em_diag *d, const em_halves *h, int s)
{
    em_lanes_centre(h, d->lanes[s], mean_of(d, h, s) + h->first);
    gather_halves(d, mean_of(d, h, s));
}

/* R-hat of a series that was centred. */
static double r_hat(em_diag *d, const em_halves *h, int s)
{
    double *variance = d->variance + s * h->all;

    em_lanes_squares(h, d->lanes[s], variance + h->first);
    for (int64_t k = 0; k < h->n; k++)
        variance[h->first + k] /= (double)(h->length - 1);
    gather_halves(d, variance);
    return r_hat_of(h, mean_of(d, h, s), variance);
}

/* Marks the draws that are at most `quantile`. */
static void mark_below(int64_t n, const double *draws, double quantile, double *marked)
{
    for (int64_t i = 0; i < n; i++)
        marked[i] = draws[i] <= quantile;
}

/* Removes the draws that are in neither half of their chain. */
static int64_t drop_middle(const em_diag *d, const em_halves *h, int64_t n, em_sorted *sorted)
{
    int64_t kept = 0;

    if (h->n_draw == 2 * h->length)
        return n;
    for (int64_t i = 0; i < n; i++)
        if (d->place[sorted[i].index] >= 0)
            sorted[kept++] = sorted[i];
    return kept;
}

static void scores(em_diag *d, const em_halves *h, int64_t n, em_sorted *sorted, double *z)
{
    const int64_t kept = drop_middle(d, h, n, sorted);

    if (!d->comm)
        em_normal_scores((em_among){0, kept}, kept, sorted, d->score, d->half, d->place, z);
    else if (!d->status)
        d->status = em_share_normal_scores(d->comm, kept, sorted, d->place, z);
}

static void quantiles(em_diag *d, int64_t n, int64_t n_probability, const double *probability,
                      double *out)
{
    for (int64_t i = 0; i < n_probability; i++)
        out[i] = d->comm ? NAN : em_sorted_quantile(n, d->sorted, probability[i]);
    if (d->comm && !d->status)
        d->status = em_share_quantiles(d->comm, n, d->sorted, n_probability, probability, out);
}

/* The series without centring: its means are added again. It is written to the memory of the sorted
 * draws. */
static const double *uncentred(em_diag *d, const em_halves *h, int s)
{
    double *x = (double *)d->sorted;

    for (int64_t k = 0; k < h->n / 2 * h->n_draw; k++) {
        const int64_t half = 2 * (k / h->n_draw) + (k % h->n_draw >= h->n_draw - h->length);
        x[k] = d->place[k] < 0 ? 0 : d->lanes[s][d->place[k]] + mean_of(d, h, s)[half];
    }
    return x;
}

/* Computes the ESS of series 0 ... n_series - 1, limited by that of the visits. */
static em_status sizes(em_diag *d, const em_halves *h, int n_series, double *size)
{
    const int64_t left_out = h->n_draw == 2 * h->length ? -1 : h->length;
    em_ess_series series = {.h = h, .comm = d->comm, .count = d->count, .n = n_series};

    for (int s = 0; s < n_series; s++) {
        series.lanes[s] = d->lanes[s];
        series.mean[s] = mean_of(d, h, s);
    }
    em_status status = em_ess_of(d->ess, &series, size);
    for (int s = 0; !status && d->visits && s < n_series; s++)
        bound_by_visits(d, left_out, uncentred(d, h, s), &size[s]);
    return status;
}

static void bulk_and_tail(em_diag *d, const em_halves *h, int64_t n, bool infinite,
                          em_diagnosis *out)
{
    const int n_series = infinite ? 1 : EM_ESS_SERIES;
    double *const quantile = out->quantile, size[EM_ESS_SERIES];

    em_sort(n, h->x, d->sorted, d->folded);
    quantiles(d, n, EM_DIAGNOSED_QUANTILES, diagnosed, quantile);
    const bool is_folded = isfinite(quantile[1]);
    if (is_folded) {
        em_fold(n, d->sorted, quantile[1], d->folded);
        scores(d, h, n, d->folded, d->lanes[FOLDED]);
        centre(d, h, FOLDED);
    }
    scores(d, h, n, d->sorted, d->lanes[SCORE]);
    em_lanes_fill(h, h->x, d->lanes[DRAWS]);
    mark_below(em_lanes_size(h), d->lanes[DRAWS], quantile[0], d->lanes[LOW]);
    mark_below(em_lanes_size(h), d->lanes[DRAWS], quantile[2], d->lanes[HIGH]);
    for (int s = 0; s < n_series; s++)
        centre(d, h, s);
    out->r_hat = larger(r_hat(d, h, SCORE), is_folded ? r_hat(d, h, FOLDED) : NAN);
    const em_status status = sizes(d, h, n_series, size);
    d->status = d->status ? d->status : status;
    out->ess_bulk = size[SCORE];
    if (!infinite)
        out->ess_tail = lesser(size[LOW], size[HIGH]);
}

static bool any_nan(int64_t n, const double *x)
{
    for (int64_t i = 0; i < n; i++)
        if (isnan(x[i]))
            return true;
    return false;
}

/* Properties of draws that need no sorting. */
typedef struct value_range {
    double least, most; /* but for NaN */
    bool nan;
} value_range;

static value_range range_of(const em_diag *d, int64_t n, const double *x)
{
    double least = INFINITY, most = -INFINITY;
    bool nan = false;

    for (int64_t i = 0; i < n; i++) {
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
        nan |= isnan(x[i]);
    }
    if (d->comm) {
        double all[] = {-least, most, nan};
        em_subcommunicator_maximum(d->comm, 3, all);
        return (value_range){-all[0], all[1], all[2] > 0};
    }
    return (value_range){least, most, nan};
}

static em_status converge(em_diag *d, const em_halves *h, em_diagnosis *out)
{
    const int64_t n = h->n / 2 * h->n_draw;
    const value_range r = range_of(d, n, h->x);

    *out = (em_diagnosis){
        NAN, NAN, NAN, NAN, NAN, NAN, {NAN, NAN, NAN}, !r.nan && !(r.least < r.most)};
    if (h->n_draw < 2 || r.nan || out->constant) /* of equal ones all is 0 / 0 */
        return EM_OK;
    em_status status = reserve(d, h, n);
    if (d->comm)
        status = em_share_agree(d->comm, status);
    if (status)
        return status;
    d->status = EM_OK;
    bulk_and_tail(d, h, n, isinf(r.least) || isinf(r.most), out);
    return d->status;
}

em_status em_diagnose_together(em_diag *diag, const em_subcommunicator *comm, int64_t n_chain,
                               int64_t n_draw, const double *draws, em_diagnosis *out)
{
    const int64_t size = em_subcommunicator_size(comm), member = em_subcommunicator_member(comm);
    const int64_t first = em_partition_first(n_chain, size, member);

    em_release(&diag->count);
    em_status status = em_share_agree(comm, em_allocate(size, sizeof *diag->count, &diag->count));
    if (status)
        return status;
    for (int64_t m = 0; m < size; m++)
        diag->count[m] =
            em_partition_first(n_chain, size, m + 1) - em_partition_first(n_chain, size, m);
    diag->comm = comm;
    status = converge(
        diag,
        &(em_halves){2 * diag->count[member], n_draw / 2, n_draw, draws, 2 * first, 2 * n_chain},
        out);
    diag->comm = NULL;
    return status;
}

/* Adds mean, sd and mcse_mean to a diagnosis. */
static em_status add_moments(em_diag *d, const em_halves *h, em_diagnosis *out)
{
    const int64_t n = h->n / 2 * h->n_draw;
    double size = NAN;

    if (n < 1)
        return EM_OK;
    out->mean = em_mean_of(n, h->x);
    out->sd = sqrt(em_variance_of(n, h->x, out->mean));
    if (!isfinite(out->sd) || em_all_equal(n, h->x))
        return EM_OK;
    if (h->length >= 3) {
        em_status status = reserve(d, h, n);
        if (status)
            return status;
        em_lanes_fill(h, h->x, d->lanes[DRAWS]);
        centre(d, h, DRAWS);
        status = em_ess_of(
            d->ess,
            &(em_ess_series){
                .h = h, .n = 1, .lanes = {d->lanes[DRAWS]}, .mean = {mean_of(d, h, DRAWS)}},
            &size);
        if (status)
            return status;
    }
    bound_by_visits(d, -1, h->x, &size);
    out->mcse_mean = out->sd / sqrt(size);
    return EM_OK;
}

/* Diagnoses a number, with or without its moments. What is known of it is not computed again. */
static em_status diagnose(em_diag *d, const em_halves *h, bool moments, em_diagnosis *out)
{
    const int64_t n = h->n / 2 * h->n_draw;
    em_diagnoses *known = n < LEAST_KEPT ? NULL : d->known;
    const em_hash hash = known ? em_hash_of(h->x, (size_t)n * sizeof *h->x) : (em_hash){0};
    const em_diagnosis *kept = known ? em_diagnoses_find(known, hash) : NULL;
    em_status status = EM_OK;

    if (kept)
        *out = *kept;
    else
        status = converge(d, h, out);
    const bool adds = moments && isnan(out->mean);
    if (!status && adds)
        status = add_moments(d, h, out);
    return status || !known || (kept && !adds) ? status : em_diagnoses_put(known, hash, out);
}

em_status em_diagnose_convergence(em_diag *diag, int64_t n_chain, int64_t n_draw,
                                  const double *draws, em_diagnosis *out)
{
    const em_halves h = {2 * n_chain, n_draw / 2, n_draw, draws, 0, 2 * n_chain};

    return diagnose(diag, &h, false, out);
}

em_status em_diagnose(em_diag *diag, int64_t n_chain, int64_t n_draw, const double *draws,
                      em_diagnosis *out)
{
    const em_halves h = {2 * n_chain, n_draw / 2, n_draw, draws, 0, 2 * n_chain};

    return diagnose(diag, &h, true, out);
}

double em_diagnosed_quantile(const em_diagnosis *diagnosis, double probability)
{
    for (int i = 0; i < EM_DIAGNOSED_QUANTILES; i++)
        if (probability == diagnosed[i])
            return diagnosis->quantile[i];
    return NAN;
}

em_status em_quantiles(em_diag *diag, int64_t n, const double *draws, int64_t n_probability,
                       const double *probability, double *out)
{
    const bool undefined = n < 1 || any_nan(n, draws);
    const bool equal = !undefined && em_all_equal(n, draws);

    if (!undefined && !equal) {
        em_status status = reserve_sorted(diag, n);
        if (status)
            return status;
        em_sort(n, draws, diag->sorted, diag->folded);
    }
    for (int64_t i = 0; i < n_probability; i++)
        out[i] = undefined ? NAN
                 : equal   ? draws[0]
                           : em_sorted_quantile(n, diag->sorted, probability[i]);
    return EM_OK;
}

enum { COUNT, LAST, MEAN, SQUARES, CHANGES };

void em_ebfmi_add(double *state, double energy)
{
    const double change = state[COUNT] > 0 ? energy - state[LAST] : 0;
    const double deviation = energy - state[MEAN];

    state[COUNT]++;
    state[LAST] = energy;
    state[MEAN] += deviation / state[COUNT];
    state[SQUARES] += deviation * (energy - state[MEAN]);
    state[CHANGES] += change * change;
}

double em_ebfmi_of(const double *state)
{
    return state[COUNT] < 2 ? NAN : state[CHANGES] / state[SQUARES];
}

double em_ebfmi(int64_t n_draw, const double *energy)
{
    double state[EM_EBFMI_STATE] = {0};

    for (int64_t i = 0; i < n_draw; i++)
        em_ebfmi_add(state, energy[i]);
    return em_ebfmi_of(state);
}

enum { STILL_COUNT, STILL_LAST, STILL_NOW, STILL_LONGEST };

void em_still_add(double *state, double log_density)
{
    const bool moved = state[STILL_COUNT] == 0 || log_density != state[STILL_LAST];

    state[STILL_COUNT]++;
    state[STILL_LAST] = log_density;
    state[STILL_NOW] = moved ? 0 : state[STILL_NOW] + 1;
    state[STILL_LONGEST] = fmax(state[STILL_LONGEST], state[STILL_NOW]);
}

double em_still_longest(const double *state)
{
    return state[STILL_LONGEST];
}

/* n (1 - a)^longest: how often so many rejections in a row are expected, if each is by chance and
 * all positions are alike. In a narrow tail a sound chain is rejected more often, and a longer
 * chain meets a longer series. Its share of a mean falls with the length, the Monte Carlo error
 * only with the square root. So the least series grows with the square root, and stays below that
 * error. */
bool em_still_is_stuck(double longest, double length, double n_draw, double acceptance)
{
    const double rejection = 1 - fmin(fmax(acceptance, 0), 1);
    const double least = EM_STILL_DRAWS * sqrt(fmax(length, 1000) / 1000);

    return longest >= EM_STILL_DRAWS &&
           (longest == length - 1 || (longest >= least && n_draw * pow(rejection, longest) < 1e-6));
}
