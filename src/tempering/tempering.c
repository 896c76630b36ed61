#include "base/memory.h"
#include "emass/model/prior.h"
#include "math/finite.h"
#include "math/rng.h"
#include "model/model.h"
#include "par/world.h"
#include "tempering/reference.h"
#include "tempering/tempering_internal.h"

#include <math.h>
#include <string.h>

enum { FIRST_RUNGS = 8, UNITS = 32, MOST_TRIES = 100 };

/* ---------------------------------------------------------------- life */

/* Sets the step sizes of all rungs: those of the options, or the given ones if they are adapted. */
static void start_steps(em_tempering *t, em_status status, const double *first)
{
    for (int64_t k = 0; !status && k < t->ladder.n_rung; k++)
        for (int i = 0; i < t->n_kernel; i++) {
            const double given = t->task.kernel[i].options->step_size;
            em_rung_start_step(t, k, i, !isnan(given) ? given : first ? first[i] : 0.3);
        }
}

static em_status set_up(em_tempering *t)
{
    em_status status =
        em_own_all(&t->memory, EM_ARRAY(t->centre, t->dim), EM_ARRAY(t->message, em_draw_length(t)),
                   EM_ARRAY(t->reference_precision, EM_MOST_LEGS * t->dim),
                   EM_ARRAY(t->rung_kernel, 2 * EM_MOST_LEG_RUNGS * t->n_kernel));

    status = status ? status : em_references_create(t);
    status = status ? status : em_round_allocate(t);
    status = status ? status : em_rungs_set_masses(t);
    start_steps(t, status, NULL);
    return status;
}

em_status em_tempering_create(const em_tempering_task *task, em_tempering **out)
{
    const int64_t given = task->options->rungs;
    em_status status = em_agree(em_allocate(1, sizeof **out, out));
    em_tempering *t = *out;

    if (status)
        return status;
    t->task = *task;
    t->dim = task->model->dim;
    t->stride = em_stride(t->dim);
    t->n_kernel = task->n_kernel;
    t->without_gradient = true;
    for (int i = 0; i < t->n_kernel; i++)
        t->without_gradient &= task->kernel[i].ops->without_gradient;
    t->n_ladder = em_grid_n_chain(task->grid);
    t->n_leg = task->options->legs;
    t->n_unit = t->n_ladder >= UNITS ? 1 : 2 * ((UNITS / 2 + t->n_ladder - 1) / t->n_ladder);
    t->unit_length = t->path_every = 1;
    t->ladder = em_ladder_create(t->n_leg, given == INT64_MIN ? FIRST_RUNGS : given);
    t->warmup = task->first + em_tempering_most_warmup(task->warmup);
    t->ended = t->warmup == 0 ? 0 : -1;
    status = em_own_all(&t->memory, EM_ARRAY(t->coordinates, t->stride));
    status = status ? status : em_coordinates_create(t);
    status = em_agree(status ? status : em_round_create_window(t));
    if (status)
        return status;
    t->findings.first = task->first;
    t->findings.why = task->why;
    em_round_begin(t, task->first);
    t->structure = em_round_structure(t);
    status = em_agree(set_up(t));
    return status ? status : em_copies_create(t);
}

void em_tempering_destroy(em_tempering **out)
{
    em_tempering *t = *out;

    if (!t)
        return;
    em_copies_destroy(t);
    em_references_destroy(t);
    for (int64_t j = 0; t->rung_kernel && j < 2 * EM_MOST_LEG_RUNGS * t->n_kernel; j++)
        em_mass_destroy(&t->rung_kernel[j].mass);
    em_noncentring_release(&t->map);
    em_release_all(&t->held, &t->accumulator, &t->farthest, &t->learned);
    em_release_owner(out);
}

bool em_tempering_uses_gradients(const em_tempering *t)
{
    return !t->without_gradient;
}

int64_t em_tempering_evaluations(const em_tempering *t)
{
    return t->evaluations + em_posterior_evaluations(t->of_parameters);
}

