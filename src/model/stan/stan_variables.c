#include "model/stan/stan_variables.h"

#include "base/text.h"

#include <search.h>
#include <string.h>

/* One flattened name. */
typedef struct element {
    const char *name; /* of its variable: the flattened name without indices */
    int64_t variable;
    int n_axes;
    int64_t index[EM_MAX_AXES]; /* from 0 */
} element;

typedef struct arrangement {
    em_stan_variables *out;
    element *element;
    int64_t *count; /* [n_variable] elements of each */
    void *tree;     /* of elements, by name: the first of each variable */
} arrangement;

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const element *)a)->name, ((const element *)b)->name);
}

/* Reads the digits of an index; 0: the text is none. */
static int64_t read_index(const char *text, size_t length)
{
    int64_t value = 0;

    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9' || value > INT32_MAX)
            return 0;
        value = 10 * value + (text[i] - '0');
    }
    return value > INT32_MAX ? 0 : value;
}

/*
 * Splits "z.2.1.real" into the name "z.real", written at `to`, and its indices: parts after a dot
 * that are numbers. The members of a tuple, after a colon, belong to the name.
 */
static em_status split(const char *from, size_t length, char *to, element *out)
{
    const char *const end = from + length;

    *out = (element){.name = to};
    for (const char *part = from; part < end;) {
        const size_t n = strcspn(part + 1, ".:") + 1 < (size_t)(end - part)
                             ? strcspn(part + 1, ".:") + 1
                             : (size_t)(end - part);
        const int64_t index = *part == '.' ? read_index(part + 1, n - 1) : 0;
        if (index > 0 && out->n_axes == EM_MAX_AXES)
            return em_fail(EM_EDATA, "%.*s has more than %d indices",
                           (int)(length < 64 ? length : 64), from, EM_MAX_AXES);
        if (index > 0) {
            out->index[out->n_axes++] = index - 1;
        } else {
            memcpy(to, part, n);
            to += n;
        }
        part += n;
    }
    *to = '\0';
    return *out->name && !strchr(out->name, '/')
               ? EM_OK
               : em_fail(EM_EDATA, "found '%.*s', expected the name of a variable",
                         (int)(length < 64 ? length : 64), from);
}

static em_status not_an_array(const char *name)
{
    return em_fail(EM_EDATA, "the elements of %s make no array", em_excerpt_of(name).text);
}

/* Finds or adds the variable of an element, and extends its shape. */
static em_status enter(arrangement *a, element *e)
{
    element **first = tsearch(e, &a->tree, compare_names);
    em_stan_variables *out = a->out;

    if (!first)
        return em_fail(EM_EMEMORY, "out of memory for the names of variables");
    if (*first == e) {
        e->variable = out->n_variable++;
        out->variable[e->variable] = (em_variable){.name = e->name, .n_axes = e->n_axes};
    }
    e->variable = (*first)->variable;
    em_variable *variable = &out->variable[e->variable];
    if (variable->n_axes != e->n_axes)
        return not_an_array(e->name);
    for (int i = 0; i < e->n_axes; i++)
        if (e->index[i] >= variable->shape[i])
            variable->shape[i] = e->index[i] + 1;
    a->count[e->variable]++;
    return EM_OK;
}

static em_status read_names(arrangement *a, const char *names)
{
    char *to = a->out->names;
    em_status status = EM_OK;

    for (int64_t i = 0; !status && i < a->out->n_element; i++) {
        const size_t length = strcspn(names, ",");
        status = split(names, length, to, &a->element[i]);
        to += length + 1;
        names += length + 1;
        status = status ? status : enter(a, &a->element[i]);
    }
    return status;
}

/* Whether each variable has as many elements as its shape says. */
static em_status check_counts(const arrangement *a)
{
    for (int64_t v = 0; v < a->out->n_variable; v++) {
        const em_variable *variable = &a->out->variable[v];
        int64_t left = a->count[v];
        for (int i = 0; i < variable->n_axes; i++)
            left = left % variable->shape[i] == 0 ? left / variable->shape[i] : 0;
        if (left != 1)
            return not_an_array(variable->name);
    }
    return EM_OK;
}

/* Computes the index of each element, and checks that all differ. `taken` is zeroed. */
static em_status index_elements(arrangement *a, int64_t *first, bool *taken)
{
    for (int64_t v = 1; v < a->out->n_variable; v++)
        first[v] = first[v - 1] + a->count[v - 1];
    for (int64_t i = 0; i < a->out->n_element; i++) {
        const element *e = &a->element[i];
        int64_t place = 0;
        for (int k = 0; k < e->n_axes; k++)
            place = place * a->out->variable[e->variable].shape[k] + e->index[k];
        place += first[e->variable];
        if (taken[place])
            return not_an_array(e->name);
        taken[place] = true;
        a->out->place[i] = place;
    }
    return EM_OK;
}

static em_status arrange(arrangement *a, const char *names)
{
    EM_SCOPED int64_t *first = NULL;
    EM_SCOPED bool *taken = NULL;
    em_status status = read_names(a, names);

    status = status ? status : check_counts(a);
    if (!status)
        status = em_allocate_all(EM_ARRAY(first, a->out->n_variable + 1),
                                 EM_ARRAY(taken, a->out->n_element));
    return status ? status : index_elements(a, first, taken);
}

static void keep(void *node)
{
    (void)node; /* the elements are in an array */
}

em_status em_stan_variables_create(const char *names, em_stan_variables **out)
{
    const int64_t bytes = (int64_t)strlen(names) + 1;
    arrangement a = {.out = NULL};
    int64_t n = *names != '\0';

    for (const char *c = names; *c; c++)
        n += *c == ',';
    em_status status = em_allocate(1, sizeof *a.out, &a.out);
    if (!status)
        status = em_own_all(&a.out->memory, EM_ARRAY(a.out->names, bytes),
                            EM_ARRAY(a.out->variable, n), EM_ARRAY(a.out->place, n));
    status = status ? status : em_allocate_all(EM_ARRAY(a.count, n), EM_ARRAY(a.element, n));
    if (!status) {
        a.out->n_element = n;
        status = arrange(&a, names);
    }
    tdestroy(a.tree, keep);
    em_release_all(&a.count, &a.element);
    if (status)
        em_release_owner(&a.out);
    *out = a.out;
    return status;
}
