/* The plan of a run: numbers of iterations, draws, writes and checks, fixed before it starts. It is
 * a pure function of the config. Local. */
#pragma once

#include "run/config/config.h"

/* The sizes of one stored draw: `all` numbers in all groups, `posterior` in the posterior. The
 * first `watched` of these are checked for convergence, and the first `parameters` of those are the
 * model's parameters, because models report their parameters first. */
typedef struct em_width {
    int64_t all, posterior, watched, parameters;
} em_width;

/* The numbers that are kept in memory for convergence checks: the first `width` numbers of every
 * `every`-th draw, at most `n_row` draws of each chain. The bound on memory is for all chains of
 * the run together and not for a rank, so that a stop rule decides the same on any number of ranks.
 */
typedef struct em_monitored {
    int64_t width, every, n_row;
    int64_t n_parameter; /* the first numbers, which a check uses first, or alone */
    bool visits;         /* the number of each draw's visit (diagnostics/visits.h) is kept, too */
} em_monitored;

typedef struct em_plan {
    int64_t warmup, total;         /* iterations: of warmup (at most, until it ends), in all */
    int64_t first_thin, thin;      /* iterations per stored draw, initially and now */
    int64_t n_draw, n_warmup_draw; /* stored draws of a chain; n_warmup_draw 0 unless saved. With
                                      draws: auto n_draw is the current capacity */
    int64_t most_draws;            /* draws of a chain at the end, in units of first_thin */
    int64_t first_capacity, most_capacity; /* first and largest n_draw */
    int64_t spare;                         /* unused draws that a file may keep */
    int64_t flush_every;                   /* stored draws between chances to write */
    int64_t buffer;                 /* stored draws of a chain that wait to be written, at most */
    int64_t chunk;                  /* stored draws of a chain that lie together in the file */
    int64_t check_every;            /* stored draws between checks of convergence */
    bool has_stop_rule, until_done; /* until_done: draws: auto */
    em_width width;
    em_monitored monitored;
} em_plan;

/* The iterations of warmup of sampler number i; INT64_MIN: until its criteria are met. A sampler
 * that calls the model's own transition learns nothing. Beside other samplers it has 0 then, and
 * theirs decide when warmup ends. */
int64_t em_plan_sampler_warmup(const em_config *config, int i);

/* Computes the plan. Errors: EM_ECONFIG if a file cannot hold the draws. */
em_status em_plan_create(const em_config *config, em_width width, em_plan *plan);

/* Records that warmup has ended after `done` iterations. */
void em_plan_end_warmup(em_plan *plan, int64_t done);

/* The number of iterations done at the next point after `done` at which the ranks synchronise for
 * writing or checking: the end of warmup, a full buffer, a check, the end. */
int64_t em_plan_next_stop(const em_plan *plan, int64_t done);

/*
 * With draws: auto the space for stored draws grows with the run: first first_capacity draws, then
 * most_capacity. Each time it is full, every second draw is dropped and thin doubles. Sets n_draw
 * and thin for the draws after `done` iterations, as a pure function of `done`, `ended` and the
 * thinning so far. `ended`: the run has ended, and unused space is removed if it is more than
 * 40 % and more than `spare` draws. Returns whether anything changed.
 */
bool em_plan_resize(em_plan *plan, int64_t done, bool ended);

/* Whether draws must be written now: the buffer, with `waiting` draws of a chain, has no space for
 * those up to the next opportunity. */
static inline bool em_plan_must_write(const em_plan *plan, int64_t waiting)
{
    return waiting + plan->flush_every > plan->buffer;
}

/* Stored draws of the current phase after `done` iterations: of warmup while done <= warmup. */
int64_t em_plan_stored(const em_plan *plan, int64_t done);

/* Stored draws of both phases after `done` iterations. */
typedef struct em_stored_draws {
    int64_t warmup, sampling;
} em_stored_draws;

em_stored_draws em_plan_stored_draws(const em_plan *plan, int64_t done);

/* Whether convergence is checked after `done` iterations. With a stop rule there is a check after
 * every check_every stored draws of sampling. Without one, checks serve only the progress line and
 * come after 1, 2, 4, 8 ... times as many draws; all checks of a long run together then cost little
 * more than its last few. */
bool em_plan_checks(const em_plan *plan, int64_t done);
