#include "data/formula/formula.h"

#include "base/memory.h"
#include "base/text.h"
#include "data/formula/formula_reading.h"

#include <string.h>

enum { LONGEST = 65536 };

typedef em_reading reading;

/* A sum under construction: the terms of a*b, or of a dot. */
typedef struct sum {
    int64_t n, capacity;
    em_term *term;
} sum;

static bool is_factor_of(const char *name) /* C of Python's formulas */
{
    return strcmp(name, "factor") == 0 || strcmp(name, "C") == 0;
}

/* Reads a column, factor(column), or a derived column. *column -1: the column does not exist, which
 * is allowed for a term that is subtracted. */
static em_status read_column(reading *r, bool removed, int64_t *column)
{
    char name[EM_NAME_BYTES];

    em_reading_skip(r);
    const char *start = r->at;
    em_status status = em_reading_name(r, name);
    if (!status && *start != '`' && em_is_function(name) && em_reading_accept(r, '(')) {
        r->may_miss = removed && (r->columns->fitted || r->columns->chosen);
        status = em_reading_derived(r, name, column);
        if (!status && *column >= 0)
            em_reading_see(r, *column);
        return status;
    }
    bool is_factor = !status && *start != '`' && is_factor_of(name) && em_reading_accept(r, '(');
    if (is_factor) {
        em_reading_skip(r);
        start = r->at;
        status = em_reading_name(r, name);
        if (!status && !em_reading_accept(r, ')'))
            status = em_reading_fail(r, "')' (model.levels has the order of levels, and "
                                        "model.factors names a reference level)");
    }
    status = status ? status : em_reading_find(r, name, start, column);
    if (status)
        return status;
    if (*column < 0 && removed && (r->columns->fitted || r->columns->chosen))
        return EM_OK;
    if (*column < 0)
        return em_reading_fail_column(r, name, start);
    r->formula->is_factor[*column] |= is_factor;
    em_reading_see(r, *column);
    return EM_OK;
}

/* ---------------------------------------------------------------- terms */

static int64_t index_of(int64_t n, const em_term *term, const em_term *one)
{
    for (int64_t i = 0; i < n; i++)
        if (term[i].n == one->n &&
            memcmp(term[i].column, one->column, (size_t)term[i].n * sizeof *term[i].column) == 0)
            return i;
    return -1;
}

static em_status add(const reading *r, sum *to, const em_term *term)
{
    if (index_of(to->n, to->term, term) >= 0)
        return EM_OK;
    if (to->n >= EM_MOST_TERMS)
        return em_reading_fail(r, "fewer terms");
    em_status status = em_reserve(&to->term, &to->capacity, to->n, to->n + 1);
    if (!status)
        to->term[to->n++] = *term;
    return status;
}

/* Multiplies two terms. Each column occurs once in the product. */
static em_status multiply(const reading *r, const em_term *a, const em_term *b, em_term *out)
{
    int i = 0, j = 0;

    out->n = 0;
    while (i < a->n || j < b->n) { /* merged, in the order of the text */
        const int64_t x = i < a->n ? r->seen[a->column[i]] : INT64_MAX;
        const int64_t y = j < b->n ? r->seen[b->column[j]] : INT64_MAX;
        if (out->n == EM_MOST_IN_TERM)
            return em_reading_fail(r, "products of at most four columns");
        out->column[out->n++] = x < y ? a->column[i] : b->column[j];
        i += x <= y;
        j += y <= x;
    }
    return EM_OK;
}

/* Reads a product such as a or a:b:c. `gone`: the term is subtracted, and one of its columns does
 * not exist. */
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
    } while (!status && em_reading_accept(r, ':'));
    return status;
}

/* Appends left * right, which is left, right and all products of their terms. */
static em_status cross(const reading *r, sum *left, const em_term *right)
{
    const int64_t n = left->n;
    em_status status = add(r, left, right);

    for (int64_t i = 0; !status && i < n; i++) {
        em_term product;
        status = multiply(r, &left->term[i], right, &product);
        status = status ? status : add(r, left, &product);
    }
    return status;
}

/* Accepts a *, but not the ** of a power. */
static bool accept_cross(reading *r)
{
    em_reading_skip(r);
    return strncmp(r->at, "**", 2) != 0 && em_reading_accept(r, '*');
}

static em_status read_all_columns(reading *r, sum *out)
{
    em_status status = EM_OK;

    r->at++;
    for (int64_t j = 0; !status && j < r->columns->n; j++)
        if (!em_reading_is_beside(r->columns, j) && j != r->formula->response) {
            em_reading_see(r, j);
            status = add(r, out, &(em_term){1, {j}});
        }
    return status;
}

/* A term between + and -. */
static em_status read_part(reading *r, bool removed, sum *out)
{
    em_term one;
    bool gone;
    em_status status;

    em_reading_skip(r);
    if (*r->at == '.' && !em_is_of_name(r->at[1]))
        return read_all_columns(r, out);
    do {
        status = read_product(r, removed, &one, &gone);
        if (!status && !gone)
            status = cross(r, out, &one);
    } while (!status && accept_cross(r));
    return status;
}

static void take_away(em_formula *formula, const em_term *term)
{
    const int64_t at = index_of(formula->n_term, formula->term, term);

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

    em_reading_skip(r);
    if ((*r->at == '0' || *r->at == '1') && !em_is_of_name(r->at[1])) {
        r->formula->intercept = (*r->at == '1') != removed;
        r->at++;
        return EM_OK;
    }
    em_status status = read_part(r, removed, &part);
    status = status ? status : merge(r, &part, removed);
    em_release(&part.term);
    return status;
}