/* ---------------------------------------------------------------- the start */

/* Evaluates the posterior at the position of a copy. *usable: density and gradient are finite. */
static em_status evaluate_copy(em_tempering *t, int64_t c, bool *usable)
{
    const em_status status = em_copy_evaluate_model(t, c);

    *usable = status >= 0 && isfinite(t->copy[c].log_p) &&
              em_all_finite(t->dim, t->of_model + c * t->stride);
    return status;
}

/* A uniform position with a finite density and gradient, for one copy. */
static em_status start_copy(em_tempering *t, int64_t c)
{
    const int64_t number = t->block->chain[c];
    double *theta = t->block->theta + c * t->stride;
    bool usable = false;
    em_status status = EM_OK;

    for (uint64_t attempt = 0; status >= 0 && !usable && attempt < MOST_TRIES; attempt++) {
        const em_stream stream = {t->task.seed, (uint64_t)number, attempt, EM_RNG_INIT};
        const em_draw draw = {t->task.seed, number, (int64_t)attempt, EM_DRAW_START};
        em_uniforms_within(&stream, t->dim, t->task.init_radius, theta);
        if (t->task.model->ops->start)
            status = t->task.model->ops->start(t->task.model, &draw, theta);
        em_copies_from_model(t, theta, NULL, NULL);
        if (status >= 0)
            status = evaluate_copy(t, c, &usable);
    }
    if (usable)
        return em_copy_evaluate_and_compose(t, c);
    return status < 0
               ? status
               : em_fail(EM_EMODEL,
                         "chain %lld: no finite log density in %d tries within "
                         "run.init_radius %g of the origin%s%s (declare the bounds of all "
                         "parameters, or set run.init_radius)",
                         (long long)(number / t->ladder.n_rung), MOST_TRIES, t->task.init_radius,
                         *em_model_why(t->task.model) ? ": " : "", em_model_why(t->task.model));
}

/* Starts a copy at the position of a chain: the copy at the target of ladder l at that of chain l,
 * the other copies of the ladder at those of the following chains. */
static em_status start_at_chain(em_tempering *t, const double *chains, int64_t c)
{
    const int64_t n = t->n_ladder, number = t->block->chain[c];
    const int64_t from = number / t->ladder.n_rung + t->copy[c].rung - t->ladder.target;
    bool usable;

    memcpy(t->block->theta + c * t->stride, chains + ((from % n + n) % n) * t->stride,
           (size_t)t->stride * sizeof *chains);
    em_copies_from_model(t, t->block->theta + c * t->stride, NULL, NULL);
    const em_status status = evaluate_copy(t, c, &usable);
    if (status < 0)
        return status;
    return usable ? em_copy_evaluate_and_compose(t, c) : start_copy(t, c);
}

/* Reads the normalising constants that densities omit. Collective over the ranks of a group. */
static em_status find_constants(em_tempering *t)
{
    em_model *model = t->task.model;
    double *theta = t->message;

    if (!model->ops->prior || !model->ops->prior->log_constants || t->n_copy == 0)
        return EM_OK;
    memcpy(theta, t->block->theta, (size_t)t->stride * sizeof *theta);
    em_copies_to_model(t, theta, NULL, NULL);
    return model->ops->prior->log_constants(model, theta, &t->log_constant[0], &t->log_constant[1]);
}

/* Completes the start of all copies: the omitted constants, and the draws at the targets. */
static em_status set_off(em_tempering *t, em_status status, em_block *block,
                         const em_block *const *of_kernel)
{
    status = status ? status : find_constants(t);
    status = em_agree(status);
    if (status)
        return status;
    em_broadcast(t->log_constant, sizeof t->log_constant); /* found by all, rounded by each */
    em_ladders_deliver(t, t->task.first - 1, block, of_kernel);
    return EM_OK;
}

