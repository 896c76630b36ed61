#include "base/fault.h"
#include "base/memory.h"
#include "data/readers.h"
#include "data/same_file.h"
#include "io/numbers.h"
#include "par/message.h"
#include "par/world.h"

#include <string.h>

static em_status injected(const char *path)
{
    return em_fault("data")
               ? em_fail(EM_EDATA, "%s:1: found a fault injected by EMASS_FAULT, expected data",
                         path)
               : EM_OK;
}

/* Collective: who looks at the file is rank 0. */
static bool is_hdf5(const char *path)
{
    bool is = em_world_rank() == 0 && em_numbers_is_hdf5(path);

    em_broadcast(&is, sizeof is);
    return is;
}

static em_status fill(const em_table_options *options, const char *colon, em_table *table)
{
    uint64_t hash = 0;
    em_status status = colon || is_hdf5(options->data)
                           ? em_read_hdf5(options->data, colon, table, &hash)
                           : em_read_text(options, table);

    if (!status)
        status = em_table_finish(table);
    if (!status && hash != 0 && hash != table->hash)
        status = em_fail(EM_EDATA,
                         "%s: found numbers of hash %016llx, expected those of %016llx that were "
                         "written: the file is damaged or was changed",
                         options->data, (unsigned long long)table->hash, (unsigned long long)hash);
    return status;
}

em_status em_table_read(const em_table_options *options, em_table **out)
{
    const char *path = options->data, *colon = strstr(path, ":/");
    em_status status;

    *out = NULL;
    status = em_agree(injected(path));
    if (!status)
        status = em_same_file(path, colon ? colon - path : (int64_t)strlen(path));
    if (!status)
        status = em_agree_first(em_table_create(path, out), 0);
    if (!status)
        status = fill(options, colon, *out);
    if (status)
        em_table_destroy(out);
    return status;
}
