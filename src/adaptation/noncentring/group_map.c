/* The map of the groups that a search has so far. */
#include "adaptation/noncentring/noncentring_fit.h"

#include <math.h>
#include <string.h>

/* Records that group g uses parameter p. */
static void use(em_group_search *s, int g, int64_t p)
{
    s->used_by[p] |= (uint32_t)1 << g;
    s->group[g].depends |= em_groups_under(s, p);
}

void em_add_group(em_group_search *s, const em_group_fit *f, const em_noncentring_row *conditional)
{
    const int g = s->n_group;
    const uint32_t users = em_group_users(s, f);

    s->group[g] = (em_child_group){.scale = f->scale};
    use(s, g, f->scale);
    for (int64_t c = 0; c < f->n; c++) {
        em_noncentring_row *child = &s->row[f->child[c]];
        if (conditional && conditional[f->child[c]].level > 0)
            *child = conditional[f->child[c]];
        else
            em_write_child(s, f, c, child);
        for (int j = 0; j < EM_MOST_LOCATIONS && child->location[j] >= 0; j++)
            use(s, g, (int64_t)child->location[j]);
        if (child->form == EM_SCALE_JOINT)
            use(s, g, (int64_t)child->scale);
        if (child->second_degree != 0)
            use(s, g, (int64_t)child->second_scale);
        s->group_of[f->child[c]] = g;
    }
    s->n_group++;
    for (int h = 0; h < g; h++)
        if (users >> h & 1)
            s->group[h].depends |= (uint32_t)1 << g | s->group[g].depends;
}

/* Levels are above those of what a row uses. A row may use others of its own group. */
static void set_levels(em_group_search *s)
{
    for (int64_t i = 0; i < s->dim; i++)
        s->row[i].level = s->group_of[i] >= 0;
    em_noncentring_set_levels(s->dim, s->row);
}

em_status em_set_map(em_group_search *s, const em_noncentring_row *row)
{
    s->is_transformed = false;
    return em_noncentring_set(&s->map, row);
}

/* Removes the last group. */
static void remove_group(em_group_search *s)
{
    const int g = --s->n_group;

    for (int64_t i = 0; i < s->dim; i++) {
        s->used_by[i] &= ~((uint32_t)1 << g);
        if (s->group_of[i] != g)
            continue;
        s->group_of[i] = -1;
        s->row[i] = (em_noncentring_row){0};
    }
    for (int h = 0; h < g; h++)
        s->group[h].depends &= ~((uint32_t)1 << g);
}

em_status em_set_group(em_group_search *s, const em_group_fit *f,
                       const em_noncentring_row *conditional)
{
    em_add_group(s, f, conditional);
    set_levels(s);
    return em_set_map(s, s->row);
}

em_status em_measure_group(em_group_search *s, const em_group_fit *f,
                           const em_noncentring_row *conditional, double *now)
{
    const em_status status = em_set_group(s, f, conditional);

    if (status)
        *now = INFINITY;
    return status == EM_EDATA ? EM_OK : status ? status : em_find_departure(s, now);
}

em_status em_drop_group(em_group_search *s)
{
    remove_group(s);
    set_levels(s);
    return em_set_map(s, s->row);
}
