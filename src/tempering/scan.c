/* Makes one scan: every copy moves, neighbouring rungs swap, and the copies at the targets become
 * the draws of the ladders. */
#include "base/memory.h"
#include "math/rng.h"
#include "tempering/tempering_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Keys of messages. `number` is the number of a copy, of the first rung of a pair, or of a ladder.
 */
enum { KEY_REQUEST, KEY_REPLY, KEY_DRAW, N_KEY };

static int64_t key_of(int kind, int64_t number)
{
    return N_KEY * number + kind;
}

/* Records the first failure. The scan continues, because other ranks wait for its messages. */
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

/* ---------------------------------------------------------------- counts */

/* Merges pairs of parts of each copy, so that half of the parts become free. */
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

/* The part of the draws, or of a round's second half, that contains this scan. Each part has
 * unit_length scans; the last one may have fewer. */
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
    bool diverging = false;

    count->n++;
    for (int i = 0; i < t->n_kernel; i++) {
        diverging |= t->move[c * t->n_kernel + i].stat[EM_STAT_DIVERGING] != 0;
        t->acceptance[(c * t->ladder.n_rung + copy->rung) * t->n_kernel + i] +=
            t->move[c * t->n_kernel + i].acceptance;
    }
    count->n_diverging += diverging;
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

/* The pair of rungs to which a rung belongs in a scan, by its first rung; -1: none. */
static int64_t pair_of(const em_tempering *t, int64_t rung, int64_t iteration)
{
    const int64_t pair = rung % 2 == iteration % 2 ? rung : rung - 1;

    return pair < t->ladder.n_rung - 1 ? pair : -1;
}

/* The message of a copy to the group that decides about the swap of its pair, which is the group of
 * copy `pair` of the ladder. */
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

/* Decides whether a pair swaps. The random number depends only on ladder, scan and pair. */
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

/* The offsets of the parts of t->message. */
enum { ITERATION, LOG_P, VISIT, MOVES };

static double *message_of_theta(const em_tempering *t)
{
    return t->message + em_draw_length(t) - 2 * t->stride;
}

static void send_draw(em_tempering *t, int64_t c, int64_t iteration)
{
    const int64_t ladder = (t->first_copy + c) / t->ladder.n_rung;
    double *x = t->message, *theta = message_of_theta(t);

    x[ITERATION] = (double)iteration;
    x[LOG_P] = t->copy[c].log_p;
    x[VISIT] = (double)((t->first_copy + c) % t->ladder.n_rung) +
               (double)t->ladder.n_rung * t->copy[c].restarts;
    memcpy(x + MOVES, t->move + c * t->n_kernel, (size_t)t->n_kernel * sizeof *t->move);
    memcpy(theta, t->block->theta + c * t->stride, (size_t)t->stride * sizeof *x);
    memcpy(theta + t->stride, t->of_model + c * t->stride, (size_t)t->stride * sizeof *x);
    em_copies_to_model(t, theta, theta + t->stride, &x[LOG_P]);
    note(t, em_mailbox_put(t->mailbox, em_ladder_group(t, ladder), key_of(KEY_DRAW, ladder),
                           em_draw_length(t), x));
}

/* Receives the draw of an iteration into t->message. Because the copy at the target changes, a
 * later draw may arrive first from another group; it is held until its turn. */
static void receive_draw(em_tempering *t, int64_t ladder, int64_t iteration)
{
    const int64_t n = em_draw_length(t), row = n + 1;

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

/* Writes the statistics of each kernel. A flag of the whole draw is set if any kernel set it. */
static void fill_statistics(const em_tempering *t, int64_t c, em_block *block,
                            const em_block *const *of_kernel)
{
    const double *x = t->message;
    const em_move *move = (const em_move *)(x + MOVES);
    bool diverging = false, saturated = false;

    for (int i = 0; i < t->n_kernel; i++) {
        of_kernel[i]->acceptance[c] = move[i].acceptance;
        of_kernel[i]->n_step[c] = move[i].n_step;
        for (int s = 0; s < EM_STAT_COUNT; s++)
            of_kernel[i]->stat[s][c] = move[i].stat[s];
        of_kernel[i]->stat[EM_STAT_LP][c] = x[LOG_P];
        diverging |= move[i].stat[EM_STAT_DIVERGING] != 0;
        saturated |= move[i].stat[EM_STAT_REACHED_MAX_TREEDEPTH] != 0;
    }
    block->stat[EM_STAT_LP][c] = x[LOG_P];
    block->stat[EM_STAT_VISIT][c] = x[VISIT];
    block->stat[EM_STAT_DIVERGING][c] = diverging;
    block->stat[EM_STAT_REACHED_MAX_TREEDEPTH][c] = saturated;
}

void em_ladders_deliver(em_tempering *t, int64_t iteration, em_block *block,
                        const em_block *const *of_kernel)
{
    const double *theta = message_of_theta(t);
    const size_t bytes = (size_t)t->stride * sizeof *theta;

    for (int64_t c = 0; c < t->n_copy; c++)
        if (t->copy[c].rung == t->ladder.target)
            send_draw(t, c, iteration);
    for (int64_t c = 0; c < block->n_chain; c++) {
        receive_draw(t, block->chain[c], iteration);
        block->log_density[c] = t->message[LOG_P];
        memcpy(block->theta + c * t->stride, theta, bytes);
        memcpy(block->gradient + c * t->stride, theta + t->stride, bytes);
        fill_statistics(t, c, block, of_kernel);
    }
}

/* Adds the draws of a round's second half, from which the reference and the masses are learned. */
static void collect(em_tempering *t, const em_block *block, int64_t iteration)
{
    const em_part whole = {0, t->dim, t->structure};

    em_window_take(&t->window, block, iteration);
    for (int64_t c = 0; c < block->n_chain; c++) {
        const double *theta = block->theta + c * t->stride;
        double *farthest = t->farthest + c * t->dim;
        for (int64_t i = 0; i < t->dim; i++) {
            t->message[i] = theta[i] - t->centre[i];
            farthest[i] = fmax(farthest[i], fabs(theta[i]));
        }
        const em_observation sample = {.theta = t->message,
                                       .gradient = block->gradient + c * t->stride};
        em_estimator_observe_part(em_tempering_estimator(t), &whole, &sample,
                                  t->accumulator + c * t->n_accumulator);
    }
}

void em_tempering_scan(em_tempering *t, int64_t iteration, em_block *block,
                       const em_block *const *of_kernel)
{
    const int64_t unit = unit_of(t, iteration);

    for (int64_t c = 0; c < t->n_copy; c++) {
        if (!t->failure)
            note(t, em_copy_move(t, c, iteration));
        count_copy(t, c, unit);
    }
    swap(t, iteration);
    for (int64_t c = 0; c < t->n_copy; c++) {
        em_copy_compose(t, c);
        count_trip(t, &t->copy[c]);
    }
    if (t->ended >= 0)
        em_path_take(t, iteration - t->ended);
    em_ladders_deliver(t, iteration, block, of_kernel);
    if (t->ended < 0 && iteration >= (t->round_begin + t->round_end) / 2)
        collect(t, block, iteration);
}
