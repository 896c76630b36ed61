#include "adaptation/noncentring/joint_fit.h"

#include "adaptation/noncentring/proved_groups.h"
#include "adaptation/prior_proofs/without_prior.h"
#include "base/memory.h"
#include "math/linalg.h"
#include "math/rng.h"

#include <math.h>
#include <string.h>

/* The share of the squares of derivatives that normal data may leave. */
static const double most_left = 1e-6;

/* Members by which the log scale of data is looked for. */
enum { MOST_SEARCHES = 3 };

/* The least precision of a law of a root, relative to that of its data. */
static const double vague = 1e-8;

static bool is_proved(const em_normal_prior *prior)
{
    return prior->precision > 0 && prior->varies == 0;
}

/* Whether a row of the block can stand for a prior. */
static bool has_row(const em_normal_prior *prior)
{
    return is_proved(prior) && prior->form == EM_SCALE_EXP && prior->second_degree == 0;
}

/* Lists the members that are distributed about each other. */
static int64_t list_members(int64_t dim, const em_normal_prior *prior, bool *is_member)
{
    int64_t n = 0;

    for (int64_t i = 0; i < dim; i++)
        for (int j = 0; has_row(&prior[i]) && j < EM_MOST_LOCATIONS && prior[i].location[j] >= 0;
             j++) {
            const int64_t at = (int64_t)prior[i].location[j];
            if (has_row(&prior[at]))
                is_member[i] = is_member[at] = true;
        }
    for (int64_t i = 0; i < dim; i++)
        n += is_member[i];
    return n;
}

/* Subtracts from the gradient [dim] at x [dim] that of the proved priors, but for scales. */
static void subtract_priors(const em_group_search *s, const em_normal_prior *prior, const double *x,
                            double *gradient)
{
    for (int64_t i = 0; i < s->dim; i++)
        if (is_proved(&prior[i]))
            em_subtract_normal(&prior[i], i, x, gradient, NULL);
}

/* Writes the derivatives that data cause to s->panel [dim][n]. */
static void set_data_derivatives(em_group_search *s, const em_normal_prior *prior, double *g)
{
    for (int64_t r = 0; r < s->n; r++) {
        const double *draw = em_thinned_sample(s->samples, s->dim, s->n, r);
        memcpy(g, draw + s->dim, (size_t)s->dim * sizeof *g);
        subtract_priors(s, prior, draw, g);
        for (int64_t i = 0; i < s->dim; i++)
            s->panel[i * s->n + r] = g[i];
    }
}

/* Sets the precision and the location of the data of parameter i; inverse [dim][dim] is that of the
 * Gram matrix of the draws. */
static void set_data(em_group_search *s, const double *inverse, int64_t i, double *product,
                     em_noncentring_row *row)
{
    const int64_t dim = s->dim;
    double *g = s->residual, mean, explained = 0;

    memcpy(g, s->panel + i * s->n, (size_t)s->n * sizeof *g);
    em_centre_column(s->n, g, &mean);
    for (int64_t j = 0; j < dim; j++)
        product[j] = em_dot(s->n, s->x + j * s->n, g);
    for (int64_t j = 0; j < dim; j++)
        explained += product[j] * em_dot(dim, inverse + j * dim, product);
    const double slope = em_dot(dim, inverse + i * dim, product);
    const double left = fmax(em_dot(s->n, g, g) - explained, 0) / (double)(s->n - dim);
    if (!(-slope > EM_LEAST_OF_DATA * sqrt(left * inverse[i * dim + i])))
        return;
    row->information = -slope;
    row->centre = s->mean[i] - mean / slope;
}

/* ---------------------------------------------------------------- data of many parameters */

/* The derivatives that data cause at some draws, and at positions next to them to which all
 * parameters are moved, each up or down at random, so that effects of others cancel on average. */
typedef struct moved_draws {
    double *x, *g, *moved, *of_moved; /* [EM_MOST_PROBES][dim] */
} moved_draws;

