#include "adaptation/noncentring/proved_groups.h"

#include "adaptation/prior_proofs/without_prior.h"
#include "base/memory.h"
#include "math/finite.h"
#include "math/linalg.h"
#include "math/rng.h"

#include <math.h>
#include <string.h>

/* Members of higher levels come before those about which they are distributed, in at most as many
 * passes. */
enum { MOST_PASSES = 16 };

static bool is_member(const em_normal_prior *prior, int64_t i, int64_t k)
{
    return prior[i].precision > 0 && (int64_t)prior[i].scale == k;
}

/* Whether log scale k, or a location of one of its members, is a member of the group of l. */
static bool depends(int64_t dim, const em_normal_prior *prior, int64_t k, int64_t l)
{
    if (is_member(prior, k, l))
        return true;
    for (int64_t i = 0; i < dim; i++) {
        if (is_member(prior, i, k) && prior[i].second_degree != 0 &&
            is_member(prior, (int64_t)prior[i].second_scale, l))
            return true;
        for (int j = 0; is_member(prior, i, k) && j < EM_MOST_LOCATIONS; j++) {
            const int64_t at = (int64_t)prior[i].location[j];
            if (at < 0)
                break;
            if (is_member(prior, at, l))
                return true;
        }
    }
    return false;
}

int em_list_proved_scales(int64_t dim, const em_normal_prior *prior, int64_t *scale)
{
    int n = 0;

    for (int64_t i = 0; i < dim && n < EM_MOST_GROUPS; i++) {
        bool is_new = prior[i].precision > 0;
        for (int g = 0; g < n && is_new; g++)
            is_new = scale[g] != (int64_t)prior[i].scale;
        if (is_new)
            scale[n++] = (int64_t)prior[i].scale;
    }
    for (int pass = 0; pass < n; pass++)
        for (int g = 0; g < n; g++)
            for (int h = g + 1; h < n; h++)
                if (depends(dim, prior, scale[h], scale[g])) {
                    const int64_t first = scale[g];
                    scale[g] = scale[h];
                    scale[h] = first;
                }
    return n;
}

double em_list_proved_group(const em_group_search *s, const em_normal_prior *prior, int64_t k,
                            em_group_fit *out)
{
    uint32_t used = em_groups_under(s, k);
    double degree = 0;

    for (int64_t i = 0; i < s->dim; i++) {
        if (is_member(prior, i, k) && prior[i].second_degree != 0)
            used |= em_groups_under(s, (int64_t)prior[i].second_scale);
        for (int j = 0; is_member(prior, i, k) && j < EM_MOST_LOCATIONS; j++)
            if (prior[i].location[j] >= 0)
                used |= em_groups_under(s, (int64_t)prior[i].location[j]);
    }
    out->scale = k;
    out->n = 0;
    for (int64_t i = 0; i < s->dim; i++)
        if (is_member(prior, i, k) && em_may_join(s, out, used, i)) {
            out->child[out->n++] = i;
            degree = prior[i].degree;
        }
    return degree;
}

bool em_has_neck(const em_group_search *s, const em_normal_prior *prior, const em_group_fit *group)
{
    static const double wide = 0.3;
    const em_normal_prior *first = &prior[group->child[0]];

    return group->n > 0 && !em_is_factor(first->form) &&
           fabs(first->degree) * s->sd[group->scale] >= wide;
}

