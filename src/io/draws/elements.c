#include "io/draws/elements.h"

#include "base/memory.h"
#include "io/draws/reader_file.h"

struct em_elements {
    em_reader *reader;
    int64_t n, next;
    const em_element *wanted;
    int64_t size;     /* of one: chains x draws */
    int64_t from, to; /* of those wanted, that are in memory */
    int64_t room;     /* in doubles */
    double *draws;
};

em_status em_elements_create(em_reader *reader, int64_t n, const em_element *wanted,
                             em_elements **out)
{
    em_status status = em_allocate(1, sizeof **out, out);

    if (status)
        return status;
    **out = (em_elements){.reader = reader, .n = n, .wanted = wanted};
    (*out)->size = em_reader_n_chain(reader) * em_reader_n_draw(reader);
    return EM_OK;
}

void em_elements_destroy(em_elements **elements)
{
    if (*elements)
        em_release(&(*elements)->draws);
    em_release(elements);
}

/* In one of the files. */
static bool is_compressed(const em_reader *reader, int64_t i)
{
    bool found = false;

    for (; reader && !found; reader = reader->next) {
        hid_t list = H5Dget_create_plist(reader->variable[i].id);

        found = H5Pget_nfilters(list) > 0;
        em_h5_close(&list);
    }
    return found;
}

/* Elements of a variable to read at a time. */
static int64_t batch_of(const em_elements *e, int64_t i)
{
    enum { PLAIN = 1 << 26, COMPRESSED = 1 << 28, MOST_READINGS = 16 };
    const int64_t bytes = e->size * (int64_t)sizeof(double);
    const int64_t share = e->reader->variable[i].variable.size / MOST_READINGS;
    const bool compressed = is_compressed(e->reader, i);
    const int64_t n = bytes > 0 ? (compressed ? COMPRESSED : PLAIN) / bytes : 1;

    return compressed && share > n ? share : n > 0 ? n : 1;
}

/* How many from the next one on follow one another in the file. */
static int64_t run_length(const em_elements *e)
{
    const em_element *first = e->wanted + e->next;
    int64_t n = 1;

    while (e->next + n < e->n && first[n].variable == first->variable &&
           first[n].index == first->index + n)
        n++;
    return n;
}

static em_status read_batch(em_elements *e)
{
    const em_element *first = e->wanted + e->next;
    const int64_t run = run_length(e), most = batch_of(e, first->variable);
    const int64_t n = run < most ? run : most;
    em_status status = em_renew_doubles(n * e->size, &e->room, &e->draws);

    e->from = e->to = e->next;
    if (!status)
        status = em_reader_elements(e->reader, first->variable, first->index, n, e->draws);
    if (!status)
        e->to += n;
    return status;
}

em_status em_elements_next(em_elements *e, const double **draws)
{
    const em_status status = e->next < e->to ? EM_OK : read_batch(e);

    *draws = status ? NULL : e->draws + (e->next++ - e->from) * e->size;
    return status;
}