/* ---------------------------------------------------------------- the whole formula */

static em_status read_response(reading *r)
{
    em_formula *f = r->formula;

    if (r->columns->fitted) {
        /* The columns of the response may be missing. */
        for (bool quoted = false; *r->at && (quoted || *r->at != '~'); r->at++)
            quoted ^= *r->at == '`';
        return EM_OK;
    }
    const em_status status = read_column(r, false, &f->response);
    if (status || f->response < r->columns->n)
        return status;
    const em_derived *derived = &f->derived[f->response - r->columns->n];
    f->response_derived = f->response - r->columns->n;
    f->response = -1;
    for (int i = 0; i < derived->n_step; i++) {
        if (derived->step[i].op != EM_OP_COLUMN)
            continue;
        if (f->response >= 0 && derived->step[i].column != f->response)
            return em_reading_fail(r, "a response made of one column before it");
        f->response = derived->step[i].column;
    }
    return f->response < 0 || derived->degree > 0
               ? em_reading_fail(r, "a response made of a column before it")
               : EM_OK;
}

static em_status read_terms(reading *r)
{
    bool removed = em_reading_accept(r, '-');
    em_status status = read_summand(r, removed);

    while (!status) {
        em_reading_skip(r);
        if (!*r->at)
            return EM_OK;
        removed = *r->at == '-';
        if (!removed && *r->at != '+')
            return em_reading_fail(r, *r->at == '^' || *r->at == '*'
                                          ? "+, -, *, : or the end (a power is I(x^2))"
                                          : "+, -, *, : or the end");
        r->at++;
        status = read_summand(r, removed);
    }
    return status;
}

/* As in R, terms are sorted by their number of factors, then by their order in the text. */
static em_status sort_terms(em_formula *formula)
{
    EM_SCOPED em_term *sorted = NULL;
    int64_t to = 0;
    em_status status = em_allocate(formula->n_term, sizeof *sorted, &sorted);

    for (int n = 1; !status && n <= EM_MOST_IN_TERM; n++)
        for (int64_t i = 0; i < formula->n_term; i++)
            if (formula->term[i].n == n)
                sorted[to++] = formula->term[i];
    if (!status)
        memcpy(formula->term, sorted, (size_t)to * sizeof *sorted);
    return status;
}

static bool is_set_aside(const reading *r, int64_t column)
{
    return column == r->formula->response || em_reading_is_beside(r->columns, column);
}

static em_status fail_set_aside(const reading *r, int64_t column)
{
    return em_fail(EM_ECONFIG,
                   "model.formula: found '%s' among the terms, expected no response, exposure, "
                   "offset or weights there",
                   em_excerpt_of(r->columns->name[column]).text);
}

/* Functions need columns of numbers, other than the response and the columns beside the features.
 */
static em_status check_derived(const reading *r, int64_t k)
{
    const em_derived *derived = &r->formula->derived[k];

    for (int i = 0; i < derived->n_step; i++) {
        const em_step *step = &derived->step[i];
        if (step->op != EM_OP_COLUMN)
            continue;
        if (is_set_aside(r, step->column))
            return fail_set_aside(r, step->column);
        if (r->formula->is_factor[step->column])
            return em_fail(EM_ECONFIG,
                           "model.formula: found factor(%s) together with %s, expected a column of "
                           "numbers, or one of categories",
                           em_excerpt_of(r->columns->name[step->column]).text,
                           em_excerpt_of(derived->name).text);
    }
    return EM_OK;
}

static em_status check_terms(const reading *r)
{
    const em_formula *f = r->formula;
    em_status status = EM_OK;

    for (int64_t k = 0; !status && k < f->n_derived; k++)
        if (k != f->response_derived)
            status = check_derived(r, k);
    if (status)
        return status;

    for (int64_t i = 0; i < f->n_term; i++)
        for (int k = 0; k < f->term[i].n; k++)
            if (f->term[i].column[k] - r->columns->n == f->response_derived &&
                f->response_derived >= 0)
                return fail_set_aside(r, f->response);
            else if (is_set_aside(r, f->term[i].column[k]))
                return fail_set_aside(r, f->term[i].column[k]);
    return EM_OK;
}

em_status em_formula_parse(const char *text, const em_formula_columns *columns, em_formula *out)
{
    reading r = {.text = text, .at = text, .columns = columns, .formula = out};

    *out = (em_formula){.intercept = true, .response = -1, .response_derived = -1};
    if (strlen(text) > LONGEST)
        return em_fail(EM_ECONFIG, "model.formula: found %zu characters, expected at most %d",
                       strlen(text), LONGEST);
    em_status status = em_allocate(columns->n, sizeof *out->is_factor, &out->is_factor);
    status = status ? status : em_allocate(columns->n + EM_MOST_DERIVED, sizeof *r.seen, &r.seen);
    status = status ? status : read_response(&r);
    if (!status && !em_reading_accept(&r, '~'))
        status = em_reading_fail(&r, "'~' after the response");
    status = status ? status : read_terms(&r);
    status = status ? status : check_terms(&r);
    em_release(&r.seen);
    return status || out->n_term == 0 ? status : sort_terms(out);
}

void em_formula_release(em_formula *formula)
{
    for (int64_t k = 0; k < formula->n_derived; k++)
        em_derived_release(&formula->derived[k]);
    em_release_all(&formula->term, &formula->is_factor, &formula->derived);
}
