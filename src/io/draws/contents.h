/*
 * Lists the contents of any HDF5 file (io/hdf5/foreign.h): the root attributes, the groups, and the
 * name, type and axes of their datasets, without the numbers. Names are in printable form. All
 * Local.
 */
#pragma once

#include "base/memory.h"
#include "emass/model.h"
#include "emass/status.h"

#include <stdbool.h>
#include <stdint.h>

enum { EM_CONTENTS_AXES = 2 + EM_MAX_AXES };

typedef struct em_contents_array {
    char *name;
    bool is_number;
    em_storage storage; /* of numbers */
    int n_axes;         /* of a coordinate of text one: its labels */
    int64_t shape[EM_CONTENTS_AXES];
    char *axis[EM_CONTENTS_AXES]; /* names of the coordinates; NULL: none */
    bool is_coordinate;           /* the coordinate of an axis, or an axis without coordinate */
    bool has_draws;               /* of (chain, draw, ...) */
    em_role role;
    int64_t index_base; /* from where tables number its elements */
    bool unwatched;     /* convergence checks skip it */
} em_contents_array;

typedef struct em_contents_group {
    char *name;
    int64_t n_array;
    em_contents_array *array;
} em_contents_group;

typedef enum em_attribute_kind {
    EM_ATTRIBUTE_TEXT,
    EM_ATTRIBUTE_INT,
    EM_ATTRIBUTE_REAL
} em_attribute_kind;

/* An attribute with one value; others are skipped. */
typedef struct em_contents_attribute {
    char *name;
    em_attribute_kind kind;
    char *text; /* also of a number, with all its digits */
    int64_t integer;
    double real;
} em_contents_attribute;

typedef struct em_contents {
    em_owner memory; /* of its arrays and texts */
    int64_t n_attribute, n_group;
    em_contents_attribute *attribute;
    em_contents_group *group;
} em_contents;

/* Reads the contents, in the order of their creation if the file stores it. Errors: EM_EDATA,
 * EM_EIO, EM_EMEMORY. */
em_status em_contents_read(const char *path, em_contents **out);

/* NULL: there is none. */
const em_contents_attribute *em_contents_attribute_of(const em_contents *contents,
                                                      const char *name);
const em_contents_group *em_contents_group_of(const em_contents *contents, const char *name);
const em_contents_array *em_contents_array_of(const em_contents_group *group, const char *name);

/* Whether a group has draws. */
bool em_contents_has_draws(const em_contents_group *group);
