/* What rank 0's clock says. */
#include "base/fault.h"
#include "par/world.h"
#include "run/loop/engine.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

/* Seconds until Slurm ends the job, where it says when, less what mpirun needs to end. Rank 0. */
static double job_seconds_left(void)
{
    enum { MPIRUN_SECONDS = 15 };
    const char *text = getenv("SLURM_JOB_END_TIME");
    const double end = text ? strtod(text, NULL) : 0;

    return end > 0 ? end - MPIRUN_SECONDS - (double)time(NULL) : INFINITY;
}

/* Time is over a little before the end: ten seconds, and what three checkpoints took. Rank 0. */
em_timing em_timing_now(const em_engine *engine)
{
    const double now = em_clock(), elapsed = now - engine->started;
    const double per_iteration =
        engine->report.seconds.sampling / (double)(engine->done - engine->first_done);

    const int64_t a_second = per_iteration < 1e-6 ? 1000000 : (int64_t)(1 / per_iteration) + 1;
    const int64_t fault = em_fault_passage("time-limit");

    return (em_timing){
        .pace = fault > engine->done && fault - engine->done < a_second ? fault - engine->done
                                                                        : a_second,
        .over = elapsed > engine->config->stop.max_time || (fault > 0 && engine->done >= fault) ||
                (engine->place && job_seconds_left() < 10 + 3 * engine->longest_checkpoint),
        .checkpoint = engine->place &&
                      now - engine->last_checkpoint > engine->config->output.checkpoint_every,
        .write = now - engine->last_write > 1};
}

/* The tempo goes with the agreement at the end of a segment, as one word: every other collective
 * costs a turn of all ranks where they are more than there are processors. */
void em_timing_tell(em_timing tempo)
{
    em_world_tell((int)(tempo.pace << 3 | tempo.write << 2 | tempo.over << 1 | tempo.checkpoint));
}

em_timing em_timing_told(void)
{
    const int word = em_world_told();

    return (em_timing){
        .pace = word >> 3, .write = word >> 2 & 1, .over = word >> 1 & 1, .checkpoint = word & 1};
}
