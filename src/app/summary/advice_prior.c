#include "app/summary/advice.h"

#include "base/memory.h"

#include <math.h>

static const double far = 3, unlike = 2;

/* The priors and posterior means of the coefficients. All [n]. */
typedef struct prior_record {
    int64_t n;
    double *location, *scale;
    double *df;     /* infinite: normal; finite: Student's t; NaN: another family, not advised on */
    double *centre; /* of the predictors, where the intercept's prior is; NULL: 0 */
    double *mean;   /* of the posterior */
    const em_reader_variable *beta;
} prior_record;

/* Reads an array of constant_data; the pointer stays NULL if there is none. */
static em_status read_array(em_reader *reader, const char *name, int64_t *n, double **out)
{
    return em_reader_has(reader, "constant_data", name)
               ? em_read_array(em_reader_path(reader), "constant_data", name, n, out)
               : EM_OK;
}

static em_status read_means(em_reader *reader, int64_t at, prior_record *f)
{
    const int64_t n_draw = em_reader_n_chain(reader) * em_reader_n_draw(reader);
    EM_SCOPED double *draws = NULL;
    em_status status = em_allocate_doubles(n_draw, &draws);

    status = status ? status : em_allocate(f->n, sizeof *f->mean, &f->mean);
    for (int64_t j = 0; !status && j < f->n; j++) {
        status = em_reader_elements(reader, at, j, 1, draws);
        for (int64_t i = 0; !status && i < n_draw; i++)
            f->mean[j] += draws[i] / (double)n_draw;
    }
    return status;
}

/* Reads the arrays, if each has one number per coefficient; otherwise f->mean stays NULL. */
static em_status read_found(em_reader *reader, prior_record *f)
{
    const int64_t at = em_reader_find(reader, "beta");
    const em_reader_variable *beta = at < 0 ? NULL : em_reader_variable_at(reader, at);
    int64_t n[4] = {0};

    if (!beta || em_reader_n_draw(reader) < 1)
        return EM_OK;
    em_status status = read_array(reader, "prior_location", &n[0], &f->location);
    status = status ? status : read_array(reader, "prior_scale", &n[1], &f->scale);
    status = status ? status : read_array(reader, "prior_df", &n[2], &f->df);
    n[3] = beta->size;
    status = status ? status : read_array(reader, "predictor_mean", &n[3], &f->centre);
    f->n = beta->size;
    f->beta = beta;
    for (int k = 0; k < 4; k++)
        if (n[k] != f->n)
            return status;
    return status ? status : read_means(reader, at, f);
}

/* The distance of a coefficient from the centre of its prior, in standard deviations of the prior.
 * If the prior of the intercept is for the mean of the predictors, the intercept there is used. */
static double distance(const prior_record *f, int64_t j, double *mean)
{
    *mean = f->mean[j];
    for (int64_t k = 1; j == 0 && f->centre && k < f->n; k++)
        *mean += f->centre[k] * f->mean[k];
    return (*mean - f->location[j]) / f->scale[j];
}

static void advise_on_distance(const prior_record *f, FILE *out)
{
    int64_t count = 0, worst = -1;
    double most = 0, mean;

    for (int64_t j = 0; j < f->n; j++) {
        const double z = fabs(distance(f, j, &mean));
        if (!isinf(f->df[j]) || !(z > far))
            continue;
        count++;
        if (z > most) {
            most = z;
            worst = j;
        }
    }
    if (count == 0)
        return;
    distance(f, worst, &mean);
    fprintf(out,
            "Prior far off: the posterior mean of %s%s is %.4g, %.3g standard deviations from the "
            "centre of its prior, normal(%.4g, %.4g)",
            em_reader_label(f->beta, worst),
            worst == 0 && f->centre ? " where predictors are at their means" : "", mean, most,
            f->location[worst], f->scale[worst]);
    if (count > 1)
        fprintf(out, "; %lld more are more than three standard deviations away",
                (long long)count - 1);
    fputs(". See whether the mean changes with a wider prior in model.prior. If it grows with the "
          "width of the prior, the data do not bound it, as where a predictor separates the "
          "labels. Without model.prior and prior_scale the priors are on the scale of the data.\n",
          out);
}

/* Minus the log density of the priors at the means; NaN if a family is not known. */
static double prior_energy(const prior_record *f)
{
    double sum = 0, mean;

    for (int64_t j = 0; j < f->n; j++) {
        const double z = distance(f, j, &mean), df = f->df[j];
        sum += isinf(df) ? z * z / 2 : (df + 1) / 2 * log1p(z * z / df);
    }
    return sum;
}

static double mean_of(int64_t n, const double *x)
{
    double sum = 0;

    for (int64_t i = 0; x && i < n; i++)
        sum += x[i] / (double)n;
    return x ? sum : NAN;
}

/* Advises on a fixed sigma. With it the log density is -(sum of squared residuals) / (2 sigma^2)
 * plus that of the priors. */
static em_status advise_on_sigma(em_reader *reader, double log_density, const prior_record *f,
                                 FILE *out)
{
    EM_SCOPED double *known = NULL;
    int64_t n = 0;
    em_status status = read_array(reader, "known_sigma", &n, &known);

    if (!status && n == 2) {
        const double ratio = sqrt(-2 * (log_density + prior_energy(f)) / known[1]);
        if (ratio > unlike || ratio < 1 / unlike)
            fprintf(
                out,
                "Residuals unlike sigma: their standard deviation is near %.3g, but sigma is fixed "
                "at %.4g, so intervals are %.2g times too %s: omit model.sigma to estimate it.\n",
                ratio * known[0], known[0], ratio > 1 ? ratio : 1 / ratio,
                ratio > 1 ? "narrow" : "wide");
    }
    return status;
}

em_status em_advise_on_priors(em_reader *reader, int64_t n_draw, const double *log_density,
                              FILE *out)
{
    prior_record f = {.n = 0};
    em_status status = read_found(reader, &f);

    if (!status && f.mean) {
        advise_on_distance(&f, out);
        status = advise_on_sigma(reader, mean_of(n_draw, log_density), &f, out);
    }
    em_release_all(&f.location, &f.scale, &f.df, &f.centre, &f.mean);
    return status;
}
