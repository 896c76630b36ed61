/* The compute kernels (math/compute_kernels.h) with which a file was drawn: its root attribute
 * `compute_kernels`, with "; then " between those of a run that went on with others. */
#pragma once

#include "io/draws/writer.h"

#include <stdbool.h>

/* Whether all ranks compute with the kernels of rank 0. If not, a warning lists the others;
 * EM_EUSAGE where they must be the `same`. Collective, agreed. */
em_status em_processor_check_ranks(bool same);

/* Whether the file `path` was drawn with the kernels of rank 0, as far as it says. If not, a
 * warning names both; EM_EUSAGE where they must be the `same`. *text, freed by em_release, is what
 * a file that goes on from this one records, on all ranks. Collective, agreed. Errors: EM_EMEMORY,
 * EM_EIO. */
em_status em_processor_check_file(const char *path, bool same, char **text);

/* Writes the attribute; NULL: the kernels of rank 0. Writes the versions of MPI and HDF5 too, as
 * `libraries`, where the file need not be `reproducible`. Collective. */
em_status em_processor_record(em_writer *writer, const char *text, bool reproducible);
