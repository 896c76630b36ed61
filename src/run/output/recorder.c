#include "run/output/recorder.h"

#include "base/default_message.h"
#include "base/memory.h"
#include "base/options/part_visitor.h"
#include "base/system/foreign_call_watchdog.h"
#include "base/text.h"
#include "model/bounds.h"
#include "model/model.h"
#include "par/world.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* The groups of draws: those that a model reports (em_report_group), and two of emass itself. */
enum { STATS = EM_N_REPORT_GROUP, UNCONSTRAINED, N_KIND };

static const char *const group_name[N_KIND] = {[EM_POSTERIOR] = "posterior",
                                               [EM_LOG_LIKELIHOOD] = "log_likelihood",
                                               [EM_POSTERIOR_PREDICTIVE] = "posterior_predictive",
                                               [EM_PREDICTIONS] = "predictions",
                                               [STATS] = "sample_stats",
                                               [UNCONSTRAINED] = "unconstrained_posterior"};

/* A variable that is stored, and its place among the numbers that the model reports. */
typedef struct stored_variable {
    const em_variable *variable;
    int64_t first, size;
} stored_variable;

/* A statistic that is stored, and the sampler that it belongs to. */
typedef struct stat_column {
    char *name; /* owned */
    em_stat stat;
    int kernel; /* -1: of the iteration as a whole */
} stat_column;

typedef struct outlet {
    em_sink sink;
    bool agreed; /* its statuses are the same on all ranks */
} outlet;

enum { MOST_OUTLETS = 2 };

struct em_recorder {
    em_owner memory; /* of its arrays and names */
    const em_config *config;
    em_model *model;
    const em_plan *plan;
    int64_t n_reported;
    double *reported; /* [n_reported] all variables of one draw */
    int64_t n_stored;
    stored_variable *stored; /* [n_stored] */
    int64_t n_stat;
    stat_column *column; /* [n_stat] */
    em_variable *series; /* those of all groups */
    em_layout layout;
    em_draw_group group[N_KIND];
    double *value[N_KIND];       /* by kind: one draw of its group; NULL: not stored */
    const double *given[N_KIND]; /* by group: the same, as sinks receive it */
    double *values;              /* the memory of all of these */
    char failure[256];           /* why a report failed, the first on this rank; "": none did */
    outlet outlet[MOST_OUTLETS];
    int n_outlet;
};

/* ---------------------------------------------------------------- numbers to record */

static bool is_selected(const em_config *config, const char *name)
{
    for (int64_t i = 0; i < config->output.variables.count; i++)
        if (fnmatch(config->output.variables.value[i], name, 0) == 0)
            return true;
    return config->output.variables.count == 0;
}

static em_status check_selection(const em_config *config, const em_model *model)
{
    for (int64_t i = 0; i < config->output.variables.count; i++) {
        bool found = false;
        for (int64_t k = 0; k < model->n_variable; k++)
            found |= fnmatch(config->output.variables.value[i], model->variable[k].name, 0) == 0;
        if (!found)
            return em_fail(EM_ECONFIG,
                           "%s: output.variables: found '%s', expected variables of model %s",
                           config->path, em_excerpt_of(config->output.variables.value[i]).text,
                           model->ops->name);
    }
    return EM_OK;
}

/* Checks that no variable of the model has the name of a coordinate of draws. */
static em_status check_name(const em_config *config, const char *name)
{
    if (strcmp(name, "chain") != 0 && strcmp(name, "draw") != 0)
        return EM_OK;
    return em_fail(EM_ECONFIG,
                   "%s: a variable of the model is called %s, the name of a coordinate of the "
                   "file: rename it, or leave it out by output.variables",
                   config->path, name);
}

em_status em_recorder_width(const em_config *config, const em_model *model, em_width *width)
{
    bool watched = true;
    em_status status = check_selection(config, model);

    *width = (em_width){0};
    for (int64_t k = 0; !status && k < model->n_variable; k++)
        if (is_selected(config, model->variable[k].name)) {
            const bool is_posterior = model->variable[k].group == EM_POSTERIOR;
            const int64_t size = em_bounds_size(1, &model->variable[k]);
            watched = watched && !(is_posterior && model->variable[k].unwatched);
            width->all += size;
            width->posterior += is_posterior ? size : 0;
            width->watched += is_posterior && watched ? size : 0;
            status = check_name(config, model->variable[k].name);
        }
    width->parameters = em_least(width->watched, model->dim);
    if (!status && width->watched == 0)
        return em_fail(EM_ECONFIG,
                       "%s: output.variables selects nothing of the posterior of model %s, "
                       "expected at least one number",
                       config->path, model->ops->name);
    return status;
}

