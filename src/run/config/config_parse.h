/* Private to the config: while it is understood, section by section. All Local. */
#ifndef EM_RUN_CONFIG_CONFIG_PARSE_H
#define EM_RUN_CONFIG_CONFIG_PARSE_H

#include "run/config/config.h"
#include "run/config/model_catalogue.h"
#include "run/config/yaml.h"

/* A section of the config: the options of its table, or of the variant that its `name` chooses. */
typedef struct em_config_section {
    const char *name;
    const char *kind;          /* what its variants are: model, sampler */
    em_variant_list *variants; /* NULL: the section has no `name` */
    const char *fallback;      /* the variant where none is named; NULL: one must be */
    const em_field *fields;    /* of the variant once it is chosen */
    void *options;             /* likewise */
    const char *chosen;        /* name of the variant; NULL: none yet, or no variants */
    const char *inherits;      /* the section whose options stand for those not given; or NULL */
} em_config_section;

enum {
    EM_SECTION_MODEL,
    EM_SECTION_SAMPLER
}; /* the first sections; as many samplers as there are kernels */

typedef struct em_parse {
    em_config *config;
    em_yaml *yaml;
    bool is_list;           /* `sampler` is one, of mappings */
    int n_section, n_outer; /* of a list come last: the masses of its samplers */
    em_config_section section[EM_MOST_SECTIONS];
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

/* The section of the model, with the model that its name (or a library) chooses, and room for its
 * options: of a config that was looked over. Errors: EM_ECONFIG, EM_EMEMORY; a missing name is for
 * the caller to tell, after misspelt keys. */
em_status em_config_choose_model(em_parse *p);

/* The other sections that the config has: its samplers are counted. Errors: EM_ECONFIG: too many.
 */
em_status em_config_lay_sections(em_parse *p);

/* Checks that every key is an option of its section. Errors: EM_ECONFIG, with what may have been
 * meant. */
em_status em_config_check_keys(em_parse *p);

/* The samplers by their names likewise. */
em_status em_config_choose_samplers(em_parse *p);

/* The config in full. Paths stand in it as they were written, so that it does not depend on the
 * machine. What is stored depends neither on where the file is put, nor on the shards where the
 * draws do not. Errors: EM_EMEMORY. */
em_status em_config_write(const em_parse *p, bool is_stored, char **full);

#endif
