/*
 * Writes a JSON document from its beginning to its end. The key is NULL inside an array and for the
 * outermost value. NaN is written as null, and an infinity as 1e999, which readers take for
 * infinity. All Local.
 */
#ifndef EM_APP_REPORT_JSON_WRITER_H
#define EM_APP_REPORT_JSON_WRITER_H

#include <stdint.h>
#include <stdio.h>

typedef struct em_json {
    FILE *out;
    char last; /* the last character that decides whether a comma comes next */
} em_json;

/* An array or an object, from its opening bracket to its closing one: [ ] { }. */
void em_json_open(em_json *json, const char *key, char bracket);
void em_json_close(em_json *json, char bracket);

void em_json_text(em_json *json, const char *key, const char *text); /* NULL: null */
void em_json_real(em_json *json, const char *key, double value);     /* all digits */

/* n numbers, from `x` on with that stride, with as many digits as a figure of them can show: five
 * more than the range of the finite ones takes. */
void em_json_reals(em_json *json, const char *key, int64_t n, const double *x, int64_t stride);

#endif
