/* The figures of a report. All Local. */
#ifndef EM_APP_REPORT_REPORT_FIGURES_H
#define EM_APP_REPORT_REPORT_FIGURES_H

#include "app/report/report_data.h"

#include <stdio.h>

/* One kind of figure. */
typedef struct em_figure {
    const char *name;    /* of its file */
    const char *heading; /* of its section */
    const char *caption; /* what it shows, and how it looks when all is well */
    int most;            /* of its kind, numbered from 0 */
    /* Writes the SVG of the k-th, or nothing where the file has not what it shows. Errors:
     * EM_EDATA, EM_EIO, EM_EMEMORY. */
    em_status (*draw)(const em_report_data *data, int k, FILE *out);
} em_figure;

extern const em_figure em_figures[]; /* to one without a name */

#endif
