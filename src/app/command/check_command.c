#include "app/command/commands.h"

#include "app/command/checked_config.h"
#include "app/summary/command_arguments.h"
#include "base/available_memory.h"
#include "base/memory.h"
#include "base/system/progress.h"
#include "base/system/terminal.h"
#include "math/linalg.h"
#include "model/model.h"
#include "par/world.h"
#include "run/config/compatibility.h"
#include "run/loop/prior_draws.h"
#include "run/loop/rank_consistency.h"
#include "run/output/recorder.h"

#include <stdbool.h>
#include <stdio.h>

static em_status load(em_checked *check, em_plan *plan)
{
    const em_config *config = check->config;
    em_width width = {0, 0};
    em_status status =
        em_grid_create(config->run.chains, em_config_group_size(config), &check->grid);

    if (status)
        return status;
    check->shards = em_shards_of(check->grid);
    const double before = em_allocated_bytes();
    status = em_checked_model(check, 1, &check->model);
    check->model_bytes = em_allocated_bytes() - before;
    if (!status)
        status = em_check_samplers_suit_model(config, check->model);
    if (!status)
        status = em_check_prior_draws_suit_model(config, check->model);
    if (!status)
        status = em_recorder_width(config, check->model, &width);
    if (!status)
        status = em_posterior_create(check->model, check->grid, 1, &check->posterior);
    if (!status)
        status = em_plan_create(config, width, plan);
    status = em_agree(status);
    if (!status)
        status = em_check_ranks_have_one_data(check->model);
    if (!status)
        status = em_agree(em_model_summarise(check->model, check->grid));
    return status;
}

/* Loads with a progress bar on a terminal: large tables and Stan programs take long. */
static em_status load_with_progress(em_checked *check, em_plan *plan)
{
    em_progress *progress = NULL;
    em_status status = EM_OK;

    if (em_world_rank() == 0 && em_terminal_columns(stderr) > 0)
        status = em_progress_create(EM_PROGRESS_BAR, stderr, "loading", &progress);
    status = em_agree(status);
    if (!status)
        status = load(check, plan);
    em_progress_give_way(progress);
    em_progress_destroy(&progress);
    return status;
}

static bool has_exact_density(const em_model *model)
{
    return model->ops->add_prior && !model->estimates;
}

static em_status check_config(const em_config *config)
{
    em_checked check = {.config = config};
    em_plan plan;
    em_status status = load_with_progress(&check, &plan);

    if (!status)
        status = em_check_plan(&check, &plan);
    if (!status && has_exact_density(check.model))
        status = em_check_gradient(&check);
    else if (!status && em_world_rank() == 0)
        printf("# gradient   not compared: the model %s\n",
               check.model->estimates ? "estimates its density by random numbers"
                                      : "has no density, but an update of its own");
    em_posterior_destroy(&check.posterior);
    em_model_destroy(&check.model);
    em_grid_destroy(&check.grid);
    return status;
}

em_status em_check_command(int argc, const char **argv)
{
    char **set = NULL, *text = NULL;
    int n_set = 0;
    const struct poptOption options[] = {
        {"set", 0, POPT_ARG_ARGV, &set, 0, "override one setting of the config", "KEY=VALUE"},
        POPT_TABLEEND};
    em_command_line line;
    em_config *config = NULL;
    em_status status = em_command_line_read(argc, argv, options, "one config file", 1, 1, &line);

    while (set && set[n_set])
        n_set++;
    if (!status)
        status = em_agree(em_linalg_reserve());
    if (!status)
        status = em_read_config(line.argument[0], &text);
    if (!status)
        status = em_agree(
            em_config_parse(line.argument[0], text, n_set, (const char *const *)set, &config));
    if (!status)
        status = check_config(config);
    em_release(&text);
    em_config_destroy(&config);
    em_command_line_end(&line);
    return status;
}
