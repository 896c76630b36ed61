/* The sections of the config that are not of a model, a sampler or the mass. */
#include "run/config.h"

#include <math.h>
#include <stddef.h>

static const char *const minibatch_sums[] = {"fast", "by_parts", NULL};

#define AT(member) offsetof(em_run_options, member)
const em_field em_run_fields[] = {
    {"chains", EM_FIELD_INT, AT(chains), 1, 1e6, "4", NULL, NULL,
     "chains, dealt to the ranks (or groups of ranks)"},
    {"shards", EM_FIELD_INT, AT(shards), 1, 1e6, "1", NULL, NULL,
     "ranks that share the data of one chain, each holding a part of it; the draws are the same on "
     "any number of them, but for rounding with fast minibatch_sums"},
    {"warmup", EM_FIELD_INT, AT(warmup), 0, 1e9, "auto", NULL, "auto",
     "iterations of adaptation before the draws; auto: as many as hmc and nuts need, at most 950; "
     "1000 for the others"},
    {"draws", EM_FIELD_INT, AT(draws), 1, 1e9, "1000", NULL, NULL, "draws stored per chain",
     .may_change = true},
    {"thin", EM_FIELD_INT, AT(thin), 1, 1e6, "1", NULL, NULL, "iterations per stored draw"},
    {"seed", EM_FIELD_INT, AT(seed), 0, 9007199254740992, "1", NULL, NULL,
     "of all random numbers; the same seed gives the same draws on any number of ranks"},
    {"init_radius", EM_FIELD_REAL, AT(init_radius), 0, 1e6, "2", NULL, NULL,
     "chains start uniformly in [-init_radius, init_radius] on the unconstrained scale"},
    {"minibatch_sums", EM_FIELD_CHOICE, AT(minibatch_sums), 0, 0, "fast", minibatch_sums, NULL,
     "by_parts: sums over minibatches too have the same bits on any number of shards, which takes "
     "up "
     "to ten times as long where they have few rows; fast: the rows are the same, sums are "
     "rounded"},
    {NULL, EM_FIELD_BOOL, 0, 0, 0, NULL, NULL, NULL, NULL}};
#undef AT

#define AT(member) offsetof(em_stop_options, member)
const em_field em_stop_fields[] = {
    {"r_hat", EM_FIELD_REAL, AT(r_hat), 1, 100, "none", NULL, "none",
     "stop early when the largest R-hat is at most this; none: no such rule, the verdict says "
     "1.01",
     .may_change = true},
    {"ess", EM_FIELD_REAL, AT(ess), 1, 1e12, "none", NULL, "none",
     "stop early when the smallest bulk or tail ESS is at least this; none: no such rule, the "
     "verdict says 100 per chain",
     .may_change = true},
    {"check_every", EM_FIELD_INT, AT(check_every), 1, 1e9, "200", NULL, NULL,
     "draws between checks of these rules, and between reports of progress", .may_change = true},
    {"consecutive", EM_FIELD_INT, AT(consecutive), 1, 1e6, "2", NULL, NULL,
     "checks in a row that have to pass", .may_change = true},
    {"max_time", EM_FIELD_DURATION, AT(max_time), 0, INFINITY, "none", NULL, "none",
     "stop after this time even if not all is done; none: no limit", .may_change = true},
    {NULL, EM_FIELD_BOOL, 0, 0, 0, NULL, NULL, NULL, NULL}};
#undef AT

#define AT(member) offsetof(em_output_options, member)
const em_field em_output_fields[] = {
    {"file", EM_FIELD_TEXT, AT(file), 0, 0, "", NULL, NULL,
     "from the current folder; absent: named like the config, with .h5", .may_change = true},
    {"save_warmup", EM_FIELD_BOOL, AT(save_warmup), 0, 0, "false", NULL, NULL,
     "store the draws of warmup too"},
    {"save_unconstrained", EM_FIELD_BOOL, AT(save_unconstrained), 0, 0, "false", NULL, NULL,
     "store the draws on the unconstrained scale too"},
    {"variables", EM_FIELD_TEXTS, AT(variables), 0, 0, "[]", NULL, NULL,
     "variables to store, * and ? as in file names; none named: all"},
    {"flush_every", EM_FIELD_INT, AT(flush_every), 1, 1e6, "100", NULL, NULL, "draws per write",
     .may_change = true},
    {"checkpoint_every", EM_FIELD_DURATION, AT(checkpoint_every), 0, INFINITY, "10m", NULL, NULL,
     "time between checkpoints", .may_change = true},
    {NULL, EM_FIELD_BOOL, 0, 0, 0, NULL, NULL, NULL, NULL}};
