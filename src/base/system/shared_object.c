#include "base/system/shared_object.h"

#include "base/file.h"
#include "base/memory.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The number of bytes that the segments of an ELF file of this machine need; 0 if the file is of
 * another kind, for which dlopen has the better message. */
static off_t size_wanted(int file)
{
    ElfW(Ehdr) header;
    ElfW(Phdr) segment;
    off_t wanted = 0;

    if (pread(file, &header, sizeof header, 0) != sizeof header ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_phentsize != sizeof segment)
        return 0;
    for (int i = 0; i < header.e_phnum; i++) {
        const off_t at = (off_t)(header.e_phoff + (size_t)i * sizeof segment);
        if (pread(file, &segment, sizeof segment, at) != sizeof segment)
            return at + (off_t)sizeof segment;
        const off_t end = (off_t)(segment.p_offset + segment.p_filesz);
        if (segment.p_type == PT_LOAD && end > wanted)
            wanted = end;
    }
    return wanted;
}

/* Checks that the file is complete. dlopen maps as many bytes as the headers name, and access
 * beyond the end of a truncated file is a bus error. */
static em_status check_whole(const char *path)
{
    struct stat about;
    EM_SCOPED_BY(em_file_close) int file = -1;
    em_status status = em_file_open(path, O_RDONLY, &file);

    if (status)
        return status == EM_EDATA ? em_fail(EM_ECONFIG, "%s", em_error_text()) : status;
    const off_t wanted = size_wanted(file);
    if (fstat(file, &about) == 0 && about.st_size < wanted)
        status = em_fail(EM_ECONFIG, "%s: found %lld bytes, expected %lld: it has been cut short",
                         path, (long long)about.st_size, (long long)wanted);
    return status;
}

/* dlopen would block on a FIFO, and searches system folders for a name without a slash. */
em_status em_shared_object_load(const char *path, void **handle)
{
    EM_SCOPED char *named = NULL;
    em_status status = check_whole(path);

    *handle = NULL;
    status = status ? status : em_format_text(&named, "%s%s", strchr(path, '/') ? "" : "./", path);
    if (status)
        return status;
    *handle = dlopen(named, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    return *handle ? EM_OK : em_fail(EM_ECONFIG, "%s: cannot be loaded: %s", path, dlerror());
}

bool em_shared_object_find(void *handle, const char *name, void *to)
{
    void *symbol = dlsym(handle, name);

    memcpy(to, &symbol, sizeof symbol);
    return symbol != NULL;
}
