/*
 * libstanli.so with a clock: hands every call on to the library that EMASS_CLOCK_OF names, and at
 * the end of the process appends a line to the file EMASS_CLOCK_TO: seconds until the first
 * gradient and after the last call, by the clock and of the processor; seconds of the processor in
 * the model; calls for gradients.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))

typedef struct moment {
    double clock, processor;
} moment;

static void *library;
static moment first, last;
static double in_model;
static long n_gradient;

EXPORT int bs_major_version, bs_minor_version;

static double read_clock(clockid_t which)
{
    struct timespec t;

    clock_gettime(which, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static moment now(void)
{
    return (moment){read_clock(CLOCK_MONOTONIC), read_clock(CLOCK_PROCESS_CPUTIME_ID)};
}

static void *find(const char *name)
{
    void *found = dlsym(library, name);

    if (!found) {
        fprintf(stderr, "stanli_clock: no %s: %s\n", name, dlerror());
        exit(1);
    }
    return found;
}

__attribute__((constructor)) static void open_library(void)
{
    const char *path = getenv("EMASS_CLOCK_OF");

    library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    if (!library) {
        fprintf(stderr, "stanli_clock: EMASS_CLOCK_OF: %s\n", path ? dlerror() : "not set");
        exit(1);
    }
    bs_major_version = *(int *)find("bs_major_version");
    bs_minor_version = *(int *)find("bs_minor_version");
}

__attribute__((destructor)) static void write_line(void)
{
    const char *path = getenv("EMASS_CLOCK_TO"), *start = getenv("EMASS_CLOCK_START");
    FILE *file = path ? fopen(path, "a") : NULL;
    const moment end = now();

    if (!file || !start)
        return;
    fprintf(file, "%.9f %.9f %.9f %.9f %.9f %ld\n", first.clock - atof(start), first.processor,
            end.clock - last.clock, end.processor - last.processor, in_model, n_gradient);
    fclose(file);
}

/* Calls another function of the library. */
#define HAND_ON(type, name, parameters, arguments)                                                 \
    EXPORT type name parameters                                                                    \
    {                                                                                              \
        static type(*to) parameters;                                                               \
        if (!to)                                                                                   \
            to = (type(*) parameters)find(#name);                                                  \
        return to arguments;                                                                       \
    }

HAND_ON(void *, bs_model_construct, (const char *data, unsigned seed, char **error),
        (data, seed, error))
HAND_ON(void, bs_model_destruct, (void *model), (model))
HAND_ON(void, bs_free_error_msg, (char *error), (error))
HAND_ON(const char *, bs_param_names, (const void *model, bool transformed, bool generated),
        (model, transformed, generated))
HAND_ON(const char *, bs_param_unc_names, (const void *model), (model))
HAND_ON(int, bs_param_num, (const void *model, bool transformed, bool generated),
        (model, transformed, generated))
HAND_ON(int, bs_param_unc_num, (const void *model), (model))
HAND_ON(int, bs_param_unconstrain_json,
        (const void *model, const char *json, double *out, char **error), (model, json, out, error))
HAND_ON(void, bs_rng_destruct, (void *rng), (rng))
HAND_ON(int, bs_set_print_callback, (void (*print)(const char *, int), char **error),
        (print, error))
HAND_ON(char *, stanli_stan_to_mir_with_opts,
        (const char *program, const char *const *folder, size_t n_folder, int fast, char *error,
         size_t error_bytes),
        (program, folder, n_folder, fast, error, error_bytes))
HAND_ON(void, stanli_string_free, (char *text), (text))
HAND_ON(int, stanli_abi_version, (void), ())
HAND_ON(const char *, stanli_build_id, (void), ())

static void leave(double since)
{
    last = now();
    in_model += last.processor - since;
}

EXPORT int bs_log_density_gradient(const void *model, bool propto, bool jacobian,
                                   const double *theta, double *value, double *gradient,
                                   char **error)
{
    static int (*to)(const void *, bool, bool, const double *, double *, double *, char **);

    if (!to)
        to = (int (*)(const void *, bool, bool, const double *, double *, double *, char **))find(
            "bs_log_density_gradient");
    const moment since = now();
    if (n_gradient++ == 0)
        first = since;
    const int status = to(model, propto, jacobian, theta, value, gradient, error);
    leave(since.processor);
    return status;
}

EXPORT int bs_param_constrain(const void *model, bool transformed, bool generated,
                              const double *theta, double *out, void *rng, char **error)
{
    static int (*to)(const void *, bool, bool, const double *, double *, void *, char **);

    if (!to)
        to = (int (*)(const void *, bool, bool, const double *, double *, void *, char **))find(
            "bs_param_constrain");
    const moment since = now();
    const int status = to(model, transformed, generated, theta, out, rng, error);
    leave(since.processor);
    return status;
}

EXPORT void *bs_rng_construct(unsigned seed, char **error)
{
    static void *(*to)(unsigned, char **);

    if (!to)
        to = (void *(*)(unsigned, char **))find("bs_rng_construct");
    const moment since = now();
    void *rng = to(seed, error);
    leave(since.processor);
    return rng;
}
