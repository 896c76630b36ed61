/* Texts among the numbers of a table: levels of a factor, labels of a response. A text is stored as
 * a NaN whose bits encode the number of the text in its column. */
#pragma once

#include "base/hash_table.h"
#include "emass/status.h"

#include <stdint.h>

enum { EM_MOST_LEVELS = 10000, EM_LEVEL_BYTES = 128 };

/* The different texts of a column. All members are zero at first. */
typedef struct em_levels {
    int64_t count, capacity;
    char **text; /* [count] */
    em_hash_table hashes;
} em_levels;

/* The NaN that encodes text number `code`, and the inverse: the number of the text that `value`
 * encodes, or -1 if it encodes none. Local. */
double em_level_value(int64_t code);
int64_t em_level_code(double value);

/* Finds a text or adds it. Local. Errors: EM_EMEMORY. */
em_status em_levels_add(em_levels *levels, const char *text, int64_t *code);

/* Merges the texts of all ranks and sorts them by their bytes; map[code] is the new code of one of
 * this rank's texts, freed by em_release. If there are more than EM_MOST_LEVELS nothing is merged,
 * and *count is a lower bound. Collective. Errors, agreed: EM_EMEMORY. */
em_status em_levels_merge(em_levels *levels, int64_t *count, int64_t **map);

void em_levels_release(em_levels *levels);
