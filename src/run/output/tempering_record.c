/* Writes the results of the ladders of a tempered run to the output: the group tempering. */
#include "base/memory.h"
#include "par/world.h"
#include "run/output/output_file.h"

#include <stddef.h>

static const char group[] = "tempering";

/* Writes one number for each rung, or for each pair of neighbouring rungs. */
static em_status put_row(em_output *output, const char *name, const char *axis, int64_t n,
                         const double *value)
{
    const em_variable variable = {.name = name, .n_axes = 1, .shape = {n}, .axis = {axis}};

    return em_writer_put_array(output->writer, group, &variable, value);
}

/* Writes the records of all rounds. */
static em_status put_history(em_output *output)
{
    static const em_record_column columns[] = {
        {"round_scans", offsetof(em_tempering_round, scans), EM_STORE_REAL, 1},
        {"round_rungs", offsetof(em_tempering_round, rungs), EM_STORE_REAL, 1},
        {"round_barrier", offsetof(em_tempering_round, barrier), EM_STORE_REAL, EM_MOST_LEGS},
        {"round_log_evidence", offsetof(em_tempering_round, log_evidence), EM_STORE_REAL,
         EM_MOST_LEGS},
        {"round_log_evidence_error", offsetof(em_tempering_round, error), EM_STORE_REAL,
         EM_MOST_LEGS},
        {"round_restarts", offsetof(em_tempering_round, restarts), EM_STORE_REAL, 1},
        {"round_round_trips", offsetof(em_tempering_round, round_trips), EM_STORE_REAL, 1},
        {"round_divergences", offsetof(em_tempering_round, divergences), EM_STORE_REAL, 1},
    };
    const em_tempering_findings *found = output->run.tempered;
    const em_variable variable = {.shape = {found->n_round}, .axis = {"round", "leg"}};

    return found->n_round > 0 ? em_writer_put_record(output->writer, group, variable,
                                                     sizeof columns / sizeof *columns, columns,
                                                     sizeof *found->round, found->round)
                              : EM_OK;
}

/* Writes for each ladder the log evidence by leg, and the round trips. */
static em_status put_ladders(em_output *output)
{
    const int64_t n = em_grid_n_chain(output->run.grid);
    const em_variable evidence = {.name = "ladder_log_evidence",
                                  .n_axes = 2,
                                  .shape = {n, EM_MOST_LEGS},
                                  .axis = {"ladder", "leg"}};
    EM_SCOPED double *value = NULL, *trips = NULL;
    em_status status = em_agree(em_allocate_all(EM_ARRAY(value, 2 * n), EM_ARRAY(trips, n)));

    for (int64_t l = 0; !status && l < n; l++) {
        value[2 * l] = output->run.tempered->of_ladder[3 * l];
        value[2 * l + 1] = output->run.tempered->of_ladder[3 * l + 1];
        trips[l] = output->run.tempered->of_ladder[3 * l + 2];
    }
    status = status ? status : em_writer_put_array(output->writer, group, &evidence, value);
    return status ? status : put_row(output, "ladder_round_trips", "ladder", n, trips);
}

/* Writes on which rungs the copies of the first ladders are, and after which scans of the draws. */
static em_status put_path(em_output *output)
{
    const em_tempering_findings *found = output->run.tempered;
    const em_variable path = {.name = "index_process",
                              .n_axes = 3,
                              .shape = {found->n_path_ladder, found->ladder.n_rung, found->n_time},
                              .axis = {"path_ladder", "copy", "time"}};
    double scan[EM_MOST_TIMES];

    if (found->n_time == 0)
        return EM_OK;
    for (int64_t i = 0; i < found->n_time; i++)
        scan[i] = (double)(i * found->path_every + 1);
    const em_status status = put_row(output, "index_process_scan", "time", found->n_time, scan);
    return status ? status : em_writer_put_array(output->writer, group, &path, found->path);
}

em_status em_output_put_tempering(em_output *output, const char *description)
{
    const em_tempering_findings *found = output->run.tempered;
    const em_tempering_round *draws = &found->draws;
    const int64_t n_rung = found->ladder.n_rung;
    double leg[2 * EM_MOST_LEG_RUNGS];
    em_status status = put_row(output, "beta", "rung", n_rung, found->ladder.beta);

    for (int64_t k = 0; k < n_rung; k++)
        leg[k] = em_ladder_leg(&found->ladder, k);
    status = status ? status : put_row(output, "leg_of_rung", "rung", n_rung, leg);
    status = status ? status : put_row(output, "rung_step_size", "rung", n_rung, found->step_size);
    status = status ? status : put_row(output, "rejection", "pair", n_rung - 1, found->rejection);
    status = status ? status : put_row(output, "barrier", "leg", EM_MOST_LEGS, draws->barrier);
    if (!status)
        status = put_row(output, "log_evidence", "leg", EM_MOST_LEGS, draws->log_evidence);
    if (!status)
        status = put_row(output, "log_evidence_error", "leg", EM_MOST_LEGS, draws->error);
    status = status ? status : put_history(output);
    status = status ? status : put_ladders(output);
    status = status ? status : put_path(output);
    status = status ? status : em_output_put_noncentring(output, found->map, group);
    status = status ? status : em_writer_put_text(output->writer, "tempering", description);
    if (!status && found->why)
        status = em_writer_put_int(output->writer, "tempered_from", found->first);
    if (!status && found->why)
        status = em_writer_put_text(output->writer, "tempered_because", found->why);
    if (!status)
        status = em_writer_put_text(output->writer, "tempering_reference",
                                    found->is_prior ? "prior" : "normal");
    status = status ? status : em_writer_put_real(output->writer, "log_evidence", draws->both);
    return status ? status
                  : em_writer_put_real(output->writer, "log_evidence_error", draws->both_error);
}
