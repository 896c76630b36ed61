#include "data/formula.h"

#include "base/array.h"
#include "base/memory.h"
#include "base/nearest.h"
#include "base/text.h"

#include <string.h>

enum { NAME_BYTES = 1024, LONGEST = 65536 };

/* A formula being read: text, and where. */
typedef struct reading {
    const char *text, *at;
    const em_formula_columns *columns;
    em_formula *formula;
    int64_t n_seen;
    int64_t *seen; /* [columns->n] in which order they stand in the text, from 1; 0: not yet */
} reading;

/* A sum that is put together: the terms of a*b, or of a dot. */
typedef struct sum {
    int64_t n, capacity;
    em_term *term;
} sum;

static em_status fail(const reading *r, const char *expected)
{
    return em_fail(EM_ECONFIG, "model.formula: found %s%s%s at character %lld, expected %s",
                   *r->at ? "'" : "the end", *r->at ? em_excerpt_of(r->at).text : "",
                   *r->at ? "'" : "", (long long)(r->at - r->text) + 1, expected);
}

static void skip(reading *r)
{
    r->at += strspn(r->at, " \t\r\n");
}

static bool accept(reading *r, char c)
{
    skip(r);
    if (*r->at != c)
        return false;
    r->at++;
    return true;
}

/* ---------------------------------------------------------------- names */

static bool is_of_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || (unsigned char)c >= 0x80;
}

static bool needs_backquotes(const char *name)
{
    bool needs = *name >= '0' && *name <= '9';

    for (; *name; name++)
        needs = needs || !is_of_name(*name);
    return needs;
}

static em_status read_name(reading *r, char name[NAME_BYTES])
{
    size_t length = 0;
    const char *from;

    skip(r);
    from = r->at;
    if (*from == '`') {
        from++;
        while (from[length] && from[length] != '`')
            length++;
        if (length == 0 || !from[length])
            return fail(r, "a name between backquotes");
    } else {
        while (is_of_name(from[length]))
            length++;
        if (length == 0 || (*from >= '0' && *from <= '9'))
            return fail(r, *from == '(' && strchr(from, '|')
                               ? "a column (effects that vary by group need a Stan program)"
                               : "a column");
    }
    if (length >= NAME_BYTES)
        return fail(r, "a shorter name");
    memcpy(name, from, length);
    name[length] = '\0';
    r->at = from + length + (*r->at == '`');
    return EM_OK;
}

static int64_t find(const em_formula_columns *columns, const char *name)
{
    for (int64_t j = 0; j < columns->n; j++)
        if (strcmp(columns->name[j], name) == 0)
            return j;
    return -1;
}

/* Whether the column is the exposure, the offset or the weights. */
static bool is_beside(const em_formula_columns *columns, int64_t column)
{
    for (int k = 0; columns->beside && k < EM_N_BESIDE; k++)
        if (columns->beside[k] == column)
            return true;
    return false;
}

static void see(reading *r, int64_t column)
{
    if (r->seen[column] == 0)
        r->seen[column] = ++r->n_seen;
}

/* There is no column of that name: says which there is that is called nearly so, or any. */
static em_status fail_column(reading *r, const char *name, const char *start)
{
    const long long character = start - r->text + 1;
    const char *such = r->columns->n > 0 ? r->columns->name[0] : NULL;
    em_nearest nearest = em_nearest_start(name);

    for (int64_t j = 0; j < r->columns->n; j++)
        if (needs_backquotes(r->columns->name[j]) &&
            strncmp(r->columns->name[j], name, strlen(name)) == 0)
            return em_fail(EM_ECONFIG,
                           "model.formula: found '%s' at character %lld, expected a column of the "
                           "data; did you mean `%s`, between backquotes?",
                           em_excerpt_of(name).text, character,
                           em_excerpt_of(r->columns->name[j]).text);
    if (accept(r, '('))
        return em_fail(EM_ECONFIG,
                       "model.formula: found the function '%s' at character %lld, expected a "
                       "column of the data or factor(column): %s",
                       em_excerpt_of(name).text, character,
                       strcmp(name, "offset") == 0
                           ? "what the mean is proportional to is model.exposure"
                           : "give the data a column of its values");
    for (int64_t j = 0; j < r->columns->n; j++)
        em_nearest_offer(&nearest, r->columns->name[j]);
    such = nearest.name ? nearest.name : such;
    return em_fail(
        EM_ECONFIG,
        "model.formula: found '%s' at character %lld, expected a column of the data%s%s%s",
        em_excerpt_of(name).text, character,
        nearest.name ? "; did you mean "
        : such       ? " such as "
                     : "",
        such ? em_excerpt_of(such).text : "", nearest.name ? "?" : "");
}

