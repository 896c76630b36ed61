/* The names of a transaction's files, and operations on them. */
#include "base/fault.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "par/world.h"
#include "run/transaction/transaction_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const suffix[EM_N_FILE] = {
    [EM_FILE_OUTPUT] = "",
    [EM_FILE_DRAWS] = ".draws",
    [EM_FILE_JOURNAL] = ".undo",
    [EM_FILE_JOURNAL_PART] = ".undo.part",
    [EM_FILE_CHECKPOINT] = ".checkpoint",
    [EM_FILE_PREVIOUS] = ".checkpoint.previous",
    [EM_FILE_NEW] = ".checkpoint.new",
    [EM_FILE_LOCK] = ".lock",
};

/* ---------------------------------------------------------------- the name of the output */

/* The longest names that may be given to Open MPI. It appends to them in buffers of fixed size and
 * calls abort() when these overflow (4.1: "<path>.locktest.<rank>" into 256 bytes, and a file
 * "<name>_cid-<number>-<process>.sm"). The longest of our names is a new checkpoint's. */
enum {
    MOST_PATH_BYTES = 255 - (int)sizeof ".checkpoint.new.locktest.9999999" + 1,
    MPI_NAME_BYTES = (int)sizeof ".checkpoint.new_cid-4294967295-4194304.sm"
};

static em_status check_length(const char *path, const char *folder)
{
    const long most_name = pathconf(folder, _PC_NAME_MAX);
    const size_t length = strlen(path), name = length - em_file_folder_length(path);

    if (length > MOST_PATH_BYTES)
        return em_fail(
            EM_EUSAGE,
            "output.file: found a path of %zu bytes, expected at most %d, because MPI libraries do "
            "not support longer paths; a run started in that folder needs only the name",
            length, MOST_PATH_BYTES);
    if (most_name > 0 && name + MPI_NAME_BYTES > (size_t)most_name)
        return em_fail(EM_EUSAGE,
                       "output.file: found a name of %zu bytes, expected at most %zu, because "
                       "the checkpoint and other files beside it have longer names",
                       name, (size_t)most_name - MPI_NAME_BYTES);
    return EM_OK;
}

/* Checks the name, its folder, and the length of the longest name beside it. */
static em_status check_name(const char *path)
{
    EM_SCOPED char *folder = NULL;
    em_status status = em_file_folder(path, &folder);

    if (!status && !path[em_file_folder_length(path)])
        status = em_fail(EM_EUSAGE, "output.file: found '%s', expected the name of a file",
                         em_excerpt_of(path).text);
    status = status ? status : check_length(path, folder);
    return status ? status : em_file_check_folder(path);
}

/* ---------------------------------------------------------------- all files of the transaction */

em_status em_files_are_same(const char *path, const char *input, bool *same)
{
    const char *colon = strstr(input, ":/");
    struct stat read, written;
    EM_SCOPED char *file = NULL;
    const em_status status =
        em_format_text(&file, "%.*s", (int)(colon ? colon - input : (long)strlen(input)), input);

    *same = !status && stat(file, &read) == 0 && lstat(path, &written) == 0 &&
            written.st_ino == read.st_ino && written.st_dev == read.st_dev;
    return status;
}

static em_status check_input(em_output_transaction *t, const char *key, const char *input)
{
    bool same = false;
    em_status status = EM_OK;

    for (int i = 0; !status && i < EM_N_FILE; i++) {
        status = em_files_are_same(t->path[i], input, &same);
        if (!status && same)
            status = em_fail(EM_EUSAGE,
                             "%s is an input of this run (%s) and would be overwritten: expected "
                             "another --output",
                             t->path[i], key);
    }
    return status;
}

/* Checks that the output is none of the inputs: the config and all files that the config names. */
static em_status check_inputs(em_output_transaction *t)
{
    const em_config_section *section = t->config->section;
    em_status status = check_input(t, "its config", t->config->path);

    for (int i = 0; i < t->config->n_section; i++)
        for (const em_field *f = section[i].fields; !status && f && f->name; f++) {
            const char *const *path =
                (const char *const *)((const char *)section[i].options + f->offset);
            char key[128];
            snprintf(key, sizeof key, "%s.%s", section[i].name, f->name);
            if (f->type == EM_FIELD_PATH && *path)
                status = check_input(t, key, *path);
        }
    return status;
}

em_status em_files_name(em_output_transaction *t)
{
    const bool leads = em_world_rank() == 0;
    char **output = &t->path[EM_FILE_OUTPUT];
    struct stat existing;
    em_status status = leads ? em_file_follow(t->config->output.file, output) : EM_OK;

    if (!status && leads)
        status = check_name(*output);
    status = em_share_text(status, output);
    for (int i = EM_FILE_OUTPUT + 1; !status && i < EM_N_FILE; i++)
        status = em_format_text(&t->path[i], "%s%s", *output, suffix[i]);
    for (int i = 0; !status && leads && i < EM_N_FILE; i++)
        if (lstat(t->path[i], &existing) == 0 && !S_ISREG(existing.st_mode))
            status = em_fail(EM_EUSAGE, "%s: found %s, expected a regular file or none", t->path[i],
                             em_file_kind(existing.st_mode));
    if (!status && leads)
        status = check_inputs(t);
    return em_agree(status);
}

/* ---------------------------------------------------------------- changing files */

bool em_file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

em_status em_file_rename(const char *from, const char *to)
{
    const em_status status = em_fault_file("file-rename", from);

    if (status || rename(from, to) == 0)
        return status;
    return em_fail(EM_EIO, "%s: cannot be renamed to %s: %s", from, to, strerror(errno));
}

em_status em_file_remove(const char *path)
{
    const em_status status = em_fault_file("file-remove", path);

    if (status || unlink(path) == 0 || errno == ENOENT)
        return status;
    return em_fail(EM_EIO, "%s: cannot be removed: %s", path, strerror(errno));
}

void em_file_sync_folder(const char *path)
{
    EM_SCOPED char *folder = NULL;
    EM_SCOPED_BY(em_file_close)
    const int descriptor =
        em_file_folder(path, &folder) ? -1 : open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (descriptor >= 0)
        fsync(descriptor);
}