/* How statistics are stored; those not named here as real numbers. */
static const em_storage stat_storage[EM_STAT_COUNT] = {
    [EM_STAT_DIVERGING] = EM_STORE_BOOL, [EM_STAT_REACHED_MAX_TREEDEPTH] = EM_STORE_BOOL,
    [EM_STAT_TREE_DEPTH] = EM_STORE_INT, [EM_STAT_N_STEPS] = EM_STORE_INT,
    [EM_STAT_VISIT] = EM_STORE_INT,
};

/* ---------------------------------------------------------------- set up */

/* Selects the variables that are stored, and allocates memory for one draw of them. */
static em_status select_variables(em_recorder *recorder)
{
    em_model *model = recorder->model;
    em_status status = em_own_all(&recorder->memory, EM_ARRAY(recorder->stored, model->n_variable));

    for (int64_t k = 0; !status && k < model->n_variable; k++) {
        const em_variable *variable = &model->variable[k];
        const int64_t size = em_bounds_size(1, variable);
        if (is_selected(recorder->config, variable->name))
            recorder->stored[recorder->n_stored++] =
                (stored_variable){variable, recorder->n_reported, size};
        recorder->n_reported += size;
    }
    return status
               ? status
               : em_own_all(&recorder->memory, EM_ARRAY(recorder->reported, recorder->n_reported));
}

static int64_t report_series(const em_recorder *recorder, int kind, em_variable *series)
{
    int64_t n = 0;

    for (int64_t k = 0; k < recorder->n_stored; k++)
        if ((int)recorder->stored[k].variable->group == kind)
            series[n++] = *recorder->stored[k].variable;
    return n;
}

static int64_t stat_series(const em_recorder *recorder, em_variable *series)
{
    for (int64_t i = 0; i < recorder->n_stat; i++)
        series[i] = (em_variable){.name = recorder->column[i].name,
                                  .storage = stat_storage[recorder->column[i].stat]};
    return recorder->n_stat;
}

static em_status add_column(em_recorder *recorder, const char *block, em_stat stat, int kernel)
{
    stat_column *column = &recorder->column[recorder->n_stat++];

    *column = (stat_column){.stat = stat, .kernel = kernel};
    return em_own(&recorder->memory,
                  em_format_text(&column->name, "%s%s%s", block ? block : "", block ? "." : "",
                                 em_stat_name[stat]),
                  &column->name);
}

/* Lays out the statistics. Those of one sampler have ArviZ's names. Those of several samplers begin
 * with the name of the block; lp and diverging are also stored for all samplers together. */
static em_status lay_columns(em_recorder *recorder)
{
    const em_config *config = recorder->config;
    const bool several = config->kernel[0].block != NULL;
    em_status status = em_own_all(
        &recorder->memory, EM_ARRAY(recorder->column, (config->n_kernel + 1) * EM_STAT_COUNT));

    if (!status && several)
        status = add_column(recorder, NULL, EM_STAT_LP, -1);
    if (!status && several)
        status = add_column(recorder, NULL, EM_STAT_DIVERGING, -1);
    for (int i = 0; !status && i < config->n_kernel; i++)
        for (const em_stat *s = config->kernel[i].ops->stats; !status && *s != EM_STAT_COUNT; s++)
            status = add_column(recorder, config->kernel[i].block, *s, i);
    if (!status && config->temper.on)
        status = add_column(recorder, NULL, EM_STAT_VISIT, -1);
    return status;
}

static int64_t unconstrained_series(const em_recorder *recorder, em_variable *series)
{
    if (!recorder->config->output.save_unconstrained)
        return 0;
    series[0] = (em_variable){.name = "theta",
                              .n_axes = 1,
                              .shape = {recorder->model->dim},
                              .label = {recorder->model->unconstrained_name}};
    return 1;
}

