#include "io/checkpoint/rollback_journal.h"

#include "base/file.h"
#include "base/memory.h"
#include "io/checkpoint/checksum_trailer.h"
#include "io/hdf5/hdf5.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const em_checksum_trailer trailer = {{'E', 'M', 'A', 'S', 'S', 'U', 'N', '1'},
                                            "a rollback journal"};

/* HDF5 1.10 needs k steps to find the k-th chunk. The values of datasets with more chunks than this
 * go into the journal. */
enum { MOST_CHUNKS = 1 << 12 };

/* The first bytes of a journal. The identity of the file follows, and then pieces of the file, each
 * after its extent. */
typedef struct journal_header {
    uint64_t identity_bytes, file_bytes;
} journal_header;

typedef struct extent {
    uint64_t first, bytes; /* below 2^63 */
} extent;

/* The extents of the values of datasets in the file. The journal leaves them out. */
typedef struct values {
    int64_t n, room;
    extent *extent;
    em_status status;
} values;

/* ---------------------------------------------------------------- where values are */

static void add(values *v, haddr_t first, hsize_t bytes)
{
    if (v->status || first == HADDR_UNDEF || bytes == 0)
        return;
    v->status = em_reserve(&v->extent, &v->room, v->n, v->n + 1);
    if (!v->status)
        v->extent[v->n++] = (extent){first, bytes};
}

static void add_chunks(values *v, hid_t dataset)
{
    EM_SCOPED_ID hid_t space = H5Dget_space(dataset);
    hsize_t n = 0, start[H5S_MAX_RANK];

    H5Dget_num_chunks(dataset, space, &n);
    for (hsize_t i = 0; i < n && n <= MOST_CHUNKS; i++) {
        haddr_t first = HADDR_UNDEF;
        hsize_t bytes = 0;
        unsigned mask;
        if (H5Dget_chunk_info(dataset, space, i, start, &mask, &first, &bytes) >= 0)
            add(v, first, bytes);
    }
}

static herr_t visit(hid_t file, const char *name, const H5O_info_t *info, void *context)
{
    values *v = context;

    if (info->type != H5O_TYPE_DATASET)
        return 0;
    EM_SCOPED_ID hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT),
                       list = H5Dget_create_plist(dataset);
    if (H5Pget_layout(list) == H5D_CHUNKED)
        add_chunks(v, dataset);
    else if (H5Pget_layout(list) == H5D_CONTIGUOUS)
        add(v, H5Dget_offset(dataset), H5Dget_storage_size(dataset));
    return v->status ? 1 : 0;
}

/* Finds the extents of all values, in their order in the file. */
static em_status find_values(const char *path, values *out)
{
    em_h5_quiet();
    EM_SCOPED_ID hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    *out = (values){.n = 0};
    if (file < 0 || H5Ovisit(file, H5_INDEX_NAME, H5_ITER_NATIVE, visit, out) < 0)
        out->status = em_fail(EM_EIO, "%s: could not be read to make its rollback journal", path);
    if (!out->status && out->n > 0)
        qsort(out->extent, (size_t)out->n, sizeof *out->extent, em_by_first_integer);
    return out->status;
}

/* ---------------------------------------------------------------- bytes */

/* Two open files, the place in each, and their names for messages. */
typedef struct transfer {
    const char *from_path, *to_path;
    int from, to;
    off_t from_at, to_at;
} transfer;

static em_status write_next(transfer *t, const void *bytes, size_t n)
{
    const em_status status = em_file_write_at(t->to, t->to_path, t->to_at, bytes, n);

    t->to_at += (off_t)n;
    return status;
}

static em_status read_next(transfer *t, void *bytes, size_t n)
{
    const em_status status = em_file_read_at(t->from, t->from_path, t->from_at, bytes, n);

    t->from_at += (off_t)n;
    return status;
}

static em_status copy(transfer *t, uint64_t n)
{
    static char piece[1 << 16];
    em_status status = EM_OK;

    for (uint64_t left = n; !status && left > 0;) {
        const size_t bytes = left < sizeof piece ? (size_t)left : sizeof piece;
        status = read_next(t, piece, bytes);
        status = status ? status : write_next(t, piece, bytes);
        left -= bytes;
    }
    return status;
}

