/* The part of a report that says which priors a regression had. */
#ifndef EM_APP_REPORT_REPORT_PRIORS_H
#define EM_APP_REPORT_REPORT_PRIORS_H

#include "app/report/report_data.h"

#include <stdio.h>

/* Writes a section of HTML where the file says what the priors were. Local. Errors: EM_EDATA,
 * EM_EIO, EM_EMEMORY. */
em_status em_report_priors(const em_report_data *data, FILE *out);

#endif
