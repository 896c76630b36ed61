/* Finds libstanli.so. */
#pragma once

#include "emass/status.h"

/*
 * Finds the path of libstanli.so. It is looked for in this order: the file, or the folder, that
 * EMASS_STANLI names; ../lib/emass relative to the program (make stanli); the package `stanli` of
 * the python3 in PATH, which is located without importing it. Local; starts a process. Errors:
 * EM_ECONFIG, with the ways to install it; EM_EMEMORY.
 */
em_status em_stan_find(char **path);