void em_write_priors(em_group_search *s, const em_normal_prior *prior, const em_group_fit *group)
{
    memset(s->is_location, 0, (size_t)s->dim * sizeof *s->is_location);
    for (int64_t c = 0; c < group->n; c++) {
        const em_normal_prior *own = &prior[group->child[c]];
        em_noncentring_row *child = &s->conditional[group->child[c]];
        *child =
            (em_noncentring_row){.level = 1,
                                 .scale = own->scale,
                                 .degree = own->degree,
                                 .origin = em_log_scale(own->form, s->mean[group->scale], NULL),
                                 .width = em_noncentring_width(own->degree, s->sd[group->scale]),
                                 .form = own->form};
        if (own->second_degree != 0) {
            child->second_scale = own->second_scale;
            child->second_degree = own->second_degree;
            child->second_origin = s->mean[(int64_t)own->second_scale];
            child->second_width =
                em_noncentring_width(own->second_degree, s->sd[(int64_t)own->second_scale]);
        }
        memcpy(child->location, own->location, sizeof own->location);
        memcpy(child->coefficient, own->coefficient, sizeof own->coefficient);
        for (int j = 0; j < EM_MOST_LOCATIONS && own->location[j] >= 0; j++)
            s->is_location[(int64_t)own->location[j]] =
                !(prior[(int64_t)own->location[j]].precision > 0);
    }
}

/* a F(x_k) + a' x_l at the means of draws. */
static double log_scale_of_mean(const em_group_search *s, const em_normal_prior *own)
{
    const double first =
        em_degree_of_prior(own) * em_log_scale(own->form, s->mean[(int64_t)own->scale], NULL);

    return own->second_degree == 0
               ? first
               : first + own->second_degree * s->mean[(int64_t)own->second_scale];
}

/* What is added to it at draw r. */
static double log_scale_of_draw(const em_group_search *s, const em_normal_prior *own, int64_t r)
{
    const int64_t k = (int64_t)own->scale;
    const double first =
        em_degree_of_prior(own) * (em_log_scale(own->form, s->mean[k] + s->x[k * s->n + r], NULL) -
                                   em_log_scale(own->form, s->mean[k], NULL));

    return own->second_degree == 0
               ? first
               : first + own->second_degree * s->x[(int64_t)own->second_scale * s->n + r];
}

/* Writes the derivative by x_i that data cause to s->residual. It is the difference of two numbers
 * that may be far larger, and 0 if it is within their errors: that of the precision is about 1e-9.
 * Therefore x is taken from the samples: s->x is rounded as the mean is, which a few draws with a
 * wide scale determine. */
static void set_data_derivative(em_group_search *s, const em_normal_prior *own, int64_t i)
{
    static const double error = 1e-8;
    const double *g = s->panel + i * s->n;
    const double unit = own->precision * exp(-2 * log_scale_of_mean(s, own));

    for (int64_t r = 0; r < s->n; r++) {
        const double *x = em_thinned_sample(s->samples, s->dim, s->n, r);
        const double of_draw = log_scale_of_draw(s, own, r), whole = g[r] * exp(-of_draw);
        s->residual[r] = whole + unit * exp(-2 * of_draw) * em_away_from_location(own, i, x);
        if (fabs(s->residual[r]) < error * fabs(whole))
            s->residual[r] = 0;
    }
}

/* Regressions on the draws in the map's coordinates, less their means. */
typedef struct coordinates {
    int64_t dim, n;
    double *z;       /* [dim][n] */
    double *inverse; /* [dim][dim] of the lower factor of their Gram matrix */
    double *product; /* [dim] of z and a variable */
} coordinates;

/* What regression on all coordinates but one tells of a variable. */
typedef struct projection {
    double *along; /* [dim] on the orthonormal basis of all */
    double of_one; /* coefficient of the one, over its standard deviation given the others */
} projection;

static em_status set_coordinates(em_group_search *s, coordinates *c)
{
    const int64_t dim = c->dim;
    em_status status = em_transform_draws(s, false);

    if (status)
        return status;
    memcpy(c->z, s->panel, (size_t)(dim * c->n) * sizeof *c->z);
    for (int64_t i = 0; i < dim; i++) {
        double mean;
        em_centre_column(c->n, c->z + i * c->n, &mean);
    }
    em_gram(dim, c->n, c->z, c->inverse);
    for (int64_t i = 0; i < dim; i++)
        c->inverse[i * dim + i] = s->sd[i] > 0 ? c->inverse[i * dim + i] * (1 + 1e-10) : 1;
    status = em_cholesky(dim, c->inverse, dim);
    status = status ? status : em_invert_lower(dim, c->inverse, dim);
    return status ? status : em_transform_draws(s, true);
}