em_status em_tempering_start(em_tempering *t, em_block *block, const em_block *const *of_kernel)
{
    em_status status = EM_OK;

    for (int64_t c = 0; !status && c < t->n_copy; c++)
        status = start_copy(t, c);
    return set_off(t, status, block, of_kernel);
}

/* Takes over the map of the chains. *fits: the ladders can have it, and it separates no modes.
 * Copies at high temperatures reach log scales so far apart that the precision of rows which are
 * mapped together cannot be computed. */
static em_status take_map(em_tempering *t, const em_noncentring_row *row, bool *fits)
{
    EM_SCOPED_BY(em_noncentring_release) em_noncentring map = {0};
    bool separates = false;

    *fits = !row || t->learns_map;
    if (!row || !*fits)
        return EM_OK;
    em_status status = em_noncentring_create(t->dim, &map);
    status = status ? status : em_noncentring_set(&map, row);
    status = status ? status : em_coordinates_judge(t, &map, &separates);
    *fits = !separates && em_noncentring_count(&map).joint == 0;
    if (status || !*fits)
        return status;
    status = em_noncentring_set(&t->map, row);
    return status ? status : em_reference_restart(t, NULL);
}

/* Sets the first reference of leg B, and the mass and the step sizes of the rungs, from the results
 * of the chains. Results in coordinates that the ladders do not have are left. Local. */
static em_status take_over(em_tempering *t, const em_tempering_beginning *from)
{
    const em_mass_form diagonal = {.ops = &em_mass_diag, .dim = t->dim};
    const em_mass_form form = em_tempering_form(t);
    bool fits = true;
    em_status status = take_map(t, from->noncentring, &fits);

    if (!status && fits && from->mean) {
        memcpy(t->centre, from->mean, (size_t)t->dim * sizeof *t->centre);
        if (t->n_leg > 1)
            status = em_reference_learn(t, &diagonal, from->mean, from->variance);
    }
    if (status >= 0 && fits && from->inverse_mass) {
        status = em_allocate(form.ops->size(&form), sizeof *t->learned, &t->learned);
        if (!status)
            form.ops->spread(&form, from->inverse_mass, t->learned);
    }
    if (status >= 0)
        status = em_rungs_set_masses(t);
    start_steps(t, status, from->step_size);
    return status;
}

em_status em_tempering_start_from(em_tempering *t, const em_tempering_beginning *from,
                                  em_block *block, const em_block *const *of_kernel)
{
    em_status status = em_agree(take_over(t, from));

    for (int64_t c = 0; !status && c < t->n_copy; c++)
        status = start_at_chain(t, from->theta, c);
    return set_off(t, status, block, of_kernel);
}

/* ---------------------------------------------------------------- the end */

em_status em_tempering_conclude(em_tempering *t, int64_t done, em_tempering_findings *out)
{
    em_tempering_findings *found = &t->findings;
    em_status status = em_agree(em_allocate(3 * t->n_ladder, sizeof(double), &out->of_ladder));
    double *of_ladder = out->of_ladder;

    status = status ? status : em_counts_gather(t, &found->draws, found->rejection, of_ladder);
    found->ladder = t->ladder;
    found->map = t->map.n_child > 0 ? &t->map : NULL;
    for (int64_t k = 0; k < t->ladder.n_rung; k++)
        found->step_size[k] = em_rung_kernel_at(t, k, 0)->step_size;
    *out = *found;
    out->of_ladder = of_ladder;
    return status ? status : em_path_gather(t, t->ended < 0 ? 0 : done - t->ended, out);
}

/* ---------------------------------------------------------------- checkpoints */

/* The number of doubles in a ladder's checkpoint: rung, origin, trips, log p, path, counts,
 * bridges, position and gradient of each copy. */
