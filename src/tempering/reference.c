#include "tempering/reference.h"

#include "base/memory.h"
#include "emass/model/prior.h"
#include "math/linalg.h"
#include "math/rng.h"
#include "model/model.h"

#include <math.h>
#include <string.h>

/* The prior of a model, or a normal distribution. The covariance of the latter is L L^T, or that of
 * a mass of low rank. */
typedef struct normal_law {
    em_reference base;
    em_model *model; /* NULL: a normal law */
    em_reference_form form;
    em_structure structure; /* that of the form */
    int64_t dim;
    double *mean;        /* [dim]; of the prior not used */
    double *lower;       /* L: [dim], or [dim][dim]; or the numbers of a mass of low rank */
    em_mass *covariance; /* W, of low rank; else NULL */
    double *z;           /* [stride] work space */
    double constant;
    const em_noncentring *map; /* from the coordinates of positions; NULL: the identity */
    double *x;                 /* [stride] a position in the coordinates of the distribution */
    /* the functions of the distribution in its own coordinates */
    em_status (*evaluate)(em_reference *reference, int64_t chain, const double *theta,
                          double *log_density, double *gradient);
    em_status (*draw)(em_reference *reference, const em_draw *draw, double *theta);
} normal_law;

em_reference_form em_reference_form_of(const em_reference *base)
{
    return ((const normal_law *)base)->form;
}

static em_mass_form mass_form_of(const em_reference_form *form)
{
    return (em_mass_form){.ops = &em_mass_low_rank, .dim = form->dim, .most_rank = form->most_rank};
}

/* The number of doubles of L, or of the mass. */
static int64_t size_of(const em_reference_form *form)
{
    const em_mass_form mass = mass_form_of(form);

    return form->most_rank > 0 ? mass.ops->size(&mass) : em_mass_size(form->structure, form->dim);
}

int64_t em_reference_size(const em_reference_form *form)
{
    return form->dim + size_of(form);
}

/* Evaluates a normal: z = L^-1 (theta - mean), gradient = -L^-T z. */
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

/* Evaluates a normal of low rank: gradient = -W^-1 (theta - mean). */
static em_status evaluate_low_rank(em_reference *base, int64_t chain, const double *theta,
                                   double *log_density, double *gradient)
{
    normal_law *law = (normal_law *)base;
    const em_mass *const mass = law->covariance;
    double square = 0;

    (void)chain;
    for (int64_t i = 0; i < law->dim; i++)
        law->z[i] = law->mean[i] - theta[i];
    em_mass_apply(&mass, EM_MAP_SOLVE, 1, law->z, gradient);
    for (int64_t i = 0; i < law->dim; i++)
        square -= law->z[i] * gradient[i];
    *log_density = law->constant + square / 2;
    return EM_OK;
}

