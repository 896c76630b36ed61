#include "io/checkpoint/checksum_trailer.h"

#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { KIND_BYTES = 7 }; /* of the magic, before the version */

typedef struct trailer {
    char magic[8];
    uint64_t bytes, hash; /* of what comes before the trailer */
} trailer;

em_status em_checksum_trailer_put(const em_checksum_trailer *kind, const char *path)
{
    trailer end = {.bytes = 0};
    EM_SCOPED_BY(em_file_close) int descriptor = -1;
    em_status status = em_file_open(path, O_RDWR | O_NOFOLLOW, &descriptor);
    const off_t bytes = descriptor < 0 ? -1 : lseek(descriptor, 0, SEEK_END);

    memcpy(end.magic, kind->magic, sizeof end.magic);
    end.bytes = (uint64_t)bytes;
    if (!status && bytes < 0)
        status = em_fail(EM_EIO, "%s: cannot be read: %s", path, strerror(errno));
    status = status ? status : em_file_hash(descriptor, path, end.bytes, &end.hash);
    status = status ? status : em_file_write_at(descriptor, path, bytes, &end, sizeof end);
    if (!status && fsync(descriptor) != 0)
        status = em_fail(EM_EIO, "%s: cannot be written: %s", path, strerror(errno));
    return status;
}

em_status em_checksum_trailer_check(const em_checksum_trailer *kind, const char *path,
                                    uint64_t *bytes)
{
    trailer end;
    uint64_t hash = 0;
    EM_SCOPED_BY(em_file_close) int descriptor = -1;
    em_status status = em_file_open(path, O_RDONLY | O_NOFOLLOW, &descriptor);

    if (status == EM_EDATA && access(path, F_OK) == 0)
        return em_fail(EM_EIO, "%s",
                       em_error_text()); /* it may be intact: not reported as damaged */
    if (status)
        return status;
    const off_t length = lseek(descriptor, 0, SEEK_END) - (off_t)sizeof end;
    if (length < 0 || pread(descriptor, &end, sizeof end, length) != (ssize_t)sizeof end ||
        memcmp(end.magic, kind->magic, KIND_BYTES) != 0)
        status = em_fail(EM_EDATA, "%s: cut short, or not %s", path, kind->what);
    else if (memcmp(end.magic, kind->magic, sizeof end.magic) != 0)
        status = em_fail(EM_EDATA, "%s: %s of another version of emass", path, kind->what);
    else if (end.bytes != (uint64_t)length)
        status = em_fail(EM_EDATA, "%s: cut short: %lld bytes, expected %llu", path,
                         (long long)length, (unsigned long long)end.bytes);
    status = status ? status : em_file_hash(descriptor, path, end.bytes, &hash);
    if (!status && hash != end.hash)
        status = em_fail(EM_EDATA, "%s: altered since it was written (its hash differs)", path);
    *bytes = end.bytes;
    return status;
}