static int64_t numbers_of_copy(const em_tempering *t)
{
    const int64_t n_rung = t->ladder.n_rung;

    return 5 + EM_MOST_TIMES + 2 * t->stride +
           n_rung * (t->n_kernel + (int64_t)(sizeof(em_rung_counts) / sizeof(double))) +
           t->n_unit * (n_rung - 1) * (int64_t)(sizeof(em_bridge) / sizeof(double));
}

static void copy_numbers(em_tempering *t, int64_t c, double *x, bool out)
{
    em_copy *copy = &t->copy[c];
    const int64_t n_rung = t->ladder.n_rung, each = t->n_unit * (n_rung - 1);
    double head[5] = {(double)copy->rung, (double)copy->origin, copy->log_p, copy->restarts,
                      copy->round_trips};
    const struct {
        void *data;
        size_t bytes;
    } arrays[] = {
        {head, sizeof head},
        {t->path + c * EM_MOST_TIMES, EM_MOST_TIMES * sizeof(double)},
        {t->block->theta + c * t->stride, (size_t)t->stride * sizeof(double)},
        {t->of_model + c * t->stride, (size_t)t->stride * sizeof(double)},
        {t->count + c * n_rung, (size_t)n_rung * sizeof *t->count},
        {t->acceptance + c * n_rung * t->n_kernel, (size_t)(n_rung * t->n_kernel) * sizeof(double)},
        {t->bridges + c * each, (size_t)each * sizeof *t->bridges}};

    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
        memcpy(out ? (void *)x : arrays[i].data, out ? arrays[i].data : (void *)x, arrays[i].bytes);
        x += arrays[i].bytes / sizeof *x;
    }
    copy->rung = (int64_t)head[0];
    copy->origin = (em_origin)head[1];
    copy->log_p = head[2];
    copy->restarts = head[3];
    copy->round_trips = head[4];
}

/* Copies the state from a checkpoint to the copies of this rank. Local. */
static em_status restore_copies(em_tempering *t, int64_t n, double *own)
{
    em_status status = EM_OK;

    for (int64_t c = 0; !status && c < t->n_copy; c++) {
        copy_numbers(t, c, own + c * n, false);
        if (t->copy[c].rung < 0 || t->copy[c].rung >= t->ladder.n_rung)
            status = em_fail(EM_EDATA, "a checkpoint has a copy on rung %lld of %lld",
                             (long long)t->copy[c].rung, (long long)t->ladder.n_rung);
        else
            status = em_copy_evaluate_and_compose(t, c);
    }
    return status;
}

/* Visits the copies for a checkpoint, in which the copies of a ladder are numbers of its chain.
 * While it is written or read, the rank that records the ladder holds them. Collective. */
static em_status visit_copies(em_tempering *t, const em_visitor *visitor)
{
    const int64_t n = numbers_of_copy(t), n_rung = t->ladder.n_rung;
    const em_grid_items ladders = {t->task.grid, n_rung}, copies = {t->copies, 1};
    EM_SCOPED double *own = NULL, *of_ladders = NULL;
    em_status status = em_agree(
        em_allocate_all(EM_ARRAY(own, t->n_copy * n),
                        EM_ARRAY(of_ladders, em_grid_n_local_chain(t->task.grid) * n_rung * n)));

    for (int64_t c = 0; !status && c < t->n_copy; c++)
        copy_numbers(t, c, own + c * n, true);
    status = status ? status : em_grid_move_items(copies, ladders, n, own, of_ladders);
    status = status ? status : visitor->chains(visitor->context, "copies", n_rung * n, of_ladders);
    if (!status && visitor->restores) {
        status = em_grid_move_items(ladders, copies, n, of_ladders, own);
        status = em_agree(status ? status : restore_copies(t, n, own));
    }
    return status;
}

/* The state that is the same on all ranks and whose size never changes. */
typedef struct fixed {
    double round, round_begin, round_end, ended, structure, has_learned, has_reference;
    double n_rung, target, n_round, unit_length, path_every, reach, log_constant[2];
    double beta[2 * EM_MOST_LEG_RUNGS];
    em_tempering_round rounds[EM_MOST_ROUNDS];
} fixed;