/* Draws from a normal of low rank: theta = mean + W^1/2 z. */
static em_status draw_low_rank(em_reference *base, const em_draw *draw, double *theta)
{
    normal_law *law = (normal_law *)base;
    const em_mass *const mass = law->covariance;
    const em_stream stream = {draw->seed, (uint64_t)draw->chain, (uint64_t)draw->iteration,
                              EM_RNG_REFERENCE};

    em_normals(&stream, law->dim, law->z);
    em_mass_apply(&mass, EM_MAP_UNWHITEN, 1, law->z, theta);
    for (int64_t i = 0; i < law->dim; i++)
        theta[i] += law->mean[i];
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

/* Evaluates a distribution of the model's parameters at a position in other coordinates. */
static em_status evaluate_transformed(em_reference *base, int64_t chain, const double *z,
                                      double *log_density, double *gradient)
{
    normal_law *law = (normal_law *)base;

    memcpy(law->x, z, (size_t)em_stride(law->dim) * sizeof *z);
    const double log_jacobian = em_noncentring_to_model(law->map, law->x, law->map->at);
    const em_status status = law->evaluate(base, chain, law->x, log_density, gradient);
    em_noncentring_pull(law->map, z, law->map->at, gradient);
    *log_density += log_jacobian;
    return status;
}

static em_status draw_transformed(em_reference *base, const em_draw *draw, double *theta)
{
    normal_law *law = (normal_law *)base;
    const em_status status = law->draw(base, draw, theta);

    em_noncentring_from_model(law->map, theta, NULL);
    return status;
}

void em_reference_transform(em_reference *base, const em_noncentring *map)
{
    normal_law *law = (normal_law *)base;

    law->map = map;
    law->evaluate = base->evaluate;
    law->draw = base->draw;
    base->evaluate = evaluate_transformed;
    base->draw = draw_transformed;
}

void em_reference_mean(const em_reference *base, double *out)
{
    const normal_law *law = (const normal_law *)base;

    memcpy(out, law->mean, (size_t)law->dim * sizeof *out);
    if (law->map)
        em_noncentring_from_model(law->map, out, NULL);
}

static em_status create_form(const em_reference_form *form, normal_law **out)
{
    em_status status = em_allocate(1, sizeof **out, out);
    normal_law *law = *out;

    if (status)
        return status;
    law->form = *form;
    law->structure = form->structure;
    law->dim = form->dim;
    law->base.evaluate = form->most_rank > 0 ? evaluate_low_rank : evaluate_normal;
    law->base.draw = form->most_rank > 0 ? draw_low_rank : draw_normal;
    return em_own_all(&law->base.memory, EM_ARRAY(law->mean, form->dim),
                      EM_ARRAY(law->lower, size_of(form)), EM_ARRAY(law->z, em_stride(form->dim)),
                      EM_ARRAY(law->x, em_stride(form->dim)));
}

static em_status create(em_structure structure, int64_t dim, normal_law **out)
{
    return create_form(&(em_reference_form){.structure = structure, .dim = dim}, out);
}

/* Computes the derived members and, if that succeeds, returns the reference. */
static em_status complete(em_status status, normal_law *law, em_reference **out)
{
    const double log_2_pi = 1.8378770664093454836;

    *out = law ? &law->base : NULL;
    if (!status && law->form.most_rank > 0) {
        const em_mass_form form = mass_form_of(&law->form);
        status = em_mass_of(&form, law->lower, &law->covariance);
    }
    if (status) {
        em_reference_destroy(out);
        return status;
    }
    law->constant = -0.5 * log_2_pi * (double)law->dim;
    if (law->covariance)
        law->constant -= law->covariance->ops->log_det(law->covariance) / 2;
    for (int64_t i = 0; !law->covariance && i < law->dim; i++)
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

em_status em_reference_of_low_rank(const em_mass_form *form, const double *mean,
                                   const double *number, double inflate, em_reference **out)
{
    const em_reference_form own = {
        .structure = EM_MASS_DIAG, .dim = form->dim, .most_rank = form->most_rank};
    normal_law *law;
    em_status status = create_form(&own, &law);

    for (int64_t i = 0; !status && i < size_of(&own); i++)
        law->lower[i] = i < form->dim ? inflate * number[i] : number[i];
    for (int64_t i = 0; !status && i < form->dim; i++)
        law->mean[i] = mean[i];
    return complete(status, law, out);
}

em_status em_reference_prior(em_model *model, uint64_t seed, const em_noncentring *map,
                             em_reference **out)
{
    enum { DRAWS = 256 };
    normal_law *law;
    EM_SCOPED double *theta = NULL;
    em_status status = create(EM_MASS_DIAG, model->dim, &law);

    status = status ? status : em_allocate(em_stride(model->dim), sizeof *theta, &theta);
    for (int64_t k = 0; !status && k < DRAWS; k++) { /* mean and sum of squares, by Welford */
        const em_draw draw = {seed, 0, k, EM_DRAW_PRIOR};
        status = model->ops->prior->draw(model, &draw, theta);
        em_noncentring_from_model(map, theta, NULL);
        for (int64_t i = 0; !status && i < model->dim; i++) {
            const double before = theta[i] - law->mean[i];
            law->mean[i] += before / (double)(k + 1);
            law->lower[i] += before * (theta[i] - law->mean[i]);
        }
    }
    for (int64_t i = 0; !status && i < model->dim; i++)
        law->lower[i] = fmax(sqrt(law->lower[i] / (DRAWS - 1)), 1e-12);
    status = complete(status, law, out);
    if (!status) {
        law->model = model;
        law->base.evaluate = evaluate_prior;
        law->base.draw = draw_from_prior;
        em_reference_transform(*out, map);
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

/* Evaluates a mixture: log r = log sum of weight r_k. The gradient is the mean of those of the
 * components, weighted by their shares of the sum. */
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
    status = em_own_all(&law->base.memory, EM_ARRAY(law->part, n), EM_ARRAY(law->log_weight, n),
                        EM_ARRAY(law->term, n), EM_ARRAY(law->gradient, n * em_stride(dim)));
    if (!status) {
        memcpy(law->part, part, (size_t)n * sizeof *part);
        memcpy(law->log_weight, log_weight, (size_t)n * sizeof *log_weight);
    } else
        em_reference_destroy(out);
    return status;
}

/* ---------------------------------------------------------------- both */

void em_reference_destroy(em_reference **out)
{
    if (*out && (*out)->evaluate != evaluate_mixture)
        em_mass_destroy(&((normal_law *)*out)->covariance);
    em_release_owner(out);
}

static double variance_of(const normal_law *law, int64_t i)
{
    const int64_t n = law->dim, rank = law->form.most_rank;
    const double *row = law->lower + i * n, scale = law->lower[i];
    const double *value = law->lower + n, *direction = value + rank + i;
    double sum = 0;

    for (int64_t j = 0; law->structure == EM_MASS_DENSE && j <= i; j++)
        sum += row[j] * row[j];
    if (law->structure == EM_MASS_DENSE)
        return sum;
    for (int64_t k = 0; k < rank; k++)
        sum += (value[k] - 1) * direction[k * n] * direction[k * n];
    return scale * scale * (1 + sum);
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
    for (int64_t i = 0; i < n; i++)
        out[structure == EM_MASS_DENSE ? i * n + i : i] = variance_of(law, i);
}

em_low_rank_term em_reference_term(const em_reference *base, double weight)
{
    const normal_law *law = (const normal_law *)base;

    return (em_low_rank_term){weight, law->dim, law->form.most_rank, law->lower};
}

void em_reference_write(const em_reference *base, double *number)
{
    const normal_law *law = (const normal_law *)base;

    memcpy(number, law->mean, (size_t)law->dim * sizeof *number);
    memcpy(number + law->dim, law->lower, (size_t)size_of(&law->form) * sizeof *number);
}

em_status em_reference_read(const em_reference_form *form, const double *number, em_reference **out)
{
    normal_law *law;
    em_status status = create_form(form, &law);

    if (!status) {
        memcpy(law->mean, number, (size_t)form->dim * sizeof *number);
        memcpy(law->lower, number + form->dim, (size_t)size_of(form) * sizeof *number);
    }
    return complete(status, law, out);
}
