/*
 * Field tables: one row per option of a config section, sampler, model or estimator. The same table
 * drives the config parser, `emass list`, and the config that is stored in the output.
 */
#pragma once

#include "emass/export.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

EM_BEGIN_C

typedef enum em_field_type {
    EM_FIELD_BOOL,     /* bool */
    EM_FIELD_INT,      /* int64_t */
    EM_FIELD_REAL,     /* double */
    EM_FIELD_DURATION, /* double, seconds; written 90, 90s, 10m, 3h, 1d or 01:30:00 */
    EM_FIELD_TEXT,     /* char *, owned by the options; NULL when absent */
    EM_FIELD_PATH,   /* char *, owned; relative paths start at the folder of the config, and ${NAME}
                        is replaced by the environment variable */
    EM_FIELD_DATA,   /* char *, owned: a path, or a mapping as JSON text, which begins with a brace.
                        Values of the mapping that name a column (table.csv:age) are paths, too */
    EM_FIELD_CHOICE, /* int, the index into `choices` */
    EM_FIELD_REALS,  /* em_reals, owned: a list of numbers */
    EM_FIELD_TEXTS,  /* em_texts, owned: a list of strings */
    EM_FIELD_JSON    /* char *, owned: any YAML value, as one line of JSON for the model to parse */
} em_field_type;

typedef struct em_reals {
    int64_t count;
    double *value;
} em_reals;

typedef struct em_texts {
    int64_t count;
    char **value;
} em_texts;

/*
 * One option. Tables end with a row whose name is NULL. `minimum` and `maximum` are inclusive and
 * apply to INT, REAL, DURATION and every element of REALS; both 0 means unbounded. `fallback` is
 * the default as it would be written in the config; NULL: the option must be given, "": absent.
 * `word`, if not NULL, may be given instead of a number, as in `step_size: adapt`; the option is
 * then NaN (REAL, DURATION) or INT64_MIN (INT).
 */
typedef struct em_field {
    const char *name;
    em_field_type type;
    size_t offset; /* offsetof(options, member) */
    double minimum, maximum;
    const char *fallback;
    const char *const *choices; /* CHOICE only; ends with NULL */
    const char *word;
    const char *doc; /* one line */
    bool may_change; /* a resumed run may have another value; false by default */
} em_field;

/*
 * Macros for the rows of a table, one for each member of a struct of options. Further members of
 * em_field follow by name, and a row {0} ends the table:
 *     EM_REAL(options, offshore, .minimum = 0, .maximum = 1e9, .fallback = "1", .doc = "distance")
 * A row whose type differs from that of the member does not compile. EM_ROW_AS is for an option
 * whose name differs from that of the member.
 */
#define EM_ROW(options, member, kind, c_type, ...)                                                 \
    EM_ROW_AS(#member, options, member, kind, c_type, __VA_ARGS__)
#define EM_ROW_AS(text, options, member, kind, c_type, ...)                                        \
    {                                                                                              \
        .name = text, .type = kind, .offset = EM_OFFSET(options, member, c_type), __VA_ARGS__      \
    }
#ifdef __cplusplus
#define EM_OFFSET(options, member, c_type)                                                         \
    (offsetof(options, member) + 0 * sizeof(static_cast<c_type *>(&((options *)0)->member)))
#else
#define EM_OFFSET(options, member, c_type)                                                         \
    _Generic(((options *)0)->member, c_type : offsetof(options, member))
#endif
#define EM_BOOL(options, member, ...) EM_ROW(options, member, EM_FIELD_BOOL, bool, __VA_ARGS__)
#define EM_INT(options, member, ...)  EM_ROW(options, member, EM_FIELD_INT, int64_t, __VA_ARGS__)
#define EM_REAL(options, member, ...) EM_ROW(options, member, EM_FIELD_REAL, double, __VA_ARGS__)
#define EM_DURATION(options, member, ...)                                                          \
    EM_ROW(options, member, EM_FIELD_DURATION, double, __VA_ARGS__)
#define EM_TEXT(options, member, ...)   EM_ROW(options, member, EM_FIELD_TEXT, char *, __VA_ARGS__)
#define EM_PATH(options, member, ...)   EM_ROW(options, member, EM_FIELD_PATH, char *, __VA_ARGS__)
#define EM_DATA(options, member, ...)   EM_ROW(options, member, EM_FIELD_DATA, char *, __VA_ARGS__)
#define EM_JSON(options, member, ...)   EM_ROW(options, member, EM_FIELD_JSON, char *, __VA_ARGS__)
#define EM_CHOICE(options, member, ...) EM_ROW(options, member, EM_FIELD_CHOICE, int, __VA_ARGS__)
#define EM_REALS(options, member, ...)                                                             \
    EM_ROW(options, member, EM_FIELD_REALS, em_reals, __VA_ARGS__)
#define EM_TEXTS(options, member, ...)                                                             \
    EM_ROW(options, member, EM_FIELD_TEXTS, em_texts, __VA_ARGS__)

EM_END_C
