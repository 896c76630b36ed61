/* Non-centred coordinates: the map, its gradients, and the posterior in them. */
#include "posterior/noncentring.h"

#include "base/memory.h"
#include "base/text.h"
#include "math/log_product.h"
#include "math/tail_map.h"
#include "posterior/inside.h"
#include "posterior/joint_block.h"

#include <math.h>
#include <string.h>

const char *const em_noncentring_name[EM_NONCENTRING_NUMBERS] = {
    "level",         "scale",         "degree",      "origin",     "width",         "shift",
    "location_1",    "location_2",    "location_3",  "location_4", "coefficient_1", "coefficient_2",
    "coefficient_3", "coefficient_4", "information", "centre",     "form",          "second_degree",
    "second_scale",  "second_origin", "second_width"};

/* ---------------------------------------------------------------- the map */

em_status em_noncentring_create(int64_t dim, em_noncentring *out)
{
    *out = (em_noncentring){.dim = dim};
    return em_allocate_all(EM_ARRAY(out->row, dim), EM_ARRAY(out->child, dim),
                           EM_ARRAY(out->at, dim));
}

void em_noncentring_release(em_noncentring *map)
{
    em_release_owner(&map->joint);
    em_release_all(&map->row, &map->child, &map->at);
}

/* The largest |a h|, so that the square of a product of two scales does not overflow. */
static const double most_log_scale = 150;

double em_noncentring_width(double degree, double sd)
{
    static const double least = 8, rounding = 1e-9;
    const double most = most_log_scale / (16 * fabs(degree)) * (1 - rounding);

    return fmin(fmax(sd, least), most);
}

/* Whether x may be the number of a parameter below `level`. */
static bool is_lower(const em_noncentring *map, const em_noncentring_row *row, double x,
                     double level)
{
    return x >= 0 && x < (double)map->dim && x == floor(x) && row[(int64_t)x].level < level;
}

static bool has_tail(const em_noncentring_row *row)
{
    return row->form == EM_SCALE_OF_TAIL;
}

static bool is_curved(const em_noncentring_row *row)
{
    return row->form == EM_SCALE_CONSTANT;
}

static bool is_joint(const em_noncentring_row *row)
{
    return row->form == EM_SCALE_JOINT;
}

static bool is_factor(const em_noncentring_row *row)
{
    return em_is_factor(row->form);
}

/* Whether a degree and the width of its h do not let a scale overflow. */
static bool is_bounded(const em_noncentring_row *row, double degree, double width)
{
    return is_curved(row) || (width > 0 && fabs(degree) * 16 * width <= most_log_scale);
}

/* Whether the second log scale is one, or there is none. */
static bool has_valid_second(const em_noncentring *map, const em_noncentring_row *row, int64_t i)
{
    const em_noncentring_row *r = &row[i];

    return r->second_degree == 0 ||
           (is_lower(map, row, r->second_scale, r->level) && isfinite(r->second_degree) &&
            isfinite(r->second_origin) && is_bounded(r, r->second_degree, r->second_width));
}

em_noncentring_counts em_noncentring_count(const em_noncentring *map)
{
    em_noncentring_counts n = {.scaled = map->n_child};

    for (int64_t c = 0; c < map->n_child; c++) {
        n.joint += is_joint(&map->row[map->child[c]]);
        n.factors += is_factor(&map->row[map->child[c]]);
        n.curved += is_curved(&map->row[map->child[c]]);
        n.tailed += has_tail(&map->row[map->child[c]]);
    }
    n.scaled -= n.curved + n.tailed;
    return n;
}

/* The level above those of what row i uses. The rows of a block have one level. */
static double level_above(const em_noncentring_row *row, int64_t i)
{
    double level = row[(int64_t)row[i].scale].level;

    if (row[i].second_degree != 0)
        level = fmax(level, row[(int64_t)row[i].second_scale].level);
    for (int j = 0; j < EM_MOST_LOCATIONS && row[i].location[j] >= 0; j++) {
        const em_noncentring_row *at = &row[(int64_t)row[i].location[j]];
        level = fmax(level, is_joint(&row[i]) && is_joint(at) ? 0 : at->level);
    }
    return level + 1;
}

