/*
 * The library compares the number of elements alone: a matrix in place of its transpose, or a list
 * of one list in place of a vector, would be read as something else.
 */
#include "model/stan/stan_shape.h"

#include "base/text.h"

#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The name of a type, and its number of axes after those of its array. `square`: one length is that
 * of two axes. */
typedef struct type {
    const char *name;
    int n_length;
    bool square;
} type;

static const type types[] = {{"int", 0, false},
                             {"real", 0, false},
                             {"vector", 1, false},
                             {"row_vector", 1, false},
                             {"simplex", 1, false},
                             {"unit_vector", 1, false},
                             {"ordered", 1, false},
                             {"positive_ordered", 1, false},
                             {"sum_to_zero_vector", 1, false},
                             {"matrix", 2, false},
                             {"row_stochastic_matrix", 2, false},
                             {"column_stochastic_matrix", 2, false},
                             {"sum_to_zero_matrix", 2, false},
                             {"cholesky_factor_cov", 2, true},
                             {"cholesky_factor_corr", 1, true},
                             {"corr_matrix", 1, true},
                             {"cov_matrix", 1, true}};

/* The lengths of the axes, in order; NaN: not known. */
typedef struct shape {
    int n;
    double length[EM_MAX_AXES + 2];
} shape;

/* ---------------------------------------------------------------- lengths */

/* The value of an integer scalar of the data; NaN: there is none. */
static double value_of(const char *name, size_t length, const em_stan_data *data)
{
    const em_stan_datum *datum = em_stan_data_find_word(data, name, length);

    return datum && datum->is_integer && datum->n_axes == 0 && datum->value &&
                   fabs(*datum->value) <= INT_MAX
               ? *datum->value
               : NAN;
}

/* Reads the value of one more operand, and moves *at past it. */
static double read_operand(const char **at, const em_stan_data *data)
{
    *at = em_stan_skip_blanks(*at);
    const char *start = *at;
    size_t length = em_stan_word_length(start);
    *at += length;
    if (length == 0)
        return NAN;
    return isdigit((unsigned char)*start) ? strtod(start, NULL) : value_of(start, length, data);
}

/* Reads a length. Products come before sums. Brackets, calls, indices and division make it unknown;
 * *at is then somewhere before the end of the length. */
static double read_length(const char **at, const em_stan_data *data)
{
    double sum = 0, sign = 1, product = read_operand(at, data);

    *at = em_stan_skip_blanks(*at);
    for (; **at && strchr("+-*", **at); *at = em_stan_skip_blanks(*at)) {
        const char operation = *(*at)++;
        const double operand = read_operand(at, data);
        if (operation == '*') {
            product *= operand;
        } else {
            sum += sign * product;
            sign = operation == '+' ? 1 : -1;
            product = operand;
        }
    }
    return **at == ',' || **at == ']' ? sum + sign * product : NAN;
}

/* Reads the lengths in the brackets at *at, if there are brackets. Returns false if there are too
 * many. */
static bool read_lengths(const char **at, const em_stan_data *data, shape *out)
{
    *at = em_stan_skip_blanks(*at);
    if (**at != '[')
        return true;
    do {
        ++*at;
        if (out->n == EM_MAX_AXES)
            return false;
        out->length[out->n++] = read_length(at, data);
        *at = em_stan_find_outside(*at, ",]");
    } while (**at == ',');
    *at += **at == ']';
    return true;
}

/* ---------------------------------------------------------------- declarations */

static const type *find_type(const char *name)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (em_stan_word_length(name) == strlen(types[i].name) &&
            strncmp(name, types[i].name, strlen(types[i].name)) == 0)
            return &types[i];
    return NULL;
}

/* Reads the shape of a declaration such as "array[N, 2] vector<lower=0>[K] x". Returns false if the
 * type is not known here. */
