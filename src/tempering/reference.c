#include "tempering/reference.h"

#include "base/memory.h"
#include "emass/model/prior.h"
#include "math/linalg.h"
#include "math/rng.h"
#include "model/model.h"

#include <math.h>
#include <string.h>

/* A normal law with covariance L L^T, or the prior of a model. */
typedef struct normal_law {
    em_reference base;
    em_model *model; /* NULL: a normal law */
    em_structure structure;
    int64_t dim;
    double *mean;  /* [dim]; of the prior not used */
    double *lower; /* L: [dim], or [dim][dim] */
    double *z;     /* [stride] work space */
    double constant;
} normal_law;

em_structure em_reference_structure(const em_reference *base)
{
    return ((const normal_law *)base)->structure;
}

int64_t em_reference_size(em_structure structure, int64_t dim)
{
    return dim + em_mass_size(structure, dim);
}

/* z = L^-1 (theta - mean), gradient = -L^-T z. */
static em_status evaluate_normal(em_reference *base, int64_t chain, const double *theta,
                                 double *log_density, double *gradient)
{
    normal_law *law = (normal_law *)base;
    const int64_t n = law->dim;
    double square = 0;

    (void)chain;
    for (int64_t i = 0; i < n; i++) {
        double sum = theta[i] - law->mean[i];
        const double *row = law->lower + i * n;
        for (int64_t j = 0; law->structure == EM_MASS_DENSE && j < i; j++)
            sum -= row[j] * law->z[j];
        law->z[i] = sum / (law->structure == EM_MASS_DENSE ? row[i] : law->lower[i]);
        square += law->z[i] * law->z[i];
    }
    *log_density = law->constant - square / 2;
    for (int64_t i = n; i-- > 0;) {
        double sum = -law->z[i];
        for (int64_t j = i + 1; law->structure == EM_MASS_DENSE && j < n; j++)
            sum -= law->lower[j * n + i] * gradient[j];
        gradient[i] =
            sum / (law->structure == EM_MASS_DENSE ? law->lower[i * n + i] : law->lower[i]);
    }
    return EM_OK;
}

static em_status draw_normal(em_reference *base, const em_draw *draw, double *theta)
{
    normal_law *law = (normal_law *)base;
    const em_stream stream = {draw->seed, (uint64_t)draw->chain, (uint64_t)draw->iteration,
                              EM_RNG_REFERENCE};
    const int64_t n = law->dim;

    em_normals(&stream, n, law->z);
    for (int64_t i = 0; i < n; i++) {
        double sum = law->structure == EM_MASS_DENSE ? 0 : law->lower[i] * law->z[i];
        for (int64_t j = 0; law->structure == EM_MASS_DENSE && j <= i; j++)
            sum += law->lower[i * n + j] * law->z[j];
        theta[i] = law->mean[i] + sum;
    }
    return EM_OK;
}

static em_status evaluate_prior(em_reference *base, int64_t chain, const double *theta,
                                double *log_density, double *gradient)
{
    normal_law *law = (normal_law *)base;
    const int64_t stride = em_stride(law->dim);
    const em_query query = {.n_chain = 1,
                            .stride = stride,
                            .chain = &chain,
                            .theta = theta,
                            .log_density = log_density,
                            .gradient = gradient};

    *log_density = 0;
    memset(gradient, 0, (size_t)stride * sizeof *gradient);
    return em_model_add_prior(law->model, &query);
}

static em_status draw_from_prior(em_reference *base, const em_draw *draw, double *theta)
{
    normal_law *law = (normal_law *)base;

    return law->model->ops->prior->draw(law->model, draw, theta);
}

static em_status create(em_structure structure, int64_t dim, normal_law **out)
{
    normal_law *law = NULL;
    em_status status = em_allocate(1, sizeof *law, &law);

    *out = law;
    if (status)
        return status;
    law->structure = structure;
    law->dim = dim;
    law->base.evaluate = evaluate_normal;
    law->base.draw = draw_normal;
    status = em_allocate(dim, sizeof(double), &law->mean);
    if (!status)
        status = em_allocate(em_mass_size(structure, dim), sizeof(double), &law->lower);
    return status ? status : em_allocate(em_stride(dim), sizeof(double), &law->z);
}

