/* The figures of a report that are of the sampler: em_figure.draw of app/report/report_figures.h.
 */
#ifndef EM_APP_REPORT_REPORT_SAMPLER_H
#define EM_APP_REPORT_REPORT_SAMPLER_H

#include "app/report/report_data.h"

#include <stdio.h>

/* Energies and their changes; the eigenvalues of the mass; step size and acceptance by iteration.
 * `k` is 0. Local. Errors: EM_EDATA, EM_EIO, EM_EMEMORY. */
em_status em_report_draw_energy(const em_report_data *data, int k, FILE *out);
em_status em_report_draw_mass(const em_report_data *data, int k, FILE *out);
em_status em_report_draw_steps(const em_report_data *data, int k, FILE *out);

#endif
