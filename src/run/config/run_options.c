/* The sections of the config that are not of a model, a sampler or the mass. */
#include "run/config/config.h"

#include <math.h>
#include <stddef.h>

static const char *const minibatch_sums[] = {"fast", "by_parts", NULL};

const em_field em_run_fields[] = {
    EM_INT(em_run_options, chains, .minimum = 1, .maximum = 1e6, .fallback = "4",
           .doc = "chains, dealt to the ranks (or groups of ranks)"),
    EM_INT(em_run_options, superchains, .minimum = 2, .maximum = 1e6, .fallback = "none",
           .word = "none",
           .doc = "of as many chains each, which start at one point: nested R-hat then judges many "
                  "short chains, in place of R-hat; none: each chain has a start of its own"),
    EM_INT(em_run_options, shards, .minimum = 1, .maximum = 1e6, .fallback = "1",
           .doc = "ranks that share the data of one chain, each holding a part of it; the draws "
                  "are the same on any number of them, but for rounding with fast minibatch_sums"),
    EM_INT(em_run_options, warmup, .maximum = 1e9, .fallback = "auto", .word = "auto",
           .doc = "iterations of adaptation before the draws; auto: as many as hmc and nuts need, "
                  "at most 950; 1000 for the others; in a list of samplers each stops adapting "
                  "after its own, and the draws begin after the longest"),
    EM_INT(em_run_options, draws, .minimum = 1, .maximum = 1e9, .fallback = "1000",
           .doc = "draws stored per chain", .may_change = true),
    EM_INT(em_run_options, thin, .minimum = 1, .maximum = 1e6, .fallback = "1",
           .doc = "iterations per stored draw"),
    EM_INT(em_run_options, seed, .maximum = 9007199254740992, .fallback = "1",
           .doc =
               "of all random numbers; the same seed gives the same draws on any number of ranks"),
    EM_REAL(em_run_options, init_radius, .maximum = 1e6, .fallback = "2",
            .doc =
                "chains start uniformly in [-init_radius, init_radius] on the unconstrained scale"),
    EM_CHOICE(em_run_options, minibatch_sums, .fallback = "fast", .choices = minibatch_sums,
              .doc = "by_parts: sums over minibatches too have the same bits on any number of "
                     "shards, which takes up to ten times as long where they have few rows; fast: "
                     "the rows are the same, sums are rounded"),
    {0}};

const em_field em_stop_fields[] = {
    EM_REAL(em_stop_options, r_hat, .minimum = 1, .maximum = 100, .fallback = "none",
            .word = "none",
            .doc = "stop early when the largest R-hat is at most this; none: no such rule, the "
                   "verdict says 1.01",
            .may_change = true),
    EM_REAL(em_stop_options, ess, .minimum = 1, .maximum = 1e12, .fallback = "none", .word = "none",
            .doc = "stop early when the smallest bulk or tail ESS is at least this; none: no such "
                   "rule, the verdict says 100 per chain",
            .may_change = true),
    EM_INT(em_stop_options, check_every, .minimum = 1, .maximum = 1e9, .fallback = "200",
           .doc = "draws between checks of these rules, and between reports of progress",
           .may_change = true),
    EM_INT(em_stop_options, consecutive, .minimum = 1, .maximum = 1e6, .fallback = "2",
           .doc = "checks in a row that have to pass", .may_change = true),
    EM_DURATION(em_stop_options, max_time, .maximum = INFINITY, .fallback = "none", .word = "none",
                .doc = "stop after this time even if not all is done; none: no limit",
                .may_change = true),
    {0}};

const em_field em_output_fields[] = {
    EM_TEXT(em_output_options, file, .fallback = "",
            .doc = "from the current folder, ${NAME} as in paths of data; absent: named like the "
                   "config, with "
                   ".h5",
            .may_change = true),
    EM_BOOL(em_output_options, save_warmup, .fallback = "false",
            .doc = "store the draws of warmup too"),
    EM_BOOL(em_output_options, save_unconstrained, .fallback = "false",
            .doc = "store the draws on the unconstrained scale too"),
    EM_INT(em_output_options, prior_draws, .minimum = 0, .maximum = 1e9, .fallback = "0",
           .doc =
               "draws of each chain from the prior, in the group prior; what the model draws anew "
               "of each (posterior_predictive) goes to prior_predictive"),
    EM_TEXTS(em_output_options, variables, .fallback = "[]",
             .doc = "variables to store, * and ? as in file names; none named: all"),
    EM_INT(em_output_options, flush_every, .minimum = 1, .maximum = 1e6, .fallback = "100",
           .doc =
               "draws between chances to write; small ones are written together, in a second or so",
           .may_change = true),
    EM_DURATION(em_output_options, checkpoint_every, .maximum = INFINITY, .fallback = "10m",
                .doc = "time between checkpoints", .may_change = true),
    EM_BOOL(em_output_options, keep_checkpoint, .fallback = "false",
            .doc =
                "leave the last checkpoint of a finished run beside its file as well; needed only "
                "to extend a run whose state is larger than 64 MB and than its draws, as "
                "the file then leaves the state out",
            .may_change = true),
    {0}};
