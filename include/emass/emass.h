/*
 * emass within another program: MPI-parallel sampling of a posterior, with a mass matrix that is
 * estimated from all chains together. This example defines a model, samples it, and receives the
 * draws by a callback:
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
 * - The library prints nothing, installs no signal handler and sets no environment variable. It
 *   passes warnings and notes to the function `message` of the context. During a call the calling
 *   thread's locale is C, HDF5 prints no error stacks and OpenBLAS uses one thread; on return these
 *   settings are restored.
 * - The program starts and ends MPI: contexts are made after MPI_Init and destroyed before
 *   MPI_Finalize. An error within MPI itself ends the program.
 * - There may be several contexts, also of overlapping communicators, and several runs in each.
 *   Runs may be advanced one after another or alternately, and a model or a sink may itself advance
 *   another run. The calls may come from any thread that may call MPI. Only one thread of a process
 *   may be in a call: another call fails at once with EM_EUSAGE, on this rank alone;
 *   em_run_destroy waits instead.
 * - If the program ignores SIGXFSZ, a run that exceeds a limit on file sizes fails with an error;
 *   otherwise this signal ends the process. With Open MPI, set the environment variable
 *   OMPI_MCA_fbtl_posix_write_datasieving=0: every rank then writes its own part, which is faster.
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
    /* Receives warnings and notes, one line each ("warning: ..."), on rank 0. NULL: they are
     * dropped. */
    void (*message)(void *to, const char *text);
    void *to;
    /* If one rank fails and the others do not notice within seconds, it may end all ranks of the
     * communicator by MPI_Abort. false: it waits for them. */
    bool may_abort;
} em_context_options;

/* Creates a context for the ranks of a communicator, which it duplicates. `options` may be NULL.
 * Collective over the communicator. Errors: EM_EUSAGE if MPI is not running or the communicator is
 * null; EM_EMEMORY. */
EM_API em_status em_context_create(MPI_Comm ranks, const em_context_options *options,
                                   em_context **out);

/* Destroys a context; NULL-safe. Runs that still use it remain valid, and its resources are freed
 * with the last of them. Collective. */
EM_API void em_context_destroy(em_context **context);

/*
 * Adds a model of the program (emass/model.h) to the context, whose configs may then name it. `ops`
 * is copied; what it points to must stay valid until the context is destroyed. The model finds
 * `state` in ops->state. A model without `create` and options also gets it as the first argument of
 * log_density or log_density_gradient. Local, but must be called on all ranks. Errors: EM_EUSAGE if
 * a model of that name exists; EM_ECONFIG if the table is not valid; EM_EMEMORY.
 */
EM_API em_status em_context_add_model(em_context *context, const em_model_ops *ops,
                                      const void *state);

/* Asks the runs of the context to stop. It is enough to call it on one rank: within about a second
 * of iterations em_run_advance returns EM_ESTOPPED on all ranks. A signal handler may call it.
 * Local. */
EM_API void em_context_interrupt(em_context *context);

/* The version of the library: "0.1.0". Local. */
EM_API const char *em_version(void);

EM_END_C
