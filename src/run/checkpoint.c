#include "run/checkpoint.h"

#include "base/fault.h"
#include "base/file.h"
#include "base/memory.h"
#include "io/archive.h"
#include "io/reader.h"
#include "par/world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

em_status em_beside(const em_config *config, const char *suffix, char **path)
{
    return em_format_text(path, "%s%s", config->output.file, suffix);
}

/* ---------------------------------------------------------------- files, by rank 0 */

static em_status move(const char *from, const char *to)
{
    const em_status status = em_fault_file("file-rename", from);

    if (status || rename(from, to) == 0)
        return status;
    return em_fail(EM_EIO, "%s: cannot be renamed to %s: %s", from, to, strerror(errno));
}

static em_status take_away(const char *path)
{
    const em_status status = em_fault_file("file-remove", path);

    if (status || unlink(path) == 0 || errno == ENOENT)
        return status;
    return em_fail(EM_EIO, "%s: cannot be removed: %s", path, strerror(errno));
}

/* So that a rename is not lost with the power. */
static void sync_folder(const char *path)
{
    char folder[4096];
    const char *slash = strrchr(path, '/');

    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1,
             slash ? path : ".");
    const int descriptor = open(folder, O_RDONLY | O_DIRECTORY);
    if (descriptor >= 0) {
        fsync(descriptor);
        close(descriptor);
    }
}

/* By way of a name of its own, so that `to` is whole or not there. */
static em_status copy_file(const char *path, const char *to)
{
    char *part = NULL;
    em_status status = em_fault_file("file-copy", path);

    if (!status)
        status = em_format_text(&part, "%s.part", to);
    if (!status)
        status = em_file_copy(path, part);
    if (!status)
        status = move(part, to);
    if (status && part)
        unlink(part);
    em_release(&part);
    return status;
}

em_status em_draws_set_aside(const em_config *config)
{
    char *aside = NULL;
    em_status status = em_beside(config, ".draws", &aside);

    if (!status && em_world_rank() == 0 && access(aside, F_OK) != 0)
        status = move(config->output.file, aside);
    em_release(&aside);
    return em_agree(status);
}

em_status em_draws_copy(const em_config *config)
{
    char *aside = NULL;
    em_status status = em_beside(config, ".draws", &aside);

    if (!status && em_world_rank() == 0)
        status = copy_file(config->output.file, aside);
    em_release(&aside);
    return em_agree(status);
}

static em_status remove_beside(const em_config *config, const char *suffix)
{
    char *path = NULL;
    em_status status = em_beside(config, suffix, &path);

    if (!status && em_world_rank() == 0)
        status = take_away(path);
    em_release(&path);
    return em_agree(status);
}

em_status em_draws_forget(const em_config *config)
{
    return remove_beside(config, ".draws");
}

em_status em_checkpoint_forget(const em_config *config)
{
    static const char *const suffixes[] = {".checkpoint", ".checkpoint.previous", ".checkpoint.new",
                                           ".draws", ".draws.part"};
    em_status status = EM_OK;

    for (size_t i = 0; !status && i < sizeof suffixes / sizeof *suffixes; i++)
        status = remove_beside(config, suffixes[i]);
    return status;
}

/* ---------------------------------------------------------------- configs that may differ */

/* What may change between a run and its continuation. */
static bool may_differ(const char *section, const char *key)
{
    return strcmp(section, "stop") == 0 || strcmp(section, "output") == 0 ||
           (strcmp(section, "run") == 0 && strcmp(key, "draws") == 0);
}

/* Walks two canonical configs line by line, "section:" and "  key: value", which differ in values
 * only, and collects the keys that may not. Sections of other length have other keys: they differ.
 */
static void compare(const char *old, const char *new, char *keys, size_t bytes)
{
    char section[64] = "";

    keys[0] = '\0';
    while (*old && *new) {
        const size_t old_length = strcspn(old, "\n"), new_length = strcspn(new, "\n");
        const size_t name = strcspn(new, ":");
        char key[64];
        if (*new != ' ')
            snprintf(section, sizeof section, "%.*s", (int)name, new);
        snprintf(key, sizeof key, "%.*s", (int)name, new);
        const char *start = key + strspn(key, " ");
        if ((old_length != new_length || memcmp(old, new, new_length) != 0) &&
            !may_differ(section, start)) {
            const size_t used = strlen(keys);
            snprintf(keys + used, bytes - used, "%s%s.%s", used ? ", " : "", section, start);
        }
        old += old_length + (old[old_length] == '\n');
        new += new_length + (new[new_length] == '\n');
    }
}

/* Texts that identify what a checkpoint is of. */
static em_status check_origin(const em_config *config, em_archive *archive, const char *hash)
{
    char *old = NULL, *old_hash = NULL, keys[512];
    em_status status = em_archive_get_text(archive, "config", &old);

    if (!status)
        status = em_archive_get_text(archive, "data_hash", &old_hash);
    if (!status) {
        compare(old, config->stored, keys, sizeof keys);
        if (keys[0])
            status = em_fail(EM_ECONFIG,
                             "%s.checkpoint is of another config: %s differ; go on with the old "
                             "values, or start anew with --overwrite",
                             config->output.file, keys);
        else if (strcmp(old_hash, hash) != 0)
            status = em_fail(EM_ECONFIG,
                             "%s.checkpoint is of other data: their hash was %s, expected %s",
                             config->output.file, old_hash, hash);
    }
    em_release(&old);
    em_release(&old_hash);
    return status;
}

