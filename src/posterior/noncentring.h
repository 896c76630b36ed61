/*
 * The density of a model in coordinates z in which some of its parameters are (partly) non-centred.
 * Where the scale of a parameter x_i depends on another one, x_k (a log scale), the density of x
 * has a funnel, which no constant mass matrix suits. A map removes the funnel:
 *
 *     x_i = (1 - w) (m_i + sum_j b_ij x_j) + w c_i + (e^(-2 u) + q_i)^(-1/2) z_i
 *     u   = a_i h(F(x_k) - s_i),    w = q_i / (e^(-2 u) + q_i)
 *
 * F is the identity, or another form of the scale: see em_scale_form. If q_i = 0, w is 0 and the
 * scale of x_i is e^u. The degree a_i is then 0 in the centred form. For a scale exp(x_k), degree 1
 * is the non-centred form (Papaspiliopoulos, Roberts & Skoeld 2007). Degrees between them can be
 * learned (Gorinova, Moore & Hoffman 2020).
 *
 * If q_i > 0, the map is that of the conditional law of a normal parameter with normal data.
 * e^(-2 u) is proportional to the precision of its prior, and q_i, in the same unit, to that of its
 * data; c_i is the location of the data. Such a parameter is non-centred where the scale is small,
 * and centred where it is large.
 *
 * A parameter may have a second log scale x_l: each coefficient of a horseshoe has its own scale
 * and one in common with the others. Then a'_i h(x_l - s'_i) is added to u.
 *
 * A parameter about which others are distributed, such as the mean of a hierarchy, may have the
 * opposite form, EM_SCALE_ADDS_VARIANCES: the scale is (e^(-2 u) + q_i)^(1/2), with a_i < 0. Its
 * variance is then the sum of a constant and of one that is proportional to that of the others.
 *
 * Where the model is written in the non-centred form, x_i has the prior N(0, 1), and the data
 * depend on e^u x_i (em_is_factor). The map of e^u x_i is the first one, without a location
 * of the prior. So that of x_i is
 *
 *     x_i = w c_i e^(-u) + (1 + q_i e^(2 u))^(-1/2) z_i.
 *
 * A parameter that is in no group may have a long tail on one side (EM_SCALE_OF_TAIL), as the log
 * of a positive parameter that may be almost 0. Then
 *
 *     x_i = m_i + d_i T(z_i)
 *
 * with T of math/tail_map.h, whose a is a_i, and the width d_i. Such a row depends on no other one.
 *
 * The location of a parameter may be a quadratic function of one or two others, while its scale is
 * constant (EM_SCALE_CONSTANT). The density then has the shape of a banana. The map straightens it:
 *
 *     x_i = m_i + sum_j b_ij x_j + a_i (x_k - s_i)^2 + a'_i (x_l - s'_i)^2 + z_i
 *
 * Rows of which some are distributed about others, as in a random walk, may be mapped together, by
 * the conditional law of all of them (EM_SCALE_JOINT, joint_block.h).
 *
 * h(t) equals t up to 12 widths from 0, and its size is at most 16 widths. So the scale of x_i does
 * not overflow where no draws have been. x_k, x_l and x_j are parameters of lower levels, so the
 * map is triangular: it has an inverse, and the log of its Jacobian determinant is the sum of log
 * scales. The density of z is that of x times this determinant, so a chain of z is mapped to a
 * chain of x for any coefficients of the map.
 */
#pragma once

#include "posterior/posterior.h"

enum { EM_MOST_LOCATIONS = 4 };

/* How the scale of degree 1 depends on x_k. */
typedef enum em_scale_form {
    EM_SCALE_EXP,            /* e^x_k */
    EM_SCALE_ADDS_VARIANCES, /* e^x_k, in the opposite form */
    EM_SCALE_LOGISTIC,       /* 1 / (1 + e^-x_k): the scale has an upper bound, x_k is its logit */
    EM_SCALE_SOFTPLUS,       /* log(1 + e^x_k) */
    EM_SCALE_OF_TAIL,        /* not a log scale: x_i has one long tail, and k is i */
    EM_SCALE_CONSTANT,       /* not a log scale: the location depends on its square */
    EM_SCALE_JOINT,          /* e^x_k; the row belongs to the block that is mapped together */
    EM_SCALE_OF_FACTOR,      /* x_i is a factor of the scale: the data depend on e^(a x_k) x_i */
    EM_SCALE_OF_LOGISTIC_FACTOR /* the same, if the scale has an upper bound */
} em_scale_form;

/* Whether x_i is a factor of the scale. Local. */
static inline bool em_is_factor(double form)
{
    return form == EM_SCALE_OF_FACTOR || form == EM_SCALE_OF_LOGISTIC_FACTOR;
}

/* The log F(x) of the scale of degree 1, and its derivative unless `slope` is NULL. Local. */
double em_log_scale(double form, double x, double *slope);

