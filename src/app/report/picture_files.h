/* Writes the figures of a report as files. */
#pragma once

#include "emass/status.h"

/* Makes the folder unless it exists. Local. Errors: EM_EUSAGE if no files can be made in it, or if
 * the program was built without Duktape. */
em_status em_prepare_pictures(const char *folder);

/* Runs the script of the page on the JSON of the page, by Duktape, and writes each figure into the
 * folder as an SVG file. Local. Errors: EM_EUSAGE, EM_EMEMORY, EM_EIO. */
em_status em_write_pictures(const char *script, const char *json, const char *folder);
