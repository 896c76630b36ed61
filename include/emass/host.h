/*
 * The library for other languages: Python's ctypes, Julia's ccall, R. Arguments are numbers, texts
 * and addresses; no struct has to be laid out. The order of calls:
 *
 *     em_host_start                 MPI, unless the process has started it
 *     em_host_context               a context of the ranks of a communicator
 *     em_density_create, ...        a model that the host computes
 *     em_host_run, em_run_advance   a run, to its end or to an interrupt
 *     em_run_destroy, em_context_destroy, em_density_destroy, and at exit em_host_stop
 *
 * A density of one normal number, in C:
 *
 *     static em_status density(const void *state, const double *theta, double *log_p,
 *                              double *gradient)
 *     {
 *         *log_p = -theta[0] * theta[0] / 2;
 *         gradient[0] = -theta[0];
 *         return EM_OK;
 *     }
 *     em_density *normal = NULL;
 *     em_status status = em_density_create("normal", 0, 0, &normal);
 *     if (!status)
 *         status = em_density_compute(normal, density, NULL, NULL, NULL);
 *     if (!status)
 *         status = em_density_add_parameter(normal, "x", 0, NULL, NULL, EM_FREE, 0, 0);
 *     if (!status)
 *         status = em_context_add_density(context, normal);
 */
#pragma once

#include "emass/export.h"
#include "emass/report.h"
#include "emass/run.h"
#include "emass/status.h"
#include "emass/variable.h"

#include <stdint.h>

EM_BEGIN_C

/* Starts MPI as the program does, which sets variables of the environment for it; nothing where MPI
 * runs. Collective over the processes of the launcher. Errors: EM_EUSAGE, MPI has been ended. */
EM_API em_status em_host_start(void);

/* Ends MPI if em_host_start has started it and nobody has ended it. Collective. */
EM_API void em_host_stop(void);

/* em_context_create for a communicator by its handle in Fortran (MPI_Comm_c2f; mpi4py: py2f), or
 * -1: all processes. `message` may be NULL. */
EM_API em_status em_host_context(int ranks, void (*message)(void *to, const char *text), void *to,
                                 em_context **out);

/* The number of this rank among those of the context, and how many there are. Local. */
EM_API int em_host_rank(const em_context *context);
EM_API int em_host_ranks(const em_context *context);

/* Returns EM_OK on all ranks when all came with a status that is not negative, else the failure of
 * one of them, with its message. All wait for the last. Collective. */
EM_API em_status em_host_agree(em_context *context, em_status status);

/* Told how far a run is, as em_run_request.progress. */
typedef void em_host_progress(void *to, const em_report *report);

/* em_run_create of a config, with files; mode: em_run_mode. `progress` may be NULL. */
EM_API em_status em_host_run(em_context *context, const char *config, const char *path, int mode,
                             em_host_progress *progress, void *to, em_run **out);

/* What a report holds: count[6] is iterations done, in all and of warmup, divergences, rejections,
 * draws that were not reported in full; level[2] the worst R-hat and the smallest ESS at the last
 * check, or NaN; text[3] the verdict ("" before the end), why the first rejection on this rank, why
 * the first report failed. The texts are the report's. Local. */
EM_API void em_host_report(const em_report *report, int64_t count[], double level[],
                           const char *text[]);

/* ---------------------------------------------------------------- a model of the host's own */

typedef struct em_density em_density;

/* What the host computes; `state` is its own. All are Local, and a positive status says that there
 * is no value at theta, with em_fail or without: the position is rejected, and counted. */
typedef em_status em_density_gradient(const void *state, const double *theta, double *log_density,
                                      double *gradient);
typedef double em_density_value(const void *state, const double *theta);
typedef em_status em_density_outputs(const void *state, const double *theta, double *out);

/* A density of `dim` unconstrained numbers without names, or, dim 0, of the parameters that are
 * added. A run goes on (EM_RUN_RESUME) only with the same data_hash, unless 0. Local. Errors:
 * EM_EMEMORY. */
EM_API em_status em_density_create(const char *name, int64_t dim, uint64_t data_hash,
                                   em_density **out);

/* NULL-safe. After the contexts that have it. Local. */
EM_API void em_density_destroy(em_density **density);

/* Sets the functions: the density with its gradient, both set, not added; or without, by `value`;
 * `outputs`, which writes the outputs that are added, may be NULL. Local. Errors: EM_EUSAGE. */
EM_API em_status em_density_compute(em_density *density, em_density_gradient *gradient,
                                    em_density_value *value, em_density_outputs *outputs,
                                    const void *state);

/* The name of unconstrained number i of a density without parameters. Local. Errors: EM_EUSAGE,
 * EM_EMEMORY. */
EM_API em_status em_density_name(em_density *density, int64_t i, const char *name);

/* A parameter: an array of `n_axes` axes, whose names may be NULL, all or one by one; `constraint`
 * is an em_constraint. theta has the parameters in the order of the calls, row-major. What is given
 * is copied. Local. Errors: EM_EUSAGE, EM_EMEMORY. */
EM_API em_status em_density_add_parameter(em_density *density, const char *name, int n_axes,
                                          const int64_t *shape, const char *const *axis,
                                          int constraint, double lower, double upper);

/* An output, likewise; `group` is an em_report_group, `storage` an em_storage. The parameters are
 * reported before the outputs. */
EM_API em_status em_density_add_output(em_density *density, const char *name, int n_axes,
                                       const int64_t *shape, const char *const *axis, int group,
                                       int storage);

/* An array of data, of which the file of draws gets a copy; `group` is "observed_data" or
 * "constant_data". For a density with a gradient. Local. Errors: EM_EUSAGE, EM_EMEMORY. */
EM_API em_status em_density_add_data(em_density *density, const char *group, const char *name,
                                     int n_axes, const int64_t *shape, const char *const *axis,
                                     const double *value);

/* Labels of the axes of a name, of those that are added afterwards. Local. Errors: EM_EMEMORY. */
EM_API em_status em_density_label_axis(em_density *density, const char *axis, int64_t n,
                                       const char *const *label);

/* em_context_add_model of it. Local. Errors: those of em_context_add_model. */
EM_API em_status em_context_add_density(em_context *context, em_density *density);

EM_END_C
