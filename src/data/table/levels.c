#include "data/table/levels.h"

#include "base/memory.h"
#include "par/message.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

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

/* The slot of the text, or the free slot for it. */
static int64_t slot_of(const em_levels *levels, const char *text)
{
    int64_t at = (int64_t)(XXH64(text, strlen(text), 0) % (uint64_t)levels->n_slot);

    while (levels->slot[at] > 0 && strcmp(levels->text[levels->slot[at] - 1], text) != 0)
        at = (at + 1) % levels->n_slot;
    return at;
}

static em_status grow(em_levels *levels)
{
    int64_t *slot = NULL;
    em_status status = em_allocate(4 * levels->n_slot + 64, sizeof *slot, &slot);

    if (status)
        return status;
    levels->n_slot = 4 * levels->n_slot + 64;
    em_release(&levels->slot);
    levels->slot = slot;
    for (int64_t i = 0; i < levels->count; i++)
        levels->slot[slot_of(levels, levels->text[i])] = i + 1;
    return EM_OK;
}

em_status em_levels_add(em_levels *levels, const char *text, int64_t *code)
{
    em_status status = 2 * levels->count >= levels->n_slot ? grow(levels) : EM_OK;

    if (status)
        return status;
    const int64_t at = slot_of(levels, text);
    if (levels->slot[at] == 0) {
        status = em_array_reserve(&levels->text, &levels->capacity, levels->count,
                                  levels->count + 1, sizeof *levels->text);
        status = status ? status : em_copy_text(text, &levels->text[levels->count]);
        if (status)
            return status;
        levels->slot[at] = ++levels->count;
    }
    *code = levels->slot[at] - 1;
    return EM_OK;
}

void em_levels_release(em_levels *levels)
{
    em_release_texts(levels->count, &levels->text);
    em_release(&levels->slot);
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
    fixed_text *own = NULL;
    int64_t total = 0;
    em_status status = em_agree_first(em_allocate(mine, sizeof *own, &own), 0);

    for (int64_t i = 0; !status && i < mine; i++)
        strncpy(own[i].text, levels->text[i], sizeof own[i].text - 1);
    status = status ? status : em_world_gather(mine, sizeof *own, own, &total, all, NULL);
    em_release(&own);
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