/* The map of one parameter. All members are double, so that the map can be stored as an array. */
typedef struct em_noncentring_row {
    double level;                       /* 0: x_i = z_i; else above those of x_k and of all x_j */
    double scale;                       /* k */
    double degree;                      /* a_i */
    double origin;                      /* s_i */
    double width;                       /* of h: see above */
    double shift;                       /* m_i */
    double location[EM_MOST_LOCATIONS]; /* j; -1 ends the list */
    double coefficient[EM_MOST_LOCATIONS]; /* b_ij */
    double information;                    /* q_i */
    double centre;                         /* c_i */
    double form;                           /* an em_scale_form */
    double second_degree;                  /* a'_i; 0: there is no x_l */
    double second_scale;                   /* l */
    double second_origin, second_width;    /* s'_i, and that of h */
} em_noncentring_row;

enum { EM_NONCENTRING_NUMBERS = sizeof(em_noncentring_row) / sizeof(double) };

extern const char *const em_noncentring_name[EM_NONCENTRING_NUMBERS]; /* of the members */

/* The location and the scale of a parameter with level > 0 given those of lower levels, at one
 * position, and derivatives of the location and of the log scale. For a parameter with a long tail,
 * scale is dx_i / dz_i, and log_scale_by the derivative of its log by z_i. */
typedef struct em_conditional {
    double location, scale;
    double prior;                                   /* 1 - w */
    double location_by, log_scale_by;               /* derivatives by x_k */
    double location_by_second, log_scale_by_second; /* by x_l */
} em_conditional;

typedef struct em_joint_block em_joint_block;

typedef struct em_noncentring {
    int64_t dim, n_child;    /* numbers of parameters, and of those with level > 0 */
    em_noncentring_row *row; /* [dim] */
    int64_t *child;          /* [dim] of which n_child are set: those parameters, by level */
    em_conditional *at;      /* [dim] room for one position, for callers */
    em_joint_block *joint;   /* NULL: there is none */
} em_noncentring;

/* Of the parameters with level > 0, the numbers of those whose scale depends on another one, of
 * those among them that are mapped together or are factors, of those whose location is curved, and
 * of those with a long tail. Local. */
typedef struct em_noncentring_counts {
    int64_t scaled, joint, factors, curved, tailed;
} em_noncentring_counts;

em_noncentring_counts em_noncentring_count(const em_noncentring *map);

/* Appends "; 12 parameters non-centred, 10 of them jointly; 8 parameters centred; 6 parameters with
 * a long tail", or what there is of it. Local. */
void em_noncentring_tell(const em_noncentring *map, size_t bytes, char *out);

/* Turns variances [dim] of z into those of x, where a parameter has a long tail: approximately, by
 * the derivative at z = 1/2 on its side. Local. */
void em_noncentring_tail_variances(const em_noncentring *map, double *variance);

/* Sets the level of each row with a level > 0 to that above the rows it uses. Rows of tails have
 * to be added afterwards. Local. */
void em_noncentring_set_levels(int64_t dim, em_noncentring_row *row);

/* The width for a log scale with this standard deviation. Local. */
double em_noncentring_width(double degree, double sd);

/* The identity. Local. Errors: EM_EMEMORY. */
em_status em_noncentring_create(int64_t dim, em_noncentring *out);
void em_noncentring_release(em_noncentring *map);

/* Copies the rows, and lists the parameters with level > 0. Local. Errors: EM_EDATA if the rows are
 * not a valid map. */
em_status em_noncentring_set(em_noncentring *map, const em_noncentring_row *row);

/* Maps z [dim] to x, and x [dim] to z, in place. Both return the log of the Jacobian determinant of
 * x with respect to z, and write to at [n_child], unless it is NULL, what a gradient there needs.
 * Local. */
double em_noncentring_to_model(const em_noncentring *map, double *z, em_conditional *at);
double em_noncentring_from_model(const em_noncentring *map, double *x, em_conditional *at);

/* Transform a gradient [dim] in place, at the position z with these conditionals.
 * em_noncentring_pull turns the gradient of the log density of x into that of the log density of z;
 * em_noncentring_push does the reverse. Local. */
void em_noncentring_pull(const em_noncentring *map, const double *z, const em_conditional *at,
                         double *gradient);
void em_noncentring_push(const em_noncentring *map, const double *z, const em_conditional *at,
                         double *gradient);

/*
 * The posterior of z, for blocks of up to n_chain chains. For chains c with centred[c] (c: number
 * in the run) it is the posterior of x; centred NULL: there are none. `parent`, `map` and `centred`
 * must outlive it; `map` and `centred` may change between evaluations. Destroyed by
 * em_posterior_destroy. Local. Errors: EM_EMEMORY.
 */
em_status em_posterior_create_noncentred(em_posterior *parent, int64_t n_chain, int64_t dim,
                                         const em_noncentring *map, const bool *centred,
                                         em_posterior **out);
