/* The differences between the config of a run and that of its continuation. */
#pragma once

#include "run/config/config.h"

typedef struct em_changes {
    char *refused;  /* keys that differ and may not: "model.name, run.seed"; NULL: none */
    bool stop_rule; /* the stop rule differs */
    bool was_auto;  /* run.draws was auto and is now a number, which is refused */
} em_changes;

/* Compares a config with the stored text of another one, by the field tables. An option that the
 * text lacks had its default. Local. Errors: EM_EMEMORY. */
em_status em_changes_find(const em_config *config, const char *stored, em_changes *out);

static inline void em_changes_release(em_changes *changes)
{
    em_release(&changes->refused);
}
