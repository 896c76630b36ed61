#include "base/file.h"

#include "base/fault.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

const char *em_file_kind(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return "a regular file";
    case S_IFDIR:
        return "a folder";
    case S_IFIFO:
        return "a FIFO";
    case S_IFLNK:
        return "a symbolic link";
    case S_IFSOCK:
        return "a socket";
    default:
        return "a device";
    }
}

/* Whether the path is to blame for an errno, and not the disk or the kernel. */
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
        status = insist_on_regular(path, found.st_mode); /* what is there by now */
    if (status && *descriptor >= 0) {
        close(*descriptor);
        *descriptor = -1;
    }
    return status;
}

em_status em_file_check(const char *path)
{
    int descriptor;
    const em_status status = em_file_open(path, O_RDONLY, &descriptor);

    if (!status)
        close(descriptor);
    return status;
}

/* Read and written, piece by piece, from where both files stand. */
static bool pump(int from, int to)
{
    static char piece[1 << 16];
    ssize_t got;

    while ((got = read(from, piece, sizeof piece)) > 0)
        for (ssize_t done = 0, put; done < got; done += put)
            if ((put = write(to, piece + done, (size_t)(got - done))) < 0)
                return false;
    return got == 0;
}

/* Without room on the disk where the file system lets files share it, in the kernel where it can do
 * that, else by reading and writing: a refusal has many an errno. */
static bool copy_bytes(int from, int to)
{
    ssize_t copied = 1;

    if (!em_fault("file-clone") && ioctl(to, FICLONE, from) == 0)
        return fsync(to) == 0;
    while (copied > 0 && !em_fault("file-copy-range"))
        copied = copy_file_range(from, NULL, to, NULL, (size_t)1 << 30, 0);
    return pump(from, to) && fsync(to) == 0;
}

/* Opens the one, and makes the other anew. */
static em_status open_both(const char *path, const char *to, int *from, int *target)
{
    em_status status = em_file_open(path, O_RDONLY | O_NOFOLLOW, from);

    *target = -1;
    if (!status && unlink(to) != 0 && errno != ENOENT)
        status = em_fail(EM_EIO, "%s: cannot be removed: %s", to, strerror(errno));
    return status ? status : em_file_open(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, target);
}

static void close_both(int from, int target)
{
    if (from >= 0)
        close(from);
    if (target >= 0)
        close(target);
}

em_status em_file_copy(const char *path, const char *to)
{
    int from, target;
    em_status status = open_both(path, to, &from, &target);

    if (!status && !copy_bytes(from, target))
        status = em_fail(EM_EIO, "%s: cannot be copied to %s: %s", path, to, strerror(errno));
    close_both(from, target);
    if (status && target >= 0)
        unlink(to);
    return status;
}

bool em_file_can_share(const char *path, const char *to)
{
    int from, target;
    const em_status status = open_both(path, to, &from, &target);
    const bool can = !status && ioctl(target, FICLONE, from) == 0;

    close_both(from, target);
    if (target >= 0)
        unlink(to);
    return can;
}
