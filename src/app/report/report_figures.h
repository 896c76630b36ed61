/* The numbers that the figures of a report show, as JSON; report.js draws them. */
#ifndef EM_APP_REPORT_REPORT_FIGURES_H
#define EM_APP_REPORT_REPORT_FIGURES_H

#include "app/report/json_writer.h"
#include "app/report/report_data.h"

/*
 * Writes the member "figures", an object with a member for each kind that the file has numbers for.
 * Their size is bounded whatever the size of the run: a figure shows so many rows, chains and
 * points. Local. Errors: EM_EDATA, EM_EIO, EM_EMEMORY.
 */
em_status em_report_figures(const em_report_data *data, em_json *json);

/* The same of energy, of the mass, and of step size and acceptance (report_sampler.c). */
em_status em_report_energy(const em_report_data *data, em_json *json);
em_status em_report_mass(const em_report_data *data, em_json *json);
em_status em_report_tempering(const em_report_data *data, em_json *json);
em_status em_report_steps(const em_report_data *data, em_json *json);

#endif
