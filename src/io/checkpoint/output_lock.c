#include "io/checkpoint/output_lock.h"

#include "base/fault.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/system/thread.h"
#include "par/world.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The owner increments its counter every BEAT_SECONDS. An owner whose counter has not changed for
 * PATIENCE_SECONDS counts as dead. Where two runs take the lock of a dead owner at once, the record
 * that is in the file after SETTLE_SECONDS decides which of them has it. */
enum { BEAT_SECONDS = 3, PATIENCE_SECONDS = 30, SETTLE_SECONDS = 2, RECORD_BYTES = 1024 };

/* The owner of a lock, as the file describes it. */
typedef struct lock_record {
    int held; /* 0: released */
    long long beat, pid;
    unsigned long long made;
    char host[256], boot[64], since[32], job[64];
} lock_record;

struct em_lock {
    char *path;
    int descriptor;
    lock_record own;
    bool counts, ends; /* there is a thread that increments the counter; it is to end */
    pthread_t counter;
    pthread_mutex_t mutex; /* own, ends */
    pthread_cond_t ending;
};

/* ---------------------------------------------------------------- records */

static const char layout[] = "emass lock\nheld %d\nbeat %lld\nmade %llu\npid %lld\nhost %255s\n"
                             "boot %63s\nsince %31s\njob %63s\n";

static bool put_record(const em_lock *lock)
{
    const lock_record *own = &lock->own;
    char text[RECORD_BYTES];
    const int length = snprintf(text, sizeof text,
                                "emass lock\nheld %d\nbeat %lld\nmade %llu\npid %lld\nhost %s\n"
                                "boot %s\nsince %s\njob %s\n",
                                own->held, own->beat, own->made, own->pid, own->host, own->boot,
                                own->since, own->job);

    memset(text + length, ' ', sizeof text - (size_t)length);
    text[sizeof text - 1] = '\n';
    return pwrite(lock->descriptor, text, sizeof text, 0) == sizeof text &&
           fdatasync(lock->descriptor) == 0;
}

static em_status write_record(const em_lock *lock)
{
    const em_status status = em_fault_file("lock-write", lock->path);

    if (status || put_record(lock))
        return status;
    return em_fail(EM_EIO, "%s: cannot be written: %s", lock->path, strerror(errno));
}

/* Reads the record; all zero where the file is still empty. */
static em_status read_record(int descriptor, const char *path, lock_record *out)
{
    char text[RECORD_BYTES + 1] = "";

    *out = (lock_record){.held = 0};
    if (pread(descriptor, text, RECORD_BYTES, 0) < 0)
        return em_fail(EM_EIO, "%s: cannot be read: %s", path, strerror(errno));
    if (text[0] == '\0' || sscanf(text, layout, &out->held, &out->beat, &out->made, &out->pid,
                                  out->host, out->boot, out->since, out->job) == 8)
        return EM_OK;
    return em_fail(EM_EDATA,
                   "%s: found a file that is not a lock of emass, but emass needs this name: move "
                   "the file away",
                   path);
}

/* Opens the file again and reads the record, because only then do network file systems show changes
 * by other hosts. */
static em_status read_again(const char *path, lock_record *out)
{
    EM_SCOPED_BY(em_file_close) int descriptor = -1;
    const em_status status = em_file_open(path, O_RDONLY | O_NOFOLLOW, &descriptor);

    return status ? status : read_record(descriptor, path, out);
}

static bool is_blank(const lock_record *r)
{
    return r->host[0] == '\0';
}

static bool is_same_owner(const lock_record *a, const lock_record *b)
{
    return a->pid == b->pid && strcmp(a->boot, b->boot) == 0 && strcmp(a->host, b->host) == 0 &&
           strcmp(a->since, b->since) == 0;
}

