/*
 * The library for other languages: Python's ctypes, Julia's ccall, R. Arguments are numbers, texts
 * and addresses, so the caller needs no struct layouts. The order of calls:
 *
 *     em_host_start                 MPI, unless the process has started it
 *     em_host_context               a context of the ranks of a communicator
 *     em_density_create, ...        a model that the host computes
 *     em_host_run, em_run_advance   a run, to its end or to an interrupt
 *     em_run_destroy, em_context_destroy, em_density_destroy, and at exit em_host_stop
 *
 * A standard normal density of one number, in C:
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

/* Starts MPI as the program emass does, and sets environment variables for MPI. Does nothing if MPI
 * is running. Collective over the processes of the launcher. Errors: EM_EUSAGE if MPI has been
 * finalized. */
EM_API em_status em_host_start(void);

/* Finalizes MPI if em_host_start started it and it is still running. Collective. */
EM_API void em_host_stop(void);

/* em_context_create for a communicator by its handle in Fortran (MPI_Comm_c2f; mpi4py: py2f), or
 * -1: all processes. `message` may be NULL. */
EM_API em_status em_host_context(int ranks, void (*message)(void *to, const char *text), void *to,
                                 em_context **out);

/* The number of this rank among those of the context, and how many there are. Local. */
EM_API int em_host_rank(const em_context *context);
EM_API int em_host_ranks(const em_context *context);

/* Returns EM_OK on all ranks if no rank passes a negative status. Otherwise all ranks get the
 * status and the message of one rank that failed. All ranks wait for the last one. Collective. */
EM_API em_status em_host_agree(em_context *context, em_status status);

/* A function that receives the progress of a run, as em_run_request.progress. */
typedef void em_host_progress(void *to, const em_report *report);

/* em_run_create for a config, with output files. `mode` is an em_run_mode. `progress` may be NULL.
 */
EM_API em_status em_host_run(em_context *context, const char *config, const char *path, int mode,
                             em_host_progress *progress, void *to, em_run **out);

/*
 * Copies members of a report to three arrays. Local.
 * count [9]: iterations done; iterations in all; iterations of warmup; divergences; rejections;
 *   draws whose report failed; 1 if the numbers of `level` are bounds, because other numbers may be
 *   worse, else 0; failed evaluations of a density, warmup included; all evaluations (negative: not
 *   known).
 * level [2]: the worst R-hat and the smallest ESS at the last check, or NaN.
 * text [4], valid as long as the report: the verdict ("" before the end); the reasons of the first
 *   rejection, of the first failed report and of the first failed evaluation on this rank.
 */
EM_API void em_host_report(const em_report *report, int64_t count[], double level[],
                           const char *text[]);

/* The progress in one line of at most `size` bytes, as emass run prints it: "sampling 150/300 R-hat
 * 1.020  ESS 310  600 draws/s  left 1 s". Local. */
EM_API void em_host_describe(const em_report *report, int64_t size, char *line);

/* The note or warning number `which`, from 0, about a run that has ended, as emass run prints it:
 * "note: 3 of 700 evaluations failed (0.43 %), and were rejections; ...", in at most `size` bytes
 * (1024 are enough). Returns 0 if there are fewer. Local. */
EM_API int em_host_note(const em_report *report, int64_t which, int64_t size, char *line);

/* ---------------------------------------------------------------- a model of the host's own */

typedef struct em_density em_density;

/* Functions of the host; `state` is its own. All are Local. A positive status or, of a value, NaN,
 * with or without a message by em_fail, means that the density is not defined at theta: the
 * position is rejected and counted. */
typedef em_status em_density_gradient(const void *state, const double *theta, double *log_density,
                                      double *gradient);
typedef double em_density_value(const void *state, const double *theta);
typedef em_status em_density_outputs(const void *state, const double *theta, double *out);

/* Creates a density of `dim` unconstrained numbers without names or, with dim 0, of the parameters
 * that are added later. A run can be resumed (EM_RUN_RESUME) only with the same data_hash; 0: not
 * checked. Local. Errors: EM_EMEMORY. */
EM_API em_status em_density_create(const char *name, int64_t dim, uint64_t data_hash,
                                   em_density **out);

/* Destroys a density; NULL-safe. Contexts that have it must be destroyed first. Local. */
EM_API void em_density_destroy(em_density **density);

/* Sets the functions. `gradient` writes the log density and its gradient (it does not add to them);
 * a density without gradient has `value` instead. `outputs` writes the outputs of
 * em_density_add_output and may be NULL. Local. Errors: EM_EUSAGE. */
EM_API em_status em_density_compute(em_density *density, em_density_gradient *gradient,
                                    em_density_value *value, em_density_outputs *outputs,
                                    const void *state);

/* Names unconstrained number i of a density without parameters. Local. Errors: EM_EUSAGE,
 * EM_EMEMORY. */
EM_API em_status em_density_name(em_density *density, int64_t i, const char *name);

/* Adds a parameter, an array. `axis` [n_axes] names its axes. If it or an element of it is NULL,
 * the axes are called NAME_dim_0, NAME_dim_1 and so on. `constraint`, `lower` and `upper` are those
 * of em_bounds. theta holds the parameters in the order of the calls, each row-major. All arguments
 * are copied. Local. Errors: EM_EUSAGE, EM_EMEMORY. */
EM_API em_status em_density_add_parameter(em_density *density, const char *name, int n_axes,
                                          const int64_t *shape, const char *const *axis,
                                          int constraint, double lower, double upper);

/* Adds an output, an array whose axes are named in the same way. `group` is an em_report_group,
 * `storage` an em_storage. The parameters are reported before the outputs. Local. Errors:
 * EM_EUSAGE, EM_EMEMORY. */
EM_API em_status em_density_add_output(em_density *density, const char *name, int n_axes,
                                       const int64_t *shape, const char *const *axis, int group,
                                       int storage);

/* Adds an array of data, which is copied to the output file. `group` is "observed_data" or
 * "constant_data". Only for a density with a gradient. Local. Errors: EM_EUSAGE, EM_EMEMORY. */
EM_API em_status em_density_add_data(em_density *density, const char *group, const char *name,
                                     int n_axes, const int64_t *shape, const char *const *axis,
                                     const double *value);

/* Sets the labels of all axes named `axis` in later calls. Local. Errors: EM_EMEMORY. */
EM_API em_status em_density_label_axis(em_density *density, const char *axis, int64_t n,
                                       const char *const *label);

/* Adds the density to a context as a model. Local. Errors: those of em_context_add_model. */
EM_API em_status em_context_add_density(em_context *context, em_density *density);

EM_END_C
