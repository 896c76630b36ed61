#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

const char *em_file_kind(mode_t mode)
{
    static const struct {
        mode_t mode;
        const char *kind;
    } kinds[] = {{S_IFREG, "a regular file"},
                 {S_IFDIR, "a folder"},
                 {S_IFIFO, "a FIFO"},
                 {S_IFLNK, "a symbolic link"},
                 {S_IFSOCK, "a socket"}};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((mode & S_IFMT) == kinds[i].mode)
            return kinds[i].kind;
    return "a device";
}

bool em_file_is_folder(const char *path)
{
    struct stat found;

    return stat(path, &found) == 0 && S_ISDIR(found.st_mode);
}

/* Whether an error number shows that the path is wrong, and not the disk or the kernel. */
static bool is_of_path(int code)
{
    static const int codes[] = {ENOENT, ENOTDIR, EISDIR, EACCES, EPERM, ELOOP, ENAMETOOLONG, ENXIO};

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        if (codes[i] == code)
            return true;
    return false;
}

static em_status fail_open(const char *path)
{
    return em_fail(is_of_path(errno) ? EM_EDATA : EM_EIO,
                   "%s: could not open: %s, expected a readable file", path, strerror(errno));
}

static em_status insist_on_regular(const char *path, mode_t mode)
{
    return S_ISREG(mode) ? EM_OK
                         : em_fail(EM_EDATA, "%s: found %s, expected a regular file", path,
                                   em_file_kind(mode));
}

em_status em_file_open(const char *path, int flags, int *descriptor)
{
    struct stat found;
    em_status status = EM_OK;

    *descriptor = -1;
    /* First by its name: to open a device may do something. */
    if ((flags & O_NOFOLLOW ? lstat : stat)(path, &found) == 0)
        status = insist_on_regular(path, found.st_mode);
    else if (errno != ENOENT || !(flags & O_CREAT))
        status = fail_open(path);
    if (status)
        return status;
    *descriptor = open(path, flags | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0666);
    if (*descriptor < 0 || fstat(*descriptor, &found) != 0)
        status = fail_open(path);
    else
        status = insist_on_regular(path, found.st_mode); /* the file that now exists */
    if (status && *descriptor >= 0) {
        close(*descriptor);
        *descriptor = -1;
    }
    return status;
}

void em_file_close(const int *descriptor)
{
    if (*descriptor >= 0)
        close(*descriptor);
}

em_status em_file_check(const char *path)
{
    EM_SCOPED_BY(em_file_close) int descriptor = -1;
    return em_file_open(path, O_RDONLY, &descriptor);
}

em_status em_file_read_at(int descriptor, const char *name, off_t at, void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t got = pread(descriptor, (char *)bytes + done, n - done, at + (off_t)done);
        if (got == 0 || (got < 0 && errno != EINTR))
            return em_fail(EM_EIO, "%s: cannot be read: %s", name,
                           got == 0 ? "it ends early" : strerror(errno));
        done += got > 0 ? (size_t)got : 0;
    }
    return EM_OK;
}

em_status em_file_write_at(int descriptor, const char *name, off_t at, const void *bytes, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t put =
            pwrite(descriptor, (const char *)bytes + done, n - done, at + (off_t)done);
        if (put < 0 && errno != EINTR)
            return em_fail(EM_EIO, "%s: cannot be written: %s", name, strerror(errno));
        done += put > 0 ? (size_t)put : 0;
    }
    return EM_OK;
}

em_status em_file_hash(int descriptor, const char *name, uint64_t bytes, uint64_t *hash)
{
    enum { PIECE = 1 << 20 };
    XXH64_state_t *state = XXH64_createState();
    EM_SCOPED char *piece = NULL;
    em_status status =
        state ? em_allocate(PIECE, 1, &piece) : em_fail(EM_EMEMORY, "out of memory: no hash state");

    if (!status)
        XXH64_reset(state, 0);
    for (uint64_t done = 0; !status && done < bytes; done += PIECE) {
        const size_t n = bytes - done < PIECE ? (size_t)(bytes - done) : PIECE;
        status = em_file_read_at(descriptor, name, (off_t)done, piece, n);
        if (!status)
            XXH64_update(state, piece, n);
    }
    if (!status)
        *hash = XXH64_digest(state);
    XXH64_freeState(state);
    return status;
}

size_t em_file_folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash + 1 - path) : 0;
}

em_status em_file_folder(const char *path, char **folder)
{
    const size_t length = em_file_folder_length(path);

    return em_format_text(folder, "%.*s", length ? (int)length : 1, length ? path : ".");
}

em_status em_file_check_folder(const char *path)
{
    EM_SCOPED char *folder = NULL;
    em_status status = em_file_folder(path, &folder);

    if (!status && access(folder, W_OK | X_OK) != 0)
        status = em_fail(EM_EUSAGE, "%s: cannot be written: %s: %s", path, folder, strerror(errno));
    return status;
}

em_status em_file_follow(const char *path, char **target)
{
    enum { MOST_LINKS = 40 }; /* as the kernel has it */
    char link[PATH_MAX];
    em_status status = em_copy_text(path, target);

    for (int i = 0; !status; i++) {
        const ssize_t length = readlink(*target, link, sizeof link - 1);
        char *next = NULL;
        if (length < 0)
            return EM_OK;
        if (i == MOST_LINKS)
            return em_fail(EM_EUSAGE, "%s: found more than %d symbolic links, expected a file",
                           path, MOST_LINKS);
        link[length] = '\0';
        status =
            em_format_text(&next, "%.*s%s",
                           link[0] == '/' ? 0 : (int)em_file_folder_length(*target), *target, link);
        em_release(target);
        *target = next;
    }
    return status;
}
