/* Reads draws of a variable in boxes. */
#include "base/memory.h"
#include "io/draws/reader.h"
#include "io/draws/reader_file.h"

#include <string.h>

/* A box of elements of a variable: a start and a count along each axis. */
typedef struct box {
    hsize_t start[EM_MOST_READER_AXES], count[EM_MOST_READER_AXES];
    int64_t size;
} box;

/* The largest box of consecutive elements that begins with `first` and has at most `most` elements.
 * It has whole trailing axes, and a range of the axis before them. */
static box box_at(const em_reader_variable *variable, int64_t first, int64_t most)
{
    box b = {.size = 1};
    int axis = variable->n_axes;
    int64_t count = 1;

    while (axis > 1 && b.size * variable->shape[axis - 1] <= most &&
           first % (b.size * variable->shape[axis - 1]) == 0) {
        axis--;
        b.count[axis] = (hsize_t)variable->shape[axis];
        b.size *= variable->shape[axis];
    }
    first /= b.size;
    if (axis > 0) {
        const int64_t left = variable->shape[axis - 1] - first % variable->shape[axis - 1];

        count = most / b.size < left ? most / b.size : left;
    }
    b.size *= count;
    for (; axis-- > 0; first /= variable->shape[axis], count = 1) {
        b.start[axis] = (hsize_t)(first % variable->shape[axis]);
        b.count[axis] = (hsize_t)count;
    }
    return b;
}

/* Reads the numbers from `start` on, `count` along each axis. HDF5 copies whole rows if memory has
 * the same axes as the file, and otherwise one number at a time. */
