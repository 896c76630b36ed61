/* The C interface of BridgeStan 2, declared from its documentation. At run time it is loaded from a
 * shared object: a Stan model compiled by BridgeStan, or libstanli.so, which interprets programs.
 */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* bs_model and bs_rng of the interface. */
typedef struct em_stan_model em_stan_model;
typedef struct em_stan_rng em_stan_rng;

/*
 * Functions of a library. Those that return int return 0, or another number and a message in
 * *error, which free_error releases. Unconstrained numbers are in the order of the program's
 * parameters. Constrained numbers are flattened, the first index fastest: parameters, then
 * transformed parameters, then generated quantities.
 */
typedef struct em_stan_library {
    void *handle;
    char identity[64]; /* of the code: what ranks compare */
    int minor;         /* version 2.minor of the interface */
    em_stan_model *(*construct)(const char *data, unsigned seed, char **error);
    void (*destruct)(em_stan_model *model);
    void (*free_error)(char *error);
    const char *(*names)(const em_stan_model *model, bool transformed, bool generated);
    const char *(*unconstrained_names)(const em_stan_model *model);
    int (*count)(const em_stan_model *model, bool transformed, bool generated);
    int (*count_unconstrained)(const em_stan_model *model);
    int (*gradient)(const em_stan_model *model, bool without_constants, bool jacobian,
                    const double *theta, double *value, double *gradient, char **error);
    int (*constrain)(const em_stan_model *model, bool transformed, bool generated,
                     const double *theta, double *out, em_stan_rng *rng, char **error);
    int (*unconstrain)(const em_stan_model *model, const char *json, double *out, char **error);
    em_stan_rng *(*rng_construct)(unsigned seed, char **error);
    void (*rng_destruct)(em_stan_rng *rng);
    int (*set_print)(void (*print)(const char *text, int length), char **error);
    /* of libstanli.so only, else NULL */
    char *(*translate)(const char *program, const char *const *folder, size_t n_folder, int fast,
                       char *error, size_t error_bytes);
    void (*free_text)(char *text);
} em_stan_library;

/* Opens a compiled model, or with `interpreter` libstanli.so. It stays open until the process ends,
 * because its runtime cannot be unloaded. Local. Errors: EM_ECONFIG if it is no regular file, no
 * shared object, lacks the functions, or is of another version; EM_EMEMORY. */
em_status em_stan_library_open(const char *path, bool interpreter, em_stan_library *out);

/* Copies a message into to[bytes], cut if it is too long, with blanks for line breaks and control
 * characters. Local. */
void em_stan_one_line(const char *from, char *to, size_t bytes);

/* Fails with `status`, "<what>: <the library's message in one line>", and releases the message,
 * which may be NULL. Local. */
em_status em_stan_library_fail(const em_stan_library *library, em_status status, const char *what,
                               char *error);
