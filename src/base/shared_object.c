#include "base/shared_object.h"

#include "base/file.h"
#include "base/memory.h"

#include <dlfcn.h>
#include <string.h>

/* dlopen would wait for ever at a FIFO, and look elsewhere for a name without a slash. */
em_status em_shared_object_load(const char *path, void **handle)
{
    char *named = NULL;
    em_status status = em_file_check(path);

    *handle = NULL;
    if (status)
        return status == EM_EDATA ? em_fail(EM_ECONFIG, "%s", em_error_text()) : status;
    status = em_format_text(&named, "%s%s", strchr(path, '/') ? "" : "./", path);
    if (status)
        return status;
    *handle = dlopen(named, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    em_release(&named);
    return *handle ? EM_OK : em_fail(EM_ECONFIG, "%s: cannot be loaded: %s", path, dlerror());
}

bool em_shared_object_find(void *handle, const char *name, void *to)
{
    void *symbol = dlsym(handle, name);

    memcpy(to, &symbol, sizeof symbol);
    return symbol != NULL;
}