static void save_fixed(const em_tempering *t, fixed *x)
{
    *x = (fixed){.round = (double)t->round,
                 .round_begin = (double)t->round_begin,
                 .round_end = (double)t->round_end,
                 .ended = (double)t->ended,
                 .structure = t->structure,
                 .has_learned = t->learned != NULL,
                 .has_reference = t->n_leg > 1,
                 .n_rung = (double)t->ladder.n_rung,
                 .target = (double)t->ladder.target,
                 .n_round = (double)t->findings.n_round,
                 .unit_length = (double)t->unit_length,
                 .path_every = (double)t->path_every,
                 .reach = t->findings.reach,
                 .log_constant = {t->log_constant[0], t->log_constant[1]}};
    memcpy(x->beta, t->ladder.beta, sizeof x->beta);
    memcpy(x->rounds, t->findings.round, sizeof x->rounds);
}

/* Visits the step sizes of the kernels on all rungs. */
static em_status visit_steps(em_tempering *t, const em_visitor *visitor)
{
    enum { AVERAGING = EM_DUAL_AVERAGING_NUMBERS, N = 1 + AVERAGING };
    const int64_t n = t->ladder.n_rung * t->n_kernel;
    EM_SCOPED double *x = NULL;
    em_status status = em_agree(em_allocate(n * N, sizeof *x, &x));

    for (int64_t j = 0; !status && j < n; j++) {
        x[j * N] = t->rung_kernel[j].step_size;
        memcpy(x + j * N + 1, &t->rung_kernel[j].averaging, AVERAGING * sizeof *x);
    }
    status = status ? status : visitor->shared(visitor->context, "ladder_steps", n * N, x);
    for (int64_t j = 0; !status && visitor->restores && j < n; j++) {
        em_rung_kernel *of = &t->rung_kernel[j];
        of->step_size = x[j * N];
        of->averaging.target = em_target_accept(t, (int)(j % t->n_kernel));
        memcpy(&of->averaging, x + j * N + 1, AVERAGING * sizeof *x);
    }
    return status;
}

static bool is_sound(const em_tempering *t, const fixed *x)
{
    return x->n_rung >= 2 && x->n_rung < 2 * EM_MOST_LEG_RUNGS && x->target >= 1 &&
           x->target < x->n_rung && (t->n_leg == 1) == (x->target == x->n_rung - 1) &&
           x->n_round >= 0 && x->n_round <= EM_MOST_ROUNDS && x->round_end > x->round_begin &&
           x->unit_length >= 1 && x->path_every >= 1;
}

/* Restores the fixed state, and allocates the arrays whose sizes depend on the ladder. Collective.
 */
static em_status restore_fixed(em_tempering *t, const fixed *x)
{
    if (!is_sound(t, x))
        return em_fail(EM_EDATA, "a checkpoint has a ladder of %g rungs whose target is %g",
                       x->n_rung, x->target);
    em_copies_destroy(t);
    t->round = (int64_t)x->round;
    t->round_begin = (int64_t)x->round_begin;
    t->round_end = (int64_t)x->round_end;
    t->ended = (int64_t)x->ended;
    t->structure = x->structure != 0 ? EM_MASS_DENSE : EM_MASS_DIAG;
    t->ladder.n_rung = (int64_t)x->n_rung;
    t->ladder.target = (int64_t)x->target;
    t->findings.n_round = (int64_t)x->n_round;
    t->unit_length = (int64_t)x->unit_length;
    t->path_every = (int64_t)x->path_every;
    t->findings.reach = x->reach;
    memcpy(t->log_constant, x->log_constant, sizeof x->log_constant);
    memcpy(t->ladder.beta, x->beta, sizeof x->beta);
    memcpy(t->findings.round, x->rounds, sizeof x->rounds);
    em_release(&t->learned);
    em_status status = em_copies_create(t);
    const em_mass_form form = em_tempering_form(t);
    if (!status && x->has_learned != 0)
        status = em_agree(em_allocate(form.ops->size(&form), sizeof(double), &t->learned));
    return status ? status : em_agree(em_round_allocate(t));
}

