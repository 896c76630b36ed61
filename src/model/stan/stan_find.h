/* Finds libstanli.so. */
#pragma once

#include "emass/status.h"

/*
 * The path of libstanli.so: what EMASS_STANLI names (the file, or a folder with it), or
 * ../lib/emass beside the program (make stanli), or that of a `stanli` installed for the python3 in
 * the path, which is asked where it is without importing it. Local; starts a process. Errors:
 * EM_ECONFIG, saying how to get it; EM_EMEMORY.
 */
em_status em_stan_find(char **path);
