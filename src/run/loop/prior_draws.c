#include "run/loop/prior_draws.h"

#include "base/memory.h"
#include "emass/model/prior.h"
#include "par/message.h"
#include "par/world.h"
#include "run/loop/engine.h"
#include "run/output/output_file.h"

#include <string.h>

enum { MOST_NUMBERS = 1 << 20, KINDS = 2 }; /* of this rank at a time */

em_status em_check_prior_draws_suit_model(const em_config *config, const em_model *model)
{
    const em_model_prior *prior = model->ops->prior;

    if (config->output.prior_draws == 0 || (prior && prior->draw))
        return EM_OK;
    return em_fail(EM_ECONFIG, "%s: output.prior_draws: found %lld, expected 0: model %s %s",
                   config->path, (long long)config->output.prior_draws, model->ops->name,
                   prior && prior->none ? prior->none : "gives no draws from its prior");
}

/* A group of the layout that a draw from the prior has too. */
typedef struct prior_group {
    int64_t of;   /* the layout */
    int group;    /* of the writer */
    double *rows; /* [n_local_chain][n_step][width] */
} prior_group;

typedef struct drawing {
    em_engine *engine;
    int n_group;
    prior_group group[KINDS];
    int64_t n_step;
    double *theta;
    int64_t n_failed;
} drawing;

static const em_draw_group *layout_group(const drawing *d, int k)
{
    return &em_recorder_layout(d->engine->recorder)->group[d->group[k].of];
}

static em_status add_groups(drawing *d)
{
    static const char *const name[KINDS][2] = {{"posterior", "prior"},
                                               {"posterior_predictive", "prior_predictive"}};
    const em_layout *layout = em_recorder_layout(d->engine->recorder);
    const int64_t n_draw = d->engine->config->output.prior_draws;
    em_status status = EM_OK;

    for (int k = 0; k < KINDS; k++)
        for (int64_t i = 0; !status && i < layout->n_group; i++) {
            const em_draw_group *group = &layout->group[i];
            if (strcmp(group->name, name[k][0]) != 0)
                continue;
            d->group[d->n_group].of = i;
            status = em_writer_add_draws(d->engine->output->writer, name[k][1], group->n_variable,
                                         group->variable,
                                         (em_draw_space){n_draw, d->engine->plan.chunk, n_draw},
                                         &d->group[d->n_group++].group);
        }
    return status;
}

/* Allocates memory for as many draws as fit, the same number on all ranks. */
static em_status allocate_batch(drawing *d)
{
    const int64_t n_draw = d->engine->config->output.prior_draws;
    const int64_t n_chain = em_grid_n_chain(d->engine->grid);
    const int64_t n_local = em_grid_n_local_chain(d->engine->grid);
    int64_t width = 1;
    em_status status = em_allocate(em_stride(d->engine->model->dim), sizeof(double), &d->theta);

    for (int k = 0; k < d->n_group; k++)
        width += layout_group(d, k)->width;
    d->n_step = MOST_NUMBERS / (n_chain * width);
    d->n_step = d->n_step < 1 ? 1 : d->n_step > n_draw ? n_draw : d->n_step;
    for (int k = 0; !status && k < d->n_group; k++)
        status =
            em_allocate_doubles(n_local * d->n_step * layout_group(d, k)->width, &d->group[k].rows);
    return em_agree(status);
}

/* Makes draws first .. first + n - 1 of this rank's chains. Local. */
static em_status draw(drawing *d, int64_t first, int64_t n)
{
    const em_grid *grid = d->engine->grid;
    em_status status = EM_OK;

    for (int64_t r = 0; !status && r < em_grid_n_local_chain(grid) * n; r++) {
        const em_draw counted = {(uint64_t)d->engine->config->run.seed,
                                 em_grid_first_chain(grid) + r / n, first + r % n, EM_DRAW_PRIOR};
        bool failed = false;
        status = em_recorder_draw_prior(d->engine->recorder, counted, d->theta, &failed);
        d->n_failed += failed;
        for (int k = 0; !status && k < d->n_group; k++) {
            const int64_t width = layout_group(d, k)->width;
            memcpy(d->group[k].rows + r * width,
                   em_recorder_values(d->engine->recorder, d->group[k].of),
                   (size_t)width * sizeof(double));
        }
    }
    return status;
}

static em_status write(drawing *d, int64_t first, int64_t n)
{
    em_status status = EM_OK;

    for (int k = 0; !status && k < d->n_group; k++) {
        const em_draw_group *group = layout_group(d, k);
        if (group->sharded)
            em_grid_sum_shards(d->engine->grid,
                               em_grid_n_local_chain(d->engine->grid) * n * group->width,
                               d->group[k].rows);
        status = em_writer_put_draws(d->engine->output->writer, d->group[k].group, first, n,
                                     d->group[k].rows);
    }
    return status;
}

em_status em_engine_put_prior(em_engine *engine)
{
    const int64_t n_draw = engine->config->output.prior_draws;
    drawing d = {.engine = engine};

    if (n_draw == 0)
        return EM_OK;
    em_status status = add_groups(&d);
    status = status ? status : allocate_batch(&d);
    for (int64_t first = 0; !status && first < n_draw; first += d.n_step) {
        const int64_t n = n_draw - first < d.n_step ? n_draw - first : d.n_step;
        status = em_agree(draw(&d, first, n));
        status = status ? status : write(&d, first, n);
    }
    if (!status)
        em_world_sum(1, &d.n_failed);
    if (!status && d.n_failed > 0)
        em_say("warning: %lld draws from the prior lack predictions that are too large to be "
               "drawn: they are NaN, or the smallest integer",
               (long long)(d.n_failed / em_grid_n_shard(engine->grid)));
    em_release(&d.theta);
    for (int k = 0; k < KINDS; k++)
        em_release(&d.group[k].rows);
    return status;
}
