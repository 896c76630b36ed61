#include "par/loaded.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

typedef struct names {
    int n;
    char *name[1024];
} names;

/* dl_iterate_phdr holds a lock that dlopen wants: the names first. */
static int note(struct dl_phdr_info *object, size_t size, void *data)
{
    names *all = data;
    const int room = (int)(sizeof all->name / sizeof *all->name);

    (void)size;
    if (object->dlpi_name[0] && all->n < room && (all->name[all->n] = strdup(object->dlpi_name)))
        all->n++;
    return 0;
}

void em_keep_loaded(void)
{
    names all = {0};

    dl_iterate_phdr(note, &all);
    for (int i = 0; i < all.n; i++) {
        void *object = dlopen(all.name[i], RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
        if (object)
            dlclose(object);
        free(all.name[i]);
    }
}
