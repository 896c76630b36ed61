#include "run/output/creation_record.h"

#include "base/text.h"
#include "par/world.h"
#include "version.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Reads seconds since 1970. Returns false if the text is not digits alone, or too large. */
static bool read_seconds(const char *text, time_t *seconds)
{
    if (!*text || strspn(text, "0123456789") != strlen(text))
        return false;
    errno = 0;
    *seconds = (time_t)strtoll(text, NULL, 10);
    return errno == 0;
}

/* Rank 0. */
static em_status read_environment(em_created *out)
{
    const char *epoch = getenv("SOURCE_DATE_EPOCH");
    time_t seconds = time(NULL);
    struct tm utc;

    out->reproducible = epoch != NULL;
    if ((epoch && !read_seconds(epoch, &seconds)) || !gmtime_r(&seconds, &utc) ||
        !strftime(out->text, sizeof out->text, "%Y-%m-%dT%H:%M:%SZ", &utc))
        return em_fail(EM_EUSAGE,
                       "SOURCE_DATE_EPOCH: found '%s', expected seconds since 1970, in digits",
                       epoch ? em_excerpt_of(epoch).text : "");
    return EM_OK;
}

em_status em_created_read(em_created *out)
{
    em_status status = EM_OK;

    *out = (em_created){.reproducible = false};
    if (em_world_rank() == 0)
        status = read_environment(out);
    status = em_agree(status);
    if (!status)
        em_broadcast(out, sizeof *out);
    return status;
}

em_signature em_created_signature(const em_created *created)
{
    return (em_signature){{{"inference_library", "emass"},
                           {"inference_library_version", EM_VERSION},
                           {"creation_library", "emass"},
                           {"creation_library_version", EM_VERSION},
                           {"creation_library_language", "C"},
                           {"created_at", created->text}}};
}