static em_status read_part(hid_t id, hid_t type, const hsize_t *start, const hsize_t *count,
                           int64_t n, void *out)
{
    if (n == 0)
        return EM_OK;
    EM_SCOPED_ID hid_t space = H5Dget_space(id);
    EM_SCOPED_ID hid_t memory = H5Screate_simple(H5Sget_simple_extent_ndims(space), count, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
    return em_reader_read(id, type, memory, space, out);
}

/* A range of chains and draws of one file. */
typedef struct block {
    int64_t chain, n_chain, draw, n_draw;
} block;

/* Reads the elements of a box into rows[n_chain][n_draw][element] of a block. */
static em_status read_box(const em_reader_entry *d, const box *b, const block *of, double *rows)
{
    hsize_t start[EM_MOST_READER_AXES + 2] = {(hsize_t)of->chain, (hsize_t)of->draw};
    hsize_t count[EM_MOST_READER_AXES + 2] = {(hsize_t)of->n_chain, (hsize_t)of->n_draw};

    memcpy(start + 2, b->start, sizeof b->start);
    memcpy(count + 2, b->count, sizeof b->count);
    return read_part(d->id, H5T_NATIVE_DOUBLE, start, count, of->n_chain * of->n_draw * b->size,
                     rows);
}

int64_t em_reader_n_chain(const em_reader *reader)
{
    int64_t n = 0;

    for (; reader; reader = reader->next)
        n += reader->n_chain;
    return n;
}

static bool has_filters(hid_t id)
{
    EM_SCOPED_ID hid_t list = H5Dget_create_plist(id);
    return H5Pget_nfilters(list) > 0;
}

/* The first block of a variable, of which n elements are read. Its rows stay in the cache. All
 * draws of a compressed variable are one, as each reading decompresses whole chunks. */
static block first_block(const em_reader *reader, hid_t id, int64_t n)
{
    enum { NUMBERS = 1 << 17 };
    const int64_t n_draw = reader->n_draw, most = NUMBERS / n;

    if (has_filters(id) || most >= reader->n_chain * n_draw)
        return (block){.n_chain = reader->n_chain, .n_draw = n_draw};
    return (block){.n_chain = n_draw > 0 ? em_most(1, most / n_draw) : 1,
                   .n_draw = em_least(n_draw, em_most(1, most))};
}

/* Copies rows [n_row][n] to columns that are `stride` apart. Numbers of one cache line are copied
 * together. */
static void copy_to_columns(int64_t n_row, int64_t n, const double *rows, int64_t stride,
                            double *column)
{
    enum { LINE = 8 };

    for (int64_t first = 0; first < n; first += LINE) {
        const int64_t end = em_least(n, first + LINE);
        for (int64_t r = 0; r < n_row; r++)
            for (int64_t k = first; k < end; k++)
                column[k * stride + r] = rows[r * n + k];
    }
}

/* Reads all draws of a box to columns that are `stride` apart, block after block. */
static em_status read_columns(const em_reader *reader, const em_reader_entry *d, const box *b,
                              block each, double *rows, int64_t stride, double *column)
{
    const int64_t n_draw = reader->n_draw;
    em_status status = EM_OK;

    for (int64_t c = 0; !status && c < reader->n_chain; c += each.n_chain)
        for (int64_t i = 0; !status && i < n_draw; i += each.n_draw) {
            const block one = {c, em_least(each.n_chain, reader->n_chain - c), i,
                               em_least(each.n_draw, n_draw - i)};
            status = read_box(d, b, &one, rows);
            if (!status)
                copy_to_columns(one.n_chain * one.n_draw, b->size, rows, stride,
                                column + c * n_draw + i);
        }
    return status;
}

/* Reads elements of the chains of one file, which are chains `chain` and following of
 * out[n][n_chain][n_draw]. */
static em_status read_elements(const em_reader *reader, int64_t i, int64_t first, int64_t n,
                               int64_t chain, int64_t n_chain, double *out)
{
    const em_reader_entry *d = &reader->variable[i];
    const int64_t stride = n_chain * reader->n_draw;
    const block each = first_block(reader, d->id, em_most(1, n));
    EM_SCOPED double *rows = NULL;
    em_status status = em_allocate_doubles(each.n_chain * each.n_draw * n, &rows);

    out += chain * reader->n_draw;
    for (int64_t done = 0; !status && done < n;) {
        const box b = box_at(&d->variable, first + done, n - done);

        status = read_columns(reader, d, &b, each, rows, stride, out + done * stride);
        done += b.size;
    }
    return status;
}

em_status em_reader_elements(em_reader *reader, int64_t i, int64_t first, int64_t n, double *out)
{
    const int64_t n_chain = em_reader_n_chain(reader);
    int64_t chain = 0;
    em_status status = EM_OK;

    for (; !status && reader; chain += reader->n_chain, reader = reader->next)
        status = read_elements(reader, i, first, n, chain, n_chain, out);
    return status;
}

em_status em_reader_draws(em_reader *reader, int64_t i, int64_t first_chain, int64_t n_chain,
                          int64_t first, int64_t n, double *out)
{
    em_status status = EM_OK;

    for (; !status && reader && n_chain > 0; reader = reader->next) {
        const int64_t left = reader->n_chain - first_chain;
        const int64_t here = left < n_chain ? left : n_chain;

        if (here > 0) {
            const em_reader_entry *d = &reader->variable[i];
            const box all = box_at(&d->variable, 0, d->variable.size);
            status = read_box(d, &all, &(block){first_chain, here, first, n}, out);
            out += here * n * all.size;
            n_chain -= here;
            first_chain += here;
        }
        first_chain -= reader->n_chain;
    }
    return status;
}

em_status em_reader_rows(const em_row_reading *how, int64_t first, int64_t n, double *rows)
{
    const int64_t step = how->step;
    int64_t column = 0;
    em_status status = EM_OK;

    for (int64_t i = 0; !status && i < em_reader_n_variable(how->reader); i++) {
        const int64_t size = em_reader_variable_at(how->reader, i)->size;
        if (column + size > how->width)
            return em_fail(EM_EDATA, "%s: found other variables than in the run, expected the same",
                           em_reader_path(how->reader));
        status = em_reader_draws(how->reader, i, how->first_chain, how->n_chain, first * step,
                                 n * step, how->work);
        for (int64_t r = 0; !status && r < how->n_chain * n; r++)
            memcpy(rows + r * how->width + column, how->work + ((r + 1) * step - 1) * size,
                   (size_t)size * sizeof *rows);
        column += size;
    }
    return status;
}

em_status em_reader_floats(em_reader *reader, int64_t i, int64_t chain, int64_t first, int64_t n,
                           float *out)
{
    em_status status = EM_OK;

    for (; chain >= reader->n_chain; reader = reader->next)
        chain -= reader->n_chain;
    for (const int64_t end = first + n; !status && first < end;) {
        const em_reader_entry *d = &reader->variable[i];
        const box b = box_at(&d->variable, first, end - first);
        hsize_t start[EM_MOST_READER_AXES + 2] = {(hsize_t)chain};
        hsize_t count[EM_MOST_READER_AXES + 2] = {1, 1};

        memcpy(start + 2, b.start, sizeof b.start);
        memcpy(count + 2, b.count, sizeof b.count);
        status = read_part(d->id, H5T_NATIVE_FLOAT, start, count, b.size, out);
        first += b.size;
        out += b.size;
    }
    return status;
}

struct em_elements {
    em_reader *reader;
    int64_t n, next;
    const em_element *wanted;
    int64_t size;     /* of one: chains x draws */
    int64_t from, to; /* the range of wanted elements in memory */
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

/* Whether the variable is compressed in one of the files. */
static bool is_compressed(const em_reader *reader, int64_t i)
{
    bool found = false;

    for (; reader && !found; reader = reader->next)
        found = has_filters(reader->variable[i].id);
    return found;
}

/* The number of elements of a variable to read at a time. */
static int64_t batch_of(const em_elements *e, int64_t i)
{
    enum { PLAIN = 1 << 26, COMPRESSED = 1 << 28, MOST_READINGS = 16 };
    const int64_t bytes = e->size * (int64_t)sizeof(double);
    const int64_t share = e->reader->variable[i].variable.size / MOST_READINGS;
    const bool compressed = is_compressed(e->reader, i);
    const int64_t n = bytes > 0 ? (compressed ? COMPRESSED : PLAIN) / bytes : 1;

    return compressed && share > n ? share : n > 0 ? n : 1;
}

/* The number of wanted elements, from the next one on, that are contiguous in the file. */
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
