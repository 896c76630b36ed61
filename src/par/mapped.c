#include "par/mapped.h"

#include "base/fault.h"
#include "base/file.h"
#include "base/memory.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void *map(int descriptor, int64_t bytes, int protection)
{
    void *memory = descriptor < 0 ? MAP_FAILED
                                  : mmap(NULL, (size_t)bytes, protection, MAP_SHARED | MAP_POPULATE,
                                         descriptor, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

void *em_mapped_make(em_mapped_place *where)
{
    struct stat file;

    where->process = (int)getpid();
    where->descriptor = em_fault("data-shared") ? -1 : memfd_create("emass data", MFD_CLOEXEC);
    if (where->descriptor < 0 || posix_fallocate(where->descriptor, 0, where->bytes) != 0 ||
        fstat(where->descriptor, &file) != 0)
        return NULL;
    where->device = file.st_dev;
    where->inode = file.st_ino;
    return map(where->descriptor, where->bytes, PROT_READ | PROT_WRITE);
}

void em_mapped_close(const em_mapped_place *where)
{
    em_file_close(&where->descriptor);
}

/* Maps the file of another process. If the process has ended, a new process may have its number;
 * then the file must not be opened. */
void *em_mapped_find(const em_mapped_place *where, bool writes)
{
    char path[64];
    struct stat file;
    EM_SCOPED_BY(em_file_close) int descriptor = -1;

    snprintf(path, sizeof path, "/proc/%d/fd/%d", where->process, where->descriptor);
    if (where->descriptor >= 0 && stat(path, &file) == 0 && file.st_dev == where->device &&
        file.st_ino == where->inode)
        descriptor = open(path, (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC);
    return map(descriptor, where->bytes, writes ? PROT_READ | PROT_WRITE : PROT_READ);
}

void em_mapped_release(void *memory, int64_t bytes)
{
    if (memory)
        munmap(memory, (size_t)bytes);
}

em_mapped_header *em_mapped_header_of(const void *array)
{
    return (em_mapped_header *)((char *)array - EM_ALIGNMENT);
}

void em_mapped_free(void *pointer)
{
    void *array;

    memcpy(&array, pointer, sizeof array);
    if (!array)
        return;
    em_mapped_header *found = em_mapped_header_of(array);
    if (found->shared)
        em_mapped_release(found, found->bytes);
    else
        em_release(&found);
    array = NULL;
    memcpy(pointer, &array, sizeof array);
}
