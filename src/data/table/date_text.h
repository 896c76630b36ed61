/* Dates, times and durations in tables, which a regression does not take as numbers. */
#pragma once

typedef enum em_date_text {
    EM_NO_DATE,
    EM_CLOCK_TEXT, /* 12:30:00, 3 days: also the name of a category */
    EM_DATE_TEXT /* 2020-01-31, 2020-01-31T12:00:00Z, 1/31/2020, 31.1.2020, 3 days 12:00:00, P3DT12H
                  */
} em_date_text;

/* What a text is, as Python, R, spreadsheets and ISO 8601 write dates and durations. Years and
 * months alone, such as 2020-01, are no dates. Local. */
em_date_text em_date_text_of(const char *text);