/* Visits the learned reference of leg B. Its form is that of the round in which it was learned. */
static em_status visit_reference(em_tempering *t, const em_visitor *visitor)
{
    EM_SCOPED double *number = NULL;
    em_reference *read = NULL;

    if (t->n_leg == 1)
        return EM_OK;
    em_reference_form form = em_reference_form_of(t->learned_law);
    double of_form[2] = {form.structure == EM_MASS_DENSE, (double)form.most_rank};
    em_status status = visitor->shared(visitor->context, "reference_form", 2, of_form);
    form.structure = of_form[0] != 0 ? EM_MASS_DENSE : EM_MASS_DIAG;
    form.most_rank = of_form[1] != 0 ? t->most_rank : 0;
    const int64_t n = em_reference_size(&form);
    status = status ? status : em_agree(em_allocate(n, sizeof *number, &number));
    if (!status && !visitor->restores)
        em_reference_write(t->learned_law, number);
    status = status ? status : visitor->shared(visitor->context, "reference", n, number);
    if (!status && visitor->restores) {
        status = em_reference_read(&form, number, &read);
        status = status ? status : em_reference_compose(t, read);
        status = em_agree(status);
    }
    return status > 0 ? em_fail(EM_EDATA, "a checkpoint has a reference without a density")
                      : status;
}

/* Visits the map. The copies, which are read later, are in its coordinates. */
static em_status visit_map(em_tempering *t, const em_visitor *visitor)
{
    const int64_t n = t->dim * EM_NONCENTRING_NUMBERS;
    EM_SCOPED em_noncentring_row *row = NULL;

    if (!t->learns_map)
        return EM_OK;
    em_status status = em_agree(em_allocate(t->dim, sizeof *row, &row));
    if (!status) {
        memcpy(row, t->map.row, (size_t)t->dim * sizeof *row);
        status = visitor->shared(visitor->context, "ladder_noncentring", n, (double *)row);
    }
    if (!status && visitor->restores)
        status = em_noncentring_set(&t->map, row);
    return status;
}

em_status em_tempering_visit(em_tempering *t, const em_visitor *visitor)
{
    EM_SCOPED fixed *x = NULL;
    em_status status = em_agree(em_allocate(1, sizeof *x, &x));

    if (!status)
        save_fixed(t, x);
    if (!status)
        status = visitor->shared(visitor->context, "ladder", (int64_t)(sizeof *x / sizeof(double)),
                                 (double *)x);
    if (!status && visitor->restores)
        status = restore_fixed(t, x);
    status = status ? status : visit_map(t, visitor);
    status = status ? status : visit_steps(t, visitor);
    if (!status)
        status = visitor->shared(visitor->context, "ladder_centre", t->dim, t->centre);
    status = status ? status : visitor->shared(visitor->context, "ladder_scale", t->dim, t->scale);
    if (!status && visitor->restores)
        status = em_agree(em_reference_rescale(t));
    const em_mass_form form = em_tempering_form(t);
    if (!status && t->learned)
        status =
            visitor->shared(visitor->context, "ladder_mass", form.ops->size(&form), t->learned);
    status = status ? status : visit_reference(t, visitor);
    if (!status && t->ended < 0)
        status =
            visitor->chains(visitor->context, "ladder_draws", t->n_accumulator, t->accumulator);
    if (!status && t->ended < 0)
        status = visitor->chains(visitor->context, "ladder_farthest", t->dim, t->farthest);
    if (!status && t->ended < 0)
        status = em_window_visit(&t->window, visitor);
    if (!status && visitor->restores)
        status = em_agree(em_rungs_set_masses(t));
    return status ? status : visit_copies(t, visitor);
}
