#include "base/text.h"

#include "base/file.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Opens a regular file or a pipe without blocking. */
static em_status open_text(const char *path, int *descriptor)
{
    struct stat found = {.st_mode = 0};

    *descriptor = -1;
    if (stat(path, &found) == 0 && !S_ISREG(found.st_mode) && !S_ISFIFO(found.st_mode))
        return em_fail(EM_EUSAGE, "cannot read %s: found %s, expected a file", path,
                       em_file_kind(found.st_mode));
    *descriptor = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    return *descriptor >= 0 ? EM_OK
                            : em_fail(EM_EUSAGE, "cannot read %s: %s", path, strerror(errno));
}

/* Reads to the end of the file without asking for its size, because the file may be a pipe. */
static em_status read_all(const char *path, int descriptor, int64_t max_bytes, char *text)
{
    enum { PATIENCE_SECONDS = 20 };
    struct pollfd wait = {.fd = descriptor, .events = POLLIN};
    int64_t length = 0;
    ssize_t got = 1;

    while (got != 0 && length <= max_bytes) {
        if (poll(&wait, 1, 1000 * PATIENCE_SECONDS) == 0)
            return em_fail(EM_EUSAGE, "cannot read %s: a FIFO without data for %d s", path,
                           PATIENCE_SECONDS);
        got = read(descriptor, text + length, (size_t)(max_bytes + 1 - length));
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            return em_fail(EM_EUSAGE, "cannot read %s: %s", path, strerror(errno));
        length += got > 0 ? got : 0;
    }
    if (length > max_bytes)
        return em_fail(EM_EDATA, "%s: longer than %lld bytes", path, (long long)max_bytes);
    if ((int64_t)strlen(text) != length)
        return em_fail(EM_EDATA, "%s: found a NUL byte, expected text", path);
    return EM_OK;
}

em_status em_read_text_file(const char *path, int64_t max_bytes, char **text)
{
    EM_SCOPED_BY(em_file_close) int descriptor = -1;
    em_status status = open_text(path, &descriptor);

    *text = NULL;
    if (status)
        return status;
    status = em_allocate(max_bytes + 2, 1, text);
    status = status ? status : read_all(path, descriptor, max_bytes, *text);
    if (status)
        em_release(text);
    return status;
}

/* ---------------------------------------------------------------- characters */

static bool is_any(uint32_t code)
{
    (void)code;
    return true;
}

static em_status escape_all(const char *text, bool (*keeps)(uint32_t), char **out)
{
    char one[EM_LONGEST_ESCAPE + 1];
    size_t bytes = 1;

    for (const char *next = text; *next; bytes += strlen(one))
        next += em_escape_one(next, keeps, one);
    const em_status status = em_allocate((int64_t)bytes, 1, out);
    if (!status)
        em_escape(text, keeps, *out, bytes);
    return status;
}

em_status em_text_printable(const char *text, char **out)
{
    return escape_all(text, em_is_printable, out);
}

em_status em_text_valid(const char *text, char **out)
{
    return escape_all(text, is_any, out);
}

typedef struct numbered_text {
    const char *text;
    int64_t number;
} numbered_text;

static int by_text(const void *a, const void *b)
{
    const numbered_text *x = a, *y = b;
    const int order = strcmp(x->text, y->text);

    return order ? order : (x->number > y->number) - (x->number < y->number);
}

em_status em_text_find_twin(int64_t n, const char *const *text, int64_t *twin)
{
    EM_SCOPED numbered_text *sorted = NULL;
    int64_t n_sorted = 0;
    em_status status = em_allocate(n, sizeof *sorted, &sorted);

    *twin = -1;
    if (status)
        return status;
    for (int64_t i = 0; i < n; i++)
        if (text[i])
            sorted[n_sorted++] = (numbered_text){text[i], i};
    qsort(sorted, (size_t)n_sorted, sizeof *sorted, by_text);
    for (int64_t i = 1; i < n_sorted; i++)
        if (strcmp(sorted[i].text, sorted[i - 1].text) == 0 &&
            (*twin < 0 || sorted[i].number < *twin))
            *twin = sorted[i].number;
    return EM_OK;
}

em_number_text em_three_digits(double x)
{
    em_number_text out;

    snprintf(out.text, sizeof out.text, "%.3g", x);
    if (strchr(out.text, 'e') && fabs(x) > 1 && fabs(x) < 1e15)
        snprintf(out.text, sizeof out.text, "%.0f", strtod(out.text, NULL));
    return out;
}

void em_append(size_t bytes, char *out, const char *format, ...)
{
    const size_t used = strlen(out);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(out + used, bytes - used, format, arguments);
    va_end(arguments);
}

int em_text_find(const char *text, const char *const *list)
{
    for (int i = 0; list[i]; i++)
        if (strcmp(list[i], text) == 0)
            return i;
    return -1;
}

bool em_text_ends_with(const char *text, const char *end)
{
    const size_t length = strlen(text), n = strlen(end);

    return length > n && strcmp(text + length - n, end) == 0;
}

em_status em_text_begin(em_text_stream *stream)
{
    *stream = (em_text_stream){.text = NULL};
    stream->out = open_memstream(&stream->text, &stream->length);
    return stream->out ? EM_OK : em_fail(EM_EMEMORY, "out of memory for a text");
}

em_status em_text_end(em_text_stream *stream, em_status status, char **text)
{
    if (stream->out && fclose(stream->out) != 0 && !status)
        status = em_fail(EM_EMEMORY, "out of memory for a text");
    if (status)
        em_release(&stream->text);
    *text = stream->text;
    return status;
}
