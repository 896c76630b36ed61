#include "run/output/stored_config.h"

#include "base/file.h"
#include "base/memory.h"
#include "run/config/config_folder.h"
#include "run/output/output.h"

#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- the config */

/* Parses the config as if it were a file in that folder. */
static em_status parse_in(const char *folder, const char *path, const char *text, int n_override,
                          const char *const *override, em_config **out)
{
    EM_SCOPED char *place = NULL;
    em_status status =
        em_format_text(&place, "%s/config of %s", folder, path + em_file_folder_length(path));

    *out = NULL;
    return status ? status : em_config_parse(place, text, n_override, override, out);
}

enum { N_CANDIDATE = 3 };

/* Lists the folders from which the relative paths of the config may start, the most likely one
 * first; NULL: none. */
static em_status list_folders(em_reader *reader, const char *path, char *folder[N_CANDIDATE])
{
    const size_t slash = em_file_folder_length(path), length = slash > 1 ? slash - 1 : slash;
    EM_SCOPED char *name = NULL;
    em_status status = EM_OK;

    if (em_reader_text(reader, EM_HOME_ATTRIBUTE, &name))
        status = em_home_of(path, name, &folder[0]);
    if (!status)
        status = em_format_text(&folder[1], "%.*s", length ? (int)length : 1, length ? path : ".");
    return status ? status : em_copy_text(".", &folder[2]);
}

/* Parses the config in the first folder where its paths exist; if there is none, in the first
 * folder, so that messages say what is missing. */
static em_status parse_compatible(em_reader *reader, const char *path, const char *text,
                                  int n_override, const char *const *override, em_config **out)
{
    char *folder[N_CANDIDATE] = {NULL};
    const char *chosen = NULL;
    em_status status = list_folders(reader, path, folder);

    for (int i = 0; !status && !chosen && i < N_CANDIDATE; i++)
        if (folder[i] && parse_in(folder[i], path, text, n_override, override, out) == EM_OK) {
            chosen = em_home_has_all_paths(*out) ? folder[i] : NULL;
            em_config_destroy(out);
        }
    if (!status)
        status = parse_in(chosen      ? chosen
                          : folder[0] ? folder[0]
                                      : folder[1],
                          path, text, n_override, override, out);
    for (int i = 0; i < N_CANDIDATE; i++)
        em_release(&folder[i]);
    return status;
}

em_status em_stored_config(const char *path, const char *folder, int n_override,
                           const char *const *override, em_config **out)
{
    EM_SCOPED_BY(em_reader_close) em_reader *reader = NULL;
    EM_SCOPED char *text = NULL;
    em_status status = em_reader_open(path, NULL, &reader);

    *out = NULL;
    if (!status && !em_reader_text(reader, "config", &text))
        status = em_fail(EM_EDATA, "%s: found no config, expected an output of emass", path);
    if (!status && folder)
        status = parse_in(folder, path, text, n_override, override, out);
    else if (!status)
        status = parse_compatible(reader, path, text, n_override, override, out);
    return status;
}

/* ---------------------------------------------------------------- thinning */

/* Iterations per draw of a file. */
typedef struct thinning {
    bool known, by_config; /* by_config: as run.thin says, in a file without the attribute */
    char number[24];
} thinning;

/* Reads run.thin from the config in the file, unless the run has thinned its draws itself. */
static void read_thinning(em_reader *file, thinning *out)
{
    const em_yaml_entry *entry = NULL;
    EM_SCOPED_BY(em_yaml_destroy) em_yaml *yaml = NULL;
    EM_SCOPED char *config = NULL;
    int64_t of_run;

    *out = (thinning){.by_config = !em_reader_int(file, EM_OUTPUT_THINNING, &of_run)};
    if (!out->by_config)
        snprintf(out->number, sizeof out->number, "%lld", (long long)of_run);
    else if (em_reader_text(file, "config", &config) &&
             em_yaml_parse("config", config, em_config_may_be_data, NULL, &yaml) == EM_OK)
        entry = em_yaml_find(yaml, "run.thin");
    if (entry && entry->value.kind == EM_VALUE_SCALAR)
        snprintf(out->number, sizeof out->number, "%s", entry->value.text.value[0]);
    out->known = out->number[0] != '\0';
}

em_status em_thinned_unlike(em_reader *files, char **out)
{
    thinning first = {.known = false}, other;
    em_status status = EM_OK;

    *out = NULL;
    if (em_reader_next(files))
        read_thinning(files, &first);
    for (em_reader *file = em_reader_next(files); first.known && !status && !*out && file;
         file = em_reader_next(file)) {
        read_thinning(file, &other);
        if (other.known && strcmp(first.number, other.number) != 0)
            status = em_format_text(
                out, "%s is %s in %s and %s in %s",
                first.by_config && other.by_config ? "run.thin" : "the thinning of draws",
                first.number, em_reader_path(files), other.number, em_reader_path(file));
    }
    return status;
}

/* ---------------------------------------------------------------- arrays and labels */

struct em_stored {
    em_owner memory; /* of what was read for the model */
    const char *path;
    em_fitted fitted;
};

static em_status has(const em_stored *stored, const char *group, const char *name, bool *there)
{
    EM_SCOPED_BY(em_reader_close) em_reader *reader = NULL;
    em_status status = em_reader_open(stored->path, NULL, &reader);

    *there = !status && em_reader_has(reader, group, name);
    return status;
}

static em_status numbers(void *context, const char *name, int64_t *count, const double **value)
{
    em_stored *stored = context;
    double *read = NULL;
    bool there;
    em_status status = has(stored, "constant_data", name, &there);

    *count = 0;
    if (!status && there)
        status = em_own(&stored->memory,
                        em_read_array(stored->path, "constant_data", name, count, &read), &read);
    *value = read;
    return status;
}

static em_status labels(void *context, const char *axis, int64_t *count, const char *const **label)
{
    static const char *const group[] = {"posterior", "constant_data"};
    em_stored *stored = context;
    char **read = NULL;
    char place[256] = "";
    bool there = false;
    em_status status = EM_OK;

    *count = 0;
    for (int i = 0; !status && !there && i < 2; i++) {
        status = has(stored, group[i], axis, &there);
        snprintf(place, sizeof place, "%s/%s", group[i], axis);
    }
    if (!status && there)
        status = em_own(&stored->memory, em_read_labels(stored->path, place, count, &read), &read);
    for (int64_t i = 0; !status && i < *count; i++)
        status = em_own(&stored->memory, EM_OK, &read[i]);
    *label = (const char *const *)read;
    return status;
}

em_status em_stored_create(const char *path, em_stored **out)
{
    em_status status = em_allocate(1, sizeof **out, out);

    if (!status) {
        (*out)->path = path;
        (*out)->fitted = (em_fitted){*out, numbers, labels};
    }
    return status;
}

const em_fitted *em_stored_fitted(const em_stored *stored)
{
    return &stored->fitted;
}