static void format_hash(uint64_t hash, char text[32])
{
    snprintf(text, 32, "%016llx", (unsigned long long)hash);
}

/* ---------------------------------------------------------------- save and restore */

static em_status write_archive(const em_config *config, const em_grid *grid, const char *path,
                               uint64_t data_hash, em_visit *visit, void *state)
{
    em_archive *archive = NULL;
    char hash[32];
    em_status closed, status = em_archive_create(grid, path, &archive);

    format_hash(data_hash, hash);
    if (!status)
        status = em_archive_put_text(archive, "config", config->stored);
    if (!status)
        status = em_archive_put_text(archive, "data_hash", hash);
    if (!status)
        status = visit(state, em_archive_visitor(archive));
    closed = em_archive_close(&archive, !status);
    return status ? status : closed;
}

em_status em_checkpoint_save(const em_config *config, const em_grid *grid, uint64_t data_hash,
                             em_visit *visit, void *state)
{
    char *path = NULL, *fresh = NULL, *previous = NULL;
    em_status status = em_beside(config, ".checkpoint", &path);

    if (!status)
        status = em_beside(config, ".checkpoint.new", &fresh);
    if (!status)
        status = em_beside(config, ".checkpoint.previous", &previous);
    status = em_agree(status);
    if (!status)
        status = write_archive(config, grid, fresh, data_hash, visit, state);
    if (!status && em_world_rank() == 0) {
        rename(path, previous); /* there may be none yet */
        status = move(fresh, path);
        sync_folder(path);
    }
    status = em_agree(status);
    em_release(&path);
    em_release(&fresh);
    em_release(&previous);
    return status;
}

static em_status read_archive(const em_config *config, const em_grid *grid, const char *suffix,
                              uint64_t data_hash, em_visit *visit, void *state)
{
    em_archive *archive = NULL;
    char *path = NULL, hash[32];
    em_status status = em_agree(em_beside(config, suffix, &path));

    format_hash(data_hash, hash);
    if (!status)
        status = em_archive_open(grid, path, &archive);
    if (!status)
        status = check_origin(config, archive, hash);
    if (!status)
        status = visit(state, em_archive_visitor(archive));
    em_archive_close(&archive, false);
    em_release(&path);
    return status;
}

em_status em_checkpoint_restore(const em_config *config, const em_grid *grid, uint64_t data_hash,
                                em_visit *visit, void *state, bool *found)
{
    static const char *const suffixes[] = {".checkpoint", ".checkpoint.previous"};
    char reason[1024] = "";

    *found = false;
    for (int i = 0; i < 2; i++) {
        const em_status status = read_archive(config, grid, suffixes[i], data_hash, visit, state);
        *found = status == EM_OK;
        if (status != EM_EDATA) /* what cannot be read now may be the next time */
            return status;
        if (i == 0)
            snprintf(reason, sizeof reason, "%s", em_error_text());
    }
    em_fail(EM_EDATA, "%s", reason);
    return EM_OK;
}

/* ---------------------------------------------------------------- what stands there */

/* A complete file must be of this config; it may have fewer draws, which a longer run goes on from.
 * Rank 0. */
static em_status look_at_complete(const em_config *config, em_reader *reader, em_standing *standing)
{
    int64_t planned = 0;
    char *old = NULL, keys[512] = "";

    if (!em_reader_text(reader, "config", &old) ||
        !em_reader_int(reader, "planned_draws", &planned))
        return em_fail(EM_ECONFIG,
                       "%s is complete but not a file of emass: give --overwrite or "
                       "another --output",
                       config->output.file);
    compare(old, config->stored, keys, sizeof keys);
    em_release(&old);
    if (keys[0])
        return em_fail(
            EM_ECONFIG,
            "%s is complete and of another config: %s differ; give --overwrite or another "
            "--output",
            config->output.file, keys);
    *standing = planned >= config->run.draws ? EM_STANDS_FINISHED : EM_STANDS_PARTIAL;
    return EM_OK;
}

/* Rank 0. What is damaged, or not complete, is partial. */
static em_status look_at_output(const em_config *config, em_standing *standing)
{
    em_reader *reader = NULL;
    int64_t complete = 0;
    em_status status = em_reader_open(config->output.file, "posterior", &reader);

    *standing = EM_STANDS_PARTIAL;
    if (!status && em_reader_int(reader, "complete", &complete) && complete)
        status = look_at_complete(config, reader, standing);
    em_reader_close(&reader);
    return status == EM_EDATA ? EM_OK : status;
}

em_status em_checkpoint_look(const em_config *config, em_standing *standing)
{
    char *aside = NULL;
    em_status status = em_beside(config, ".draws", &aside);

    *standing = EM_STANDS_NOTHING;
    if (!status && em_world_rank() == 0) {
        if (access(config->output.file, F_OK) == 0)
            status = look_at_output(config, standing);
        else if (access(aside, F_OK) == 0)
            *standing = EM_STANDS_PARTIAL;
    }
    em_release(&aside);
    status = em_agree(status);
    em_broadcast(standing, sizeof *standing);
    return status;
}
