/* One group of a writer's file: its dimensions, and arrays that are the same on all ranks. */
#pragma once

#include "io/draws/dimension.h"

typedef struct em_group {
    char *name;
    hid_t id;
    em_dimensions dimensions;
} em_group;

/* A creation list for files and groups that stores no times and keeps the order of links and
 * attributes. Closed by em_h5_close. Local. */
hid_t em_group_creation_list(hid_t class);

/* Creates the group; *n_dimension counts the dimensions of all groups of the file and must outlive
 * the group. Collective. Errors: EM_EIO, EM_EMEMORY, agreed; call em_group_close even then. */
em_status em_group_create(hid_t file, const char *name, int32_t *n_dimension, em_group *group);

/* Gets or creates the dimensions of a variable's own axes: axis[n_axes]. Collective. Errors: as
 * em_dimension_get, agreed. */
em_status em_group_axes(em_group *group, const em_variable *variable, em_dimension **axis);

/* Creates the dataset of a variable, whose extents and chunks are set, with its attributes.
 * Collective. Errors: EM_EIO, EM_EMEMORY, agreed. */
em_status em_group_add(em_group *group, const em_variable *variable, em_dataset *dataset,
                       em_dimension *const *axis);

/* Creates and writes an array. Collective. Errors: EM_EIO, EM_EMEMORY, agreed. */
em_status em_group_put(em_group *group, const em_variable *variable, const double *value);

void em_group_close(em_group *group); /* Collective. */
