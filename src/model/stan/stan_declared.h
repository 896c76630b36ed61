/* Finds the names and types that a Stan program declares, for messages and to detect integers. */
#pragma once

#include "emass/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum em_stan_block {
    EM_STAN_DATA,
    EM_STAN_PARAMETERS,
    EM_STAN_TRANSFORMED, /* parameters */
    EM_STAN_GENERATED
} em_stan_block;

typedef struct em_stan_declaration {
    em_stan_block block;
    bool is_integer;
    char *name;
    char *text; /* "array[N] int<lower=0> y", without an assigned value */
} em_stan_declaration;

typedef struct em_stan_declared {
    int64_t count, capacity;
    em_stan_declaration *declaration; /* [count] */
    bool may_solve;          /* the name of a solver or an integrator, or an included file */
    bool may_drop_constants; /* a statement with ~, or an included file, which may have one */
} em_stan_declared;

/* Lists the declarations of the data, and the top-level ones of the blocks that a draw contains.
 * This is no full parser: the list lacks declarations that it does not recognise, and those in
 * included files. Local. Errors: EM_EMEMORY. */
em_status em_stan_declared_read(const char *program, em_stan_declared **out);
void em_stan_declared_destroy(em_stan_declared **declared); /* NULL-safe. */

/* A copy of the program with its generated quantities blanked out; *out NULL: it has none. Local.
 * Errors: EM_EMEMORY. */
em_status em_stan_without_generated(const char *program, char **out);

/* The declaration of a name in a block; NULL: none. Local. */
const em_stan_declaration *em_stan_declared_find(const em_stan_declared *declared,
                                                 em_stan_block block, const char *name);

/* The position after the comment, the string or the character at `c`. Local. */
const char *em_stan_skip_one(const char *c);

/* The number of letters, digits and _ from c on. Local. */
size_t em_stan_word_length(const char *c);

/* The position of the first character from c on that is no blank. Local. */
const char *em_stan_skip_blanks(const char *c);

/* The position of the first of some characters that is not within brackets, or the end of the text.
 * Local. */
const char *em_stan_find_outside(const char *c, const char *wanted);
