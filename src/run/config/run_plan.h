/* What a run will do, fixed before it starts: a pure function of the config. Local. */
#pragma once

#include "run/config/config.h"

/* How many numbers one stored draw has: of all groups that the model reports, of the posterior,
 * those that this begins with and that are watched for convergence, and of these the first, as many
 * as the model has parameters: models report their parameters first. */
typedef struct em_width {
    int64_t all, posterior, watched, parameters;
} em_width;

/* What is kept in memory to be watched for convergence: the first `width` numbers of every
 * `every`-th draw, `n_row` draws of each chain in all. It is bounded for all chains of the run
 * together and not for a rank, so that a stop rule decides the same on any number of ranks. */
typedef struct em_monitored {
    int64_t width, every, n_row;
    int64_t n_parameter; /* the first numbers, which a check looks at first, or alone */
    bool visits;         /* and of which visit a draw is (diagnostics/visits.h) */
} em_monitored;

typedef struct em_plan {
    int64_t warmup, total;    /* iterations: of warmup (at most, until it ends), in all */
    int64_t first_thin, thin; /* iterations per stored draw, at first and now: as first_thin, but
                                 for draws: auto */
    int64_t n_draw, n_warmup_draw;  /* stored draws of a chain; n_warmup_draw 0 unless saved. With
                                       draws: auto n_draw is the room for them now */
    int64_t most_draws;             /* draws of a chain, in steps of first_thin, at the end */
    int64_t first_room, most_room;  /* n_draw at first and at most; the same but for draws: auto */
    int64_t flush_every;            /* stored draws between chances to write */
    int64_t buffer;                 /* stored draws of a chain that wait to be written, at most */
    int64_t chunk;                  /* stored draws of a chain that lie together in the file */
    int64_t check_every;            /* stored draws between checks of convergence */
    bool has_stop_rule, until_done; /* until_done: draws: auto */
    em_width width;
    em_monitored monitored;
} em_plan;

/* What sampler number i is told of run.warmup, where INT64_MIN is as long as it takes: one that
 * learns nothing, as the model makes its moves, has none beside others, whose it waits for. */
int64_t em_plan_sampler_warmup(const em_config *config, int i);

/* Errors: EM_ECONFIG for a run whose draws no file can hold. */
em_status em_plan_create(const em_config *config, em_width width, em_plan *plan);

/* Warmup has ended after `done` iterations. */
void em_plan_end_warmup(em_plan *plan, int64_t done);

/* Iterations done at the next point after `done` where the ranks must meet for writing or checking:
 * the end of warmup, a full buffer, a check, the end. */
int64_t em_plan_next_stop(const em_plan *plan, int64_t done);

/*
 * With draws: auto the room for stored draws grows with the run: it is first_room, then most_room.
 * Each time that is full every second draw is dropped, and thin doubles. Sets n_draw and thin for
 * the draws after `done` iterations, a pure function of both and of the thinning so far; `ended`:
 * the run has, and the room that is left over goes if it is more than a quarter. Returns whether
 * anything changed.
 */
bool em_plan_make_room(em_plan *plan, int64_t done, bool ended);

/* Whether the `waiting` draws of a chain leave no room for those up to the next chance to write. */
bool em_plan_must_write(const em_plan *plan, int64_t waiting);

/* Stored draws of the current phase after `done` iterations: of warmup while done <= warmup. */
int64_t em_plan_stored(const em_plan *plan, int64_t done);

/* True when convergence is to be checked after `done` iterations. With a stop rule there is a check
 * after every check_every stored draws of sampling. Without one, checks serve only the progress
 * line and come after 1, 2, 4, 8 ... times as many draws; all checks of a long run together then
 * cost little more than its last few. */
bool em_plan_checks(const em_plan *plan, int64_t done);
