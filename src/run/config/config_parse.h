/* Private to the config: its state while it is parsed, section by section. All Local. */
#pragma once

#include "run/config/config.h"

enum {
    EM_SECTION_MODEL,
    EM_SECTION_SAMPLER
}; /* the indices of the first sections; those of EM_MOST_KERNELS samplers follow */

typedef struct em_parse {
    em_config *config;
    em_yaml *yaml;
    bool is_list; /* `sampler` is one, of mappings */
    int n_outer;  /* sections before those of the masses of a list of samplers, which come last */
} em_parse;

/* The sections of samplers in a list, and of their masses. */
extern const char *const em_sampler_sections[EM_MOST_KERNELS];
extern const char *const em_mass_sections[EM_MOST_KERNELS];

/* A em_key path. */
typedef struct em_key {
    char text[256];
} em_key;

em_key em_join_key(const char *section, const char *option);

/* Whether the section is of a sampler of the list. */
bool em_is_element(const em_parse *p, const em_config_section *section);

/* Prepends place and key of an entry to the message, if `status` is about its value; returns it. */
em_status em_config_say_entry(const em_yaml_entry *entry, em_status status);

/* Reads the YAML of the config's file, with overrides, and chooses the model. Parses twice: the
 * first pass finds the model, on which the syntax of its options depends. Errors: EM_ECONFIG,
 * EM_EMEMORY. */
em_status em_config_read(em_parse *p, const char *text, int n_override,
                         const char *const *override);

/* Adds the section of the model, with the model that its name or library selects and memory for its
 * options. Errors: EM_ECONFIG, EM_EMEMORY; the caller reports a missing name, after misspelt
 * keys. */
em_status em_config_choose_model(em_parse *p);

/* Adds the other sections, one for each sampler. Errors: EM_ECONFIG: too many samplers. */
em_status em_config_lay_sections(em_parse *p);

/* Checks that every key is an option of its section. Errors: EM_ECONFIG, with what may have been
 * meant. */
em_status em_config_check_keys(em_parse *p);

/* Whether a config has an optional section: `name: {}`, or one of its options. */
bool em_config_has_section(const em_yaml *yaml, const char *name);

/* Selects the samplers by their names. Errors: as for the model. */
em_status em_config_choose_samplers(em_parse *p);
