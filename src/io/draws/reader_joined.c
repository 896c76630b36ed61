/* Reads several files of one model as one file. Chains are numbered consecutively. */
#include "base/memory.h"
#include "io/draws/labels.h"
#include "io/draws/reader_file.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* ---------------------------------------------------------------- what files must share */

/* Checks the attributes that are equal in files of one model and data. Files of other programs lack
 * them. */
static em_status match_origin(em_reader *a, em_reader *b)
{
    static const char *const name[] = {"model", "model_hash", "program_hash", "data_hash"};
    em_status status = EM_OK;

    for (size_t i = 0; !status && i < sizeof name / sizeof *name; i++) {
        EM_SCOPED char *one = NULL, *other = NULL;

        em_reader_text(a, name[i], &one);
        em_reader_text(b, name[i], &other);
        if ((one || other) && !(one && other && strcmp(one, other) == 0))
            status =
                em_fail(EM_EDATA,
                        "%s: found %s %s, expected %s as %s has: only files of one model and the "
                        "same data can be combined (az.compare in Python compares models)",
                        b->path, name[i], other ? other : "(none)", one ? one : "(none)", a->path);
    }
    return status;
}

static em_status match_variable(const em_reader *a, const em_reader *b, int64_t i)
{
    const em_reader_variable *one = &a->variable[i].variable, *other = &b->variable[i].variable;

    if (strcmp(one->name, other->name) != 0 || one->n_axes != other->n_axes ||
        memcmp(one->shape, other->shape, (size_t)one->n_axes * sizeof *one->shape) != 0)
        return em_fail(EM_EDATA, "%s: found %s of %lld numbers, expected %s of %lld as %s has",
                       b->path, other->name, (long long)other->size, one->name,
                       (long long)one->size, a->path);
    const int64_t k = em_label_difference(one, other);
    return k < 0 ? EM_OK
                 : em_fail(EM_EDATA, "%s: found %s, expected %s as %s has", b->path,
                           em_reader_label(other, k), em_reader_label(one, k), a->path);
}

/* Checks that the files have equally many draws. With `common` longer files are cut, but not their
 * warmups. */
static em_status match_lengths(const em_reader *a, const em_reader *b, const char *group)
{
    const bool warmup = strncmp(group, "warmup_", 7) == 0;

    if (a->n_planned == b->n_planned || (a->common && !warmup))
        return EM_OK;
    return em_fail(EM_EDATA, "%s: found %lld draws of each chain, expected %lld as %s has%s",
                   b->path, (long long)b->n_planned, (long long)a->n_planned, a->path,
                   warmup ? ""
                          : "; --common takes only the first draws, those that all files have");
}

static em_status match_variables(const em_reader *a, const em_reader *b)
{
    em_status status = EM_OK;

    if (a->n_variable != b->n_variable)
        return em_fail(EM_EDATA, "%s: found %lld variables, expected %lld as %s has", b->path,
                       (long long)b->n_variable, (long long)a->n_variable, a->path);
    for (int64_t i = 0; !status && i < a->n_variable; i++)
        status = match_variable(a, b, i);
    return status;
}

/* Releases the names of elements of a further file, because those of the first file are used. */
static void forget_labels(em_reader *reader)
{
    for (int64_t i = 0; i < reader->n_variable; i++)
        em_label_release(&reader->variable[i].variable);
}

/* ---------------------------------------------------------------- duplicate chains */

/* A hash of the first draws of a chain, which identifies the chain. */
typedef struct known {
    uint64_t hash;
    const em_reader *file;
    int64_t chain;
} known;

static em_status hash_chain(em_reader *file, int64_t chain, int64_t n, double *draws, uint64_t *out)
{
    em_status status = EM_OK;

    *out = 0;
    for (int64_t i = 0; !status && i < file->n_variable; i++) {
        const size_t size = (size_t)(n * file->variable[i].variable.size);

        status = em_reader_draws(file, i, chain, 1, 0, n, draws);
        if (!status)
            *out = XXH64(draws, size * sizeof *draws, *out);
    }
    return status;
}

static int by_hash(const void *a, const void *b)
{
    const known *x = a, *y = b;

    return (x->hash > y->hash) - (x->hash < y->hash);
}

