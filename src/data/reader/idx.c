#include "data/reader/idx.h"

#include "base/fault.h"
#include "base/file.h"
#include "base/memory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>

enum { MAGIC_BYTES = 4, WORD_BYTES = 4, UNSIGNED_BYTES = 8 };

struct em_idx {
    const char *path;
    gzFile file;
    int64_t stored; /* bytes of the file, packed or not */
    em_idx_shape shape;
    uint64_t hash; /* of the header */
    int64_t at;    /* how many bytes after the header have been read */
};

static em_status open_file(const char *path, int64_t *stored, gzFile *out)
{
    int descriptor;
    struct stat file;
    em_status status = em_file_open(path, O_RDONLY, &descriptor);

    *out = NULL;
    if (status)
        return status;
    *stored = fstat(descriptor, &file) == 0 ? (int64_t)file.st_size : 0;
    *out = gzdopen(descriptor, "rb");
    if (*out)
        return EM_OK;
    close(descriptor);
    return em_fail(EM_EMEMORY, "%s: out of memory", path);
}

static bool is_magic(const uint8_t *head)
{
    return head[0] == 0 && head[1] == 0 && head[2] == UNSIGNED_BYTES && head[3] >= 1 &&
           head[3] <= EM_IDX_AXES;
}

bool em_idx_is(const char *path)
{
    uint8_t head[MAGIC_BYTES] = {0};
    int64_t stored;
    gzFile file;

    if (open_file(path, &stored, &file))
        return false;
    /* Whether it is an IDX file, even of an unsupported type, which the reader then reports. */
    bool is = gzread(file, head, MAGIC_BYTES) == MAGIC_BYTES && head[0] == 0 && head[1] == 0 &&
              head[2] >= UNSIGNED_BYTES && head[2] <= 14;
    gzclose(file);
    return is;
}

/* The size of the whole uncompressed file with its header, as far as the header was read. */
static int64_t size_so_far(const em_idx *idx)
{
    return MAGIC_BYTES + (int64_t)idx->shape.n_axis * WORD_BYTES + idx->shape.size;
}

/* Reads up to `length` bytes, or fewer if the file ends. */
static em_status fetch(const em_idx *idx, int64_t length, uint8_t *out, int64_t *got)
{
    enum { PIECE = 1 << 24 };
    int code = Z_OK, n = 1;

    for (*got = 0; *got < length && n > 0; *got += n > 0 ? n : 0)
        n = gzread(idx->file, out + *got,
                   (unsigned)(length - *got < PIECE ? length - *got : PIECE));
    gzerror(idx->file, &code);
    if (*got == length || (n >= 0 && (code == Z_OK || code == Z_STREAM_END)))
        return EM_OK;
    return em_fail(EM_EDATA,
                   "%s: found %s after %" PRId64 " of %" PRId64
                   " bytes, expected all of them and the end of the file",
                   idx->path,
                   code == Z_ERRNO ? "an unreadable file" : "a truncated or damaged gzip file",
                   (int64_t)gztell(idx->file), size_so_far(idx));
}

static em_status read_magic(em_idx *idx, uint8_t *head)
{
    int64_t got;
    em_status status = fetch(idx, MAGIC_BYTES, head, &got);

    if (status)
        return status;
    if (got < MAGIC_BYTES || !is_magic(head))
        return em_fail(EM_EDATA,
                       "%s: found the magic number %02x%02x%02x%02x of %" PRId64
                       " bytes, expected 000008 and from 1 to %d axes: an IDX file of bytes",
                       idx->path, head[0], head[1], head[2], head[3], got, EM_IDX_AXES);
    idx->shape.n_axis = head[3];
    return EM_OK;
}

