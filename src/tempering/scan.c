/* One scan: every copy is moved, neighbouring rungs swap, ladders give what is at their targets. */
#include "base/memory.h"
#include "math/rng.h"
#include "tempering/inside.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Keys of messages. `number` is that of a copy, of the first rung of a pair, or of a ladder. */
enum { KEY_REQUEST, KEY_REPLY, KEY_DRAW, N_KEY };

static int64_t key_of(int kind, int64_t number)
{
    return N_KEY * number + kind;
}

/* Keeps the first failure: the scan goes on, as other ranks wait for its messages. */
static void note(em_tempering *t, em_status status)
{
    if (status >= 0 || t->failure)
        return;
    t->failure = status;
    snprintf(t->why, sizeof t->why, "%s", em_error_text());
}

em_status em_tempering_failure(const em_tempering *t)
{
    return t->failure ? em_fail(t->failure, "%s", t->why) : EM_OK;
}

/* ---------------------------------------------------------------- moves */

/* The state of one copy as a block of one chain, which borrows it. */
static em_block block_of(const em_tempering *t, int64_t c)
{
    em_block one = *t->block;

    one.n_chain = 1;
    one.chain += c;
    one.theta += c * t->stride;
    one.momentum += c * t->stride;
    one.gradient += c * t->stride;
    one.log_density += c;
    one.acceptance += c;
    one.n_step += c;
    for (int i = 0; i < EM_STAT_COUNT; i++)
        one.stat[i] += c;
    return one;
}

/* Trajectories of a kernel that adaptation may set, in whitened units: half of the way between
 * points of a normal law that do not depend on each other. */
static em_trajectory trajectory_of(const em_tempering *t, int64_t iteration)
{
    em_trajectory out = {.kind = EM_TRAJECTORY_OPTIONS};

    if (t->task.sampler->trajectory)
        out = t->task.sampler->trajectory(t->task.sampler_options);
    if (out.kind == EM_TRAJECTORY_TIME && isnan(out.time)) {
        out.time = 1.5;
        out.jitter = 0.5;
    }
    out.number = iteration + 1;
    return out;
}

/* Moves a copy by the kernel of its rung. What p is there follows from the tempered density. */
static em_status move_copy(em_tempering *t, int64_t c, int64_t iteration)
{
    em_copy *copy = &t->copy[c];
    em_block one = block_of(t, c);
    const em_rung_state *rung = &t->rung[copy->rung];
    const em_mass *mass = rung->mass;
    const double beta = t->ladder.beta[copy->rung];
    const int leg = em_ladder_leg(&t->ladder, copy->rung);
    double *of_model = t->of_model + c * t->stride;
    const em_step_context context = {.posterior = t->tempered,
                                     .mass = &mass,
                                     .step_size = &rung->step_size,
                                     .seed = t->task.seed,
                                     .iteration = iteration,
                                     .warmup = t->ended < 0,
                                     .trajectory = trajectory_of(t, iteration)};
    em_status status = t->sampler->ops->step(t->sampler, &context, &one);

    if (status >= 0 && beta != 1)
        status = em_copy_look(t, c, leg);
    if (status < 0)
        return status;
    copy->log_p = *one.log_density;
    memcpy(of_model, one.gradient, (size_t)t->stride * sizeof *of_model);
    if (beta != 1) {
        const double *of_reference = em_copy_reference(t, c, leg);
        copy->log_p = (*one.log_density - (1 - beta) * copy->log_r[leg]) / beta;
        for (int64_t i = 0; i < t->dim; i++)
            of_model[i] = (one.gradient[i] - (1 - beta) * of_reference[i]) / beta;
    }
    return EM_OK;
}

/* An independent draw from the reference, and p there. */
static em_status draw_copy(em_tempering *t, int64_t c, int64_t iteration)
{
    em_copy *copy = &t->copy[c];
    em_block one = block_of(t, c);
    const int leg = em_ladder_leg(&t->ladder, copy->rung);
    const em_draw draw = {t->task.seed, *one.chain, iteration, EM_DRAW_PRIOR};
    em_query query = em_block_query(&one);

    if (t->task.sampler->without_gradient)
        query.wanted = EM_WANT_LOG_DENSITY;
    em_status status = t->reference[leg]->draw(t->reference[leg], &draw, one.theta);

    query.log_density = &copy->log_p;
    query.gradient = t->of_model + c * t->stride;
    if (status >= 0)
        status = em_posterior_evaluate(t->posterior, &query);
    if (status >= 0)
        status = em_copy_look(t, c, leg);
    *one.acceptance = 1;
    *one.n_step = 0;
    for (int i = 0; i < EM_STAT_COUNT; i++)
        *one.stat[i] = 0;
    return status;
}