/* Lays out the groups that have variables. */
static em_status lay_out(em_recorder *recorder)
{
    em_layout *layout = &recorder->layout;
    int kinds[N_KIND];
    int64_t width = 0;
    em_status status = em_own_all(
        &recorder->memory, EM_ARRAY(recorder->series, recorder->n_stored + recorder->n_stat + 1));

    em_variable *series = recorder->series;
    for (int kind = 0; !status && kind < N_KIND; kind++) {
        em_draw_group *group = &recorder->group[layout->n_group];
        const int64_t n = kind == STATS           ? stat_series(recorder, series)
                          : kind == UNCONSTRAINED ? unconstrained_series(recorder, series)
                                                  : report_series(recorder, kind, series);
        if (n == 0 && kind != STATS)
            continue;
        *group = (em_draw_group){.name = group_name[kind], .n_variable = n, .variable = series};
        for (int64_t i = 0; i < n; i++) {
            group->width += em_bounds_size(1, &series[i]);
            group->sharded |= series[i].sharded;
        }
        width += group->width;
        kinds[layout->n_group++] = kind;
        series += n;
    }
    status = status ? status : em_own_all(&recorder->memory, EM_ARRAY(recorder->values, width));
    for (int64_t i = 0, first = 0; !status && i < layout->n_group; i++) {
        recorder->given[i] = recorder->value[kinds[i]] = recorder->values + first;
        first += recorder->group[i].width;
    }
    layout->group = recorder->group;
    return status;
}

em_status em_recorder_create(const em_config *config, const em_grid *grid, em_model *model,
                             const em_plan *plan, em_recorder **out)
{
    em_status status = em_allocate(1, sizeof **out, out);
    em_recorder *recorder = *out;

    if (!status) {
        recorder->config = config;
        recorder->model = model;
        recorder->plan = plan;
        recorder->layout = (em_layout){.n_chain = em_grid_n_chain(grid),
                                       .first_chain = em_grid_first_chain(grid),
                                       .n_local_chain = em_grid_n_local_chain(grid),
                                       .shard = em_grid_shard(grid),
                                       .n_draw = plan->most_draws,
                                       .n_warmup_draw = plan->n_warmup_draw};
        status = select_variables(recorder);
    }
    status = status ? status : lay_columns(recorder);
    status = status ? status : lay_out(recorder);
    if (status)
        em_release_owner(out);
    return status;
}

const em_layout *em_recorder_layout(const em_recorder *recorder)
{
    return &recorder->layout;
}

const char *em_recorder_failure(const em_recorder *recorder)
{
    return recorder->failure;
}

/* ---------------------------------------------------------------- draws */

/* Calls the model's report of a draw, which fills the groups. Numbers that a failed report did not
 * write are NaN. */
static em_status take_report(em_recorder *recorder, const em_draw *draw, const double *theta)
{
    const uint64_t before = em_messages_set();
    double *next[N_KIND];

    for (int64_t i = 0; i < recorder->n_reported; i++)
        recorder->reported[i] = NAN;
    em_foreign_call_begin();
    em_status status = em_model_report(recorder->model, draw, theta, recorder->reported);
    em_foreign_call_end();
    status = em_default_message(status, before, "report of the model");
    memcpy(next, recorder->value, sizeof next);
    for (int64_t k = 0; k < recorder->n_stored; k++) {
        const stored_variable *stored = &recorder->stored[k];
        double **to = &next[stored->variable->group];
        memcpy(*to, recorder->reported + stored->first, (size_t)stored->size * sizeof **to);
        *to += stored->size;
    }
    if (status > 0 && !recorder->failure[0])
        snprintf(recorder->failure, sizeof recorder->failure, "%s", em_error_text());
    return status;
}

em_status em_recorder_draw_prior(em_recorder *recorder, em_draw draw, double *theta, bool *failed)
{
    draw.purpose = EM_DRAW_PRIOR;
    em_status status = em_model_draw_prior(recorder->model, &draw, theta);
    if (status < 0)
        return status;
    draw.purpose = EM_DRAW_PRIOR_REPORT;
    *failed = status > 0;
    status = take_report(recorder, &draw, theta);
    *failed = *failed || status > 0;
    recorder->failure[0] = '\0'; /* failures in sampling are reported at its end */
    return status < 0 ? status : EM_OK;
}

const double *em_recorder_values(const em_recorder *recorder, int64_t i)
{
    return recorder->given[i];
}

static void take_stats(const em_recorder *recorder, const em_block *block,
                       const em_block *const *kernels, int64_t chain, double *to)
{
    for (int64_t i = 0; i < recorder->n_stat; i++) {
        const stat_column *column = &recorder->column[i];
        to[i] = (column->kernel < 0 ? block : kernels[column->kernel])->stat[column->stat][chain];
    }
}

static em_status hand_over(const em_recorder *recorder, const em_stored_draw *draw)
{
    em_status status = EM_OK;

    for (int i = 0; status >= 0 && i < recorder->n_outlet; i++) {
        const em_sink *sink = &recorder->outlet[i].sink;
        const uint64_t before = em_messages_set();
        if (sink->take)
            status = em_default_message(sink->take(sink->state, draw), before, "take of the sink");
    }
    return status < 0 ? status : EM_OK;
}

