#include "data/table/truth.h"

#include <string.h>

int em_truth_of(const char *text)
{
    static const char *const word[][3] = {{"False", "FALSE", "false"}, {"True", "TRUE", "true"}};

    for (int truth = 0; truth < 2; truth++)
        for (int k = 0; k < 3; k++)
            if (strcmp(text, word[truth][k]) == 0)
                return truth;
    return -1;
}

int em_truth_named(const char *name)
{
    return strcmp(name, "1") == 0 ? 1 : strcmp(name, "0") == 0 ? 0 : em_truth_of(name);
}

int em_truth_of_value(const em_table *table, int64_t j, double value)
{
    const int64_t code = em_level_code(value);

    if (code >= 0)
        return em_truth_of(table->text[j].text[code]);
    return value == 1 ? 1 : value == 0 ? 0 : -1;
}

void em_truth_merge(em_table *table, int64_t j)
{
    const em_levels *texts = table->text ? &table->text[j] : NULL;
    int64_t first[2] = {-1, -1};

    if (!texts || texts->count < 3)
        return;
    for (int64_t i = texts->count; i-- > 0;) {
        const int truth = em_truth_of(texts->text[i]);
        if (truth < 0)
            return;
        first[truth] = i;
    }
    for (int64_t i = 0; i < table->n_row; i++) {
        double *value = &table->value[i * table->n_column + j];
        const int64_t code = em_level_code(*value);
        if (code >= 0)
            *value = em_level_value(first[em_truth_of(texts->text[code])]);
    }
}

void em_truth_match(em_table *table, int64_t j, int64_t n, const double *level)
{
    double level_of[2];

    if (n != 2)
        return;
    for (int i = 0; i < 2; i++) {
        const int truth = em_truth_of_value(table, j, level[i]);
        if (truth < 0 || (i == 1 && truth == em_truth_of_value(table, j, level[0])))
            return;
        level_of[truth] = level[i];
    }
    for (int64_t i = 0; i < table->n_row; i++) {
        double *value = &table->value[i * table->n_column + j];
        const int truth = em_truth_of_value(table, j, *value);
        if (truth >= 0)
            *value = level_of[truth];
    }
}
