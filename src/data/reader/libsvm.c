/* LIBSVM's sparse rows: label index:value index:value ..., indices from 1 and ascending. */
#include "base/text.h"
#include "data/reader/readers.h"

#include <stdlib.h>
#include <string.h>

static const char blanks[] = " \t";

/* An index in 1..limit above `last`; `end` is where its digits must end. */
static em_status parse_index(const em_lines *lines, const char *text, int64_t last, int64_t limit,
                             int64_t *index)
{
    size_t length = strlen(text);

    /* Ten digits fit in a long long, and no valid index has more. */
    *index = length > 0 && length <= 10 && strspn(text, "0123456789") == length
                 ? strtoll(text, NULL, 10)
                 : 0;
    if (*index < 1 || *index > limit)
        return em_fail(
            EM_EDATA, "%s:%lld: found index '%s', expected an integer from 1 to %lld (columns)",
            lines->path, (long long)lines->number, em_excerpt_of(text).text, (long long)limit);
    if (*index <= last)
        return em_fail(EM_EDATA, "%s:%lld: found index %lld after %lld, expected ascending indices",
                       lines->path, (long long)lines->number, (long long)*index, (long long)last);
    return EM_OK;
}

static em_status parse_entry(const em_lines *lines, char *token, int64_t limit, int64_t *last,
                             em_table *table)
{
    char *colon = strchr(token, ':');
    int64_t index;
    double value;
    em_status status;

    if (!colon)
        return em_fail(EM_EDATA, "%s:%lld: found '%s', expected index:value", lines->path,
                       (long long)lines->number, em_excerpt_of(token).text);
    *colon = '\0';
    status = parse_index(lines, token, *last, limit, &index);
    if (!status)
        status = em_lines_number(lines, colon + 1, "a value", &value);
    if (status)
        return status;
    *last = index;
    if (index > table->n_column)
        table->n_column = index;
    return em_table_push_sparse(table, (int32_t)(index - 1), value);
}

em_status em_libsvm_row(const em_lines *lines, char *line, int64_t limit, em_table *table)
{
    char *rest, *token = strtok_r(line, blanks, &rest);
    int64_t last = 0;
    double label;
    em_status status = em_lines_number(lines, token, "the label", &label);

    while (!status && (token = strtok_r(NULL, blanks, &rest)))
        status = parse_entry(lines, token, limit, &last, table);
    return status ? status : em_table_end_row_labelled(table, lines->number, label);
}