/* Projects x [n] on all coordinates; i is the one that is left out by `rest_of_both`. */
static void project(const coordinates *c, int64_t i, const double *x, projection *out)
{
    double coefficient = 0, square = 0;

    for (int64_t j = 0; j < c->dim; j++)
        c->product[j] = em_dot(c->n, c->z + j * c->n, x);
    for (int64_t q = 0; q < c->dim; q++) {
        const double *row = c->inverse + q * c->dim;
        out->along[q] = em_dot(q + 1, row, c->product);
        coefficient += q >= i ? row[i] * out->along[q] : 0;
        square += q >= i ? row[i] * row[i] : 0;
    }
    out->of_one = coefficient / sqrt(square);
}

/* The product of what regression on all coordinates but one leaves of x and y. */
static double rest_of_both(const coordinates *c, const double *x, const projection *of_x,
                           const double *y, const projection *of_y)
{
    return em_dot(c->n, x, y) - em_dot(c->dim, of_x->along, of_y->along) +
           of_x->of_one * of_y->of_one;
}

/* a (F(x_k) - F(mean)), where x_k is its mean and `away`. */
static double factor_of_draw(const em_group_search *s, const em_normal_prior *own, double away)
{
    const double mean = s->mean[(int64_t)own->scale];

    return own->degree *
           (em_log_scale(own->form, mean + away, NULL) - em_log_scale(own->form, mean, NULL));
}

/* Writes e^(a x_k) x_i to s->column, less its mean, and turns the derivatives by x_i in s->residual
 * into those by this product. */
static double set_product(em_group_search *s, const em_normal_prior *own, int64_t i)
{
    const double *x = s->x + i * s->n;
    double mean;

    for (int64_t r = 0; r < s->n; r++) {
        const double scale = exp(factor_of_draw(s, own, s->x[(int64_t)own->scale * s->n + r]));
        s->column[r] = scale * (s->mean[i] + x[r]);
        s->residual[r] /= scale;
    }
    em_centre_column(s->n, s->column, &mean);
    return mean;
}

/* Sets the precision and the location of the data of member i. */
static void set_data(em_group_search *s, const coordinates *c, const em_normal_prior *own,
                     int64_t i, projection *of_x, projection *of_g)
{
    const double *x = s->x + i * s->n, *g = s->residual;
    const double unit = own->precision * exp(-2 * log_scale_of_mean(s, own));
    double mean, of_x_i = s->mean[i];

    set_data_derivative(s, own, i);
    if (em_is_factor(own->form)) {
        of_x_i = set_product(s, own, i);
        x = s->column;
    }
    em_centre_column(s->n, s->residual, &mean);
    project(c, i, x, of_x);
    project(c, i, g, of_g);
    const double square = rest_of_both(c, x, of_x, x, of_x);
    const double slope = rest_of_both(c, x, of_x, g, of_g) / square;
    const double left = rest_of_both(c, g, of_g, g, of_g) - slope * slope * square;
    const double error = sqrt(fmax(left, 0) / ((double)(s->n - s->dim) * square));
    if (!(square > 0) || !(-slope > EM_LEAST_OF_DATA * error))
        return;
    s->conditional[i].information = -slope / unit;
    s->conditional[i].centre = of_x_i - mean / slope;
}

/* The levels of the children: `highest`, and how many are taken together in each pass. Returns the
 * lowest. */
static double find_levels(const em_group_search *s, const em_group_fit *group, double *highest,
                          double *together)
{
    double lowest = INFINITY;

    *highest = 0;
    for (int64_t m = 0; m < group->n; m++) {
        *highest = fmax(*highest, s->map.row[group->child[m]].level);
        lowest = fmin(lowest, s->map.row[group->child[m]].level);
    }
    *together = ceil((*highest - lowest + 1) / MOST_PASSES);
    return lowest;
}

