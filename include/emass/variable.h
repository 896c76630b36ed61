/* Named arrays: the parameters that a model declares, the variables that it reports, and the data
 * that it stores. */
#pragma once

#include "emass/export.h"

#include <stdbool.h>
#include <stdint.h>

EM_BEGIN_C

enum { EM_MAX_AXES = 6 };

/* The type of the numbers in the output file. In memory they are doubles. */
typedef enum em_storage {
    EM_STORE_REAL,
    EM_STORE_INT,
    EM_STORE_BOOL,
    EM_STORE_SINGLE /* 32 bits: for large arrays */
} em_storage;

/* The group of a reported variable in the output file. */
typedef enum em_report_group {
    EM_POSTERIOR,
    EM_LOG_LIKELIHOOD,       /* of each observation */
    EM_POSTERIOR_PREDICTIVE, /* observations from the posterior predictive distribution */
    EM_PREDICTIONS,          /* of unobserved responses */
    EM_N_REPORT_GROUP
} em_report_group;

/* The kind of a reported variable. Tables show parameters first. */
typedef enum em_role { EM_PARAMETER, EM_TRANSFORMED_PARAMETER, EM_GENERATED_QUANTITY } em_role;

/* The constraint on the elements of a parameter. */
typedef enum em_constraint {
    EM_FREE,
    EM_LOWER,   /* above `lower` */
    EM_UPPER,   /* below `upper` */
    EM_BETWEEN, /* between them */
    EM_ORDERED, /* each is greater than the one before, along the last axis */
    EM_SIMPLEX  /* positive with sum 1, along the last axis */
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
    em_report_group group; /* of a reported variable; ignored for data */
    bool sharded; /* of a reported variable: a shard writes the numbers of its own observations and
                     -0.0 for the others. In a group other than the posterior, all variables are
                     sharded or none */
    int n_axes;   /* 0: a scalar */
    int64_t shape[EM_MAX_AXES];
    const char *axis[EM_MAX_AXES];         /* name of each axis; NULL: <name>_dim_0, ... */
    const char *const *label[EM_MAX_AXES]; /* shape[i] UTF-8 labels of the axis; NULL: 0, 1, ... */
    bool unwatched; /* convergence checks skip this variable and those after it */
    bool from_one;  /* tables number the elements of axes without labels from 1, as Stan does */
    em_role role;
    em_bounds bounds; /* of a declared parameter (emass/model.h) */
} em_variable;

/* How many numbers a variable has. */
static inline int64_t em_variable_size(const em_variable *variable)
{
    int64_t n = 1;

    for (int i = 0; i < variable->n_axes; i++)
        n *= variable->shape[i];
    return n;
}

/* A small data array, stored in the output file. */
typedef struct em_datum {
    const char *group; /* "observed_data", "constant_data", or "predictions_constant_data" for the
                          new data of a prediction */
    em_variable variable;
    const double *value; /* row-major; borrowed from the model */
} em_datum;

EM_END_C