/* The constant of the density, and the law itself where all went well. */
static em_status complete(em_status status, normal_law *law, em_reference **out)
{
    const double log_2_pi = 1.8378770664093454836;

    *out = law ? &law->base : NULL;
    if (status) {
        em_reference_destroy(out);
        return status;
    }
    law->constant = -0.5 * log_2_pi * (double)law->dim;
    for (int64_t i = 0; i < law->dim; i++)
        law->constant -=
            log(law->structure == EM_MASS_DENSE ? law->lower[i * law->dim + i] : law->lower[i]);
    return isfinite(law->constant) ? EM_OK : (em_reference_destroy(out), EM_NONFINITE);
}

em_status em_reference_normal(int64_t dim, const double *scale, em_reference **out)
{
    normal_law *law;
    em_status status = create(EM_MASS_DIAG, dim, &law);

    if (!status)
        memcpy(law->lower, scale, (size_t)dim * sizeof *scale);
    return complete(status, law, out);
}

em_status em_reference_of_covariance(em_structure structure, int64_t dim, const double *mean,
                                     const double *covariance, double inflate, em_reference **out)
{
    const int64_t size = em_mass_size(structure, dim);
    normal_law *law;
    em_status status = create(structure, dim, &law);

    for (int64_t i = 0; !status && i < dim; i++)
        law->mean[i] = mean[i];
    for (int64_t i = 0; !status && i < size; i++)
        law->lower[i] = structure == EM_MASS_DENSE ? inflate * inflate * covariance[i]
                                                   : inflate * sqrt(covariance[i]);
    if (!status && structure == EM_MASS_DENSE)
        status = em_cholesky(dim, law->lower, dim);
    return complete(status, law, out);
}

em_status em_reference_prior(em_model *model, uint64_t seed, em_reference **out)
{
    enum { DRAWS = 256 };
    normal_law *law;
    double *theta = NULL;
    em_status status = create(EM_MASS_DIAG, model->dim, &law);

    if (!status)
        status = em_allocate(em_stride(model->dim), sizeof *theta, &theta);
    for (int64_t k = 0; !status && k < DRAWS; k++) { /* mean and sum of squares, by Welford */
        const em_draw draw = {seed, 0, k, EM_DRAW_PRIOR};
        status = model->ops->prior->draw(model, &draw, theta);
        for (int64_t i = 0; !status && i < model->dim; i++) {
            const double before = theta[i] - law->mean[i];
            law->mean[i] += before / (double)(k + 1);
            law->lower[i] += before * (theta[i] - law->mean[i]);
        }
    }
    for (int64_t i = 0; !status && i < model->dim; i++)
        law->lower[i] = fmax(sqrt(law->lower[i] / (DRAWS - 1)), 1e-12);
    em_release(&theta);
    status = complete(status, law, out);
    if (!status) {
        law->model = model;
        law->base.evaluate = evaluate_prior;
        law->base.draw = draw_from_prior;
    }
    return status;
}

/* ---------------------------------------------------------------- mixtures */

typedef struct mixture_law {
    em_reference base;
    int64_t dim, n;
    em_reference **part;
    double *log_weight, *term; /* [n] */
    double *gradient;          /* [n][stride] of the parts */
} mixture_law;

/* log r = log sum of weight r_k; its gradient is the mean of theirs by the shares of the sum. */
static em_status evaluate_mixture(em_reference *base, int64_t chain, const double *theta,
                                  double *log_density, double *gradient)
{
    const mixture_law *law = (const mixture_law *)base;
    const int64_t stride = em_stride(law->dim);
    double most = -INFINITY, sum = 0;
    em_status status = EM_OK;

    if (law->n == 1)
        return law->part[0]->evaluate(law->part[0], chain, theta, log_density, gradient);
    for (int64_t k = 0; !status && k < law->n; k++) {
        status = law->part[k]->evaluate(law->part[k], chain, theta, &law->term[k],
                                        law->gradient + k * stride);
        law->term[k] += law->log_weight[k];
        most = fmax(most, law->term[k]);
    }
    for (int64_t k = 0; k < law->n; k++)
        sum += exp(law->term[k] - most);
    *log_density = most + log(sum);
    memset(gradient, 0, (size_t)stride * sizeof *gradient);
    for (int64_t k = 0; k < law->n; k++) {
        const double share = exp(law->term[k] - *log_density);
        for (int64_t i = 0; share > 0 && i < law->dim; i++)
            gradient[i] += share * law->gradient[k * stride + i];
    }
    return status;
}

