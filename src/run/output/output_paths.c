#include "run/output/output_paths.h"

#include "base/fault.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/checkpoint/archive.h"
#include "io/checkpoint/output_lock.h"
#include "io/checkpoint/rollback_journal.h"
#include "io/draws/reader.h"
#include "io/hdf5/hdf5.h"
#include "par/world.h"
#include "run/output/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The files beside an output, and where their names are kept. */
static const struct {
    const char *suffix;
    size_t offset;
} companions[] = {{".lock", offsetof(em_output_paths, lock_path)},
                  {".draws", offsetof(em_output_paths, draws)},
                  {".undo", offsetof(em_output_paths, journal)},
                  {".undo.part", offsetof(em_output_paths, part)},
                  {".checkpoint", offsetof(em_output_paths, checkpoint)},
                  {".checkpoint.new", offsetof(em_output_paths, fresh)},
                  {".checkpoint.previous", offsetof(em_output_paths, previous)}};

enum { N_COMPANION = sizeof companions / sizeof *companions };

static char **companion(em_output_paths *paths, int i)
{
    return (char **)((char *)paths + companions[i].offset);
}

/* ---------------------------------------------------------------- finding it, by rank 0 */

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
        return em_fail(EM_EUSAGE,
                       "output.file: found a path of %zu bytes, expected at most %d: MPI libraries "
                       "have no room for more; a run started in its folder needs no more than the "
                       "name",
                       length, MOST_PATH_BYTES);
    if (most_name > 0 && name + MPI_NAME_BYTES > (size_t)most_name)
        return em_fail(EM_EUSAGE,
                       "output.file: found a name of %zu bytes, expected at most %zu: files beside "
                       "it have longer ones",
                       name, (size_t)most_name - MPI_NAME_BYTES);
    return EM_OK;
}

/* Checks the name, its folder, and the length of the longest name beside it. */
static em_status check_name(const char *path)
{
    const size_t length = em_file_folder_length(path);
    char *folder = NULL;
    em_status status =
        em_format_text(&folder, "%.*s", length ? (int)length : 1, length ? path : ".");

    if (!status && !path[length])
        status = em_fail(EM_EUSAGE, "output.file: found '%s', expected the name of a file",
                         em_excerpt_of(path).text);
    if (!status)
        status = check_length(path, folder);
    em_release(&folder);
    return status ? status : em_file_check_folder(path);
}

static em_status check_kind(const char *path)
{
    struct stat existing;

    if (lstat(path, &existing) != 0 || S_ISREG(existing.st_mode))
        return EM_OK;
    return em_fail(EM_EUSAGE, "%s: found %s, expected a regular file or none", path,
                   em_file_kind(existing.st_mode));
}

/* Whether `key`, a path that the run reads, perhaps with a dataset in it, is one it writes. */
static em_status check_input(em_output_paths *paths, const char *key, const char *input)
{
    const char *colon = strstr(input, ":/");
    struct stat read, written;
    char *path = NULL;
    em_status status =
        em_format_text(&path, "%.*s", (int)(colon ? colon - input : (long)strlen(input)), input);

    if (!status && stat(path, &read) == 0)
        for (int i = -1; !status && i < N_COMPANION; i++) {
            const char *own = i < 0 ? paths->output : *companion(paths, i);
            if (lstat(own, &written) == 0 && written.st_ino == read.st_ino &&
                written.st_dev == read.st_dev)
                status = em_fail(EM_EUSAGE,
                                 "%s is read by this run, as %s, and would be written: expected "
                                 "another --output",
                                 own, key);
        }
    em_release(&path);
    return status;
}

static em_status check_inputs(em_output_paths *paths, const em_config *config)
{
    em_section section[EM_MOST_SECTIONS];
    const int n = em_config_sections(config, section);
    em_status status = check_input(paths, "its config", config->path);

    for (int i = 0; i < n; i++)
        for (const em_field *f = section[i].fields; !status && f && f->name; f++) {
            const char *const *path =
                (const char *const *)((const char *)section[i].options + f->offset);
            char key[128];
            snprintf(key, sizeof key, "%s.%s", section[i].name, f->name);
            if (f->type == EM_FIELD_PATH && *path)
                status = check_input(paths, key, *path);
        }
    return status;
}

