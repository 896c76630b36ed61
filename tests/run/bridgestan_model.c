/*
 * A library with the C interface of BridgeStan, as a compiled model has it: mu and the elements of
 * a 2 x 3 matrix L are independent, N(0, s^2) with s from the data, mu cut off at 2.5. Built by
 * tests/run/stan.sh, with MAJOR another version, with WITHOUT_NAMES one that names nothing, with
 * WRONG_NAMES one whose names make no array, with WITHOUT_RANDOM one that cannot generate.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef MAJOR
#define MAJOR 2
#endif

enum { DIM = 7, N_TRANSFORMED = 3, N_GENERATED = 2 };

const int bs_major_version = MAJOR, bs_minor_version = 6, bs_patch_version = 0;

typedef struct bs_model {
    double scale;
} bs_model;

typedef struct bs_rng {
    unsigned state;
} bs_rng;

/* The interface, declared here as emass has no header of it. */
bs_model *bs_model_construct(const char *data, unsigned seed, char **error);
void bs_model_destruct(bs_model *model);
void bs_free_error_msg(char *error);
const char *bs_param_names(const bs_model *model, bool transformed, bool generated);
const char *bs_param_unc_names(const bs_model *model);
int bs_param_num(const bs_model *model, bool transformed, bool generated);
int bs_param_unc_num(const bs_model *model);
int bs_log_density_gradient(const bs_model *model, bool propto, bool jacobian, const double *theta,
                            double *value, double *gradient, char **error);
int bs_param_constrain(const bs_model *model, bool transformed, bool generated, const double *theta,
                       double *out, bs_rng *rng, char **error);
int bs_param_unconstrain_json(const bs_model *model, const char *json, double *out, char **error);
bs_rng *bs_rng_construct(unsigned seed, char **error);
void bs_rng_destruct(bs_rng *rng);
int bs_set_print_callback(void (*print)(const char *text, size_t length), char **error);

static int fail(char **error, const char *why)
{
    if (error)
        *error = strdup(why);
    return 1;
}

bs_model *bs_model_construct(const char *data, unsigned seed, char **error)
{
    const char *at = strstr(data, "\"s\":");
    bs_model *model = malloc(sizeof *model);

    (void)seed;
    model->scale = at ? strtod(at + 4, NULL) : 0;
    if (model->scale > 0)
        return model;
    free(model);
    fail(error, "s is not positive");
    return NULL;
}

void bs_model_destruct(bs_model *model)
{
    free(model);
}

void bs_free_error_msg(char *error)
{
    free(error);
}

#ifdef WRONG_NAMES
#define NAMES "mu,L.1.1,L.2.1,L.1.2,L.2.2,L.1.3,L.1.3"
#else
#define NAMES "mu,L.1.1,L.2.1,L.1.2,L.2.2,L.1.3,L.2.3"
#endif

#ifndef WITHOUT_NAMES
const char *bs_param_names(const bs_model *model, bool transformed, bool generated)
{
    (void)model;
    if (generated)
        return NAMES ",t.1:1,t.1:2.1,t.1:2.2,z.real,z.imag";
    return transformed ? NAMES ",t.1:1,t.1:2.1,t.1:2.2" : NAMES;
}
#endif

const char *bs_param_unc_names(const bs_model *model)
{
    (void)model;
    return NAMES;
}

int bs_param_num(const bs_model *model, bool transformed, bool generated)
{
    (void)model;
    return DIM + (transformed ? N_TRANSFORMED : 0) + (generated ? N_GENERATED : 0);
}

int bs_param_unc_num(const bs_model *model)
{
    (void)model;
    return DIM;
}

int bs_log_density_gradient(const bs_model *model, bool propto, bool jacobian, const double *theta,
                            double *value, double *gradient, char **error)
{
    const double precision = 1 / model->scale / model->scale;

    if (!propto || !jacobian)
        return fail(error, "expected the Jacobian and no constants");
    if (theta[0] > 2.5)
        return fail(error, "mu is beyond\nits end");
    *value = 0;
    for (int i = 0; i < DIM; i++) {
        *value -= theta[i] * theta[i] * precision / 2;
        gradient[i] = -theta[i] * precision;
    }
    return 0;
}

int bs_param_constrain(const bs_model *model, bool transformed, bool generated, const double *theta,
                       double *out, bs_rng *rng, char **error)
{
    (void)model;
    for (int i = 0; i < DIM; i++)
        *out++ = theta[i];
    for (int i = 0; transformed && i < N_TRANSFORMED; i++)
        *out++ = 10 * theta[0] + i;
    if (!generated)
        return 0;
    if (theta[0] < -2)
        return fail(error, "nothing is generated below -2");
    if (!rng)
        return fail(error, "no generator");
    for (int i = 0; i < N_GENERATED; i++) {
        rng->state = rng->state * 1664525u + 1013904223u;
        *out++ = rng->state / 4294967296.0;
    }
    return 0;
}

int bs_param_unconstrain_json(const bs_model *model, const char *json, double *out, char **error)
{
    const char *at = strstr(json, "\"mu\":");

    (void)model;
    if (!at)
        return fail(error, "no mu");
    for (int i = 0; i < DIM; i++)
        out[i] = strtod(at + 5, NULL);
    return 0;
}

bs_rng *bs_rng_construct(unsigned seed, char **error)
{
    bs_rng *rng = malloc(sizeof *rng);

#ifdef WITHOUT_RANDOM
    free(rng);
    fail(error, "there are no random numbers");
    return NULL;
#endif
    (void)error;
    rng->state = seed;
    return rng;
}

void bs_rng_destruct(bs_rng *rng)
{
    free(rng);
}

int bs_set_print_callback(void (*print)(const char *text, size_t length), char **error)
{
    (void)error;
    print("hello\n", 6);
    return 0;
}
