/*
 * A scan: a config with a list of values for the one option of its model that may have a list
 * (`topics: [50, 100]`; emass/model/commands.h). It stands for one config for each value, each with
 * its own output. All Local.
 */
#pragma once

#include "emass/model.h"
#include "emass/status.h"

#include <stdint.h>

typedef struct em_config_scan {
    const em_model_ops *model;
    char *option;                /* NULL: the config is no scan, and the rest is not set */
    int64_t count;               /* number of values, which are distinct */
    int64_t *value;              /* [count] in the order of the config */
    char **file;                 /* [count] outputs: news.topics50.h5 if the config has news.h5 */
    char *page;                  /* news.topics.html, which compares the runs */
    int64_t n_chain, group_size; /* of each run: em_config_group_size */
    double max_time;             /* of all runs together, seconds; NaN: none */
} em_config_scan;

/* Reads the config as em_config_parse does, and checks it with each value. Errors: as there. */
em_status em_config_scan_read(const char *path, const char *text, int n_override,
                              const char *const *override, em_config_scan *out);
void em_config_scan_release(em_config_scan *scan); /* NULL-safe members. */

/* The overrides that select value number i of the scan, in addition to the given ones:
 * "model.topics=50" and "output.file=...". Errors: EM_EMEMORY. Freed by em_release. */
em_status em_config_scan_overrides(const em_config_scan *scan, int64_t i, char **value,
                                   char **file);