static em_status name_files(em_output_paths *paths)
{
    em_status status = EM_OK;

    for (int i = 0; !status && i < N_COMPANION; i++)
        status = em_format_text(companion(paths, i), "%s%s", paths->output, companions[i].suffix);
    return status;
}

static em_status check_all(em_output_paths *paths, const em_config *config)
{
    em_status status = name_files(paths);

    if (!status)
        status = check_kind(paths->output);
    for (int i = 0; !status && i < N_COMPANION; i++)
        status = check_kind(*companion(paths, i));
    return status ? status : check_inputs(paths, config);
}

em_status em_output_paths_take(const em_config *config, em_output_paths **out)
{
    const bool leads = em_world_rank() == 0;
    em_output_paths *paths = NULL;
    em_status status = em_allocate(1, sizeof *paths, out);

    paths = *out;
    if (!status && leads)
        status = em_file_follow(config->output.file, &paths->output);
    if (!status && leads)
        status = check_name(paths->output);
    status = em_agree(status);
    if (!status)
        status = em_broadcast_text(&paths->output);
    if (!status)
        status = leads ? check_all(paths, config) : name_files(paths);
    if (!status && leads)
        status = em_lock_take(paths->lock_path, paths->output, &paths->lock);
    return em_agree(status);
}

em_status em_output_paths_check(const em_output_paths *paths)
{
    return em_agree(paths->lock ? em_lock_check(paths->lock) : EM_OK);
}

/* ---------------------------------------------------------------- what stands there, by rank 0 */

/* Whether a file that HDF5 cannot open is the output of a killed run: the lock file records its
 * inode, or there is a valid checkpoint. */
static bool is_torn_output(const em_output_paths *paths, const char *path, const struct stat *file,
                           bool opens)
{
    if (em_lock_made(paths->lock) == file->st_ino)
        return true;
    return !opens && em_h5_may_be(path) &&
           (em_archive_check(paths->checkpoint) == EM_OK ||
            em_archive_check(paths->previous) == EM_OK);
}

/* The attributes by which an output of emass is known. */
static bool read_attributes(em_reader *reader, em_existing_output *out)
{
    int64_t complete = 0, merged = 0;
    char *library = NULL;
    const bool ours =
        em_reader_text(reader, "inference_library", &library) && strcmp(library, "emass") == 0;

    em_release(&library);
    if (!ours || !em_reader_int(reader, "complete", &complete))
        return false;
    out->complete = complete != 0;
    em_reader_text(reader, "program_hash", &out->program_hash);
    em_reader_text(reader, EM_OUTPUT_LEFT_OUT, &out->left_out);
    out->has_checkpoint = em_reader_has(reader, EM_OUTPUT_CHECKPOINT, "bytes");
    out->merged = em_reader_int(reader, "merged", &merged);
    out->readable = em_reader_text(reader, "config", &out->config) &&
                    em_reader_text(reader, "data_hash", &out->data_hash) &&
                    em_reader_int(reader, "planned_draws", &out->planned_draws);
    return true;
}

em_status em_output_paths_find(const em_output_paths *paths, const char *path,
                               em_existing_output *out)
{
    em_reader *reader = NULL;
    struct stat file;
    em_status status;

    *out = (em_existing_output){.exists = false};
    if (lstat(path, &file) != 0)
        return errno == ENOENT ? EM_OK : em_fail(EM_EIO, "%s: %s", path, strerror(errno));
    out->exists = true;
    if (file.st_size == 0)
        return EM_OK;
    status = em_reader_open(path, NULL, &reader);
    const bool opens = status == EM_OK, ours = opens && read_attributes(reader, out);
    em_reader_close(&reader);
    if (ours || (status && status != EM_EDATA) || is_torn_output(paths, path, &file, opens))
        return status == EM_EDATA ? EM_OK : status;
    return em_fail(EM_EUSAGE,
                   "%s: found a file that is no output of emass, expected one or none: neither "
                   "--overwrite nor --resume touches it",
                   path);
}

