/* Timing: when to end a segment, write, checkpoint, or stop, by rank 0's clock. */
#include "base/fault.h"
#include "par/world.h"
#include "run/loop/engine.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

/* Seconds until Slurm ends the job, less the time that mpirun needs to exit; infinity: not known.
 * Rank 0. */
static double job_seconds_left(void)
{
    enum { MPIRUN_SECONDS = 15 };
    const char *text = getenv("SLURM_JOB_END_TIME");
    const double end = text ? strtod(text, NULL) : 0;

    return end > 0 ? end - MPIRUN_SECONDS - (double)time(NULL) : INFINITY;
}

/* The least number of iterations in a segment. Ranks wait for the slowest at the end of a segment.
 * Evaluations of a simulator may take very different times; their sum over many iterations differs
 * less between ranks. A segment takes at most a quarter of a minute, because stops wait for its
 * end, and Slurm kills a job half a minute after it has asked it to stop. The first iterations may
 * be shorter than those that follow, so a segment is not longer than all segments before it. */
static int64_t least_pace(const em_engine *engine, double n_done, double per_iteration)
{
    static const double enough = 64, longest = 15;
    const double most = fmin(n_done, longest / per_iteration);

    return engine->model->failures ? (int64_t)fmax(1, fmin(enough, most)) : 1;
}

/* Decides what is due now. The run stops before its job ends: by ten seconds, three times the
 * longest checkpoint and, for a simulator, one segment. Rank 0. */
em_timing em_timing_now(const em_engine *engine)
{
    const double now = em_clock(), elapsed = now - engine->started;
    const double n_done = (double)(engine->done - engine->first_done);
    const double per_iteration = engine->report.seconds.sampling / n_done;
    const int64_t at_least = least_pace(engine, n_done, per_iteration);
    const int64_t in_time = per_iteration < 1e-6 ? 1000000 : (int64_t)(1 / per_iteration) + 1;
    const int64_t pace = in_time > at_least ? in_time : at_least;
    const double segment = at_least > 1 ? (double)at_least * per_iteration : 0;
    const int64_t fault = em_fault_passage("time-limit");

    return (em_timing){
        .pace = fault > engine->done && fault - engine->done < pace ? fault - engine->done : pace,
        .out_of_time = elapsed > engine->config->stop.end_after,
        .over = elapsed > engine->config->stop.max_time || (fault > 0 && engine->done >= fault) ||
                (engine->transaction &&
                 job_seconds_left() < 10 + segment + 3 * engine->longest_checkpoint),
        .checkpoint = engine->transaction &&
                      now - engine->last_checkpoint > engine->config->output.checkpoint_every,
        .write = now - engine->last_write > 1};
}

/* Sends the decisions (engine.h) as one word with the agreement at the end of a segment. */
void em_timing_tell(em_timing timing)
{
    em_world_tell((int)(timing.pace << 4 | timing.out_of_time << 3 | timing.write << 2 |
                        timing.over << 1 | timing.checkpoint));
}

em_timing em_timing_told(void)
{
    const int word = em_world_told();

    return (em_timing){.pace = word >> 4,
                       .out_of_time = word >> 3 & 1,
                       .write = word >> 2 & 1,
                       .over = word >> 1 & 1,
                       .checkpoint = word & 1};
}