static lock_record describe_self(void)
{
    static const char *const jobs[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"};
    lock_record own = {.held = 1, .beat = 1, .pid = getpid(), .boot = "unknown", .job = "-"};
    const time_t now = time(NULL);
    struct tm utc;
    /* The identity of the running kernel, new after each boot. Locks of the operating system are
     * visible to all processes of one kernel. */
    EM_SCOPED_FILE *boot = fopen("/proc/sys/kernel/random/boot_id", "r");

    if (boot && fgets(own.boot, sizeof own.boot, boot))
        own.boot[strcspn(own.boot, "\n")] = '\0';
    if (gethostname(own.host, sizeof own.host - 1) != 0 || !own.host[0])
        snprintf(own.host, sizeof own.host, "unknown");
    strftime(own.since, sizeof own.since, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    for (size_t i = sizeof jobs / sizeof *jobs; i-- > 0;)
        if (getenv(jobs[i]))
            snprintf(own.job, sizeof own.job, "%s", getenv(jobs[i]));
    for (char *c = own.job; *c; c++)
        if (*c <= ' ')
            *c = '_';
    return own;
}

static em_status fail_held(const char *output, const char *path, const lock_record *by)
{
    if (is_blank(by))
        return em_fail(EM_EUSAGE, "%s is in use by a run that has just started (%s)", output, path);
    return em_fail(EM_EUSAGE,
                   "%s is in use by a run on %s, process %lld%s%s, since %s (%s): wait for its "
                   "end, or choose another --output",
                   output, by->host, by->pid, strcmp(by->job, "-") != 0 ? ", job " : "",
                   strcmp(by->job, "-") != 0 ? by->job : "", by->since, path);
}

/* ---------------------------------------------------------------- the operating system's lock */

typedef enum outcome {
    MINE,
    HELD,   /* by another process */
    UNKNOWN /* the file system has no locks */
} outcome;

/* Locks the open file. The lock belongs to the open file and not to the process, so it stays when
 * another part of the process opens and closes the same file. */
static outcome lock_file(int descriptor)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int result;

    if (em_fault("lock-refused"))
        return UNKNOWN;
    do
        result = fcntl(descriptor, F_OFD_SETLK, &whole);
    while (result != 0 && errno == EINTR);
    if (result == 0)
        return MINE;
    return errno == EAGAIN || errno == EACCES ? HELD : UNKNOWN;
}

/* Whether the path still leads to the open file. The owner removes the file when it releases the
 * lock. */
static bool is_still_there(int descriptor, const char *path)
{
    struct stat open_file, named;

    return fstat(descriptor, &open_file) == 0 && lstat(path, &named) == 0 &&
           open_file.st_ino == named.st_ino && open_file.st_dev == named.st_dev;
}

/* Creates the file, or opens the existing one, and locks it. It tries again if the file was removed
 * in between. Of several processes at the same time only one has created the file (`made`). */
static em_status ask(em_lock *lock, bool *made, outcome *out)
{
    enum { MOST_TRIES = 1000, CREATE = O_CREAT | O_EXCL | O_CLOEXEC };

    for (int i = 0; i < MOST_TRIES; i++) {
        em_status status = em_fault_file("lock-create", lock->path);
        if (status)
            return status;
        lock->descriptor = open(lock->path, O_RDWR | O_NOFOLLOW | CREATE, 0666);
        *made = lock->descriptor >= 0;
        if (!*made && errno != EEXIST)
            return em_fail(EM_EIO, "%s: cannot be created: %s", lock->path, strerror(errno));
        if (!*made)
            status = em_file_open(lock->path, O_RDWR | O_NOFOLLOW, &lock->descriptor);
        if (status == EM_EDATA && access(lock->path, F_OK) != 0 && errno == ENOENT)
            continue;
        if (status)
            return status;
        *out = lock_file(lock->descriptor);
        if (is_still_there(lock->descriptor, lock->path))
            return EM_OK;
        close(lock->descriptor);
        lock->descriptor = -1;
    }
    return em_fail(EM_EIO,
                   "%s: was created and removed by other runs %d times, expected it to stay",
                   lock->path, MOST_TRIES);
}

/* ---------------------------------------------------------------- the record */

/* Whether the record may be that of a running process although the operating system has granted the
 * lock or has no locks. Then the owner's counter must be watched. */
static bool must_await_change(const em_lock *lock, bool made, outcome got, const lock_record *old)
{
    if (made)
        return false;
    if (is_blank(old))
        return true; /* its owner may be about to write it */
    return old->held && (got == UNKNOWN || strcmp(old->boot, lock->own.boot) != 0);
}

/* Waits for a change of the record. A change shows that the owner runs; then the lock is refused.
 */
static em_status await_change(const em_lock *lock, const char *output, outcome got,
                              const lock_record *old)
{
    const int patience = got == MINE && is_blank(old) ? SETTLE_SECONDS : PATIENCE_SECONDS;
    lock_record now;

    if (!is_blank(old))
        em_say("%s names a run on %s, process %lld, since %s: waiting up to %d s to see whether "
               "the counter in that file changes, as it does while the run goes on",
               lock->path, old->host, old->pid, old->since, patience);
    for (int i = 0; i < patience; i++) {
        sleep(1);
        const em_status status = read_again(lock->path, &now);
        if (status)
            return status;
        if (now.held && (now.beat != old->beat || !is_same_owner(&now, old)))
            return fail_held(output, lock->path, &now);
        if (!is_blank(&now) && !now.held)
            break;
    }
    return EM_OK;
}

/* Writes the record of this run. If other runs may do the same at this moment, the last one to
 * write has the lock. */
static em_status claim(em_lock *lock, const char *output, bool contested)
{
    lock_record now;
    em_status status = write_record(lock);

    if (status || !contested)
        return status;
    sleep(SETTLE_SECONDS);
    status = read_again(lock->path, &now);
    if (!status && !is_same_owner(&now, &lock->own))
        status = fail_held(output, lock->path, &now);
    return status;
}

static em_status take(em_lock *lock, const char *output)
{
    bool made = false, contested = false;
    outcome got = UNKNOWN;
    lock_record old;
    em_status status = ask(lock, &made, &got);

    status = status ? status : read_record(lock->descriptor, lock->path, &old);
    if (!status && got == HELD)
        status = fail_held(output, lock->path, &old);
    if (!status) {
        contested = must_await_change(lock, made, got, &old);
        lock->own.made = old.made;
    }
    if (!status && contested)
        status = await_change(lock, output, got, &old);
    status = status ? status : claim(lock, output, contested || got == UNKNOWN);
    if (status == EM_EIO && made)
        unlink(lock->path);
    return status;
}

/* ---------------------------------------------------------------- the counter */

/* Whether the record now names another owner. */
static bool is_taken(const em_lock *lock, lock_record *by)
{
    return read_again(lock->path, by) == EM_OK && !is_blank(by) && !is_same_owner(by, &lock->own);
}

/* Increments the counter until the lock is released or taken by another run. */
static void *count(void *context)
{
    em_lock *lock = context;
    struct timespec next;
    lock_record by;

    pthread_mutex_lock(&lock->mutex);
    clock_gettime(CLOCK_MONOTONIC, &next);
    while (!lock->ends) {
        next.tv_sec += BEAT_SECONDS;
        while (!lock->ends &&
               pthread_cond_timedwait(&lock->ending, &lock->mutex, &next) != ETIMEDOUT)
            ;
        lock->ends = lock->ends || is_taken(lock, &by);
        lock->own.beat++;
        if (!lock->ends)
            put_record(lock); /* a failure is ignored: the next one may succeed */
    }
    pthread_mutex_unlock(&lock->mutex);
    return NULL;
}

static void stop_counter(em_lock *lock)
{
    if (!lock->counts)
        return;
    pthread_mutex_lock(&lock->mutex);
    lock->ends = true;
    pthread_cond_signal(&lock->ending);
    pthread_mutex_unlock(&lock->mutex);
    pthread_join(lock->counter, NULL);
    lock->counts = false;
}

/* ---------------------------------------------------------------- take, check, release */

static void destroy(em_lock **out)
{
    em_lock *lock = *out;

    em_file_close(&lock->descriptor); /* this releases the operating system's lock */
    pthread_mutex_destroy(&lock->mutex);
    em_release_all(&lock->path, out);
}

em_status em_lock_take(const char *path, const char *output, em_lock **out)
{
    em_status status = em_allocate(1, sizeof **out, out);
    em_lock *lock = *out;

    if (status)
        return status;
    lock->descriptor = -1;
    lock->own = describe_self();
    pthread_mutex_init(&lock->mutex, NULL);
    status = em_copy_text(path, &lock->path);
    status = status ? status : take(lock, output);
    if (status) {
        destroy(out);
        return status;
    }
    em_condition_create(&lock->ending);
    const int failed = em_thread_start(&lock->counter, count, lock);
    lock->counts = failed == 0;
    if (failed)
        em_lock_release(out, false);
    return failed ? em_fail(EM_EMEMORY, "no thread can be started: %s", strerror(failed)) : EM_OK;
}

em_status em_lock_check(em_lock *lock)
{
    lock_record by;

    if (!is_taken(lock, &by))
        return EM_OK;
    return em_fail(EM_EIO,
                   "%s: taken by a run on %s, process %lld, because the counter of this run had "
                   "not changed for %d s: nothing more is written",
                   lock->path, by.host, by.pid, PATIENCE_SECONDS);
}

uint64_t em_lock_made(const em_lock *lock)
{
    return lock->own.made;
}

em_status em_lock_set_made(em_lock *lock, uint64_t inode)
{
    pthread_mutex_lock(&lock->mutex);
    lock->own.made = inode;
    const em_status status = write_record(lock);
    pthread_mutex_unlock(&lock->mutex);
    return status;
}

void em_lock_release(em_lock **out, bool keep)
{
    em_lock *lock = *out;
    lock_record by;

    if (!lock)
        return;
    stop_counter(lock);
    if (!is_taken(lock, &by) && is_still_there(lock->descriptor, lock->path)) {
        lock->own.held = 0;
        if (!keep || !put_record(lock))
            unlink(lock->path); /* before the lock is released: no other run can own it yet */
    }
    destroy(out);
}