/* The target belongs to both legs. */
static em_status look_back(em_tempering *t, int64_t c)
{
    em_status status = EM_OK;

    for (int leg = 0; status >= 0 && leg < t->n_leg && t->copy[c].rung == t->ladder.target; leg++)
        status = em_copy_look(t, c, leg);
    return status;
}

/* ---------------------------------------------------------------- what is counted */

/* Merges the parts of each copy by twos, so that the second half of them is free. */
static void merge_units(em_tempering *t)
{
    const int64_t n_pair = t->ladder.n_rung - 1;

    for (int64_t c = 0; c < t->n_copy; c++)
        for (int64_t u = 0; u < t->n_unit; u++)
            for (int64_t k = 0; k < n_pair; k++) {
                em_bridge *from = t->bridges + (c * t->n_unit + u) * n_pair + k;
                em_bridge *to = t->bridges + (c * t->n_unit + u / 2) * n_pair + k;
                const em_bridge one = *from;
                *from = (em_bridge){.low = {0}};
                em_log_mean_merge(&one.low, &to->low);
                em_log_mean_merge(&one.high, &to->high);
            }
    t->unit_length *= 2;
}

/* The part of the draws, or of a round's second half, that this scan is in: all have unit_length
 * scans, the last one fewer, however many are to come. */
static int64_t unit_of(em_tempering *t, int64_t iteration)
{
    const int64_t half = (t->round_begin + t->round_end) / 2;
    const int64_t scans = iteration - (t->ended >= 0 ? t->ended : half);

    if (t->n_unit == 1 || scans < 0)
        return 0;
    if (scans == t->n_unit * t->unit_length)
        merge_units(t);
    return scans / t->unit_length;
}

static void count_copy(em_tempering *t, int64_t c, int64_t unit)
{
    const em_copy *copy = &t->copy[c];
    const int64_t n_pair = t->ladder.n_rung - 1;
    em_bridge *bridges = t->bridges + (c * t->n_unit + unit) * n_pair;
    em_rung_counts *count = t->count + c * t->ladder.n_rung + copy->rung;

    count->acceptance += t->block->acceptance[c];
    count->n++;
    for (int64_t k = copy->rung - 1; k <= copy->rung; k++) {
        if (k < 0 || k >= n_pair)
            continue;
        const double *beta = t->ladder.beta, at = beta[copy->rung];
        const double other = k == copy->rung ? beta[k + 1] : beta[k];
        const double w = copy->log_p - copy->log_r[em_ladder_leg_of_pair(&t->ladder, k)];
        em_log_mean_add((other - at) * w / 2, at < other ? &bridges[k].low : &bridges[k].high);
    }
}

static void count_trip(em_tempering *t, em_copy *copy)
{
    if (t->ladder.beta[copy->rung] == 0) {
        copy->round_trips += copy->origin == EM_FROM_TARGET;
        copy->origin = EM_FROM_REFERENCE;
    } else if (copy->rung == t->ladder.target && copy->origin == EM_FROM_REFERENCE) {
        copy->restarts++;
        copy->origin = EM_FROM_TARGET;
    }
}

/* ---------------------------------------------------------------- swaps */

/* The pair of rungs that a rung belongs to in a scan: its first one; -1: none. */
static int64_t pair_of(const em_tempering *t, int64_t rung, int64_t iteration)
{
    const int64_t pair = rung % 2 == iteration % 2 ? rung : rung - 1;

    return pair < t->ladder.n_rung - 1 ? pair : -1;
}

/* Of a copy, to who decides on its pair: the group of copy number `pair` of the ladder. */
typedef struct request {
    double number, rung, w;
} request;

typedef struct reply {
    double swaps, rejection;
} reply;

