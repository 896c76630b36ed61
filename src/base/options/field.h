/* Reading and writing options by their field tables (emass/field.h). All Local. */
#pragma once

#include "emass/field.h"
#include "emass/status.h"

#include <stdio.h>

/* A value as it was written, before its type is known. */
typedef enum em_value_kind {
    EM_VALUE_NULL, /* nothing */
    EM_VALUE_SCALAR,
    EM_VALUE_LIST,
    EM_VALUE_MAPPING
} em_value_kind;

typedef struct em_value {
    em_value_kind kind;
    em_texts text; /* owned: the scalar, the elements of the list, or the JSON of a mapping that is
                      one value */
} em_value;

void em_value_release(em_value *value);

/* The row called `name` in a table (NULL: an empty one); NULL when there is none. */
const em_field *em_field_find(const em_field *table, const char *name);

/* Sets the option of `field` in `options` (zeroed before its first use) from a value. NULL makes an
 * option whose default is "" absent: NaN, INT64_MIN, -1 (choice), NULL or an empty list. Paths are
 * taken as written. Errors: EM_ECONFIG, "found 'ten', expected an integer from 1 to 1000000", to
 * which the caller adds the place; EM_EMEMORY. */
em_status em_field_read(const em_field *field, const em_value *value, void *options);

/* Writes the option as a YAML value that em_field_read reads back as the same, bit for bit. */
void em_field_write(const em_field *field, const void *options, FILE *out);

/* Writes the values that the field can have: "a number from 0 to 1, or adapt". */
void em_field_write_expected(const em_field *field, FILE *out);

/* Frees the memory that the options of a table own. */
void em_field_release(const em_field *table, void *options);
