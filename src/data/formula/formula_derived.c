/* Functions of columns in a formula, as R writes them. */
#include "base/memory.h"
#include "data/formula/formula_reading.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TEXT = 100, MOST_DEPTH = 50 };

static const struct {
    const char *name;
    em_operator op;
} functions[] = {{"log", EM_OP_LOG},     {"log2", EM_OP_LOG2}, {"log10", EM_OP_LOG10},
                 {"log1p", EM_OP_LOG1P}, {"exp", EM_OP_EXP},   {"sqrt", EM_OP_SQRT},
                 {"abs", EM_OP_ABS}};

enum { N_FUNCTION = sizeof functions / sizeof *functions };

/* A function that is being read: its steps, and its text in a uniform spelling. */
typedef struct deriving {
    em_reading *r;
    em_derived *to;
    char text[MOST_TEXT];
    int depth;
} deriving;

static em_status read_sum(deriving *d);

static em_status EM_PRINTF(2, 3) write_text(deriving *d, const char *format, ...)
{
    const size_t used = strlen(d->text), left = sizeof d->text - used;
    va_list arguments;

    va_start(arguments, format);
    const bool fits = vsnprintf(d->text + used, left, format, arguments) < (int)left;
    va_end(arguments);
    return fits
               ? EM_OK
               : em_reading_fail(d->r, "a shorter function, or a column of its values in the data");
}

static em_status put(deriving *d, em_step step)
{
    if (d->to->n_step >= EM_MOST_STEPS)
        return em_reading_fail(d->r, "a shorter function, or a column of its values in the data");
    d->to->step[d->to->n_step++] = step;
    return EM_OK;
}

static em_status close_parenthesis(deriving *d)
{
    return em_reading_accept(d->r, ')') ? write_text(d, ")") : em_reading_fail(d->r, "')'");
}

static em_operator function_of(const char *name)
{
    for (int i = 0; i < N_FUNCTION; i++)
        if (strcmp(functions[i].name, name) == 0)
            return functions[i].op;
    return EM_N_OPERATOR;
}

bool em_is_function(const char *name)
{
    return strcmp(name, "I") == 0 || strcmp(name, "poly") == 0 ||
           function_of(name) != EM_N_OPERATOR;
}

/* ---------------------------------------------------------------- arithmetic */

static em_status read_number(deriving *d)
{
    char *end;
    const double number = strtod(d->r->at, &end);

    if (end == d->r->at || !isfinite(number) || em_is_of_name(*end))
        return em_reading_fail(d->r, "a number");
    d->r->at = end;
    const em_status status = write_text(d, "%.15g", number);
    return status ? status : put(d, (em_step){.op = EM_OP_NUMBER, .number = number});
}

static em_status read_call(deriving *d, const char *name, const char *start)
{
    if (function_of(name) == EM_N_OPERATOR) {
        d->r->at = start;
        return em_reading_fail(
            d->r, "a number, a column, +, -, *, /, ^, log, log2, log10, log1p, exp, sqrt or abs");
    }
    em_status status = write_text(d, "%s(", name);
    status = status ? status : read_sum(d);
    status = status ? status : close_parenthesis(d);
    return status ? status : put(d, (em_step){.op = function_of(name)});
}

static em_status read_operand_column(deriving *d, const char *name, const char *start)
{
    em_reading *r = d->r;
    const char *quote = em_needs_backquotes(name) ? "`" : "";
    int64_t column;
    em_status status = em_reading_find(r, name, start, &column);

    if (status)
        return status;
    if (column < 0 && !r->may_miss)
        return em_reading_fail_column(r, name, start);
    r->missed |= column < 0;
    status = write_text(d, "%s%s%s", quote, name, quote);
    return status ? status : put(d, (em_step){.op = EM_OP_COLUMN, .column = column});
}

/* A number, a column, a function or a sum in parentheses. */
static em_status read_operand(deriving *d)
{
    char name[EM_NAME_BYTES];
    em_status status;

    em_reading_skip(d->r);
    const char *start = d->r->at;
    if ((*start >= '0' && *start <= '9') || (*start == '.' && start[1] >= '0' && start[1] <= '9'))
        return read_number(d);
    if (em_reading_accept(d->r, '(')) {
        status = write_text(d, "(");
        status = status ? status : read_sum(d);
        return status ? status : close_parenthesis(d);
    }
    status = em_reading_name(d->r, name);
    if (status)
        return status;
    return *start != '`' && em_reading_accept(d->r, '(') ? read_call(d, name, start)
                                                         : read_operand_column(d, name, start);
}

/* Accepts ^ or, as in Python, **. */
static bool accept_power(em_reading *r)
{
    em_reading_skip(r);
    if (strncmp(r->at, "**", 2) != 0)
        return em_reading_accept(r, '^');
    r->at += 2;
    return true;
}

