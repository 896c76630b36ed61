/* The numbers that the figures of a report show, as JSON; report.js draws them. */
#pragma once

#include "app/report/report_data.h"
#include "app/report/report_json.h"

/* An object with a member for each kind of figure that the file has numbers for. Its size is
 * bounded for runs of any size, because a figure shows a limited number of rows, chains and points.
 * Local. Errors: EM_EDATA, EM_EIO, EM_EMEMORY. */
em_status em_report_figures(const em_report_data *data, json_t **out);

/* The numbers of one figure each: energy, mass matrix, tempering, and step size with acceptance
 * (report_sampler.c). *out stays NULL if the file has no such numbers. */
em_status em_report_energy(const em_report_data *data, json_t **out);
em_status em_report_mass(const em_report_data *data, json_t **out);
em_status em_report_tempering(const em_report_data *data, json_t **out);
em_status em_report_steps(const em_report_data *data, json_t **out);
