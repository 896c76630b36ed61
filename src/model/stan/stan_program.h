/* A Stan program for the interpreter. One rank reads and translates its text for all ranks. */
#pragma once

#include "model/stan/stan_library.h"

enum { EM_STAN_MOST_PROGRAM_BYTES = 1 << 24 }; /* with all that it includes */

/* Reads a text of at most `most` bytes on one rank, for all ranks. Collective. Errors, agreed:
 * EM_EUSAGE, EM_EDATA, EM_EMEMORY. Freed by em_release. */
em_status em_stan_read_text(const char *path, int64_t most, char **text);

/* Opens libstanli.so, or the compiled model at `path`, on every rank, and checks that all ranks
 * have the same one. Collective. Errors, agreed: EM_ECONFIG, EM_EMEMORY. */
em_status em_stan_open(const char *path, bool interpreter, em_stan_library *out);

/* Translates the program at `path`, on one rank, into the form from which libstanli.so constructs
 * models. #include searches the program's folder. Collective. Errors, agreed: EM_EDATA, with Stan's
 * message, file and line; EM_EUSAGE if the file cannot be read; EM_EMEMORY. Freed by em_release. */
em_status em_stan_translate(const em_stan_library *library, const char *path, const char *program,
                            char **translated);