static bool read_declaration(const char *at, const em_stan_data *data, shape *out)
{
    out->n = 0;
    at = em_stan_skip_blanks(at);
    if (em_stan_word_length(at) == 5 && strncmp(at, "array", 5) == 0) {
        at += 5;
        if (!read_lengths(&at, data, out))
            return false;
        at = em_stan_skip_blanks(at);
    }
    int n_array = out->n;
    const type *found = find_type(at);
    if (!found)
        return false;
    at = em_stan_skip_blanks(at + strlen(found->name));
    if (*at == '<') { /* bounds such as "<lower=0, upper=(3 > 2 ? 5 : 1)>" */
        at = em_stan_find_outside(at, ">");
        at += *at == '>';
    }
    if (!read_lengths(&at, data, out))
        return false;
    if (found->square && out->n == n_array + 1) {
        out->length[out->n] = out->length[out->n - 1];
        out->n++;
        return true;
    }
    return out->n == n_array + found->n_length;
}

/* ---------------------------------------------------------------- the comparison */

/* Writes a shape as "(3, 2)". A length that is not known is "?". */
static void write_shape(const shape *s, size_t bytes, char *out)
{
    snprintf(out, bytes, "(");
    for (int i = 0; i < s->n; i++)
        em_append(bytes, out, isnan(s->length[i]) ? "%s?" : "%s%.0f", i ? ", " : "", s->length[i]);
    em_append(bytes, out, ")");
}

static bool is_as_declared(const shape *wanted, const shape *found)
{
    for (int i = 0; i < wanted->n; i++)
        if (wanted->length[i] == 0)
            return true;
    for (int i = 0; wanted->n == found->n && i < wanted->n; i++)
        if (!isnan(wanted->length[i]) && wanted->length[i] != found->length[i])
            return false;
    return wanted->n == found->n;
}

static em_status check_shape(const char *path, const em_stan_declaration *declared,
                             const em_stan_datum *datum, const em_stan_data *data)
{
    shape wanted, found = {.n = datum->n_axes};
    char found_text[256], wanted_text[256];
    bool is_empty = false;

    for (int i = 0; i < datum->n_axes; i++) {
        found.length[i] = (double)datum->shape[i];
        is_empty |= datum->shape[i] == 0;
    }
    if (datum->is_tuple || is_empty || !read_declaration(declared->text, data, &wanted) ||
        is_as_declared(&wanted, &found))
        return EM_OK;
    write_shape(&found, sizeof found_text, found_text);
    write_shape(&wanted, sizeof wanted_text, wanted_text);
    return em_fail(EM_EDATA, "%s: found %s of shape %s, expected %s: %s", path,
                   em_excerpt_of(datum->name).text, found_text, wanted_text,
                   em_excerpt_of(declared->text).text);
}

em_status em_stan_check_shapes(const char *path, const em_stan_declared *declared,
                               em_stan_block block, const em_stan_data *values,
                               const em_stan_data *data)
{
    em_status status = EM_OK;

    for (int64_t i = 0; !status && i < values->count; i++) {
        const em_stan_declaration *found =
            em_stan_declared_find(declared, block, values->datum[i].name);
        if (found)
            status = check_shape(path, found, &values->datum[i], data);
    }
    return status;
}

/* ---------------------------------------------------------------- room */

/* The number of numbers of a variable in a draw; 0: not known. */
static double count_numbers(const em_stan_declaration *declaration, const em_stan_data *data)
{
    shape s;
    double n = 1;

    if (declaration->block == EM_STAN_DATA || !read_declaration(declaration->text, data, &s))
        return 0;
    for (int i = 0; i < s.n; i++)
        n *= s.length[i];
    return n > 0 ? n : 0;
}

em_status em_stan_check_memory(const char *what, const em_stan_declared *declared,
                               const em_stan_data *data, double room)
{
    const double least = 100; /* bytes: name and place of a number, in the interpreter */
    double sum = 0, most = 0;
    const em_stan_declaration *largest = NULL;

    for (int64_t i = 0; declared && i < declared->count; i++) {
        const double n = count_numbers(&declared->declaration[i], data);
        sum += n;
        if (n > most) {
            most = n;
            largest = &declared->declaration[i];
        }
    }
    if (!largest || least * sum <= room)
        return EM_OK;
    return em_fail(EM_EMEMORY,
                   "%s: out of memory: it takes more than the %.3g GB available to a rank: %.3g "
                   "numbers in a draw, %.3g of them in %s",
                   what, room / 1e9, sum, most, em_excerpt_of(largest->text).text);
}
