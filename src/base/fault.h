/*
 * Fault injection: EMASS_FAULT=site:rank[:n] makes the n-th passage (default the first) of a named
 * site fail on that rank. Sites: config, data, allocate, model, hdf5-create, hdf5-write,
 * hdf5-close, hdf5-read.
 */
#ifndef EM_BASE_FAULT_H
#define EM_BASE_FAULT_H

#include <stdbool.h>

/* Reads EMASS_FAULT for this rank; before it is called no site fails. Local. */
void em_fault_start(int rank);

/* True when the site is to fail now. Local. */
bool em_fault(const char *site);

#endif
