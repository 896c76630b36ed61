/* The options that every model on a table of data has. */
#pragma once

#include "emass/field.h"

#include <stdbool.h>
#include <stdint.h>

enum { EM_FITTED_BYTES = 256 };

/* Columns that are no features. The mean is proportional to the exposure. The offset is added to
 * the linear predictor. A weight multiplies the log likelihood of its row. */
typedef enum em_beside {
    EM_BESIDE_EXPOSURE,
    EM_BESIDE_OFFSET,
    EM_BESIDE_WEIGHTS,
    EM_N_BESIDE
} em_beside;

/* Printable names, in order, of the columns from which features of an earlier table were made. */
typedef struct em_fitted_columns {
    int64_t n;
    const char *const *name; /* [n] */
    const bool *is_factor;   /* [n] */
} em_fitted_columns;

/* The first member of the options of a model that reads a table. */
typedef struct em_table_options {
    char *data;                /* the file; NULL: none given */
    int format;                /* em_table_format */
    int header;                /* em_table_header */
    int decimal;               /* em_table_decimal */
    char *response;            /* name or 1-based number of a column; NULL: the last one */
    char *beside[EM_N_BESIDE]; /* names or numbers of columns that are no features; NULL: none */
    /* the features by name, or -name: all others; for LIBSVM the number of features */
    em_texts chosen;
    em_texts factors; /* factors: name, or name=reference level */
    char *levels;     /* JSON: the levels of factors in their order; NULL: sorted */
    char *formula;    /* replaces `chosen`, `factors` and `response`; NULL: none */
    int na;           /* em_table_na */
    bool intercept;   /* a column of ones, first */
    bool standardise; /* features to mean 0 and standard deviation 1 */
    /* Settings by a model or a command, which are not options of a config: */
    int64_t columns;  /* features there must be; below 1: as many as there are */
    bool asks_header; /* with `header: auto`, a first line of numbers that may be names is an error
                       */
    bool dense_names; /* columns of a dense matrix of AnnData have its names; otherwise numbers */
    bool labelled;    /* the response may be text */
    /* the columns of an earlier run to read; NULL: those of the options */
    const em_fitted_columns *fitted;
    /* Advice in the error about text, or a missing value, in place of a number; NULL: none. */
    const char *if_text, *if_missing;
} em_table_options;

/* The most features that the indices of a LIBSVM file may imply: a wrong index must not exhaust
 * memory. */
enum { EM_TABLE_AUTO_COLUMNS = 1000000 };

typedef enum em_table_format {
    EM_TABLE_AUTO,
    EM_TABLE_LIBSVM,
    EM_TABLE_COMMA,
    EM_TABLE_SEMICOLON,
    EM_TABLE_TAB,
    EM_TABLE_SPACE,
    EM_N_TABLE_FORMAT
} em_table_format;

typedef enum em_table_header { EM_HEADER_AUTO, EM_HEADER_YES, EM_HEADER_NO } em_table_header;

/* What is done about missing values. */
typedef enum em_table_na { EM_NA_ERROR, EM_NA_DROP } em_table_na;

/* The decimal separator of numbers in text. */
typedef enum em_table_decimal { EM_DECIMAL_POINT, EM_DECIMAL_COMMA } em_table_decimal;

/* text.c */
extern const char *const em_table_format_names[],
    *const em_table_header_names[], *const em_table_decimal_names[], *const em_table_na_names[];

/* The rows of these options for a field table; `data_fallback` NULL: the file must be given. */
#define EM_TABLE_FIELDS(data_fallback)                                                             \
    EM_PATH(                                                                                       \
        em_table_options, data, .fallback = (data_fallback),                                       \
        .doc =                                                                                     \
            "table: CSV, TSV, spaces or LIBSVM, plain, .gz or .xz, or HDF5 as file.h5:/dataset"),  \
        EM_CHOICE(em_table_options, format, .fallback = "auto", .choices = em_table_format_names,  \
                  .doc = "format of a text file: libsvm, or what separates the columns; auto: "    \
                         "found from the first line"),                                             \
        EM_CHOICE(em_table_options, header, .fallback = "auto", .choices = em_table_header_names,  \
                  .doc = "whether the first line names the columns; auto: when there is no "       \
                         "number in it; where numbers may be names, such as 2020,2021, the "       \
                         "option is needed"),                                                      \
        EM_CHOICE(em_table_options, decimal, .fallback = "point",                                  \
                  .choices = em_table_decimal_names,                                               \
                  .doc = "comma: numbers are written 1,5, between semicolons, tabs or spaces"),    \
        EM_TEXT(em_table_options, response, .fallback = "",                                        \
                .doc = "response column, by name or number from 1; absent: the last "              \
                       "(LIBSVM: the label)"),                                                     \
        EM_ROW_AS("columns", em_table_options, chosen, EM_FIELD_TEXTS, em_texts, .fallback = "[]", \
                  .doc = "features, by name or number from 1: [age, sex]; with a minus, columns "  \
                         "to leave out: [-id]; LIBSVM: the number of features"),                   \
        EM_TEXTS(em_table_options, factors, .fallback = "[]",                                      \
                 .doc = "features of categories: name, or name=level for the reference level; a "  \
                        "coefficient for each other level"),                                       \
        EM_JSON(em_table_options, levels, .fallback = "",                                          \
                .doc = "{size: [small, medium, large]}: levels of factors in their order, the "    \
                       "reference level first; absent: sorted; columns with levels are factors"),  \
        EM_TEXT(em_table_options, formula, .fallback = "",                                         \
                .doc =                                                                             \
                    "in place of response and columns: disease ~ age + sex * factor(cp) - 1; "     \
                    "columns of text are factors; a dot is all other columns; other names "        \
                    "between backquotes; factors may say reference levels; columns of numbers "    \
                    "may be in log(), exp(), sqrt(), I(), poly(x, 2), the response too: log(y)"),  \
        EM_CHOICE(em_table_options, na, .fallback = "error", .choices = em_table_na_names,         \
                  .doc = "missing values (nothing, NA, NaN, ?, ...) in columns that are used: an " \
                         "error, or such rows are left out"),                                      \
        EM_BOOL(em_table_options, intercept, .fallback = "true",                                   \
                .doc = "adds a coefficient for a column of ones, before the others"),              \
        EM_BOOL(em_table_options, standardise, .fallback = "false",                                \
                .doc = "features to mean 0 and standard deviation 1 (divisor n - 1); sparse data " \
                       "become dense")

/* One more row, for models of counts. */
#define EM_TABLE_EXPOSURE_FIELD                                                                    \
    EM_ROW_AS("exposure", em_table_options, beside[EM_BESIDE_EXPOSURE], EM_FIELD_TEXT, char *,     \
              .fallback = "",                                                                      \
              .doc = "column of the exposure (time, area, ...), by name or number from 1: the "    \
                     "mean is proportional to it")

/* Two more, for regressions. */
#define EM_TABLE_WEIGHTS_FIELDS                                                                    \
    EM_ROW_AS("offset", em_table_options, beside[EM_BESIDE_OFFSET], EM_FIELD_TEXT, char *,         \
              .fallback = "",                                                                      \
              .doc = "column, by name or number from 1, that is added to the linear predictor, "   \
                     "with no coefficient"),                                                       \
        EM_ROW_AS("weights", em_table_options, beside[EM_BESIDE_WEIGHTS], EM_FIELD_TEXT, char *,   \
                  .fallback = "",                                                                  \
                  .doc = "column of weights, 0 or more, by name or number from 1: the log "        \
                         "likelihood of a row is multiplied by its weight")
