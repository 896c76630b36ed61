#include "run/transaction/atomic_file.h"

#include "base/file.h"
#include "base/memory.h"
#include "io/checkpoint/output_lock.h"
#include "io/hdf5/hdf5.h"
#include "io/hdf5/numbers.h"
#include "par/message.h"
#include "par/world.h"
#include "run/transaction/transaction_parts.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OUTPUT, PART, CHECKPOINT, LOCK, N_PATH };

struct em_atomic_file {
    char *path[N_PATH];
    em_lock *lock; /* of rank 0 */
    bool holds;    /* rank 0: the file at path[PART] is its own */
};

/* Checks whether the file at the output may be replaced. Rank 0. */
static em_status check(const em_atomic_file *file, bool overwrite, int64_t n_input,
                       const char *const *input)
{
    const char *output = file->path[OUTPUT];
    struct stat there;
    bool same = false;
    em_status status = EM_OK;

    if (*output == '\0')
        return em_fail(EM_EUSAGE, "found an empty name of the output, expected a file");
    if (lstat(output, &there) != 0)
        return errno == ENOENT
                   ? EM_OK
                   : em_fail(EM_EUSAGE, "%s: cannot be written: %s", output, strerror(errno));
    if (!S_ISREG(there.st_mode))
        return em_fail(EM_EUSAGE, "%s: found %s, expected no file or an output of emass", output,
                       em_file_kind(there.st_mode));
    for (int64_t i = 0; !status && !same && i < n_input; i++)
        status = em_files_are_same(output, input[i], &same);
    if (!status && same)
        status = em_fail(EM_EUSAGE, "%s is being read and cannot be replaced", output);
    if (!status && !overwrite)
        status = em_fail(EM_EUSAGE, "%s exists: give --overwrite to replace it", output);
    if (!status && em_file_exists(file->path[CHECKPOINT]))
        status = em_fail(EM_EUSAGE,
                         "%s belongs to a run that can be resumed from %s: it is not replaced",
                         output, file->path[CHECKPOINT]);
    if (!status && there.st_size > 0 && !em_numbers_is_ours(output))
        status = em_fail(EM_EUSAGE, "%s is not an output of emass: it is not replaced", output);
    return status;
}

/* Removes the partial file of a command that was killed. A file of another program is an error.
 * Rank 0. */
static em_status clear_part(const char *part)
{
    struct stat there;

    if (lstat(part, &there) != 0 && errno == ENOENT)
        return EM_OK;
    if (S_ISREG(there.st_mode) && there.st_size > 0 && !em_h5_may_be(part))
        return em_fail(
            EM_EUSAGE,
            "%s: found a file that is not an output of emass, but emass needs this name: "
            "move the file away",
            part);
    return em_file_remove(part);
}

em_status em_atomic_file_take(const char *output, bool overwrite, int64_t n_input,
                              const char *const *input, em_atomic_file **out)
{
    static const char *const suffix[N_PATH] = {"", ".part", ".checkpoint", ".lock"};
    em_status status = em_allocate(1, sizeof **out, out);

    em_atomic_file *file = *out;
    for (int i = 0; !status && i < N_PATH; i++)
        status = em_format_text(&file->path[i], "%s%s", output, suffix[i]);
    status = em_agree(status);
    if (status || em_world_rank() != 0)
        return status ? status : em_agree_first(EM_OK, 0);
    status = check(file, overwrite, n_input, input);
    status = status ? status : em_file_check_folder(output);
    status = status ? status : em_lock_take(file->path[LOCK], output, &file->lock);
    if (!status)
        status = check(file, overwrite, n_input, input); /* the last owner may have made the file */
    status = status ? status : clear_part(file->path[PART]);
    file->holds = !status;
    return em_agree_first(status, 0);
}

static em_status publish(const em_atomic_file *file)
{
    em_status status = file->lock ? em_lock_check(file->lock) : EM_OK;

    status = status ? status : em_file_rename(file->path[PART], file->path[OUTPUT]);
    if (status)
        unlink(file->path[PART]);
    return status;
}

const char *em_atomic_file_part(const em_atomic_file *file)
{
    return file->path[PART];
}

em_status em_atomic_file_publish(em_atomic_file **out, em_status status)
{
    em_atomic_file *file = *out;
    const bool leads = file && em_world_rank() == 0;

    if (!status)
        status = em_agree(leads ? publish(file) : EM_OK);
    else if (leads && file->holds)
        unlink(file->path[PART]);
    if (!file)
        return status;
    em_lock_release(&file->lock, false);
    for (int i = 0; i < N_PATH; i++)
        em_release(&file->path[i]);
    em_release(out);
    return status;
}

em_status em_atomic_file_finish(em_atomic_file **file, em_writer **writer, em_status status)
{
    if (!status)
        status = em_writer_close(writer, true);
    else
        em_writer_discard(writer);
    return em_atomic_file_publish(file, status);
}
