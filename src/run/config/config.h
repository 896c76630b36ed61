/* The config: parsed from YAML text on every rank and checked against the field tables. */
#pragma once

#include "adaptation/mass_window/mass_options.h"
#include "emass/model.h"
#include "emass/status.h"
#include "model/plugin_file.h"
#include "par/grid.h"
#include "run/config/model_catalogue.h"
#include "run/config/yaml.h"
#include "sampler/kernel/sampler.h"
#include "tempering/tempering.h"

#include <stdbool.h>
#include <stdint.h>

enum { EM_MINIBATCH_FAST, EM_MINIBATCH_BY_PARTS };

/* The default of stop.max_draws, as a config has it. */
#define EM_DEFAULT_MAX_DRAWS "5000"

typedef struct em_run_options {
    int64_t chains, superchains, shards, warmup, thin, seed; /* superchains below 1: none */
    int64_t draws; /* draws of each chain; the limit with draws: auto (stop.until_done) */
    int64_t ranks_per_chain;
    double init_radius;
    int minibatch_sums;
} em_run_options;

typedef struct em_stop_options {
    double r_hat, ess; /* NaN: no such criterion; both NaN: no stop rule, unless until_done */
    int64_t check_every, consecutive;
    int64_t max_draws, max_gradients; /* only with until_done; max_gradients below 1: none */
    double end_after, max_time;       /* seconds; NaN: none; end_after only with until_done */
    bool separate_modes; /* chains in separate modes end the run; only with until_done */
    bool until_done;     /* run.draws is auto: the limits of a verdict are the stop rule */
} em_stop_options;

typedef struct em_output_options {
    char *file; /* path, relative to the current folder */
    bool save_warmup, save_unconstrained;
    int64_t prior_draws; /* of each chain */
    em_texts variables;  /* empty: all */
    int64_t flush_every;
    double checkpoint_every; /* seconds */
    bool keep_checkpoint;    /* when the run has finished */
} em_output_options;

/* A sampler of the config, which moves all parameters or a block of them. */
typedef struct em_kernel_options {
    char *block, *location; /* block NULL: all; location: file and line of its section */
    const em_sampler_ops *ops;
    void *options;               /* begins with em_sampler_options */
    const em_mass_options *mass; /* the config's or, in a list, own_mass */
    em_mass_options own_mass;    /* the config's, with the changes of the sampler's section */
} em_kernel_options;

/* A section of the config: the options of its table, or of the variant that its `name` chooses. */
typedef struct em_config_section {
    const char *name;
    const char *kind;          /* what its variants are: model, sampler */
    em_variant_list *variants; /* NULL: the section has no `name` */
    const char *fallback;      /* the default variant; NULL: one must be named */
    const em_field *fields;    /* of the variant once it is chosen */
    void *options;             /* likewise */
    const char *chosen;        /* the selected variant; NULL: none yet, or no variants */
    const char *block;         /* of a sampler in a list, or NULL */
    const char *inherits;      /* the section from which missing options are taken; or NULL */
} em_config_section;

enum { EM_MOST_SECTIONS = 6 + 2 * EM_MOST_KERNELS };

typedef struct em_config {
    char *path; /* of the config file, as given */
    char *full; /* YAML with every default filled in, in a fixed order; parses to the same config */
    char *stored;      /* the text that the file stores: `full` without output.file, and without
                          run.shards if draws do not depend on it */
    em_yaml *yaml;     /* the parsed text, with the place of each value */
    em_plugin *plugin; /* the plug-in of the model; NULL: a built-in model */
    const em_model_ops *model;
    void *model_options;
    int n_kernel; /* number of samplers, which alternate within an iteration */
    em_kernel_options kernel[EM_MOST_KERNELS];
    const em_sampler_ops *sampler; /* the first one's */
    void *sampler_options;         /* likewise */
    em_mass_options mass;
    em_run_options run;
    em_stop_options stop;
    em_output_options output;
    em_temper_options temper; /* temper.on: the config has the section */
    int n_section;
    em_config_section section[EM_MOST_SECTIONS];
} em_config;

extern const em_field em_run_fields[], em_stop_fields[], em_output_fields[];

/* The kind of data of a key such as model.data, if it is an option of `model` (em_model_ops) whose
 * value is a mapping or a list. `model` NULL: it is not known yet. Local. */
em_yaml_data em_config_is_data(const void *model, const char *key);

/* The kind of data of a key if the model is not known: any option of a model may be data. Local. */
em_yaml_data em_config_may_be_data(const void *context, const char *key);

/* Parses `text`, the content of the file `path` (which is used for messages and for the folder of
 * relative paths), then applies `n_override` overrides "key.path=value". Local. Errors: EM_ECONFIG,
 * one line with file:line (or "--set key"), what was found, what was expected, and the nearest
 * valid name; EM_EMEMORY. */
em_status em_config_parse(const char *path, const char *text, int n_override,
                          const char *const *override, em_config **out);
void em_config_destroy(em_config **config);

/* The context to create the model of a config with, except its chains. `shards` is the model's
 * communication with the other shards of its group; NULL if ranks divide the work of an evaluation.
 * Both are borrowed. Local. */
em_model_context em_config_model_context(const em_config *config, em_grid *grid,
                                         const em_shards *shards);

/* Creates the model of a config. If an error begins with the key of an option ("model.layers[1]:
 * found ..."), file and line of that key precede it. Collective. Errors: those of
 * em_model_ops.create, not agreed. */
em_status em_config_create_model(const em_config *config, const em_model_context *context,
                                 em_model **out);

/* Whether a sampler of the config takes minibatches. Local. */
bool em_config_takes_minibatches(const em_config *config);

/* Whether the config has `temper: auto`, with which chains start untempered and may be tempered
 * later. Local. */
static inline bool em_config_tempers_later(const em_config *config)
{
    return config->temper.on && config->temper.when == EM_TEMPER_AUTO;
}

/* The number of ranks that advance the same chains together: shards, or ranks_per_chain. Local. */
static inline int64_t em_config_group_size(const em_config *config)
{
    return config->run.shards * config->run.ranks_per_chain;
}

/* Whether the draws depend on run.shards: only fast sums over minibatches do, by rounding.
 * Local. */
bool em_config_shards_matter(const em_config *config);
