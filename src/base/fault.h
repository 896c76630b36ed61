/*
 * Fault injection: EMASS_FAULT=site:rank[:n] makes the n-th passage (default the first) of a named
 * site fail on that rank. EMASS_FAULT=kill:site:rank[:n] kills the process there instead, as
 * SIGKILL does. A name that ends in '*' counts the passages of all sites that begin so: "file-*".
 * The sites:
 *
 *   config, data, allocate, model    parsing, reading a data file, memory, a density
 *   data-slow                        the rank reads seven seconds longer: no failure
 *   data-shared                      the ranks of a node cannot share memory: no failure
 *   memory-room                      a quarter of a GB is available: no failure
 *   impatient                        one second is the limit for stopping a run, for a call of the
 *                                    model, and for ending MPI: no failure
 *   launcher                         a launcher has one second to end the other ranks when a rank
 *                                    is lost: no failure
 *   position                         with shards: one bit of a chain's position differs on this
 *                                    rank
 *   hdf5-create                      a file, group or dataset of the output
 *   hdf5-attribute, hdf5-array       data that are written once
 *   hdf5-fill                        space for draws
 *   hdf5-write                       draws
 *   hdf5-resize                      a change of the number of draws
 *   hdf5-flush                       forcing written data to the disk
 *   hdf5-close                       the end of the output
 *   hdf5-open, hdf5-read             reading an output, or opening it again to complete it
 *   checkpoint-create, -write, -close, -open, -read
 *
 * and, passed by rank 0 alone:
 *
 *   hdf5-reserve                     disk space for outputs and checkpoints
 *   time-limit                       the limit is reached at the n-th iteration: no failure
 *   checkpoint-trailer               the trailer of a checkpoint
 *   checkpoint-large                 a checkpoint is too large for the output: no failure
 *   file-rename, -remove             checkpoints, the rollback journal, and draws set aside
 *   file-journal                     the rollback journal of an output that is being finished
 *   file-restore                     restoring the output from its rollback journal
 *   file-create                      an empty output
 *   file-done                        the run is written completely and all other files are removed
 *   lock-create, -write, -refused    the lock of an output; refused: the file system has no locks,
 *                                    no failure
 */
#pragma once

#include "emass/status.h"

#include <stdbool.h>

/* Reads EMASS_FAULT for this rank. No site fails before this call. Local. */
void em_fault_start(int rank);

/* True when the site is to fail now. Local. */
bool em_fault(const char *site);

/* The number of the passage at which the site is to fail; 0 when it never does. Local. */
long em_fault_passage(const char *site);

/* Fails an operation on the file `path` if em_fault(site) is true, with a message that names the
 * file. Local. Errors: EM_EIO. */
em_status em_fault_file(const char *site, const char *path);