static em_status move_draws(em_group_search *s, const em_normal_prior *prior, moved_draws *p)
{
    static const double step = 1e-4;
    const int64_t dim = s->dim;

    for (int64_t r = 0; r < EM_MOST_PROBES; r++) {
        const double *draw = em_thinned_sample(s->samples, dim, EM_MOST_PROBES, r);
        const em_stream stream = {0, (uint64_t)r, 0, EM_RNG_PROOF};
        double *x = p->x + r * dim, *g = p->g + r * dim, *moved = p->moved + r * dim;
        memcpy(x, draw, (size_t)dim * sizeof *x);
        memcpy(g, draw + dim, (size_t)dim * sizeof *g);
        em_uniforms_within(&stream, dim, 1, moved);
        for (int64_t i = 0; i < dim; i++)
            moved[i] = x[i] + copysign(step * s->sd[i], moved[i]);
        subtract_priors(s, prior, x, g);
    }
    const em_status status =
        s->gradient->evaluate(s->gradient->context, EM_MOST_PROBES, p->moved, p->of_moved);
    for (int64_t r = 0; !status && r < EM_MOST_PROBES; r++)
        subtract_priors(s, prior, p->moved + r * dim, p->of_moved + r * dim);
    return status;
}

/* Sets the precision and the location of the data of parameter i. */
static void set_probed_data(const em_group_search *s, const moved_draws *p, int64_t i,
                            em_noncentring_row *row)
{
    em_probed data = {0};

    for (int64_t r = 0; r < EM_MOST_PROBES; r++) {
        const int64_t at = r * s->dim + i;
        const double precision = (p->g[at] - p->of_moved[at]) / (p->moved[at] - p->x[at]);
        em_add_probe(&data, precision, precision * p->x[at] + p->g[at]);
    }
    em_set_probed(&data, row);
}

/* As set_data for the marked parameters: few draws determine no regression, but differences of
 * gradients do. */
static em_status set_data_of_many(em_group_search *s, const em_normal_prior *prior,
                                  const bool *is_marked, em_noncentring_row *row)
{
    EM_SCOPED_BY(em_release_owned) em_owner memory = {NULL};
    const int64_t size = EM_MOST_PROBES * s->dim;
    moved_draws p;
    em_status status = em_own_all(&memory, EM_ARRAY(p.x, size), EM_ARRAY(p.g, size),
                                  EM_ARRAY(p.moved, size), EM_ARRAY(p.of_moved, size));

    status = status ? status : move_draws(s, prior, &p);
    for (int64_t i = 0; !status && i < s->dim; i++)
        if (is_marked[i])
            set_probed_data(s, &p, i, &row[i]);
    return status;
}

/* ---------------------------------------------------------------- normal data */

/* Regression of the derivatives of parameter i that its data cause, each over its standard
 * deviation. Normal data with the standard deviation e^(a x_l) / sqrt(q), and a constant normal
 * law, have
 *
 *     -q e^(-2 a (x_l - mean)) (x_i - c) - p (x_i - m).
 *
 * Writes the coefficients of e^(...) x_i, e^(...), x_i and 1 to along [4], without the last two
 * unless the law is asked for; l -1 stands for a constant scale. Returns the share of the squares
 * that is left. */
static double regress(em_group_search *s, int64_t i, int64_t l, double degree, bool has_law,
                      double *along)
{
    double triangle[EM_MOST_REGRESSORS][EM_MOST_REGRESSORS];
    const double *x = s->x + i * s->n, *u = l < 0 ? NULL : s->x + l * s->n;
    const double *g = s->panel + i * s->n;
    int n = 0;

    for (int q = 0; q < (has_law ? 4 : 2); q++) {
        for (int64_t r = 0; r < s->n; r++) {
            s->of.weight[r] = u ? exp(2 * degree * u[r]) : 1;
            s->column[r] = (u && q < 2 ? exp(-2 * degree * u[r]) : 1) * (q % 2 == 0 ? x[r] : 1);
        }
        if (em_add_regressor(&s->of, n, s->column, triangle) == n)
            return 1;
        n++;
    }
    memcpy(s->residual, g, (size_t)s->n * sizeof *g);
    em_project_out(&s->of, n, s->residual, along);
    em_solve_regression(n, triangle, along);
    return em_weighted_product(&s->of, s->residual, s->residual) /
           em_weighted_product(&s->of, g, g);
}

