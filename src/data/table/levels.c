#include "data/table/levels.h"

#include "base/memory.h"
#include "par/message.h"

#include <stdlib.h>
#include <string.h>

#define CODED UINT64_C(0xFFF8000000000000) /* a quiet NaN; below it, the code and 1 */

double em_level_value(int64_t code)
{
    const uint64_t bits = CODED | (uint64_t)(code + 1);
    double value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

int64_t em_level_code(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits > CODED ? (int64_t)(bits & ~CODED) - 1 : -1;
}

em_status em_levels_add(em_levels *levels, const char *text, int64_t *code)
{
    em_status status = em_hash_add(&levels->hashes, em_hash_of(text, strlen(text)), code);

    if (status || *code < levels->count)
        return status;
    return em_append_copy(&levels->text, &levels->capacity, &levels->count, text);
}

void em_levels_release(em_levels *levels)
{
    em_release_texts(levels->count, &levels->text);
    em_hash_table_release(&levels->hashes);
    *levels = (em_levels){0};
}

/* ---------------------------------------------------------------- levels of all ranks */

typedef struct fixed_text {
    char text[EM_LEVEL_BYTES];
} fixed_text;

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Gathers the distinct texts of all ranks, sorted. A rank sends at most EM_MOST_LEVELS. */
static em_status gather(const em_levels *levels, int64_t *n, fixed_text **all)
{
    const int64_t mine = levels->count <= EM_MOST_LEVELS ? levels->count : EM_MOST_LEVELS + 1;
    EM_SCOPED fixed_text *own = NULL;
    int64_t total = 0;
    em_status status = em_agree_first(em_allocate(mine, sizeof *own, &own), 0);

    for (int64_t i = 0; !status && i < mine; i++)
        strncpy(own[i].text, levels->text[i], sizeof own[i].text - 1);
    status = status ? status : em_world_gather(mine, sizeof *own, own, &total, all);
    if (status)
        return status;
    qsort(*all, (size_t)total, sizeof **all, compare);
    *n = 0;
    for (int64_t i = 0; i < total; i++)
        if (*n == 0 || strcmp((*all)[*n - 1].text, (*all)[i].text) != 0)
            (*all)[(*n)++] = (*all)[i];
    return EM_OK;
}

em_status em_levels_merge(em_levels *levels, int64_t *count, int64_t **map)
{
    fixed_text *all = NULL;
    em_levels merged = {0};
    int64_t code;
    em_status status = gather(levels, count, &all);

    *map = NULL;
    if (status || *count > EM_MOST_LEVELS) {
        em_release(&all);
        return status;
    }
    for (int64_t i = 0; !status && i < *count; i++)
        status = em_levels_add(&merged, all[i].text, &code);
    status = status ? status : em_allocate(levels->count, sizeof **map, map);
    for (int64_t i = 0; !status && i < levels->count; i++)
        status = em_levels_add(&merged, levels->text[i], &(*map)[i]);
    em_release(&all);
    status = em_agree_first(status, 0);
    em_levels_release(status ? &merged : levels);
    if (!status)
        *levels = merged;
    return status;
}