void em_existing_output_release(em_existing_output *existing)
{
    em_release(&existing->config);
    em_release(&existing->data_hash);
    em_release(&existing->program_hash);
    em_release(&existing->left_out);
}

/* Whether the output is this run's but cannot be opened: the lock file must keep its inode then, so
 * that the next run recognises it. */
static bool must_be_remembered(const em_output_paths *paths)
{
    struct stat file;
    em_existing_output existing;
    bool readable;

    if (lstat(paths->output, &file) != 0 || file.st_ino != em_lock_made(paths->lock))
        return false;
    readable = em_output_paths_find(paths, paths->output, &existing) == EM_OK && existing.readable;
    em_existing_output_release(&existing);
    return !readable;
}

void em_output_paths_release(em_output_paths **out)
{
    em_output_paths *paths = *out;
    char message[2048];

    if (!paths)
        return;
    snprintf(message, sizeof message, "%s", em_error_text());
    if (paths->lock)
        em_lock_release(&paths->lock, must_be_remembered(paths));
    em_fail(EM_OK, "%s", message);
    for (int i = 0; i < N_COMPANION; i++)
        em_release(companion(paths, i));
    em_release(&paths->output);
    em_release(out);
}

/* ---------------------------------------------------------------- changing it, by rank 0 */

static em_status move(const char *from, const char *to)
{
    const em_status status = em_fault_file("file-rename", from);

    if (status || rename(from, to) == 0)
        return status;
    return em_fail(EM_EIO, "%s: cannot be renamed to %s: %s", from, to, strerror(errno));
}

static em_status remove_file(const char *path)
{
    const em_status status = em_fault_file("file-remove", path);

    if (status || unlink(path) == 0 || errno == ENOENT)
        return status;
    return em_fail(EM_EIO, "%s: cannot be removed: %s", path, strerror(errno));
}

/* So that a rename is not lost with the power. */
static void sync_folder(const char *path)
{
    char folder[PATH_MAX];
    const size_t length = em_file_folder_length(path);

    snprintf(folder, sizeof folder, "%.*s", length ? (int)length : 1, length ? path : ".");
    const int descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor >= 0) {
        fsync(descriptor);
        close(descriptor);
    }
}

/* Draws are removed before checkpoints. A kill in between leaves a checkpoint without draws, which
 * no run uses. */
em_status em_output_paths_clear(const em_output_paths *paths)
{
    const char *const files[] = {paths->output,     paths->draws,    paths->journal, paths->part,
                                 paths->checkpoint, paths->previous, paths->fresh};
    em_status status = EM_OK;

    for (size_t i = 0; !status && em_world_rank() == 0 && i < sizeof files / sizeof *files; i++)
        status = remove_file(files[i]);
    return em_agree(status);
}

em_status em_output_paths_remove(const em_config *config)
{
    char message[2048];
    em_output_paths *paths = NULL;
    em_status status;

    snprintf(message, sizeof message, "%s", em_error_text());
    status = em_output_paths_take(config, &paths);
    if (!status)
        status = em_output_paths_clear(paths);
    em_output_paths_release(&paths);
    if (!status)
        em_fail(EM_OK, "%s", message);
    return status;
}