/* Reads a power. -x^2 is -(x^2), and 2^-1 is one half. */
static em_status read_power(deriving *d)
{
    em_status status;

    if (++d->depth > MOST_DEPTH)
        return em_reading_fail(d->r, "fewer parentheses");
    if (em_reading_accept(d->r, '-')) {
        status = write_text(d, "-");
        status = status ? status : read_power(d);
        d->depth--;
        return status ? status : put(d, (em_step){.op = EM_OP_NEGATE});
    }
    status = read_operand(d);
    if (!status && accept_power(d->r)) {
        status = write_text(d, "^");
        status = status ? status : read_power(d);
        status = status ? status : put(d, (em_step){.op = EM_OP_POWER});
    }
    d->depth--;
    return status;
}

static em_status read_product(deriving *d)
{
    em_status status = read_power(d);

    while (!status) {
        const bool times = em_reading_accept(d->r, '*');
        if (!times && !em_reading_accept(d->r, '/'))
            break;
        status = write_text(d, times ? " * " : "/");
        status = status ? status : read_power(d);
        status = status ? status : put(d, (em_step){.op = times ? EM_OP_MULTIPLY : EM_OP_DIVIDE});
    }
    return status;
}

static em_status read_sum(deriving *d)
{
    em_status status = read_product(d);

    while (!status) {
        const bool plus = em_reading_accept(d->r, '+');
        if (!plus && !em_reading_accept(d->r, '-'))
            break;
        status = write_text(d, plus ? " + " : " - ");
        status = status ? status : read_product(d);
        status = status ? status : put(d, (em_step){.op = plus ? EM_OP_ADD : EM_OP_SUBTRACT});
    }
    return status;
}

/* ---------------------------------------------------------------- polynomials */

/* Reads the rest of poly(x, 2) or poly(x, degree = 2, raw = TRUE) after x. */
static em_status read_degree(deriving *d)
{
    static const char *const yes[] = {"TRUE", "T"};
    char word[EM_NAME_BYTES] = "", *end;
    em_reading *r = d->r;
    em_status status = EM_OK;

    if (!em_reading_accept(r, ','))
        return em_reading_fail(r, "',' and a degree");
    em_reading_skip(r);
    if (*r->at < '0' || *r->at > '9') {
        status = em_reading_name(r, word);
        if (!status && (strcmp(word, "degree") != 0 || !em_reading_accept(r, '=')))
            status = em_reading_fail(r, "a degree");
        em_reading_skip(r);
    }
    if (status)
        return status;
    const long degree = strtol(r->at, &end, 10);
    if (end == r->at || degree < 1 || degree > EM_MOST_DEGREE || em_is_of_name(*end))
        return em_reading_fail(r, "a degree from 1 to 20");
    r->at = end;
    d->to->degree = (int)degree;
    if (em_reading_accept(r, ',')) {
        status = em_reading_name(r, word);
        if (!status && (strcmp(word, "raw") != 0 || !em_reading_accept(r, '=')))
            status = em_reading_fail(r, "raw = TRUE");
        status = status ? status : em_reading_name(r, word);
        for (int i = 0; i < 2; i++)
            d->to->raw |= strcmp(word, yes[i]) == 0;
        if (!status && !d->to->raw && strcmp(word, "FALSE") != 0 && strcmp(word, "F") != 0)
            status = em_reading_fail(r, "raw = TRUE or raw = FALSE before it");
    }
    return status;
}

/* ---------------------------------------------------------------- the whole term */

static em_status read_function(deriving *d, const char *name)
{
    const em_operator op = function_of(name);
    em_status status = write_text(d, "%s(", name);

    status = status ? status : read_sum(d);
    if (!status && strcmp(name, "poly") == 0) {
        status = read_degree(d);
        if (!status)
            status = write_text(d, ", %d%s", d->to->degree, d->to->raw ? ", raw = TRUE" : "");
    }
    status = status ? status : close_parenthesis(d);
    if (!status && op != EM_N_OPERATOR)
        status = put(d, (em_step){.op = op});
    return status;
}

em_status em_reading_derived(em_reading *r, const char *name, int64_t *out)
{
    em_formula *f = r->formula;
    em_status status;

    *out = -1;
    if (f->n_derived >= EM_MOST_DERIVED)
        return em_reading_fail(r, "at most 100 functions of columns");
    status = f->derived ? EM_OK : em_allocate(EM_MOST_DERIVED, sizeof *f->derived, &f->derived);
    if (status)
        return status;
    deriving d = {.r = r, .to = &f->derived[f->n_derived]};
    *d.to = (em_derived){.name = NULL};
    r->missed = false;
    status = read_function(&d, name);
    if (status || r->missed)
        return status;
    for (int64_t k = 0; k < f->n_derived; k++)
        if (strcmp(f->derived[k].name, d.text) == 0) {
            *out = r->columns->n + k;
            return EM_OK;
        }
    status = em_copy_text(d.text, &d.to->name);
    if (!status)
        *out = r->columns->n + f->n_derived++;
    return status;
}