/* Reads the lengths of the axes. A damaged length must neither overflow nor exhaust memory. */
static em_status read_lengths(em_idx *idx, uint8_t *head)
{
    em_idx_shape *shape = &idx->shape;
    double size = 1;
    int64_t got;
    em_status status = fetch(idx, (int64_t)shape->n_axis * WORD_BYTES, head, &got);

    if (!status && got < (int64_t)shape->n_axis * WORD_BYTES)
        return em_fail(EM_EDATA,
                       "%s: found the end of the file in its header, expected a header of %d bytes",
                       idx->path, MAGIC_BYTES + shape->n_axis * WORD_BYTES);
    for (int i = 0; !status && i < shape->n_axis; i++) {
        const uint8_t *word = head + (int64_t)i * WORD_BYTES;
        shape->length[i] = (int64_t)word[0] << 24 | word[1] << 16 | word[2] << 8 | word[3];
        size *= (double)shape->length[i];
        if (shape->length[i] == 0)
            status = em_fail(EM_EDATA, "%s: found length 0 of axis %d, expected at least 1",
                             idx->path, i + 1);
    }
    /* A million is always plausible; beyond, the limit is far above what compression can achieve.
     */
    if (!status && size > 0x1p20 + 0x1p12 * (double)idx->stored)
        status = em_fail(EM_EDATA,
                         "%s: found an array of %.3g bytes in a file of %" PRId64
                         ", which is too short for it",
                         idx->path, size, idx->stored);
    shape->size = status ? 0 : (int64_t)size;
    return status;
}

em_status em_idx_open(const char *path, em_idx **out)
{
    uint8_t head[MAGIC_BYTES + EM_IDX_AXES * WORD_BYTES] = {0};
    em_status status = em_allocate(1, sizeof **out, out);

    if (status)
        return status;
    (*out)->path = path;
    status = open_file(path, &(*out)->stored, &(*out)->file);
    if (!status && em_fault("data"))
        status =
            em_fail(EM_EDATA, "%s: found a fault injected by EMASS_FAULT, expected data", path);
    status = status ? status : read_magic(*out, head);
    status = status ? status : read_lengths(*out, head + MAGIC_BYTES);
    if (status)
        em_idx_close(out);
    else
        (*out)->hash = XXH64(head, sizeof head, 0);
    return status;
}

void em_idx_close(em_idx **idx)
{
    if (*idx && (*idx)->file)
        gzclose((*idx)->file);
    em_release(idx);
}

const em_idx_shape *em_idx_shape_of(const em_idx *idx)
{
    return &idx->shape;
}

bool em_idx_is_plain(const em_idx *idx)
{
    return gzdirect(idx->file);
}

int64_t em_idx_item(const em_idx *idx)
{
    return idx->shape.size / idx->shape.length[0];
}

/* Moves to a byte after the header: by a seek, or by unpacking all bytes before it. */
static em_status go_to(em_idx *idx, int64_t at)
{
    if (idx->at != at && gzseek(idx->file, (z_off_t)(at - idx->at), SEEK_CUR) < 0)
        return em_fail(EM_EDATA,
                       "%s: found no byte %" PRId64 " after the header, expected %" PRId64,
                       idx->path, at, idx->shape.size);
    idx->at = at;
    return EM_OK;
}

static em_status check_end(em_idx *idx)
{
    uint8_t beyond;
    int64_t more = 0;
    em_status status = fetch(idx, 1, &beyond, &more);

    return status || more == 0 ? status
                               : em_fail(EM_EDATA,
                                         "%s: found more than %" PRId64 " bytes after the header, "
                                         "expected the end of the file",
                                         idx->path, idx->shape.size);
}

em_status em_idx_read(em_idx *idx, int64_t first, int64_t count, uint8_t *out, uint64_t *hash)
{
    const int64_t item = em_idx_item(idx), begin = first * item, length = count * item;
    int64_t got = 0;
    em_status status = count > 0 ? go_to(idx, begin) : EM_OK;

    status = status ? status : fetch(idx, length, out, &got);
    idx->at += got;
    if (!status && got < length)
        return em_fail(EM_EDATA,
                       "%s: found %" PRId64 " bytes after the header, expected %" PRId64
                       ": the file is truncated",
                       idx->path, begin + got, idx->shape.size);
    if (!status && count > 0 && idx->at == idx->shape.size)
        status = check_end(idx);
    for (int64_t i = 0; !status && i < count; i++)
        *hash += XXH64(out + i * item, (size_t)item, idx->hash + (uint64_t)(first + i));
    return status;
}
