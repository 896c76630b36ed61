#include "run/output/processor_record.h"

#include "base/memory.h"
#include "io/draws/reader.h"
#include "io/hdf5/hdf5.h"
#include "math/compute_kernels.h"
#include "par/world.h"

#include <string.h>

static const char attribute[] = "compute_kernels", between[] = "; then ";

em_status em_processor_check_ranks(bool same)
{
    const em_compute_kernels mine = em_compute_kernels_here();
    em_compute_kernels first = mine;
    char ranks[128];
    em_status status = EM_OK;

    em_broadcast(&first, sizeof first);
    const bool differs = strcmp(mine.text, first.text) != 0;
    em_world_list(differs, sizeof ranks, ranks);
    if (differs && same)
        status = em_fail(EM_EUSAGE,
                         "--same-kernels: found %s (%s), expected %s as on rank 0: the ranks run "
                         "on different processors or libraries",
                         mine.text, ranks, first.text);
    else if (ranks[0])
        em_say("warning: found other compute kernels on %s than on rank 0 (%s): the draws depend "
               "on which rank has which chain (--same-kernels makes this an error)",
               ranks, first.text);
    return em_agree(status);
}

/* The compute kernels of the last run that wrote the file. */
static const char *last_of(const char *text)
{
    for (const char *next; (next = strstr(text, between)) != NULL;)
        text = next + strlen(between);
    return text;
}

/* Rank 0. */
static em_status compare(const char *path, const char *earlier, bool same, char **text)
{
    const em_compute_kernels here = em_compute_kernels_here();
    const char *last = last_of(earlier);

    if (strcmp(last, here.text) == 0)
        return em_copy_text(earlier, text);
    if (same)
        return em_fail(EM_EUSAGE, "%s: --same-kernels: found draws made with %s, expected %s", path,
                       last, here.text);
    em_say("warning: %s was drawn with %s; this run computes with %s, which may round differently "
           "(--same-kernels makes this an error)",
           path, last, here.text);
    return em_format_text(text, "%s%s%s", earlier, between, here.text);
}

em_status em_processor_check_file(const char *path, bool same, char **text)
{
    em_status status = EM_OK;

    *text = NULL;
    if (em_world_rank() == 0) {
        EM_SCOPED_BY(em_reader_close) em_reader *reader = NULL;
        EM_SCOPED char *earlier = NULL;
        status = em_reader_open(path, NULL, &reader);
        if (!status && em_reader_text(reader, attribute, &earlier))
            status = compare(path, earlier, same, text);
        else if (!status || status == EM_EDATA) /* of an earlier version of emass, or damaged */
            status = em_copy_text(em_compute_kernels_here().text, text);
    }
    return em_share_text(status, text);
}

em_status em_processor_record(em_writer *writer, const char *text, bool reproducible)
{
    em_compute_kernels here = em_compute_kernels_here();
    char libraries[256];

    em_broadcast(&here, sizeof here);
    const em_status status = em_writer_put_text(writer, attribute, text ? text : here.text);
    if (status || reproducible)
        return status;
    em_h5_libraries(sizeof libraries, libraries);
    return em_writer_put_text(writer, "libraries", libraries);
}