static em_status refuse_twins(int64_t n_chain, known *all)
{
    qsort(all, (size_t)n_chain, sizeof *all, by_hash);
    for (int64_t c = 1; c < n_chain; c++)
        if (all[c].hash == all[c - 1].hash && all[c].file != all[c - 1].file)
            return em_fail(EM_EDATA,
                           "%s: chain %lld has the draws of chain %lld of %s, expected others: "
                           "were they run with the same seed?",
                           all[c].file->path, (long long)all[c].chain, (long long)all[c - 1].chain,
                           all[c - 1].file->path);
    return EM_OK;
}

/* Fails if two files have the same chains. The same seed gives the same chains, which add no
 * information. */
static em_status find_twins(em_reader *joined)
{
    enum { FIRST_DRAWS = 16, MOST_NUMBERS = 1 << 20 };
    const int64_t n_chain = em_reader_n_chain(joined);
    int64_t widest = 1, n = joined->n_draw < FIRST_DRAWS ? joined->n_draw : FIRST_DRAWS, k = 0;
    EM_SCOPED double *draws = NULL;
    EM_SCOPED known *all = NULL;
    em_status status = em_allocate(n_chain, sizeof *all, &all);

    for (int64_t i = 0; i < joined->n_variable; i++)
        widest = em_most(widest, joined->variable[i].variable.size);
    if (n * widest > MOST_NUMBERS)
        n = widest < MOST_NUMBERS ? MOST_NUMBERS / widest : 1;
    status = status ? status : em_allocate_doubles(n * widest, &draws);
    for (em_reader *file = joined; !status && file && n > 0; file = file->next)
        for (int64_t c = 0; !status && c < file->n_chain; c++, k++) {
            all[k] = (known){.file = file, .chain = c};
            status = hash_chain(file, c, n, draws, &all[k].hash);
        }
    if (!status && n > 0)
        status = refuse_twins(n_chain, all);
    return status;
}

/* ---------------------------------------------------------------- joining the files */

/* Opens one more file and appends it if it fits the first. */
static em_status append(const char *path, const char *group, bool common, em_reader **first)
{
    em_reader **end = first;

    while (*end)
        end = &(*end)->next;
    em_status status = em_reader_open(path, group, end);
    if (!status && end == first)
        (*first)->common = common;
    if (status || end == first)
        return status;
    status = match_origin(*first, *end);
    if (!status && group)
        status = match_variables(*first, *end);
    if (!status && group)
        status = match_lengths(*first, *end, group);
    if (!status)
        forget_labels(*end);
    return status;
}

/* Cuts all files to the draws that all have. This is for runs that have not ended, or of different
 * lengths. */
static void level(em_reader *first)
{
    int64_t n_draw = first->n_draw;

    for (em_reader *r = first; r; r = r->next)
        n_draw = r->n_draw < n_draw ? r->n_draw : n_draw;
    for (em_reader *r = first; r; r = r->next)
        r->n_draw = n_draw;
}

em_status em_reader_open_all(int64_t n, const char *const *path, const char *group, bool common,
                             em_reader **out)
{
    em_status status = EM_OK;

    *out = NULL;
    for (int64_t i = 0; !status && i < n; i++)
        status = append(path[i], group, common, out);
    if (!status)
        level(*out);
    if (!status && n > 1 && group && strcmp(group, "posterior") == 0)
        status = find_twins(*out);
    if (status)
        em_reader_close(out);
    return status;
}

const em_reader *em_reader_shortest(const em_reader *reader)
{
    const em_reader *shortest = reader;

    for (const em_reader *r = reader; r; r = r->next)
        shortest = r->n_own_draw < shortest->n_own_draw ? r : shortest;
    return shortest;
}

em_status em_reader_cut(em_reader *reader, char **out)
{
    int64_t most = 0;

    *out = NULL;
    for (const em_reader *r = reader; r; r = r->next)
        most = r->n_own_draw > most ? r->n_own_draw : most;
    if (most > reader->n_draw)
        return em_format_text(out, "the first %lld draws of each chain, as many as %s has",
                              (long long)reader->n_draw, em_reader_shortest(reader)->path);
    em_reader_text(reader, "cut", out);
    return EM_OK;
}

em_status em_reader_open_beside(const em_reader *reader, const char *group, em_reader **out)
{
    em_status status = EM_OK;

    *out = NULL;
    for (const em_reader *file = reader; !status && file; file = file->next)
        status = append(file->path, group, reader->common, out);
    if (!status)
        level(*out);
    else
        em_reader_close(out);
    return status;
}