/* A column, or factor(column); -1 where it need not be there and is not. */
static em_status read_column(reading *r, bool removed, int64_t *column)
{
    const char *start;
    char name[NAME_BYTES];
    bool is_factor;
    em_status status;

    skip(r);
    start = r->at;
    status = read_name(r, name);
    is_factor = !status && *start != '`' && strcmp(name, "factor") == 0 && accept(r, '(');
    if (is_factor) {
        skip(r);
        start = r->at;
        status = read_name(r, name);
        if (!status && !accept(r, ')'))
            status = fail(r, "')'");
    }
    if (status)
        return status;
    *column = find(r->columns, name);
    if (*column < 0 && removed && r->columns->fitted)
        return EM_OK;
    if (*column < 0)
        return fail_column(r, name, start);
    r->formula->is_factor[*column] |= is_factor;
    see(r, *column);
    return EM_OK;
}

/* ---------------------------------------------------------------- terms */

static bool is_same(const em_term *a, const em_term *b)
{
    return a->n == b->n && memcmp(a->column, b->column, (size_t)a->n * sizeof *a->column) == 0;
}

static int64_t place_of(int64_t n, const em_term *term, const em_term *one)
{
    for (int64_t i = 0; i < n; i++)
        if (is_same(&term[i], one))
            return i;
    return -1;
}

bool em_formula_has(const em_formula *formula, const em_term *term)
{
    return term->n == 0 ? formula->intercept : place_of(formula->n_term, formula->term, term) >= 0;
}

static em_status add(const reading *r, sum *to, const em_term *term)
{
    em_status status;

    if (place_of(to->n, to->term, term) >= 0)
        return EM_OK;
    if (to->n >= EM_MOST_TERMS)
        return fail(r, "fewer terms");
    status = em_array_reserve(&to->term, &to->capacity, to->n, to->n + 1, sizeof *to->term);
    if (!status)
        to->term[to->n++] = *term;
    return status;
}

/* The product of two terms, in which a column stands once. */
static em_status multiply(const reading *r, const em_term *a, const em_term *b, em_term *out)
{
    int i = 0, j = 0;

    out->n = 0;
    while (i < a->n || j < b->n) { /* merged, in the order of the text */
        const int64_t x = i < a->n ? r->seen[a->column[i]] : INT64_MAX;
        const int64_t y = j < b->n ? r->seen[b->column[j]] : INT64_MAX;
        if (out->n == EM_MOST_IN_TERM)
            return fail(r, "products of at most four columns");
        out->column[out->n++] = x < y ? a->column[i] : b->column[j];
        i += x <= y;
        j += y <= x;
    }
    return EM_OK;
}

/* a, or a:b:c. `gone`: it is taken away, and a column of it is not there. */
static em_status read_product(reading *r, bool removed, em_term *out, bool *gone)
{
    em_status status = EM_OK;

    *out = (em_term){0};
    *gone = false;
    do {
        em_term one = {.n = 1}, product;
        status = read_column(r, removed, &one.column[0]);
        if (!status && one.column[0] < 0)
            *gone = true;
        else if (!status)
            status = multiply(r, out, &one, &product);
        if (!status && !*gone)
            *out = product;
    } while (!status && accept(r, ':'));
    return status;
}

/* left * right: left, right and their products. */
static em_status cross(const reading *r, sum *left, const em_term *right)
{
    const int64_t n = left->n;
    em_status status = add(r, left, right);

    for (int64_t i = 0; !status && i < n; i++) {
        em_term product;
        status = multiply(r, &left->term[i], right, &product);
        if (!status)
            status = add(r, left, &product);
    }
    return status;
}

static em_status read_all_columns(reading *r, sum *out)
{
    em_status status = EM_OK;

    r->at++;
    for (int64_t j = 0; !status && j < r->columns->n; j++)
        if (!is_beside(r->columns, j) && j != r->formula->response) {
            see(r, j);
            status = add(r, out, &(em_term){1, {j}});
        }
    return status;
}

/* What stands between + and -. */
static em_status read_part(reading *r, bool removed, sum *out)
{
    em_term one;
    bool gone;
    em_status status;

    skip(r);
    if (*r->at == '.' && !is_of_name(r->at[1]))
        return read_all_columns(r, out);
    do {
        status = read_product(r, removed, &one, &gone);
        if (!status && !gone)
            status = cross(r, out, &one);
    } while (!status && accept(r, '*'));
    return status;
}

