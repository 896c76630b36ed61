/* The compute kernels (math/compute_kernels.h) with which the draws of a file were made, in its
 * root attribute `compute_kernels`. If a run was resumed with other kernels, "; then " joins them.
 */
#pragma once

#include "io/draws/writer.h"

#include <stdbool.h>

/* Whether all ranks compute with the kernels of rank 0. If not, a warning lists the others;
 * EM_EUSAGE if they must be the `same`. Collective, agreed. */
em_status em_processor_check_ranks(bool same);

/* Whether the draws of the file `path` were made with the kernels of rank 0, as far as the file
 * says. If not, a warning names both; EM_EUSAGE if they must be the `same`. *text, on all ranks, is
 * the attribute for the file of a run that continues this one; freed by em_release. Collective,
 * agreed. Errors: EM_EMEMORY, EM_EIO. */
em_status em_processor_check_file(const char *path, bool same, char **text);

/* Writes the attribute; NULL: the kernels of rank 0. Unless the file is `reproducible`, also writes
 * the versions of MPI and HDF5, as `libraries`. Collective. */
em_status em_processor_record(em_writer *writer, const char *text, bool reproducible);