static em_status make(const em_output_paths *paths)
{
    struct stat file;
    int descriptor;
    em_status status = remove_file(paths->output);

    if (!status)
        status = em_fault_file("file-create", paths->output);
    if (status)
        return status;
    descriptor = open(paths->output, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (descriptor < 0 || fstat(descriptor, &file) != 0)
        status =
            em_fail(EM_EIO, "%s: cannot create the output: %s", paths->output, strerror(errno));
    if (descriptor >= 0)
        close(descriptor);
    return status ? status : em_lock_set_made(paths->lock, file.st_ino);
}

em_status em_output_paths_make(const em_output_paths *paths)
{
    return em_agree(em_world_rank() == 0 ? make(paths) : EM_OK);
}

void em_output_paths_unmake(const em_output_paths *paths)
{
    if (em_world_rank() == 0)
        unlink(paths->output);
}

em_status em_output_paths_set_aside(const em_output_paths *paths)
{
    em_status status = EM_OK;

    if (em_world_rank() == 0 && access(paths->draws, F_OK) != 0)
        status = move(paths->output, paths->draws);
    return em_agree(status);
}

em_status em_output_paths_put_back(const em_output_paths *paths)
{
    return em_agree(em_world_rank() == 0 ? move(paths->draws, paths->output) : EM_OK);
}

/* What an output is of; NULL where it cannot be read. */
static em_status identify(const em_output_paths *paths, char **identity)
{
    em_existing_output existing;
    em_status status = em_output_paths_find(paths, paths->output, &existing);

    *identity = NULL;
    if (!status && existing.readable)
        status = em_format_text(identity, "%s%s", existing.config, existing.data_hash);
    em_existing_output_release(&existing);
    return status;
}

/* The journal is written under another name and renamed, so that it is complete or absent. */
static em_status prepare_finish(const em_output_paths *paths)
{
    char *identity = NULL;
    em_status status = em_fault_file("file-undo", paths->output);

    if (!status)
        status = identify(paths, &identity);
    if (!status && !identity)
        status = em_fail(EM_EIO, "%s: cannot be read again", paths->output);
    if (!status)
        status = em_rollback_journal_keep(paths->output, identity, paths->part);
    if (!status)
        status = move(paths->part, paths->journal);
    if (status)
        unlink(paths->part);
    else
        sync_folder(paths->journal);
    em_release(&identity);
    return status;
}

em_status em_output_paths_prepare_finish(const em_output_paths *paths)
{
    return em_agree(em_world_rank() == 0 ? prepare_finish(paths) : EM_OK);
}

/* A journal of another file is ignored. So is an incomplete one: the output is still unchanged
 * while the journal is written. */
static em_status roll_back_finish(const em_output_paths *paths)
{
    char *identity = NULL;
    em_status status = identify(paths, &identity);

    if (!status)
        status = em_rollback_journal_apply(paths->journal, identity, paths->output);
    em_release(&identity);
    if (status)
        return status == EM_EDATA ? EM_OK : status;
    status = remove_file(paths->journal);
    sync_folder(paths->journal);
    return status;
}

em_status em_output_paths_roll_back_finish(const em_output_paths *paths)
{
    struct stat file;
    const bool begun = em_world_rank() == 0 && access(paths->journal, F_OK) == 0 &&
                       stat(paths->output, &file) == 0 && file.st_size > 0;

    return em_agree(begun ? roll_back_finish(paths) : EM_OK);
}

em_status em_output_paths_forget_journal(const em_output_paths *paths)
{
    return em_agree(em_world_rank() == 0 ? remove_file(paths->journal) : EM_OK);
}

em_status em_output_paths_forget_draws(const em_output_paths *paths)
{
    return em_agree(em_world_rank() == 0 ? remove_file(paths->draws) : EM_OK);
}

em_status em_output_paths_forget_fresh(const em_output_paths *paths)
{
    return em_agree(em_world_rank() == 0 ? remove_file(paths->fresh) : EM_OK);
}

em_status em_output_paths_forget_checkpoints(const em_output_paths *paths)
{
    em_status status = EM_OK;

    if (em_world_rank() == 0) {
        status = remove_file(paths->previous);
        if (!status)
            status = remove_file(paths->checkpoint);
    }
    return em_agree(status);
}

em_status em_output_paths_turn_checkpoint(const em_output_paths *paths)
{
    em_status status = EM_OK;

    if (em_world_rank() == 0) {
        rename(paths->checkpoint, paths->previous); /* there may be none yet */
        status = move(paths->fresh, paths->checkpoint);
        sync_folder(paths->checkpoint);
    }
    return em_agree(status);
}
