/* The library for other languages: MPI, contexts and runs, without structs (emass/host.h). */
#include "api/context.h"
#include "base/memory.h"

#include "run/loop/driver.h"

#include <mpi.h>

static bool started; /* MPI, by this file */

em_status em_host_start(void)
{
    int running = 0, ended = 0;

    MPI_Initialized(&running);
    MPI_Finalized(&ended);
    if (ended)
        return em_fail(
            EM_EUSAGE,
            "em_host_start: MPI has been finalized in this process, and cannot be started again");
    if (running)
        return EM_OK;
    em_world_initialise_mpi(NULL, NULL);
    started = true;
    return EM_OK;
}

void em_host_stop(void)
{
    int ended = 0;

    MPI_Finalized(&ended);
    if (!started || ended)
        return;
    started = false;
    em_keep_loaded();
    MPI_Finalize();
}

em_status em_host_context(int ranks, void (*message)(void *to, const char *text), void *to,
                          em_context **out)
{
    const MPI_Comm communicator = ranks < 0 ? MPI_COMM_WORLD : MPI_Comm_f2c(ranks);

    return em_context_create(communicator, &(em_context_options){.message = message, .to = to},
                             out);
}

int em_host_rank(const em_context *context)
{
    EM_SCOPED_BY(em_world_return) em_world *before = em_world_enter(context->world);

    return em_world_rank();
}

int em_host_ranks(const em_context *context)
{
    EM_SCOPED_BY(em_world_return) em_world *before = em_world_enter(context->world);

    return em_world_size();
}

em_status em_host_agree(em_context *context, em_status status)
{
    em_entry entry;
    const em_status entered = em_context_enter(context, &entry);

    if (entered)
        return entered;
    status = em_agree(status);
    em_context_leave(&entry);
    return status;
}

em_status em_host_run(em_context *context, const char *config, const char *path, int mode,
                      em_host_progress *progress, void *to, em_run **out)
{
    if (mode < EM_RUN_NO_FILE || mode > EM_RUN_RESUME)
        return em_fail(EM_EUSAGE, "em_host_run: found mode %d, expected an em_run_mode", mode);
    return em_run_create(context,
                         &(em_run_request){.config = config,
                                           .path = path,
                                           .mode = (em_run_mode)mode,
                                           .progress = progress,
                                           .progress_to = to},
                         out);
}

void em_host_report(const em_report *report, int64_t count[], double level[], const char *text[])
{
    count[0] = report->done;
    count[1] = report->total;
    count[2] = report->warmup;
    count[3] = report->divergences;
    count[4] = report->rejections.count;
    count[5] = report->unreported;
    count[6] = !report->convergence.thorough;
    count[7] = report->failed_evaluations.count;
    count[8] = report->failed_evaluations.total;
    level[0] = report->convergence.r_hat;
    level[1] = report->convergence.ess;
    text[0] = report->finished ? report->verdict : "";
    text[1] = report->rejections.first;
    text[2] = report->failure;
    text[3] = report->failed_evaluations.first;
}

int em_host_note(const em_report *report, int64_t which, int64_t size, char *line)
{
    return em_report_note(report, which, (size_t)size, line);
}

void em_host_describe(const em_report *report, int64_t size, char *line)
{
    const em_progress_record record = em_report_progress(report);

    em_progress_describe(&record, (size_t)size, line);
}
