/*
 * emass within another program: MPI-parallel sampling of a posterior, with a mass matrix that the
 * chains learn together. A model of the program's own, two chains on each rank, draws to a
 * callback:
 *
 *     static em_status density(const void *state, const double *theta, double *log_p,
 *                              double *gradient)       // adds log p(theta) and its gradient
 *     {
 *         const double *sd = state;
 *         *log_p -= theta[0] * theta[0] / (2 * *sd * *sd);
 *         gradient[0] -= theta[0] / (*sd * *sd);
 *         return EM_OK;
 *     }
 *     static em_status take(void *state, const em_stored_draw *draw)
 *     {
 *         if (!draw->in_warmup)
 *             *(double *)state += draw->group[0][0];     // the posterior is group 0
 *         return EM_OK;
 *     }
 *     ...
 *     static const em_model_ops mine = {.name = "mine", .dim = 1, .log_density_gradient = density};
 *     em_context *context;
 *     em_run *run = NULL;
 *     double sd = 3, sum = 0;
 *     em_status status = em_context_create(MPI_COMM_WORLD, NULL, &context);
 *     if (!status)
 *         status = em_context_add_model(context, &mine, &sd);
 *     if (!status)
 *         status = em_run_create(context, &(em_run_request){
 *             .config = "model: {name: mine}\nrun: {chains: 8, draws: 500, seed: 7}\n",
 *             .sink = {.state = &sum, .take = take}}, &run);
 *     if (!status)
 *         status = em_run_advance(run, INT64_MAX);
 *     if (status)
 *         fprintf(stderr, "%s\n", em_error_text());
 *     else
 *         puts(em_run_report(run)->verdict);
 *     em_run_destroy(&run);
 *     em_context_destroy(&context);
 *
 *     mpicc mine.c $(pkg-config --cflags --libs emass) -o mine
 *
 * The library and the program that uses it:
 * - Functions return a status (emass/status.h). A negative one is a failure, and em_error_text()
 *   gives the reason in one line, with file and line where a config or data are wrong. No error
 *   ends the process.
 *   *Collective*: all ranks of the context call it, at the same time, and all get the same status;
 *   *Local*: any rank may.
 * - It prints nothing, installs no signal handler and sets no environment variable. What it has to
 *   say on the way goes to the context's `message`. During a call the calling thread's locale is C,
 *   HDF5 prints no error stacks and OpenBLAS uses one thread; on return all is as it was.
 * - The program starts and ends MPI: contexts are made after MPI_Init and destroyed before
 *   MPI_Finalize. An error within MPI itself ends the program.
 * - There may be several contexts, also of overlapping communicators, and several runs in each.
 * Runs may follow one another, take turns or be nested (in a model or a sink), and may be called by
 * any thread that MPI allows to call it. Only one thread of a process may be in a call: another
 * call fails at once with EM_EUSAGE, on this rank alone; em_run_destroy waits instead.
 * - A program that ignores SIGXFSZ gets an error of the run where a limit on file sizes would
 *   otherwise end the process. With Open MPI, set OMPI_MCA_fbtl_posix_write_datasieving=0 in its
 *   environment: every rank then writes its own part, which is faster.
 */
#pragma once

#include "emass/capabilities.h"
#include "emass/data.h"
#include "emass/export.h"
#include "emass/field.h"
#include "emass/host.h"
#include "emass/model.h"
#include "emass/random.h"
#include "emass/report.h"
#include "emass/run.h"
#include "emass/shards.h"
#include "emass/sink.h"
#include "emass/status.h"
#include "emass/visitor.h"

#include <mpi.h>
#include <stdbool.h>

EM_BEGIN_C

typedef struct em_context_options {
    /* Warnings and notes, one line each: "warning: ...". On rank 0; NULL: nobody is told. */
    void (*message)(void *to, const char *text);
    void *to;
    /* A failure on one rank alone may end all ranks of the communicator (MPI_Abort) where the
     * others do not come to hear of it within seconds; false: it waits for them. */
    bool may_abort;
} em_context_options;

/* A context of the ranks of a communicator, which is duplicated. `options` may be NULL. Collective
 * over the communicator. Errors: EM_EUSAGE, MPI is not running, or the null communicator;
 * EM_EMEMORY. */
EM_API em_status em_context_create(MPI_Comm ranks, const em_context_options *options,
                                   em_context **out);

/* NULL-safe. Runs that are still in it stay as they are, and it ends with the last of them.
 * Collective. */
EM_API void em_context_destroy(em_context **context);

/*
 * A model of the program's own (emass/model.h), which configs of this context may then name. `ops`
 * is copied, what it points to has to stay until the context is destroyed. `state` is handed on to
 * the model as ops->state, and to log_density or log_density_gradient, where the model is made of
 * one of them and has no options. Local, but to be called on all ranks. Errors: EM_EUSAGE, a model
 * of that name is there; EM_ECONFIG, the table is not that of a model; EM_EMEMORY.
 */
EM_API em_status em_context_add_model(em_context *context, const em_model_ops *ops,
                                      const void *state);

/* Asks the context's runs to stop, on any one rank: em_run_advance then returns EM_ESTOPPED on all
 * of them, within about a second of iterations. May be called by a signal handler. Local. */
EM_API void em_context_interrupt(em_context *context);

/* The version of the library: "0.1.0". Local. */
EM_API const char *em_version(void);

EM_END_C