void em_noncentring_set_levels(int64_t dim, em_noncentring_row *row)
{
    bool has_changed = true;
    double of_block = 0;

    for (int64_t i = 0; i < dim; i++)
        row[i].level = row[i].level > 0;
    for (int64_t pass = 0; has_changed && pass <= dim; pass++) {
        has_changed = false;
        for (int64_t i = 0; i < dim; i++) {
            double level = row[i].level > 0 ? level_above(row, i) : 0;
            if (is_joint(&row[i]))
                level = of_block = fmax(level, of_block);
            has_changed |= level != row[i].level;
            row[i].level = level;
        }
    }
}

/* "; 12 parameters WHAT", unless n is 0. */
static void tell(int64_t n, const char *what, size_t bytes, char *out)
{
    if (n > 0)
        em_append(bytes, out, "; %lld parameter%s %s", (long long)n, em_plural(n), what);
}

void em_noncentring_tell(const em_noncentring *map, size_t bytes, char *out)
{
    const em_noncentring_counts n = em_noncentring_count(map);

    tell(n.scaled - n.factors, "non-centred", bytes, out);
    if (n.joint > 0)
        em_append(bytes, out, ", %lld of them jointly", (long long)n.joint);
    tell(n.factors, "centred", bytes, out);
    tell(n.curved, "with a curved location", bytes, out);
    tell(n.tailed, "with a long tail", bytes, out);
}

static bool is_form(double form)
{
    return form >= EM_SCALE_EXP && form <= EM_SCALE_OF_LOGISTIC_FACTOR && form == floor(form);
}

/* Whether x may be the number of a parameter about which that of row i is distributed. Rows of a
 * block may be distributed about each other. */
static bool is_below(const em_noncentring *map, const em_noncentring_row *row, int64_t i, double x)
{
    const double level = row[i].level;

    return is_lower(map, row, x, level) ||
           (is_joint(&row[i]) && is_lower(map, row, x, level + 1) && is_joint(&row[(int64_t)x]));
}

static bool is_valid(const em_noncentring *map, const em_noncentring_row *row, int64_t i)
{
    const em_noncentring_row *r = &row[i];

    if (r->level == 0)
        return true;
    if (has_tail(r))
        return r->level == 1 && r->scale == (double)i && isfinite(r->degree) &&
               isfinite(r->shift) && isfinite(r->width) && r->width > 0;
    for (int j = 0; j < EM_MOST_LOCATIONS && r->location[j] >= 0; j++)
        if (!is_below(map, row, i, r->location[j]) || !isfinite(r->coefficient[j]))
            return false;
    return r->level > 0 && r->level <= (double)map->dim && r->level == floor(r->level) &&
           is_lower(map, row, r->scale, r->level) && isfinite(r->degree) && isfinite(r->origin) &&
           is_bounded(r, r->degree, r->width) && isfinite(r->shift) && r->information >= 0 &&
           isfinite(r->information) && isfinite(r->centre) && is_form(r->form) &&
           has_valid_second(map, row, i);
}

em_status em_noncentring_set(em_noncentring *map, const em_noncentring_row *row)
{
    double next = 1;

    for (int64_t i = 0; i < map->dim; i++)
        if (!is_valid(map, row, i))
            return em_fail(EM_EDATA, "the map of non-centred parameters has no valid row %lld",
                           (long long)i);
    memmove(map->row, row, (size_t)map->dim * sizeof *row);
    map->n_child = 0;
    for (double level = next; level < INFINITY; level = next) {
        next = INFINITY;
        for (int joint = 0; joint < 2; joint++) /* those of the block come last in their level */
            for (int64_t i = 0; i < map->dim; i++) {
                if (row[i].level == level && is_joint(&row[i]) == joint)
                    map->child[map->n_child++] = i;
                else if (row[i].level > level)
                    next = fmin(next, row[i].level);
            }
    }
    return em_joint_block_set(map);
}