/* ---------------------------------------------------------------- writing a journal */

/* Writes a piece of the file: its extent, then its bytes. */
static em_status keep_block(transfer *t, uint64_t first, uint64_t end)
{
    const extent piece = {first, end - first};

    if (first >= end)
        return EM_OK;
    const em_status status = write_next(t, &piece, sizeof piece);
    t->from_at = (off_t)first;
    return status ? status : copy(t, piece.bytes);
}

/* Writes the header, the identity, and all pieces of the file between the values of datasets. */
static em_status keep_rest(transfer *t, const char *identity, const values *v)
{
    const off_t length = lseek(t->from, 0, SEEK_END);
    const uint64_t bytes = (uint64_t)length;
    const journal_header begin = {strlen(identity), bytes};
    uint64_t next = 0;
    em_status status =
        length < 0 ? em_fail(EM_EIO, "%s: cannot be read: %s", t->from_path, strerror(errno))
                   : write_next(t, &begin, sizeof begin);

    status = status ? status : write_next(t, identity, begin.identity_bytes);

    for (int64_t i = 0; !status && i < v->n && next < bytes; i++) {
        const extent *value = &v->extent[i];
        status = keep_block(t, next, value->first < bytes ? value->first : bytes);
        if (value->first + value->bytes > next)
            next = value->first + value->bytes;
    }
    return status ? status : keep_block(t, next, bytes);
}

static void close_both(const transfer *t)
{
    em_file_close(&t->from);
    em_file_close(&t->to);
}

em_status em_rollback_journal_keep(const char *file, const char *identity, const char *journal)
{
    transfer t = {file, journal, -1, -1, 0, 0};
    values v = {.n = 0};
    em_status status = find_values(file, &v);

    if (!status && unlink(journal) != 0 && errno != ENOENT)
        status = em_fail(EM_EIO, "%s: cannot be removed: %s", journal, strerror(errno));
    status = status ? status : em_file_open(file, O_RDONLY | O_NOFOLLOW, &t.from);
    if (!status)
        status = em_file_open(journal, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, &t.to);
    if (!status && fdatasync(t.from) != 0)
        status = em_fail(EM_EIO, "%s: cannot be written: %s", file, strerror(errno));
    status = status ? status : keep_rest(&t, identity, &v);
    close_both(&t);
    status = status ? status : em_checksum_trailer_put(&trailer, journal);
    if (status && t.to >= 0)
        unlink(journal);
    em_release(&v.extent);
    return status;
}

/* ---------------------------------------------------------------- restoring the file */

/* Writes the pieces in the journal back to the file. `end`: where the pieces end in the journal. */
static em_status put_back(transfer *t, const char *identity, uint64_t end)
{
    journal_header begin = {0, 0};
    EM_SCOPED char *of = NULL;
    em_status status = read_next(t, &begin, sizeof begin);

    status = status ? status : em_allocate((int64_t)begin.identity_bytes + 1, 1, &of);
    status = status ? status : read_next(t, of, begin.identity_bytes);
    if (!status && identity && strcmp(of, identity) != 0)
        status = em_fail(EM_EDATA, "%s: is the rollback journal of another file than %s",
                         t->from_path, t->to_path);
    while (!status && (uint64_t)t->from_at < end) {
        extent piece = {0, 0};
        status = read_next(t, &piece, sizeof piece);
        t->to_at = (off_t)piece.first;
        status = status ? status : copy(t, piece.bytes);
    }
    if (!status && (ftruncate(t->to, (off_t)begin.file_bytes) != 0 || fsync(t->to) != 0))
        status = em_fail(EM_EIO, "%s: cannot be written: %s", t->to_path, strerror(errno));
    return status;
}

em_status em_rollback_journal_apply(const char *journal, const char *identity, const char *file)
{
    EM_SCOPED_BY(close_both) transfer t = {journal, file, -1, -1, 0, 0};
    uint64_t end = 0;
    em_status status = em_checksum_trailer_check(&trailer, journal, &end);

    status = status ? status : em_file_open(journal, O_RDONLY | O_NOFOLLOW, &t.from);
    status = status ? status : em_file_open(file, O_RDWR | O_NOFOLLOW, &t.to);
    return status ? status : put_back(&t, identity, end);
}