/* Gives the children in the map what data tell about them. */
static void set_data_of_map(em_group_search *s, const em_group_fit *group)
{
    for (int64_t m = 0; m < group->n; m++) {
        em_noncentring_row *child = &s->map.row[group->child[m]];
        child->information = s->conditional[group->child[m]].information;
        child->centre = s->conditional[group->child[m]].centre;
    }
    s->is_transformed = false;
}

/* A factor of which data tell nothing stays as it is. */
static void remove_unknown_factors(const em_group_search *s, em_group_fit *group)
{
    for (int64_t i = 0; i < s->dim; i++)
        if (em_is_factor(s->conditional[i].form) && s->conditional[i].information == 0)
            em_remove_child(group, i);
}

em_status em_add_data(em_group_search *s, const em_normal_prior *prior, em_group_fit *group)
{
    EM_SCOPED_BY(em_release_owned) em_owner memory = {NULL};
    coordinates c = {.dim = s->dim, .n = s->n};
    projection of_x = {.along = NULL}, of_g = {.along = NULL};
    const em_noncentring_row *map = s->map.row;
    double highest, together;
    const double lowest = find_levels(s, group, &highest, &together);
    em_status status = em_own_all(&memory, EM_ARRAY(c.z, s->dim * s->n),
                                  EM_ARRAY(c.inverse, s->dim * s->dim), EM_ARRAY(c.product, s->dim),
                                  EM_ARRAY(of_x.along, s->dim), EM_ARRAY(of_g.along, s->dim));

    for (; !status && highest >= lowest; highest -= together) {
        status = set_coordinates(s, &c);
        for (int64_t m = 0; !status && m < group->n; m++) {
            const int64_t i = group->child[m];
            if (map[i].level <= highest && map[i].level > highest - together)
                set_data(s, &c, &prior[i], i, &of_x, &of_g);
        }
        if (!status)
            set_data_of_map(s, group);
    }
    remove_unknown_factors(s, group);
    return status;
}

/* ---------------------------------------------------------------- few samples */

enum { LEAST_PROBES = 3 };

/* The children of a level are moved from some positions. */
typedef struct probes {
    int64_t dim, n;
    double *z, *of_z;         /* [n][dim] positions in the map's coordinates, and gradients there */
    double *moved, *gradient; /* [n][dim] after the step */
    double *theta;            /* [n][dim] the position after it in the model's coordinates */
    bool *is_moved;           /* [dim] */
} probes;

/* The precision of the prior of z_i. */
static double unit_of(const em_group_search *s, const em_normal_prior *own)
{
    return own->precision * exp(-2 * log_scale_of_mean(s, own));
}

/* Evaluates the gradients after a step of the children that are moved, which is small compared with
 * the standard deviation of their priors. */
static em_status probe(em_group_search *s, const em_gradient_function *gradient,
                       const em_normal_prior *prior, probes *p)
{
    static const double step = 1e-4;
    const em_noncentring *map = &s->map;
    const int64_t dim = p->dim;

    for (int64_t r = 0; r < p->n; r++) {
        const double *sample = em_thinned_sample(s->samples, dim, p->n, r);
        double *z = p->z + r * dim, *of_z = p->of_z + r * dim, *moved = p->moved + r * dim;
        const em_stream stream = {0, (uint64_t)r, 0, EM_RNG_PROOF};
        memcpy(z, sample, (size_t)dim * sizeof *z);
        memcpy(of_z, sample + dim, (size_t)dim * sizeof *z);
        em_noncentring_from_model(map, z, map->at);
        em_noncentring_pull(map, z, map->at, of_z);
        em_uniforms_within(&stream, dim, 1, moved);
        for (int64_t i = 0; i < dim; i++)
            moved[i] =
                z[i] +
                (p->is_moved[i] ? copysign(step / sqrt(unit_of(s, &prior[i])), moved[i]) : 0);
        memcpy(p->theta + r * dim, moved, (size_t)dim * sizeof *moved);
        em_noncentring_to_model(map, p->theta + r * dim, NULL);
    }
    const em_status status = gradient->evaluate(gradient->context, p->n, p->theta, p->gradient);
    for (int64_t r = 0; !status && r < p->n; r++) {
        double *theta = p->theta + r * dim;
        memcpy(theta, p->moved + r * dim, (size_t)dim * sizeof *theta);
        em_noncentring_to_model(map, theta, map->at);
        em_noncentring_pull(map, p->moved + r * dim, map->at, p->gradient + r * dim);
    }
    return status;
}