/* The choice of the component has its own random numbers. */
static em_status draw_mixture(em_reference *base, const em_draw *draw, double *theta)
{
    const mixture_law *law = (const mixture_law *)base;
    const em_stream stream = {draw->seed, (uint64_t)draw->chain, (uint64_t)draw->iteration,
                              EM_RNG_REFERENCE_PART};
    double left = em_uniform(&stream, 0);
    int64_t k = 0;

    while (k < law->n - 1 && (left -= exp(law->log_weight[k])) >= 0)
        k++;
    return law->part[k]->draw(law->part[k], draw, theta);
}

em_status em_reference_mixture(int64_t dim, int64_t n, em_reference *const *part,
                               const double *log_weight, em_reference **out)
{
    mixture_law *law = NULL;
    em_status status = em_allocate(1, sizeof *law, &law);

    *out = law ? &law->base : NULL;
    if (status)
        return status;
    law->base.evaluate = evaluate_mixture;
    law->base.draw = draw_mixture;
    law->dim = dim;
    law->n = n;
    status = em_allocate_all(EM_ARRAY(law->part, n), EM_ARRAY(law->log_weight, n),
                             EM_ARRAY(law->term, n), EM_ARRAY(law->gradient, n * em_stride(dim)));
    if (status) {
        em_reference_destroy(out);
        return status;
    }
    memcpy(law->part, part, (size_t)n * sizeof *part);
    memcpy(law->log_weight, log_weight, (size_t)n * sizeof *log_weight);
    return EM_OK;
}

/* ---------------------------------------------------------------- both */

void em_reference_destroy(em_reference **out)
{
    normal_law *law = (normal_law *)*out;

    if (law && law->base.evaluate == evaluate_mixture) {
        mixture_law *mixture = (mixture_law *)*out;
        em_release_all(&mixture->part, &mixture->log_weight, &mixture->term, &mixture->gradient);
    } else if (law) {
        em_release(&law->mean);
        em_release(&law->lower);
        em_release(&law->z);
    }
    em_release(out);
}

void em_reference_covariance(const em_reference *base, em_structure structure, double *out)
{
    const normal_law *law = (const normal_law *)base;
    const int64_t n = law->dim;

    memset(out, 0, (size_t)em_mass_size(structure, n) * sizeof *out);
    if (law->structure == EM_MASS_DENSE && structure == EM_MASS_DENSE) {
        em_gram(n, n, law->lower, out);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        double sum = law->structure == EM_MASS_DENSE ? 0 : law->lower[i] * law->lower[i];
        for (int64_t j = 0; law->structure == EM_MASS_DENSE && j <= i; j++)
            sum += law->lower[i * n + j] * law->lower[i * n + j];
        out[structure == EM_MASS_DENSE ? i * n + i : i] = sum;
    }
}

void em_reference_write(const em_reference *base, double *number)
{
    const normal_law *law = (const normal_law *)base;

    memcpy(number, law->mean, (size_t)law->dim * sizeof *number);
    memcpy(number + law->dim, law->lower,
           (size_t)em_mass_size(law->structure, law->dim) * sizeof *number);
}

em_status em_reference_read(em_structure structure, int64_t dim, const double *number,
                            em_reference **out)
{
    normal_law *law;
    em_status status = create(structure, dim, &law);

    if (!status) {
        memcpy(law->mean, number, (size_t)dim * sizeof *number);
        memcpy(law->lower, number + dim, (size_t)em_mass_size(structure, dim) * sizeof *number);
    }
    return complete(status, law, out);
}