/* Writes to the row the normal data of parameter i with scale l, and for a root a constant law.
 * Returns whether they explain its derivatives. */
static bool explains(em_group_search *s, int64_t i, int64_t l, double degree, bool has_law,
                     em_noncentring_row *row)
{
    double along[4] = {0, 0, 0, 0};

    if (!(regress(s, i, l, degree, has_law, along) < most_left) || !(along[0] < 0))
        return false;
    if (row->degree == 0 && l < 0) { /* a constant law alone */
        row->width = 1 / sqrt(-along[0]);
        row->shift = s->mean[i] - along[1] / along[0];
        return true;
    }
    row->information = -along[0];
    row->centre = s->mean[i] - along[1] / along[0];
    if (row->degree == 0) {
        const double precision = fmax(-along[2], vague * row->information);
        row->width = 1 / sqrt(precision);
        row->shift = s->mean[i] + (-along[2] > 0 ? along[3] / precision : 0);
    }
    if (l >= 0) {
        row->second_scale = (double)l;
        row->second_degree = degree;
        row->second_origin = s->mean[l];
        row->second_width = em_noncentring_width(degree, s->sd[l]);
    }
    return true;
}

/* The log scale of the data, if it is a parameter. */
typedef struct data_scale {
    int64_t l; /* -1: it is none */
    double degree;
} data_scale;

/* Writes the data of parameter i to its row, if they are normal with a constant standard deviation,
 * or with that scale. Returns whether they are. */
static bool explain_data(em_group_search *s, int64_t i, data_scale scale, em_noncentring_row *row)
{
    return explains(s, i, -1, 0, false, row) ||
           (scale.l >= 0 &&
            (explains(s, i, scale.l, scale.degree, false, row) ||
             (row->degree == 0 && explains(s, i, scale.l, scale.degree, true, row))));
}

/* The share of the derivatives of parameter i that its data cause, the rest being those of priors.
 * It is more than rounding also for a parameter without data. */
static double share_of_data(const em_group_search *s, int64_t i)
{
    const double *g = s->panel + i * s->n;
    double square = 0;

    for (int64_t r = 0; r < s->n; r++) {
        const double whole = em_thinned_sample(s->samples, s->dim, s->n, r)[s->dim + i];
        square += (g[r] - whole) * (g[r] - whole);
    }
    return em_dot(s->n, g, g) / square;
}

/* Looks for the log scale of the data of parameter i. Returns whether there is one, or it is
 * constant. */
static bool find_scale(em_group_search *s, const em_normal_prior *prior, int64_t i, data_scale *out)
{
    static const double degree[] = {1, -0.5, 0.5, -1};
    em_noncentring_row unused = {.degree = 1};

    if (explains(s, i, -1, 0, false, &unused))
        return true;
    for (int64_t l = 0; l < s->dim; l++)
        for (size_t q = 0; q < sizeof degree / sizeof *degree; q++)
            if (l != i && s->sd[l] > 0 && !(prior[l].precision > 0) &&
                explains(s, i, l, degree[q], false, &unused)) {
                *out = (data_scale){l, degree[q]};
                return true;
            }
    return false;
}

/* Looks for the log scale of the data of the members, by those to which data matter most. */
static data_scale find_data_scale(em_group_search *s, const em_normal_prior *prior,
                                  const bool *is_member, double *share)
{
    data_scale out = {-1, 0};

    for (int64_t i = 0; i < s->dim; i++)
        share[i] = is_member[i] ? share_of_data(s, i) : 0;
    for (int search = 0; search < MOST_SEARCHES; search++) {
        int64_t best = 0;
        for (int64_t i = 1; i < s->dim; i++)
            if (share[i] > share[best])
                best = i;
        if (share[best] == 0 || find_scale(s, prior, best, &out))
            break;
        share[best] = 0;
    }
    return out;
}

