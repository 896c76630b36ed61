/* Decides whether a first line whose fields are all numbers, such as 2020,2021 or 0,1,2, is a row
 * or the names of the columns. */
#include "data/reader/first_line.h"

#include "base/memory.h"
#include "base/text.h"
#include "data/design/column_selection.h"
#include "par/message.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_DIGITS = 15 };

/* Whether the field is a whole number without a sign or decimals, such as 0, 1 or 2020. */
static bool is_whole(const char *field)
{
    const size_t length = strlen(field);

    return length > 0 && length <= MOST_DIGITS && strspn(field, "0123456789") == length;
}

em_status em_first_line_add(em_first_line *first, const em_lines *lines, const char *field)
{
    double value;
    const em_status status = em_append_copy(&first->field, &first->capacity, &first->n, field);

    if (status)
        return status;
    if (!is_whole(field) &&
        (em_lines_token(lines, field, &value) != EM_TOKEN_TEXT || (*field && em_is_missing(field))))
        first->has_row_word = true;
    return EM_OK;
}

em_status em_first_line_may_name(em_first_line *first, bool *may)
{
    bool rises = true, falls = true, by_one = true;
    int64_t count = 0;
    long long last = 0;

    for (int64_t j = 0; j < first->n; j++) {
        if (!is_whole(first->field[j]))
            continue;
        const long long number = strtoll(first->field[j], NULL, 10);
        if (count++ > 0) {
            rises &= number > last;
            falls &= number < last;
            by_one &= number == last + 1;
        }
        last = number;
    }
    first->counts_up = by_one && count >= 3;
    *may = !first->has_row_word && (rises || falls);
    return em_allocate(first->n, sizeof *first->again, &first->again);
}

void em_first_line_see(em_first_line *first, int64_t j, const char *field)
{
    if (j < first->n)
        first->again[j] += strcmp(first->field[j], field) == 0;
}

em_status em_first_line_check(em_first_line *first, const char *path)
{
    int64_t at = 0, again = 0;

    em_world_sum(first->n, first->again);
    for (int64_t j = 0; j < first->n; j++)
        again += first->again[j];
    if (again > 0 && !first->counts_up)
        return EM_OK;
    while (at < first->n - 1 && !is_whole(first->field[at]))
        at++;
    return em_fail(EM_EDATA,
                   "%s:%lld: found a first line with '%s' that may be names or a row, expected "
                   "the option header to say which: yes, names, or no, a row",
                   path, (long long)first->number, em_excerpt_of(first->field[at]).text);
}

void em_first_line_release(em_first_line *first)
{
    em_release_texts(first->n, &first->field);
    em_release(&first->again);
}
