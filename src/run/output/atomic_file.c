#include "run/output/atomic_file.h"

#include "base/file.h"
#include "base/memory.h"
#include "io/checkpoint/output_lock.h"
#include "io/hdf5/hdf5.h"
#include "io/hdf5/numbers.h"
#include "par/message.h"
#include "par/world.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct em_atomic_file {
    char *output, *part, *checkpoint, *lock_path;
    em_lock *lock; /* of rank 0 */
    bool holds;    /* rank 0: what stands at `part` is its own */
};

/* ---------------------------------------------------------------- what stands there, by rank 0 */

static em_status check_inputs(const char *output, const struct stat *there, int64_t n_input,
                              const char *const *input)
{
    em_status status = EM_OK;

    for (int64_t i = 0; !status && i < n_input; i++) {
        const char *colon = strstr(input[i], ":/"); /* of a dataset in it */
        struct stat one;
        char *path = NULL;
        status = em_format_text(&path, "%.*s",
                                (int)(colon ? colon - input[i] : (long)strlen(input[i])), input[i]);
        if (!status && stat(path, &one) == 0 && one.st_ino == there->st_ino &&
            one.st_dev == there->st_dev)
            status = em_fail(EM_EUSAGE, "%s is read and cannot be replaced meanwhile", output);
        em_release(&path);
    }
    return status;
}

static em_status look(const em_atomic_file *whole, bool overwrite, int64_t n_input,
                      const char *const *input)
{
    const char *output = whole->output;
    struct stat there;
    em_status status;

    if (lstat(output, &there) != 0)
        return errno == ENOENT
                   ? EM_OK
                   : em_fail(EM_EUSAGE, "%s: cannot be written: %s", output, strerror(errno));
    if (!S_ISREG(there.st_mode))
        return em_fail(EM_EUSAGE, "%s: found %s, expected no file or an output of emass", output,
                       em_file_kind(there.st_mode));
    status = check_inputs(output, &there, n_input, input);
    if (!status && !overwrite)
        status = em_fail(EM_EUSAGE, "%s exists: give --overwrite to replace it", output);
    if (!status && access(whole->checkpoint, F_OK) == 0)
        status = em_fail(EM_EUSAGE, "%s is of a run that may go on, from %s: it is not replaced",
                         output, whole->checkpoint);
    if (!status && there.st_size > 0 && !em_numbers_is_ours(output))
        status = em_fail(EM_EUSAGE, "%s is no output of emass: it is not replaced", output);
    return status;
}

/* What a command left that was killed; nobody else's. */
static em_status clear_part(const char *part)
{
    struct stat there;

    if (lstat(part, &there) != 0 && errno == ENOENT)
        return EM_OK;
    if (S_ISREG(there.st_mode) && there.st_size > 0 && !em_h5_may_be(part))
        return em_fail(EM_EUSAGE,
                       "%s: found a file that is no output of emass, which writes its own there: "
                       "move it away",
                       part);
    return unlink(part) == 0 ? EM_OK
                             : em_fail(EM_EIO, "%s: cannot be removed: %s", part, strerror(errno));
}

static em_status name_files(em_atomic_file *whole, const char *output)
{
    em_status status = em_copy_text(output, &whole->output);

    if (!status)
        status = em_format_text(&whole->part, "%s.part", output);
    if (!status)
        status = em_format_text(&whole->checkpoint, "%s.checkpoint", output);
    return status ? status : em_format_text(&whole->lock_path, "%s.lock", output);
}

/* ---------------------------------------------------------------- all of it */

em_status em_atomic_file_take(const char *output, bool overwrite, int64_t n_input,
                              const char *const *input, em_atomic_file **out)
{
    em_atomic_file *whole;
    em_status status = em_allocate(1, sizeof **out, out);

    whole = *out;
    if (!status)
        status = name_files(whole, output);
    status = em_agree(status);
    if (status || em_world_rank() != 0)
        return status ? status : em_agree_first(EM_OK, 0);
    status = look(whole, overwrite, n_input, input);
    if (!status)
        status = em_file_check_folder(output);
    if (!status)
        status = em_lock_take(whole->lock_path, output, &whole->lock);
    if (!status)
        status = look(whole, overwrite, n_input, input); /* who held it may have made the file */
    if (!status)
        status = clear_part(whole->part);
    whole->holds = !status;
    return em_agree_first(status, 0);
}

const char *em_atomic_file_part(const em_atomic_file *whole)
{
    return whole->part;
}

static em_status place(const em_atomic_file *whole)
{
    em_status status = whole->lock ? em_lock_check(whole->lock) : EM_OK;

    if (!status && rename(whole->part, whole->output) != 0)
        status = em_fail(EM_EIO, "%s: cannot be renamed to %s: %s", whole->part, whole->output,
                         strerror(errno));
    if (status)
        unlink(whole->part);
    return status;
}

static void release(em_atomic_file **out)
{
    em_atomic_file *whole = *out;

    if (!whole)
        return;
    em_lock_release(&whole->lock, false);
    em_release(&whole->output);
    em_release(&whole->part);
    em_release(&whole->checkpoint);
    em_release(&whole->lock_path);
    em_release(out);
}

em_status em_atomic_file_place(em_atomic_file **whole, em_status status)
{
    const bool leads = *whole && em_world_rank() == 0;

    if (!status)
        status = em_agree(leads ? place(*whole) : EM_OK);
    else if (leads && (*whole)->holds)
        unlink((*whole)->part);
    release(whole);
    return status;
}

em_status em_atomic_file_finish(em_atomic_file **whole, em_writer **writer, em_status status)
{
    if (!status)
        status = em_writer_close(writer, true);
    else
        em_writer_discard(writer);
    return em_atomic_file_place(whole, status);
}