/* e^u and its derivative by x_k. All members of a hierarchy have the same, so those of the row
 * before are kept. */
typedef struct prior_scale {
    const em_noncentring_row *of;
    double scale, slope;
} prior_scale;

double em_log_scale(double form, double x, double *slope)
{
    const bool is_logistic = form == EM_SCALE_LOGISTIC || form == EM_SCALE_OF_LOGISTIC_FACTOR;
    double log_scale = x, log_slope = 0;

    if (is_logistic || form == EM_SCALE_SOFTPLUS) {
        const double log_up = x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); /* log(1 + e^x) */
        const double log_plus = x < -30 ? x : log(log_up);
        log_scale = is_logistic ? x - log_up : log_plus;
        log_slope = is_logistic ? -log_up : x - log_up - log_plus;
    }
    if (slope)
        *slope = exp(log_slope);
    return log_scale;
}

/* a h(t), and its derivative. */
static double bounded(double degree, double width, double t, double *slope)
{
    const double linear = 12 * width, rest = 4 * width, over = fabs(t) - linear;

    *slope = degree;
    if (over <= 0)
        return degree * t;
    const double bent = tanh(over / rest);
    *slope *= 1 - bent * bent;
    return degree * copysign(linear + rest * bent, t);
}

static void find_prior_scale(const em_noncentring_row *row, const double *x, prior_scale *out)
{
    const em_noncentring_row *of = out->of;

    if (of && of->scale == row->scale && of->degree == row->degree && of->origin == row->origin &&
        of->width == row->width && of->form == row->form)
        return;
    double slope;
    const double log_scale = em_log_scale(row->form, x[(int64_t)row->scale], &slope);
    out->of = row;
    out->scale = exp(bounded(row->degree, row->width, log_scale - row->origin, &out->slope));
    out->slope *= slope;
}

/* a t^2, and its derivative. */
static double square(double degree, double t, double *slope)
{
    *slope = 2 * degree * t;
    return degree * t * t;
}

/* The conditional law of a factor. Its location is that of e^u x_i over e^u. */
static em_conditional conditional_of_factor(const em_noncentring_row *row, const prior_scale *of)
{
    const double ratio = row->information * of->scale * of->scale, w = ratio / (1 + ratio);
    const double location = w * row->centre / of->scale;

    return (em_conditional){.location = location,
                            .scale = 1 / sqrt(1 + ratio),
                            .location_by = (1 - 2 * w) * of->slope * location,
                            .log_scale_by = -w * of->slope};
}

static em_conditional conditional_of(const em_noncentring *map, const em_noncentring_row *row,
                                     const double *x, prior_scale *before)
{
    em_conditional out = {.location = row->shift, .scale = 1, .prior = 1};

    for (int j = 0; j < EM_MOST_LOCATIONS && row->location[j] >= 0; j++)
        if (!is_joint(row) || !em_is_in_joint_block(map, (int64_t)row->location[j]))
            out.location += row->coefficient[j] * x[(int64_t)row->location[j]];
    if (is_curved(row)) {
        out.location += square(row->degree, x[(int64_t)row->scale] - row->origin, &out.location_by);
        if (row->second_degree != 0)
            out.location +=
                square(row->second_degree, x[(int64_t)row->second_scale] - row->second_origin,
                       &out.location_by_second);
        return out;
    }
    find_prior_scale(row, x, before);
    if (is_factor(row))
        return conditional_of_factor(row, before);
    out.scale = before->scale;
    out.log_scale_by = before->slope;
    double second = 0;
    if (row->second_degree != 0)
        second =
            bounded(row->second_degree, row->second_width,
                    x[(int64_t)row->second_scale] - row->second_origin, &out.log_scale_by_second);
    if (is_joint(row)) {
        out.scale = row->degree == 0 ? row->width : out.scale;
        out.prior = row->information * exp(-2 * second);
        return out;
    }
    if (row->second_degree != 0)
        out.scale *= exp(second);
    if (row->information == 0)
        return out;
    const double ratio = row->information * out.scale * out.scale, w = ratio / (1 + ratio),
                 away = row->centre - out.location;
    const bool adds_variances = row->form == EM_SCALE_ADDS_VARIANCES;
    out.scale = adds_variances ? sqrt(1 + ratio) / out.scale : out.scale / sqrt(1 + ratio);
    out.prior = 1 - w;
    out.location += w * away;
    out.location_by = 2 * w * out.prior * before->slope * away;
    out.location_by_second = 2 * w * out.prior * out.log_scale_by_second * away;
    out.log_scale_by *= (adds_variances ? -1 : 1) * out.prior;
    out.log_scale_by_second *= (adds_variances ? -1 : 1) * out.prior;
    return out;
}

