/*
 * Private to posterior: the rows of a map of non-centred coordinates that have the form
 * EM_SCALE_JOINT. They are mapped together, as one block, by the conditional law that they have
 * given their log scales. All Local.
 *
 * Row i stands for a normal prior x_i ~ N(m_i + sum_j b_ij x_j, e^(2 u_i)), where u_i is the log of
 * its standard deviation, and for normal data of x_i with the precision q_i and the location c_i.
 * Some x_j belong to the block, as in a random walk or an autoregression. So the block is normal
 * given all others. If the row has a second log scale x_l, it is that of the data: q_i is the
 * information of the row times e^(-2 a' h(x_l - s')). A row of degree 0 has a prior with a constant
 * standard deviation, its width. The precision of the block is
 *
 *     Q = sum_i e^(-2 u_i) a_i a_i^T + diag(q),    a_i = e_i - sum_j b_ij e_j,
 *
 * and its mean is Q^-1 h, where h has the terms that are linear in x. With the lower Cholesky
 * factor L of Q, its map is
 *
 *     x = Q^-1 h + L^-T z.
 *
 * Members come in the order in which they are eliminated: those first about which no others are
 * distributed. L is then zero left of the first column of each row of Q (George & Liu 1981), and
 * for a random walk it has one diagonal beside the main one.
 */
#pragma once

#include "base/memory.h"
#include "posterior/noncentring.h"

/* The vector a_i of a row. */
typedef struct em_joint_factor {
    int n;
    int64_t position[1 + EM_MOST_LOCATIONS]; /* among the members, its own first */
    double coefficient[1 + EM_MOST_LOCATIONS];
} em_joint_factor;

struct em_joint_block {
    em_owner memory;         /* of its arrays */
    int64_t n, at;           /* members; they are map->child[at], map->child[at + 1], ... */
    int64_t *position;       /* [dim] of a parameter among the members; -1: it is none */
    em_joint_factor *factor; /* [n] */
    int64_t *first;          /* [n] the first column of a row */
    double **row;     /* [n] row[a][b]: element of the precision, then of L, for b >= first[a] */
    double **adjoint; /* [n] derivatives by these elements */
    double *element;  /* of both */
    double *mean;     /* [n] h, then Q^-1 h */
    double *half;     /* [n] L^-1 h */
    double *least;    /* [n] below which no pivot may be: see joint_block.c */
    bool *is_held;    /* [n] pivots that are held there */
    double *of_held;  /* [n] derivatives by them */
    double *sample;   /* [n] L^-T z */
    double *of_z;     /* [n] derivatives by z */
    em_conditional *room; /* [n] for callers that keep none */
    double *solved;       /* [n] Q^-1 times the derivatives by x */
};

/* Finds the block among the children of the map, whose levels are set, and brings its members into
 * the order of elimination. Errors: EM_EMEMORY; EM_EDATA if there are too many elements. */
em_status em_joint_block_set(em_noncentring *map);

/* Whether a parameter is a member. Local. */
static inline bool em_is_in_joint_block(const em_noncentring *map, int64_t i)
{
    return map->joint && map->joint->position[i] >= 0;
}

/* Map the members from z to x, and from x to z, in place; at [n] has their location by parameters
 * outside the block, and the scale of their prior. Both return the log of the determinant of L. */
double em_joint_block_to_model(const em_noncentring *map, const em_conditional *at, double *x);
double em_joint_block_from_model(const em_noncentring *map, const em_conditional *at, double *x);

/* As em_noncentring_pull and em_noncentring_push, for the block. */
void em_joint_block_pull(const em_noncentring *map, const double *z, const em_conditional *at,
                         double *gradient);
void em_joint_block_push(const em_noncentring *map, const double *z, const em_conditional *at,
                         double *gradient);