em_status em_recorder_take(em_recorder *recorder, const em_block *block,
                           const em_block *const *kernels, int64_t iteration, em_monitor *monitor,
                           double *unreported)
{
    const em_plan *plan = recorder->plan;
    const bool in_warmup = iteration < plan->warmup;
    const int64_t done = iteration + 1 - (in_warmup ? 0 : plan->warmup);
    em_status status = EM_OK;

    if ((in_warmup && plan->n_warmup_draw == 0) ||
        done % (in_warmup ? plan->first_thin : plan->thin) != 0)
        return EM_OK;
    for (int64_t c = 0; status >= 0 && c < block->n_chain; c++) {
        const double *theta = block->theta + c * block->stride;
        const int64_t chain = block->chain[c], index = done / plan->first_thin - 1;
        const em_draw draw = {(uint64_t)recorder->config->run.seed, chain, iteration};
        status = take_report(recorder, &draw, theta);
        if (status < 0)
            return status;
        take_stats(recorder, block, kernels, c, recorder->value[STATS]);
        if (recorder->value[UNCONSTRAINED])
            memcpy(recorder->value[UNCONSTRAINED], theta, (size_t)block->dim * sizeof(double));
        if (!in_warmup) {
            unreported[c] += status > 0;
            em_monitor_keep(monitor, c, done / plan->thin - 1, recorder->value[EM_POSTERIOR]);
            em_monitor_keep_visit(monitor, c, done / plan->thin - 1, block->stat[EM_STAT_VISIT][c]);
            em_model_average(recorder->model, &draw, theta);
        }
        status = hand_over(recorder,
                           &(em_stored_draw){chain, index, iteration, in_warmup, recorder->given});
    }
    return status;
}

/* ---------------------------------------------------------------- other functions */

void em_recorder_add(em_recorder *recorder, const em_sink *sink, bool agreed)
{
    recorder->outlet[recorder->n_outlet++] = (outlet){*sink, agreed};
}

void em_recorder_remove(em_recorder *recorder, const void *state)
{
    int n = 0;

    for (int i = 0; i < recorder->n_outlet; i++)
        if (recorder->outlet[i].sink.state != state)
            recorder->outlet[n++] = recorder->outlet[i];
    recorder->n_outlet = n;
}

typedef enum sink_call { BEGIN, FLUSH, VISIT, FINISH } sink_call;

/* Calls a function of a sink, if it has that. `with`: a visitor, or a report. */
static em_status call(const em_recorder *recorder, const em_sink *sink, sink_call which,
                      const void *with)
{
    switch (which) {
    case BEGIN:
        return sink->begin ? sink->begin(sink->state, &recorder->layout) : EM_OK;
    case FLUSH:
        return sink->flush ? sink->flush(sink->state) : EM_OK;
    case VISIT:
        return sink->visit ? sink->visit(sink->state, with) : EM_OK;
    default:
        return sink->finish ? sink->finish(sink->state, with) : EM_OK;
    }
}

/* The same of each sink, until one fails. Collective. */
static em_status call_each(em_recorder *recorder, sink_call which, const void *with)
{
    static const char *const what[] = {"begin of the sink", "flush of the sink",
                                       "visit of the sink", "finish of the sink"};
    em_status status = EM_OK;

    for (int i = 0; !status && i < recorder->n_outlet; i++) {
        const outlet *to = &recorder->outlet[i];
        const uint64_t before = em_messages_set();
        if (which == BEGIN && to->agreed)
            continue;
        status = em_default_message(call(recorder, &to->sink, which, with), before, what[which]);
        status = to->agreed ? status : em_agree(status);
    }
    return status;
}

em_status em_recorder_begin(em_recorder *recorder)
{
    return call_each(recorder, BEGIN, NULL);
}

em_status em_recorder_flush(em_recorder *recorder)
{
    return call_each(recorder, FLUSH, NULL);
}

/* Visits the state. The names of a sink's arrays begin with "sink.". */
em_status em_recorder_visit(em_recorder *recorder, const em_visitor *visitor)
{
    em_part_visitor part;

    return call_each(recorder, VISIT, em_part_visitor_start(&part, visitor, "sink."));
}

em_status em_recorder_finish(em_recorder *recorder, const em_report *report)
{
    return call_each(recorder, FINISH, report);
}
