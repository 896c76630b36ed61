#include "base/page.h"

#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

static em_status fail_write(em_status status, const char *path)
{
    return em_fail(status, "%s: cannot be written: %s", path, strerror(errno));
}

em_status em_page_check(const char *path, const char *first_line, const char *kind)
{
    const size_t length = strlen(first_line);
    char first[128] = "";
    EM_SCOPED_BY(em_file_close) int descriptor = -1;

    if (access(path, F_OK) != 0 && errno == ENOENT)
        return EM_OK;
    const em_status status = em_file_open(path, O_RDONLY, &descriptor);
    if (status)
        return em_fail(EM_EUSAGE, "%s", em_error_text());
    const bool ours = length < sizeof first && read(descriptor, first, length) == (ssize_t)length &&
                      strcmp(first, first_line) == 0;
    return ours ? EM_OK
                : em_fail(EM_EUSAGE,
                          "%s: found a file that is not a %s of emass, expected such a file or "
                          "none: it is not replaced",
                          path, kind);
}

em_status em_page_make_folder(const char *path)
{
    struct stat found;

    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        return fail_write(EM_EUSAGE, path);
    if (stat(path, &found) == 0 && !S_ISDIR(found.st_mode))
        return em_fail(EM_EUSAGE, "%s: found %s, expected a folder", path,
                       em_file_kind(found.st_mode));
    return access(path, W_OK | X_OK) == 0 ? EM_OK : fail_write(EM_EUSAGE, path);
}

em_status em_page_open(const char *path, em_page *page)
{
    struct stat found;

    *page = (em_page){.path = NULL};
    em_status status = em_file_follow(path, &page->path);
    if (!status && lstat(page->path, &found) == 0 && !S_ISREG(found.st_mode))
        status = em_fail(EM_EUSAGE, "%s: found %s, expected a regular file or none", path,
                         em_file_kind(found.st_mode));
    if (!status) /* a unique name, so that no existing file is removed */
        status = em_format_text(&page->part, "%s.%ld.part", page->path, (long)getpid());
    if (!status) {
        int descriptor =
            open(page->part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
        page->out = descriptor < 0 ? NULL : fdopen(descriptor, "w");
    }
    return status || page->out ? status : fail_write(EM_EUSAGE, path);
}

em_status em_page_close(em_page *page, em_status status)
{
    const bool made = page->out != NULL, failed = made && ferror(page->out) != 0;

    if (made && (fclose(page->out) != 0 || failed) && !status)
        status = fail_write(EM_EIO, page->path);
    if (!status && rename(page->part, page->path) != 0)
        status = em_fail(EM_EIO, "%s: cannot be renamed to %s: %s", page->part, page->path,
                         strerror(errno));
    if (status && made)
        unlink(page->part);
    em_release_all(&page->part, &page->path);
    return status;
}