/* x_i of a parameter with a tail, from z_i; sets the derivatives of *at. */
static double put_tail(const em_noncentring_row *row, double z, em_conditional *at)
{
    *at = (em_conditional){0};
    const double t = em_tail_map(row->degree, z, &at->scale, &at->log_scale_by);
    at->scale *= row->width;
    return row->shift + row->width * t;
}

void em_noncentring_tail_variances(const em_noncentring *map, double *variance)
{
    for (int64_t n = 0; n < map->n_child; n++) {
        const int64_t i = map->child[n];
        const em_noncentring_row *row = &map->row[i];
        em_conditional at = {.scale = 1};
        if (has_tail(row))
            put_tail(row, row->degree < 0 ? 0.5 : -0.5, &at);
        variance[i] *= at.scale * at.scale;
    }
}

/* Maps the block of rows that are mapped together; returns the log of its Jacobian determinant. */
static double map_block(const em_noncentring *map, bool to_model, double *x, em_conditional *at)
{
    const em_joint_block *block = map->joint;
    em_conditional *here = at ? at + block->at : block->room;
    prior_scale before = {NULL, 0, 0};

    for (int64_t a = 0; a < block->n; a++)
        here[a] = conditional_of(map, &map->row[map->child[block->at + a]], x, &before);
    return to_model ? -em_joint_block_to_model(map, here, x)
                    : -em_joint_block_from_model(map, here, x);
}

/* Maps all rows, to the model in the order of their levels and from it in reverse; returns the log
 * of the Jacobian determinant of the map to the model. */
static double map_all(const em_noncentring *map, bool to_model, double *x, em_conditional *at)
{
    em_log_product jacobian = {.product = 1};
    prior_scale before = {NULL, 0, 0};
    double of_block = 0;

    for (int64_t k = 0; k < map->n_child; k++) {
        const int64_t n = to_model ? k : map->n_child - 1 - k, i = map->child[n];
        const em_noncentring_row *row = &map->row[i];
        em_conditional unused, *here = at ? &at[n] : &unused;
        if (is_joint(row)) {
            of_block = map_block(map, to_model, x, at);
            k += map->joint->n - 1;
            continue;
        }
        if (has_tail(row)) {
            const double z =
                to_model ? x[i]
                         : em_tail_map_inverse(row->degree, (x[i] - row->shift) / row->width);
            const double mapped = put_tail(row, z, here);
            x[i] = to_model ? mapped : z;
        } else {
            *here = conditional_of(map, row, x, &before);
            x[i] = to_model ? here->location + here->scale * x[i]
                            : (x[i] - here->location) / here->scale;
        }
        em_log_product_multiply(&jacobian, here->scale);
    }
    return em_log_product_value(&jacobian) + of_block;
}

double em_noncentring_to_model(const em_noncentring *map, double *z, em_conditional *at)
{
    return map_all(map, true, z, at);
}

double em_noncentring_from_model(const em_noncentring *map, double *x, em_conditional *at)
{
    return map_all(map, false, x, at);
}

/* Adds `sign` times the contribution of the derivative by x_i, `g`, to the derivatives by x_k, x_l
 * and x_j. `scaled` is x_i minus its location. */