static void take_away(em_formula *formula, const em_term *term)
{
    const int64_t at = place_of(formula->n_term, formula->term, term);

    if (at < 0)
        return;
    formula->n_term--;
    memmove(&formula->term[at], &formula->term[at + 1],
            (size_t)(formula->n_term - at) * sizeof *term);
}

static em_status merge(reading *r, const sum *part, bool removed)
{
    em_formula *f = r->formula;
    sum all = {f->n_term, f->capacity, f->term};
    em_status status = EM_OK;

    for (int64_t i = 0; !status && !removed && i < part->n; i++)
        status = add(r, &all, &part->term[i]);
    f->n_term = all.n;
    f->capacity = all.capacity;
    f->term = all.term;
    for (int64_t i = 0; removed && i < part->n; i++)
        take_away(f, &part->term[i]);
    return status;
}

/* 1, 0, or a part. */
static em_status read_summand(reading *r, bool removed)
{
    sum part = {0};
    em_status status;

    skip(r);
    if ((*r->at == '0' || *r->at == '1') && !is_of_name(r->at[1])) {
        r->formula->intercept = (*r->at == '1') != removed;
        r->at++;
        return EM_OK;
    }
    status = read_part(r, removed, &part);
    if (!status)
        status = merge(r, &part, removed);
    em_release(&part.term);
    return status;
}

/* ---------------------------------------------------------------- all of it */

static em_status read_response(reading *r)
{
    char name[NAME_BYTES];
    em_status status;

    if (!r->columns->fitted)
        return read_column(r, false, &r->formula->response);
    status = read_name(r, name);
    return status;
}

static em_status read_terms(reading *r)
{
    bool removed = accept(r, '-');
    em_status status = read_summand(r, removed);

    while (!status) {
        skip(r);
        if (!*r->at)
            return EM_OK;
        removed = *r->at == '-';
        if (!removed && *r->at != '+')
            return fail(r, "+, -, *, : or the end");
        r->at++;
        status = read_summand(r, removed);
    }
    return status;
}

/* As R does it: products stand behind what they are made of, else the order is that of the text. */
static em_status sort_terms(em_formula *formula)
{
    em_term *sorted = NULL;
    int64_t to = 0;
    em_status status = em_allocate(formula->n_term, sizeof *sorted, &sorted);

    for (int n = 1; !status && n <= EM_MOST_IN_TERM; n++)
        for (int64_t i = 0; i < formula->n_term; i++)
            if (formula->term[i].n == n)
                sorted[to++] = formula->term[i];
    if (!status)
        memcpy(formula->term, sorted, (size_t)to * sizeof *sorted);
    em_release(&sorted);
    return status;
}

static em_status check_response(const reading *r)
{
    const em_formula *f = r->formula;

    for (int64_t i = 0; i < f->n_term; i++)
        for (int k = 0; k < f->term[i].n; k++)
            if (f->term[i].column[k] == f->response || is_beside(r->columns, f->term[i].column[k]))
                return em_fail(EM_ECONFIG,
                               "model.formula: found '%s' among the terms, expected no response, "
                               "exposure, offset or weights there",
                               em_excerpt_of(r->columns->name[f->term[i].column[k]]).text);
    return EM_OK;
}

em_status em_formula_parse(const char *text, const em_formula_columns *columns, em_formula *out)
{
    reading r = {.text = text, .at = text, .columns = columns, .formula = out};
    em_status status;

    *out = (em_formula){.intercept = true, .response = -1};
    if (strlen(text) > LONGEST)
        return em_fail(EM_ECONFIG, "model.formula: found %zu characters, expected at most %d",
                       strlen(text), LONGEST);
    status = em_allocate(columns->n, sizeof *out->is_factor, &out->is_factor);
    if (!status)
        status = em_allocate(columns->n, sizeof *r.seen, &r.seen);
    if (!status)
        status = read_response(&r);
    if (!status && !accept(&r, '~'))
        status = fail(&r, "'~' behind the response");
    if (!status)
        status = read_terms(&r);
    if (!status)
        status = check_response(&r);
    em_release(&r.seen);
    return status || out->n_term == 0 ? status : sort_terms(out);
}

void em_formula_release(em_formula *formula)
{
    em_release(&formula->term);
    em_release(&formula->is_factor);
}
