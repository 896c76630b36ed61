/* Named arrays: what a model declares as its parameters, reports of a draw, or stores as data. */
#pragma once

#include "emass/export.h"

#include <stdbool.h>
#include <stdint.h>

EM_BEGIN_C

enum { EM_MAX_AXES = 6 };

/* How numbers are stored; they are handed over as doubles. */
typedef enum em_storage {
    EM_STORE_REAL,
    EM_STORE_INT,
    EM_STORE_BOOL,
    EM_STORE_SINGLE /* 32 bits: for large arrays */
} em_storage;

/* The group of the output file that a reported variable stands in. */
typedef enum em_report_group {
    EM_POSTERIOR,
    EM_LOG_LIKELIHOOD,       /* of each observation */
    EM_POSTERIOR_PREDICTIVE, /* observations drawn anew */
    EM_PREDICTIONS,          /* of what was not observed */
    EM_N_REPORT_GROUP
} em_report_group;

/* What a reported number is: tables show parameters first. */
typedef enum em_role { EM_PARAMETER, EM_TRANSFORMED_PARAMETER, EM_GENERATED_QUANTITY } em_role;

/* Where the numbers of a parameter may lie. */
typedef enum em_constraint {
    EM_FREE,
    EM_LOWER,   /* above `lower` */
    EM_UPPER,   /* below `upper` */
    EM_BETWEEN, /* between them */
    EM_ORDERED, /* along the last axis each is greater than the one before */
    EM_SIMPLEX  /* along the last axis they are positive, and their sum is 1 */
} em_constraint;

typedef struct em_bounds {
    em_constraint constraint;
    double lower, upper;
} em_bounds;

/* As in {.name = "sigma", .bounds = EM_ABOVE(0)}, or .bounds = {.constraint = EM_SIMPLEX}. */
#define EM_ABOVE(lower)                                                                            \
    {                                                                                              \
        EM_LOWER, (lower), 0                                                                       \
    }
#define EM_BELOW(upper)                                                                            \
    {                                                                                              \
        EM_UPPER, 0, (upper)                                                                       \
    }
#define EM_WITHIN(lower, upper)                                                                    \
    {                                                                                              \
        EM_BETWEEN, (lower), (upper)                                                               \
    }

/* A named array. */
typedef struct em_variable {
    const char *name;
    em_storage storage;
    em_report_group group; /* of what a model reports; of no meaning for data */
    bool dealt; /* of such: a shard reports its own observations, and -0.0, which adds nothing, for
                   those of others; all of a group but the posterior, or none */
    int n_axes; /* 0: a scalar */
    int64_t shape[EM_MAX_AXES];
    const char *axis[EM_MAX_AXES];         /* name of each axis; NULL: <name>_dim_0, ... */
    const char *const *label[EM_MAX_AXES]; /* shape[i] UTF-8 labels of the axis; NULL: 0, 1, ... */
    bool unwatched; /* no convergence to be judged by; nor are those after it */
    bool from_one;  /* tables number the elements of axes without labels from 1, as Stan does */
    em_role role;
    em_bounds bounds; /* of a declared parameter (emass/model.h) */
} em_variable;

/* A small data array to be stored beside the draws. */
typedef struct em_datum {
    const char *group; /* "observed_data", "constant_data" or, of what is predicted for,
                          "predictions_constant_data" */
    em_variable variable;
    const double *value; /* row-major; borrowed from the model */
} em_datum;

EM_END_C