enum { REQUEST = sizeof(request) / sizeof(double), REPLY = sizeof(reply) / sizeof(double) };

static void ask(em_tempering *t, int64_t iteration)
{
    const int64_t n_rung = t->ladder.n_rung;

    for (int64_t c = 0; c < t->n_copy; c++) {
        const em_copy *copy = &t->copy[c];
        const int64_t pair = pair_of(t, copy->rung, iteration), number = t->first_copy + c;
        if (pair < 0)
            continue;
        const int64_t where = number / n_rung * n_rung + pair;
        const request of = {(double)number, (double)copy->rung,
                            copy->log_p - copy->log_r[em_ladder_leg_of_pair(&t->ladder, pair)]};
        note(t, em_mailbox_put(t->mailbox, em_copy_group(t, where), key_of(KEY_REQUEST, where),
                               REQUEST, (const double *)&of));
    }
}

/* Both copies of a pair have asked: the decision is counted by ladder, scan and pair alone. */
static void decide(em_tempering *t, int64_t where, int64_t iteration)
{
    const int64_t ladder = where / t->ladder.n_rung, pair = where % t->ladder.n_rung;
    const em_stream stream = {t->task.seed, (uint64_t)ladder, (uint64_t)iteration, EM_RNG_SWAP};
    request of[2];

    for (int i = 0; i < 2; i++)
        em_mailbox_take(t->mailbox, key_of(KEY_REQUEST, where), REQUEST, (double *)&of[i]);
    const double ratio = em_swap_log_ratio(t->ladder.beta[(int64_t)of[0].rung], of[0].w,
                                           t->ladder.beta[(int64_t)of[1].rung], of[1].w);
    const reply out = {log(em_uniform(&stream, (uint64_t)pair)) < ratio, 1 - fmin(1, exp(ratio))};
    for (int i = 0; i < 2; i++) {
        const int64_t number = (int64_t)of[i].number;
        note(t, em_mailbox_put(t->mailbox, em_copy_group(t, number), key_of(KEY_REPLY, number),
                               REPLY, (const double *)&out));
    }
}

static void take_replies(em_tempering *t, int64_t iteration)
{
    for (int64_t c = 0; c < t->n_copy; c++) {
        em_copy *copy = &t->copy[c];
        const int64_t pair = pair_of(t, copy->rung, iteration);
        reply of;
        if (pair < 0)
            continue;
        em_mailbox_take(t->mailbox, key_of(KEY_REPLY, t->first_copy + c), REPLY, (double *)&of);
        if (copy->rung == pair) {
            t->count[c * t->ladder.n_rung + pair].rejection += of.rejection;
            t->count[c * t->ladder.n_rung + pair].n_swaps++;
        }
        if (of.swaps != 0)
            copy->rung = copy->rung == pair ? pair + 1 : pair;
    }
}

static void swap(em_tempering *t, int64_t iteration)
{
    ask(t, iteration);
    for (int64_t c = 0; c < t->n_copy; c++) {
        const int64_t where = t->first_copy + c, pair = where % t->ladder.n_rung;
        if (pair % 2 == iteration % 2 && pair < t->ladder.n_rung - 1)
            decide(t, where, iteration);
    }
    take_replies(t, iteration);
}

/* ---------------------------------------------------------------- draws */

enum { HEAD = EM_DRAW_HEAD };

static void send_draw(em_tempering *t, int64_t c, int64_t iteration)
{
    const em_block *block = t->block;
    const int64_t ladder = (t->first_copy + c) / t->ladder.n_rung;
    double *x = t->message;

    x[0] = (double)iteration;
    x[1] = t->copy[c].log_p;
    x[2] = block->acceptance[c];
    x[3] = block->n_step[c];
    for (int i = 0; i < EM_STAT_COUNT; i++)
        x[4 + i] = block->stat[i][c];
    x[4 + EM_STAT_LP] = t->copy[c].log_p;
    x[4 + EM_STAT_VISIT] = (double)((t->first_copy + c) % t->ladder.n_rung) +
                           (double)t->ladder.n_rung * t->copy[c].restarts;
    memcpy(x + HEAD, block->theta + c * t->stride, (size_t)t->stride * sizeof *x);
    memcpy(x + HEAD + t->stride, t->of_model + c * t->stride, (size_t)t->stride * sizeof *x);
    note(t, em_mailbox_put(t->mailbox, em_ladder_group(t, ladder), key_of(KEY_DRAW, ladder),
                           HEAD + 2 * t->stride, x));
}

