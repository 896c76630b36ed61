/* Configs as texts, and what the parser makes of them. */
#ifndef TESTS_SUPPORT_PARSE_CONFIG_H
#define TESTS_SUPPORT_PARSE_CONFIG_H

#include "run/config/config.h"
#include "support/tap.h"

#include <check.h>
#include <string.h>

#define SHORTEST_CONFIG "model: {name: gaussian}\nsampler: {name: hmc}\n"

extern const char *const example_config; /* with every section */

em_config *parse_config(const char *path, const char *text, int n_override,
                        const char *const *override);

void check_config_fails(const char *text, int n_override, const char *const *override,
                        const char *message);

#endif
