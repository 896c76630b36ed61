/* Dates, times and durations in tables, which a regression does not know as numbers. */
#pragma once

#include <stdbool.h>

/* Whether the text is a date, with or without a time of day, or a time with seconds, or a duration,
 * as Python, R, spreadsheets and ISO 8601 write them: 2020-01-31, 2020-01-31T12:00:00Z, 1/31/2020,
 * 31.1.2020, 12:30:00, 3 days 12:00:00, P3DT12H. Years and months alone, such as 2020-01, are not.
 * Local. */
bool em_is_date_text(const char *text);
