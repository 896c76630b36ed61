#include "data/reader/same_file.h"

#include "base/file.h"
#include "base/memory.h"
#include "io/hdf5/numbers.h"
#include "par/message.h"
#include "par/world.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct identity {
    int64_t inode, bytes, seconds, nanoseconds;
    uint64_t hash; /* of the content, where that was asked for */
} identity;

static em_status identify(int descriptor, const char *path, identity *out)
{
    struct stat info;

    if (fstat(descriptor, &info) != 0)
        return em_fail(EM_EDATA, "%s: found an unreadable file, expected data", path);
    *out = (identity){(int64_t)info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec,
                      0};
    return EM_OK;
}

/* Whether this rank's value differs from rank 0's; *any: whether any rank's does. Collective. */
static bool differs(const identity *mine, identity *first, bool *any)
{
    *first = *mine;
    em_broadcast(first, sizeof *first);
    int64_t count = memcmp(mine, first, sizeof *first) != 0;
    *any = count;
    em_world_sum(1, &count);
    const bool own = *any;
    *any = count > 0;
    return own;
}

/* Compares the contents of copies; names and times may differ. */
static em_status compare_copies(int descriptor, const char *path, int64_t bytes)
{
    identity mine = {.bytes = bytes}, first;
    char ranks[128];
    bool any;
    em_status status =
        em_agree_first(em_file_hash(descriptor, path, (uint64_t)bytes, &mine.hash), 0);

    if (status)
        return status;
    const bool own = differs(&mine, &first, &any);
    if (any)
        em_world_list(own, sizeof ranks, ranks);
    if (own)
        status = em_fail(EM_EDATA,
                         "%s: found a file that differs from that of rank 0 (%s): %lld bytes of "
                         "hash %016llx, expected %lld of %016llx; is a copy out of date?",
                         path, ranks, (long long)mine.bytes, (unsigned long long)mine.hash,
                         (long long)first.bytes, (unsigned long long)first.hash);
    return em_agree(status);
}

em_status em_same_file(const char *path, int64_t length)
{
    EM_SCOPED char *name = NULL;
    EM_SCOPED_BY(em_file_close) int descriptor = -1;
    em_status status = em_format_text(&name, "%.*s", (int)length, path);

    status = status ? status : em_file_open(name, O_RDONLY, &descriptor);
    status =
        em_agree(status); /* the message names the rank, unless the file is missing on all ranks */
    if (!status) {
        identity mine = {0}, first;
        bool any = false;
        status = em_agree_first(identify(descriptor, name, &mine), 0);

        if (!status && em_world_size() > 1)
            (void)differs(&mine, &first, &any);
        status = status || !any ? status : compare_copies(descriptor, name, mine.bytes);
    }
    return status;
}

bool em_same_is_hdf5(const char *path)
{
    bool is = em_world_rank() == 0 && em_numbers_is_hdf5(path);

    em_broadcast(&is, sizeof is);
    return is;
}
