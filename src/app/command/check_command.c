#include "app/command/command.h"

#include "app/command/check_plan.h"
#include "app/command/scan_runs.h"
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
#include "run/transaction/transaction.h"

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
    em_peak_restart();
    status = em_checked_model(check, 1, &check->model);
    check->model_bytes = em_allocated_bytes() - before;
    check->peak_bytes = em_peak_bytes();
    status = status ? status : em_check_samplers_suit_model(config, check->model);
    status = status ? status : em_check_prior_draws_suit_model(config, check->model);
    if (!status && config->temper.on)
        status = em_check_tempering_suits_model(config, check->model);
    status = status ? status : em_recorder_width(config, check->model, &width);
    status = status ? status : em_posterior_create(check->model, check->grid, 1, &check->posterior);
    status = status ? status : em_plan_create(config, width, plan);
    status = em_agree(status);
    status = status ? status : em_check_ranks_have_one_data(check->model);
    return status ? status : em_agree(em_model_summarise(check->model, check->grid));
}

/* Loads with a progress bar on a terminal, because large tables and Stan programs take long. */
static em_status load_with_progress(em_checked *check, em_plan *plan)
{
    EM_SCOPED_BY(em_progress_destroy) em_progress *progress = NULL;
    em_status status = EM_OK;

    if (em_world_rank() == 0 && em_terminal_columns(stderr) > 0)
        status = em_progress_create(EM_PROGRESS_BAR, stderr, "loading", &progress);
    status = em_agree(status);
    status = status ? status : load(check, plan);
    em_progress_give_way(progress);
    return status;
}

static em_status check_config(const em_config *config, bool brief)
{
    em_checked check = {.config = config, .brief = brief};
    em_plan plan;
    em_status status = load_with_progress(&check, &plan);

    status = status ? status : em_check_plan(&check, &plan);
    fflush(stdout); /* comparing gradients may take seconds */
    if (!status && check.model->ops->add_prior && !check.model->estimates)
        status = em_check_gradient(&check);
    else if (!status && em_world_rank() == 0)
        printf("# gradient   not compared: the model %s\n",
               check.model->estimates ? "estimates its density by random numbers"
                                      : "has no density; it moves by an update of its own");
    status = status ? status : em_transaction_check_output(config);
    em_posterior_destroy(&check.posterior);
    em_model_destroy(&check.model);
    em_grid_destroy(&check.grid);
    return status;
}

/* ---------------------------------------------------------------- one config, or a scan */

typedef struct checking {
    const char *path, *text;
    int n_override;
    const char **override; /* room for two more */
    const em_config_scan *scan;
} checking;

static em_status check_once(const checking *c, int n_override, bool brief)
{
    EM_SCOPED_BY(em_config_destroy) em_config *config = NULL;
    em_status status =
        em_agree(em_config_parse(c->path, c->text, n_override, c->override, &config));

    return status ? status : check_config(config, brief);
}

/* em_scan_run */
static em_status check_value(void *to, int64_t i, bool shows, em_scan_stop *stop)
{
    const checking *c = to;
    EM_SCOPED char *value = NULL, *file = NULL;
    em_status status = em_agree(em_config_scan_overrides(c->scan, i, &value, &file));

    (void)shows, (void)stop;
    if (!status) {
        c->override[c->n_override] = value;
        c->override[c->n_override + 1] = file;
        if (em_world_rank() == 0 && i > 0)
            printf("\n# %s\n", value);
        status = check_once(c, c->n_override + 2, i > 0);
    }
    if (em_world_rank() == 0)
        fflush(stdout);
    return status;
}

static em_status check_all(checking *c)
{
    EM_SCOPED_BY(em_config_scan_release) em_config_scan scan = {0};
    em_status status =
        em_agree(em_config_scan_read(c->path, c->text, c->n_override, c->override, &scan));

    if (status)
        return status;
    c->scan = &scan;
    return scan.option ? em_scan_all(&scan, check_value, c, true)
                       : check_once(c, c->n_override, false);
}

em_status em_check_command(int argc, const char **argv)
{
    char **set = NULL, *text = NULL;
    checking c = {0};
    const struct poptOption options[] = {
        {"set", 0, POPT_ARG_ARGV, &set, 0, "override one setting of the config", "KEY=VALUE"},
        POPT_TABLEEND};
    EM_SCOPED_BY(em_command_line_end) em_command_line line;
    em_status status = em_command_line_read(argc, argv, options, "one config file", 1, 1, &line);

    while (set && set[c.n_override])
        c.n_override++;
    status = status ? status : em_agree(em_linalg_reserve());
    if (!status)
        status = em_agree(em_allocate(c.n_override + 2, sizeof *c.override, &c.override));
    for (int i = 0; !status && i < c.n_override; i++)
        c.override[i] = set[i];
    status = status ? status : em_read_config(line.argument[0], &text);
    if (!status) {
        c.path = line.argument[0];
        c.text = text;
        status = check_all(&c);
    }
    em_release_all(&text, &c.override);
    return status;
}
