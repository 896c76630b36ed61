/*
 * Formulas of a model on a table: the input is the text. What is accepted has terms of columns that
 * are there, each once, none of them the response; and is accepted again by their names alone.
 */
#include "fuzz/fuzz.h"

#include "base/memory.h"
#include "data/formula/formula.h"

#include <string.h>

static char *const names[] = {"y", "a", "b", "c d", "factor", "x1"};
enum { N_NAME = sizeof names / sizeof *names };

static void is_sound(const em_formula *formula, const em_formula_columns *columns)
{
    const double row[N_NAME] = {1, 2, 3, 4};

    for (int64_t k = 0; k < formula->n_derived; k++)
        (void)em_derived_value(&formula->derived[k], row);
    for (int64_t i = 0; i < formula->n_term; i++) {
        const em_term *term = &formula->term[i];
        REQUIRE(term->n >= 1 && term->n <= EM_MOST_IN_TERM);
        REQUIRE(i == 0 || formula->term[i - 1].n <= term->n);
        for (int k = 0; k < term->n; k++) {
            REQUIRE(term->column[k] >= 0 && term->column[k] < columns->n + formula->n_derived);
            REQUIRE(term->column[k] != formula->response &&
                    (!columns->beside || term->column[k] != columns->beside[0]));
            for (int l = 0; l < k; l++)
                REQUIRE(term->column[k] != term->column[l]);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int64_t beside[EM_N_BESIDE] = {2, -1, -1};
    const em_formula_columns columns = {N_NAME, names, size % 3 ? NULL : beside, false, false};
    const em_formula_columns again = {N_NAME - 1, names + 1, NULL, false, true};
    em_formula formula;
    char *text = NULL;
    em_status status;

    if (em_allocate((int64_t)size + 1, 1, &text) != EM_OK)
        return 0;
    memcpy(text, data, size);
    status = em_formula_parse(text, &columns, &formula);
    if (!status)
        is_sound(&formula, &columns);
    REQUIRE(!status || *em_error_text());
    em_formula_release(&formula);
    if (em_formula_parse(text, &again, &formula) == EM_OK)
        is_sound(&formula, &again);
    em_formula_release(&formula);
    em_release(&text);
    return 0;
}