/* The row of a prior: e^u is the standard deviation. */
static em_noncentring_row row_of(const em_group_search *s, const em_normal_prior *own)
{
    em_noncentring_row out = {.level = 1,
                              .scale = own->scale,
                              .degree = own->degree,
                              .origin = log(own->precision) / (2 * own->degree),
                              .width =
                                  em_noncentring_width(own->degree, s->sd[(int64_t)own->scale]),
                              .form = EM_SCALE_JOINT};

    memcpy(out.location, own->location, sizeof out.location);
    memcpy(out.coefficient, own->coefficient, sizeof out.coefficient);
    return out;
}

/* Adds the parameters outside the block about which members are distributed, if their own law and
 * data are normal. Without them a mean would have a funnel of its own. */
static int64_t add_roots(em_group_search *s, const em_normal_prior *prior, const bool *is_member,
                         data_scale scale, em_noncentring_row *row)
{
    int64_t n = 0;

    for (int64_t i = 0; i < s->dim; i++)
        for (int j = 0; is_member[i] && j < EM_MOST_LOCATIONS && prior[i].location[j] >= 0; j++) {
            const int64_t at = (int64_t)prior[i].location[j];
            em_noncentring_row root = {.level = 1,
                                       .scale = row[i].scale,
                                       .location = {-1, -1, -1, -1},
                                       .form = EM_SCALE_JOINT};
            if (is_member[at] || row[at].form == EM_SCALE_JOINT || prior[at].precision > 0 ||
                !explain_data(s, at, scale, &root))
                continue;
            row[at] = root;
            n++;
        }
    return n;
}

/* Sets the precisions and the locations of the data of the marked members. */
static em_status set_data_of_marked(em_group_search *s, const em_normal_prior *prior,
                                    const bool *is_marked, em_noncentring_row *row)
{
    const int64_t dim = s->dim;
    EM_SCOPED double *gram = NULL, *work = NULL;

    if (s->gradient)
        return set_data_of_many(s, prior, is_marked, row);
    em_status status = em_allocate_all(EM_ARRAY(gram, dim * dim), EM_ARRAY(work, dim));
    if (status)
        return status;
    em_gram(dim, s->n, s->x, gram);
    for (int64_t i = 0; i < dim; i++)
        gram[i * dim + i] = s->sd[i] > 0 ? gram[i * dim + i] * (1 + 1e-10) : 1;
    status = em_invert_spd(dim, gram, dim);
    for (int64_t i = 0; !status && i < dim; i++)
        if (is_marked[i])
            set_data(s, gram, i, work, &row[i]);
    return status;
}

em_status em_fit_block(em_group_search *s, const em_normal_prior *prior, em_noncentring_row *row,
                       int64_t *n)
{
    const int64_t dim = s->dim;
    EM_SCOPED bool *is_member = NULL, *is_marked = NULL;
    EM_SCOPED double *work = NULL;
    int64_t n_marked = 0;
    em_status status =
        em_allocate_all(EM_ARRAY(is_member, dim), EM_ARRAY(is_marked, dim), EM_ARRAY(work, dim));

    *n = status ? 0 : list_members(dim, prior, is_member);
    if (*n == 0)
        return status;
    set_data_derivatives(s, prior, work);
    const data_scale scale = find_data_scale(s, prior, is_member, work);
    for (int64_t i = 0; i < dim; i++)
        if (is_member[i]) {
            row[i] = row_of(s, &prior[i]);
            is_marked[i] = !explain_data(s, i, scale, &row[i]);
            n_marked += is_marked[i];
        }
    if (n_marked > 0)
        status = set_data_of_marked(s, prior, is_marked, row);
    if (status)
        return status;
    *n += add_roots(s, prior, is_member, scale, row);
    em_noncentring_set_levels(dim, row);
    return EM_OK;
}
