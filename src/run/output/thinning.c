#include "run/output/thinning.h"

#include "base/memory.h"
#include "base/text.h"
#include "run/config/config.h"

#include <string.h>

/* run.thin in the config of the file; NULL: the file has no config that can be read. */
static em_status read_thin(em_reader *file, char **out)
{
    const em_yaml_entry *entry = NULL;
    em_yaml *yaml = NULL;
    char *config = NULL;
    em_status status = EM_OK;

    if (em_reader_text(file, "config", &config) &&
        em_yaml_parse("config", config, em_config_may_be_data, NULL, &yaml) == EM_OK)
        entry = em_yaml_find(yaml, "run.thin");
    if (entry && entry->value.kind == EM_VALUE_SCALAR)
        status = em_copy_text(entry->value.text.value[0], out);
    em_yaml_destroy(&yaml);
    em_release(&config);
    return status;
}

em_status em_thinned_unlike(em_reader *files, char **out)
{
    char *first = NULL, *other = NULL;
    em_status status = em_reader_next(files) ? read_thin(files, &first) : EM_OK;

    *out = NULL;
    for (em_reader *file = em_reader_next(files); first && !status && !*out && file;
         file = em_reader_next(file)) {
        status = read_thin(file, &other);
        if (!status && other && strcmp(first, other) != 0)
            status = em_format_text(out, "run.thin is %s in %s and %s in %s", first,
                                    em_reader_path(files), other, em_reader_path(file));
        em_release(&other);
    }
    em_release(&first);
    return status;
}