void em_add_probe(em_probed *data, double precision, double times_location)
{
    if (!isfinite(precision))
        return;
    data->n++;
    data->sum += precision;
    data->square += precision * precision;
    data->location += times_location;
}

void em_set_probed(const em_probed *data, em_noncentring_row *row)
{
    const double mean = data->sum / data->n;
    const double error = sqrt(fmax(data->square / data->n - mean * mean, 0) / data->n);

    if (data->n < LEAST_PROBES || !(mean > EM_LEAST_OF_DATA * error))
        return;
    row->information = mean;
    row->centre = data->location / data->sum;
}

/* Sets the precision and the location of the data of member i, in units of its prior. */
static void set_probed_data(em_group_search *s, const em_normal_prior *own, int64_t i,
                            const probes *p)
{
    const double unit = unit_of(s, own);
    em_probed data = {0};

    for (int64_t r = 0; r < p->n; r++) {
        const int64_t at = r * p->dim + i, k = (int64_t)own->scale;
        const double *sample = em_thinned_sample(s->samples, s->dim, p->n, r);
        const double slope = (p->of_z[at] - p->gradient[at]) / (p->moved[at] - p->z[at]) - unit;
        const double of_draw = factor_of_draw(s, own, sample[k] - s->mean[k]);
        const double information = slope * exp(-2 * of_draw) / unit;
        const double scale = em_is_factor(own->form) ? exp(of_draw) : 1;
        em_add_probe(&data, information,
                     information * scale * sample[i] +
                         (p->of_z[at] + unit * p->z[at]) * exp(-of_draw) / unit);
    }
    em_set_probed(&data, &s->conditional[i]);
}

em_status em_probe_data(em_group_search *s, const em_gradient_function *gradient,
                        const em_normal_prior *prior, em_group_fit *group)
{
    const int64_t dim = s->dim, n = em_least(EM_MOST_PROBES, s->n);
    EM_SCOPED_BY(em_release_owned) em_owner memory = {NULL};
    probes p = {.dim = dim, .n = n};
    double highest, together;
    const double lowest = find_levels(s, group, &highest, &together);
    em_status status = em_own_all(&memory, EM_ARRAY(p.z, n * dim), EM_ARRAY(p.of_z, n * dim),
                                  EM_ARRAY(p.moved, n * dim), EM_ARRAY(p.theta, n * dim),
                                  EM_ARRAY(p.gradient, n * dim), EM_ARRAY(p.is_moved, dim));

    for (; !status && highest >= lowest; highest -= together) {
        for (int64_t i = 0; i < dim; i++)
            p.is_moved[i] = false;
        for (int64_t m = 0; m < group->n; m++) {
            const double level = s->map.row[group->child[m]].level;
            p.is_moved[group->child[m]] = level <= highest && level > highest - together;
        }
        status = probe(s, gradient, prior, &p);
        for (int64_t i = 0; !status && i < dim; i++)
            if (p.is_moved[i])
                set_probed_data(s, &prior[i], i, &p);
        if (!status)
            set_data_of_map(s, group);
    }
    remove_unknown_factors(s, group);
    return status;
}
