/*
 * YAML as a flat list: every value has the path of its keys, such as "mass.kappa.k0", and its place
 * in the file. A key with dots is a path, too. The keys of mappings in a list under `sampler` begin
 * with "sampler[0]", "sampler[1]", ...... Anchors, aliases, lists in lists, and text of several
 * lines are refused. All Local.
 */
#pragma once

#include "base/options/field.h"

#include <stdint.h>

typedef struct em_yaml_entry {
    char *key;
    char *place;    /* "heart.yaml:7", or the argument of em_yaml_put */
    em_value value; /* a mapping comes before its entries */
} em_yaml_entry;

/* The values of a key that are data, that is, stored as one JSON value with all their content:
 * none, mappings, or also lists. The elements of such a list get entries "key[0]", "key[1]", ...
 * with their places. EM_YAML_LOOKED_OVER, for the first pass: mappings and lists, without entries
 * for elements. */
typedef enum em_yaml_data {
    EM_YAML_NO_DATA,
    EM_YAML_MAPPING_IS_DATA,
    EM_YAML_ALL_IS_DATA,
    EM_YAML_LOOKED_OVER
} em_yaml_data;
typedef em_yaml_data em_yaml_is_data(const void *context, const char *key);

enum { EM_YAML_MAX_ENTRIES = 1000, EM_YAML_MAX_DEPTH = 8 };

typedef struct em_yaml {
    em_yaml_is_data *is_data;
    const void *context; /* of is_data */
    int64_t count;
    em_yaml_entry entry[EM_YAML_MAX_ENTRIES];
} em_yaml;

/* Parses the text of the file `path`; `context` outlives what is parsed. Errors: EM_ECONFIG, naming
 * file and line; EM_EMEMORY. */
em_status em_yaml_parse(const char *path, const char *text, em_yaml_is_data *is_data,
                        const void *context, em_yaml **out);
void em_yaml_destroy(em_yaml **yaml);

/* Sets `key` to the YAML value `text`, replacing an earlier value; messages name `place`. Errors as
 * for em_yaml_parse. */
em_status em_yaml_put(em_yaml *yaml, const char *place, const char *key, const char *text);

/* The entry of a path; NULL when there is none. */
const em_yaml_entry *em_yaml_find(const em_yaml *yaml, const char *key);