static void spread(const em_noncentring_row *row, const em_conditional *at, double sign,
                   double scaled, double g, double *gradient)
{
    for (int j = 0; j < EM_MOST_LOCATIONS && row->location[j] >= 0; j++)
        gradient[(int64_t)row->location[j]] += sign * at->prior * row->coefficient[j] * g;
    gradient[(int64_t)row->scale] +=
        sign * (at->log_scale_by * (scaled * g + 1) + at->location_by * g);
    if (row->second_degree != 0)
        gradient[(int64_t)row->second_scale] +=
            sign * (at->log_scale_by_second * (scaled * g + 1) + at->location_by_second * g);
}

void em_noncentring_pull(const em_noncentring *map, const double *z, const em_conditional *at,
                         double *gradient)
{
    for (int64_t n = map->n_child - 1; n >= 0; n--) {
        const int64_t i = map->child[n];
        const em_noncentring_row *row = &map->row[i];
        const double by_tail = has_tail(row) ? at[n].log_scale_by : 0;
        if (is_joint(row)) {
            em_joint_block_pull(map, z, at + map->joint->at, gradient);
            n -= map->joint->n - 1;
            continue;
        }
        if (!has_tail(row))
            spread(row, &at[n], 1, at[n].scale * z[i], gradient[i], gradient);
        gradient[i] = gradient[i] * at[n].scale + by_tail;
    }
}

/* Transforms a gradient by z to one by x: the steps of the pull, in reverse order. */
void em_noncentring_push(const em_noncentring *map, const double *z, const em_conditional *at,
                         double *gradient)
{
    for (int64_t n = 0; n < map->n_child; n++) {
        const int64_t i = map->child[n];
        const em_noncentring_row *row = &map->row[i];
        const double by_tail = has_tail(row) ? at[n].log_scale_by : 0;
        if (is_joint(row)) {
            em_joint_block_push(map, z, at + map->joint->at, gradient);
            n += map->joint->n - 1;
            continue;
        }
        gradient[i] = (gradient[i] - by_tail) / at[n].scale;
        if (!has_tail(row))
            spread(row, &at[n], -1, at[n].scale * z[i], gradient[i], gradient);
    }
}

/* ---------------------------------------------------------------- the posterior of z */

static bool is_centred(const em_posterior *posterior, int64_t chain)
{
    return posterior->centred && posterior->centred[chain];
}

static em_status answer(em_posterior *posterior, const em_query *query)
{
    const em_noncentring *map = posterior->noncentring;
    const int64_t stride = query->stride;
    em_query inner = *query;
    em_status status;

    if (map->n_child == 0)
        return em_posterior_evaluate(posterior->parent, query);
    memcpy(posterior->theta, query->theta,
           (size_t)(query->n_chain * stride) * sizeof *posterior->theta);
    for (int64_t c = 0; c < query->n_chain; c++)
        posterior->log_jacobian[c] =
            is_centred(posterior, query->chain[c])
                ? 0
                : em_noncentring_to_model(map, posterior->theta + c * stride,
                                          posterior->conditional + c * map->dim);
    inner.theta = posterior->theta;
    status = em_posterior_evaluate(posterior->parent, &inner);
    for (int64_t c = 0; status >= 0 && c < query->n_chain; c++) {
        if (is_centred(posterior, query->chain[c]))
            continue;
        em_noncentring_pull(map, query->theta + c * stride, posterior->conditional + c * map->dim,
                            query->gradient + c * stride);
        query->log_density[c] += posterior->log_jacobian[c];
    }
    return status;
}

em_status em_posterior_create_noncentred(em_posterior *parent, int64_t n_chain, int64_t dim,
                                         const em_noncentring *map, const bool *centred,
                                         em_posterior **out)
{
    em_status status = em_allocate(1, sizeof **out, out);

    if (status)
        return status;
    **out = (em_posterior){.model = parent->model,
                           .grid = parent->grid,
                           .parent = parent,
                           .noncentring = map,
                           .centred = centred,
                           .answer = answer};
    status = em_own_all(&(*out)->memory, EM_ARRAY((*out)->theta, n_chain * em_stride(dim)),
                        EM_ARRAY((*out)->log_jacobian, n_chain),
                        EM_ARRAY((*out)->conditional, n_chain * dim));
    if (status)
        em_posterior_destroy(out);
    return status;
}