/* The draw of an iteration into t->message. The copy at the target changes, so that a later draw
 * may come before it, from another group: it is held until its turn. */
static void receive_draw(em_tempering *t, int64_t ladder, int64_t iteration)
{
    const int64_t n = HEAD + 2 * t->stride, row = n + 1;

    for (int64_t i = 0; i < t->n_held; i++) {
        double *held = t->held + i * row;
        if (held[0] != (double)ladder || held[1] != (double)iteration)
            continue;
        memcpy(t->message, held + 1, (size_t)n * sizeof *held);
        memmove(held, t->held + --t->n_held * row, (size_t)row * sizeof *held);
        return;
    }
    while (em_mailbox_take(t->mailbox, key_of(KEY_DRAW, ladder), n, t->message),
           t->message[0] != (double)iteration) {
        if (t->n_held == t->most_held) {
            const em_status status =
                em_reallocate((2 * t->most_held + 4) * row, sizeof *t->held, &t->held);
            note(t, status);
            if (status)
                continue; /* the run ends by it */
            t->most_held = 2 * t->most_held + 4;
        }
        double *held = t->held + t->n_held++ * row;
        held[0] = (double)ladder;
        memcpy(held + 1, t->message, (size_t)n * sizeof *held);
    }
}

static void fill(em_tempering *t, int64_t c, em_block *block)
{
    const double *x = t->message;

    block->log_density[c] = x[1];
    block->acceptance[c] = x[2];
    block->n_step[c] = x[3];
    for (int i = 0; i < EM_STAT_COUNT; i++)
        block->stat[i][c] = x[4 + i];
    memcpy(block->theta + c * t->stride, x + HEAD, (size_t)t->stride * sizeof *x);
    memcpy(block->gradient + c * t->stride, x + HEAD + t->stride, (size_t)t->stride * sizeof *x);
}

void em_ladders_deliver(em_tempering *t, int64_t iteration, em_block *block)
{
    for (int64_t c = 0; c < t->n_copy; c++)
        if (t->copy[c].rung == t->ladder.target)
            send_draw(t, c, iteration);
    for (int64_t c = 0; c < block->n_chain; c++) {
        receive_draw(t, block->chain[c], iteration);
        fill(t, c, block);
    }
}

/* The draws of a round's second half, from which the reference and the masses are learned. */
static void collect(em_tempering *t, const em_block *block)
{
    for (int64_t c = 0; c < block->n_chain; c++) {
        const double *theta = block->theta + c * t->stride;
        double *farthest = t->farthest + c * t->dim;
        for (int64_t i = 0; i < t->dim; i++) {
            t->message[i] = theta[i] - t->centre[i];
            farthest[i] = fmax(farthest[i], fabs(theta[i]));
        }
        const em_observation sample = {.theta = t->message,
                                       .gradient = block->gradient + c * t->stride};
        em_tempering_estimator(t)->observe(t->structure, t->dim, &sample,
                                           t->accumulator + c * t->n_accumulator);
    }
}

void em_tempering_scan(em_tempering *t, int64_t iteration, em_block *block)
{
    const int64_t unit = unit_of(t, iteration);

    for (int64_t c = 0; c < t->n_copy; c++) {
        const bool drawn = t->ladder.beta[t->copy[c].rung] == 0;
        if (!t->failure)
            note(t, drawn ? draw_copy(t, c, iteration) : move_copy(t, c, iteration));
        if (!t->failure)
            note(t, look_back(t, c));
        count_copy(t, c, unit);
    }
    swap(t, iteration);
    for (int64_t c = 0; c < t->n_copy; c++) {
        em_copy_compose(t, c);
        count_trip(t, &t->copy[c]);
    }
    if (t->ended >= 0)
        em_path_take(t, iteration - t->ended);
    em_ladders_deliver(t, iteration, block);
    if (t->ended < 0 && iteration >= (t->round_begin + t->round_end) / 2)
        collect(t, block);
}
