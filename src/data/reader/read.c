#include "base/fault.h"
#include "base/memory.h"
#include "data/reader/readers.h"
#include "data/reader/same_file.h"
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

/* Applies the choice of columns to a table from a file that is not text. Collective. */
static em_status choose(const em_table_options *options, em_table **table)
{
    EM_SCOPED_BY(em_release_owner) em_choice *choice = NULL;

    if ((*table)->column && (options->formula || options->factors.count > 0 || options->levels))
        return em_fail(EM_ECONFIG, "model.%s: found sparse data, %s, expected a table of columns",
                       options->formula  ? "formula"
                       : options->levels ? "levels"
                                         : "factors",
                       (*table)->path);
    if (!em_choice_is_asked(options) || ((*table)->column && em_choice_count(options) > 0))
        return EM_OK;
    em_status status = em_agree_first(em_choice_make(options, *table, &choice), 0);
    if (!status && choice)
        status = em_choice_apply(choice, table);
    return status;
}

static em_status fill(const em_table_options *options, const char *colon, em_table *table,
                      bool *is_whole)
{
    uint64_t hash = 0;

    *is_whole = colon || em_same_is_hdf5(options->data);
    em_status status = *is_whole ? em_read_hdf5(options->data, colon, em_choice_is_asked(options),
                                                options->dense_names, table, &hash)
                                 : em_read_text(options, table);
    *is_whole |= table->column != NULL;
    if (table->column && !table->name)
        hash = 0; /* of a corpus, whose words have no names */
    status = status ? status : em_table_finish(table);
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
    bool is_whole = false;

    *out = NULL;
    em_status status = em_agree(injected(path));
    status = status ? status : em_same_file(path, colon ? colon - path : (int64_t)strlen(path));
    status = status ? status : em_agree_first(em_table_create(path, out), 0);
    status = status ? status : fill(options, colon, *out, &is_whole);
    if (!status && is_whole)
        status = choose(options, out);
    if (status)
        em_table_destroy(out);
    else {
        if ((*out)->n_dropped > 0)
            em_say("warning: %s: %lld of %lld rows have a missing value and are left out",
                   (*out)->path, (long long)(*out)->n_dropped,
                   (long long)((*out)->n_dropped + (*out)->total));
    }
    return status;
}
