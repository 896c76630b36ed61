/* Moves a copy by the kernels of its rung in turn, or by a draw from a reference. */
#include "tempering/tempering_internal.h"

#include <math.h>
#include <string.h>

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

/* The trajectory length, in whitened units, of a kernel whose trajectories adaptation may set: half
 * of the typical distance of independent points of a normal distribution. */
static em_trajectory trajectory_of(const em_tempering_kernel *kernel, int64_t iteration)
{
    em_trajectory out = {.kind = EM_TRAJECTORY_OPTIONS};

    if (kernel->ops->trajectory)
        out = kernel->ops->trajectory(kernel->options);
    if (out.kind == EM_TRAJECTORY_TIME && isnan(out.time)) {
        out.time = 1.5;
        out.jitter = 0.5;
    }
    out.number = iteration + 1;
    return out;
}

/* Moves the copy whose state is `one`, or its block of it, by one kernel. */
static em_status step_kernel(em_tempering *t, int i, int64_t c, int64_t iteration, em_block *one)
{
    const em_copy_kernel *kernel = &t->kernel[i];
    const em_parameters *part = kernel->task->parameters;
    const em_rung_kernel *learned = em_rung_kernel_at(t, t->copy[c].rung, i);
    const em_mass *mass = learned->mass;
    em_block *block = part ? kernel->block : one;
    em_move *move = &t->move[c * t->n_kernel + i];
    const em_step_context context = {.posterior = kernel->posterior,
                                     .mass = &mass,
                                     .step_size = &learned->step_size,
                                     .seed = kernel->task->seed,
                                     .iteration = iteration,
                                     .warmup = t->ended < 0,
                                     .trajectory = trajectory_of(kernel->task, iteration)};
    em_status status = EM_OK;

    if (part) { /* the others have moved since */
        block->chain[0] = one->chain[0];
        memcpy(block->theta, one->theta + part->first, (size_t)part->count * sizeof(double));
        status = em_block_evaluate(kernel->posterior, block);
    }
    if (status >= 0)
        status = kernel->sampler->ops->step(kernel->sampler, &context, block);
    if (part)
        memcpy(one->theta + part->first, block->theta, (size_t)part->count * sizeof(double));
    move->acceptance = *block->acceptance;
    move->n_step = *block->n_step;
    for (int s = 0; s < EM_STAT_COUNT; s++)
        move->stat[s] = *block->stat[s];
    return status < 0 ? status : EM_OK;
}

/* ---------------------------------------------------------------- moves */

/* Computes log p from the tempered density and log r. */
static void find_p(em_tempering *t, int64_t c, const em_block *one)
{
    em_copy *copy = &t->copy[c];
    const double beta = t->ladder.beta[copy->rung];
    const int leg = em_ladder_leg(&t->ladder, copy->rung);
    const double *of_reference = em_copy_reference(t, c, leg);
    double *of_model = t->of_model + c * t->stride;

    copy->log_p = *one->log_density;
    memcpy(of_model, one->gradient, (size_t)t->stride * sizeof *of_model);
    if (beta == 1)
        return;
    copy->log_p = (*one->log_density - (1 - beta) * copy->log_r[leg]) / beta;
    for (int64_t i = 0; i < t->dim; i++)
        of_model[i] = (one->gradient[i] - (1 - beta) * of_reference[i]) / beta;
}

static em_status move_by_kernels(em_tempering *t, int64_t c, int64_t iteration)
{
    em_block one = block_of(t, c);
    em_status status = EM_OK;

    for (int i = 0; !status && i < t->n_kernel; i++)
        status = step_kernel(t, i, c, iteration, &one);
    if (!status && t->task.kernel[0].parameters)
        status = em_block_evaluate(t->tempered, &one);
    if (status >= 0 && t->ladder.beta[t->copy[c].rung] != 1)
        status = em_copy_evaluate_reference(t, c, em_ladder_leg(&t->ladder, t->copy[c].rung));
    if (status >= 0)
        find_p(t, c, &one);
    return status;
}

/* Draws independently from the reference, and evaluates p at the draw. */
static em_status draw_reference(em_tempering *t, int64_t c, int64_t iteration)
{
    const int leg = em_ladder_leg(&t->ladder, t->copy[c].rung);
    const em_draw draw = {t->task.seed, t->block->chain[c], iteration, EM_DRAW_PRIOR};
    em_status status =
        t->reference[leg]->draw(t->reference[leg], &draw, t->block->theta + c * t->stride);

    if (status >= 0)
        status = em_copy_evaluate_model(t, c);
    if (status >= 0)
        status = em_copy_evaluate_reference(t, c, leg);
    for (int i = 0; i < t->n_kernel; i++)
        t->move[c * t->n_kernel + i] = (em_move){.acceptance = 1};
    return status;
}

em_status em_copy_move(em_tempering *t, int64_t c, int64_t iteration)
{
    const int64_t rung = t->copy[c].rung;
    em_status status = t->ladder.beta[rung] == 0 ? draw_reference(t, c, iteration)
                                                 : move_by_kernels(t, c, iteration);

    for (int leg = 0; status >= 0 && leg < t->n_leg && rung == t->ladder.target; leg++)
        status = em_copy_evaluate_reference(t, c, leg); /* the target belongs to both legs */
    return status;
}
